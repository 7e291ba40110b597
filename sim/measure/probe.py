# SPDX-License-Identifier: Apache-2.0
"""One probe of a search for saturation: a sequential test of whether a load is carried.

Three criteria test a window: whether backlogs grow by more than arrivals vary, in total (``loss``), at a host
(``starving``), or of a channel (``channel``; only where routes are fixed at the creation of packets). Their bounds
allow for the number of hosts, channels and windows of a search (:mod:`flitlab.sim.measure.growth`).

A load is saturated if two criteria raise an alarm in one window, or any in two consecutive windows. It is carried if
none does in a window that excludes an overload of the required resolution. Otherwise the run continues: the next window
begins where the last one ended, so its draws are independent, and is four times as long; the longest is repeated after
a single alarm. Channels with a high score in a window are tested as a family of their own in the next, which needs less
evidence for fewer channels.

A network may be bistable: it carries a load for a random time, until blocked packets fill its buffers and throughput
collapses. Near saturation the verdict of one run is then that of its draws, so a search confirms it with fresh ones.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import Row
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Run
from flitlab.sim.measure.growth import channel_scores, hosts_grow, resolution, total_grows
from flitlab.sim.measure.point import Measure, observe, result, warm_up
from flitlab.sim.measure.probe_windows import longer
from flitlab.sim.measure.result import Result
from flitlab.sim.measure.saturation import SaturatedBy
from flitlab.sim.measure.verdict import overload_score
from flitlab.sim.measure.window import Window

TESTS = 256
"""The most tests of a search, four in each window: the probabilities of false alarms add up over them."""

SUSPECT = 2.5
"""Score of a channel from which on the next window tests it again."""


def measure_probe(run: Run, scenario: Scenario, load: float, how: Measure) -> Result:
    """Measure a run until its load is found carried or saturated, in windows of up to ``how.longest``.

    The columns are those of the last window; ``saturated`` is None where even that was too short to decide. Raises
    :class:`~flitlab.sim.measure.result.StallError` for a stall that a certificate excludes.
    """
    assert how.resolution is not None
    start, settled = warm_up(run, scenario, load, how)
    ticks, previous_alarm, suspects = how.ticks, False, np.zeros(0, np.int64)
    while True:
        observed = observe(run, scenario, load, start, replace(how, ticks=ticks, ci=None))
        channel, suspects = _channels(scenario, load, observed.window, suspects)
        alarms_by_criterion = {
            SaturatedBy.LOSS: total_grows(scenario, load, observed.window, TESTS),
            SaturatedBy.STARVING: hosts_grow(
                scenario, load, observed.window, observed.created, observed.backlog, TESTS
            ),
            SaturatedBy.CHANNEL: channel,
        }
        alarms = sum(alarms_by_criterion.values())
        reached = resolution(scenario, load, observed.window.after)
        saturated = alarms > 1 or bool(alarms and previous_alarm)
        start, previous_alarm, length = start + ticks, alarms > 0, ticks
        ticks = min(longer(ticks, how.ticks * how.longest), LONGEST_RUN - start)
        longest = ticks <= length
        if saturated or ticks < length or (not alarms and (longest or reached <= how.resolution)):
            break
    row: Row = {"saturated": saturated if saturated or not alarms else None, "resolution": reached}
    row["saturated_by"] = next(
        (name for name, says in alarms_by_criterion.items() if says and saturated), SaturatedBy.SHORT if alarms else ""
    )
    return result(run, scenario, load, observed, row | {"warmup_ticks": start - length, "steady": settled})


def fresh_seeds(seed: int, draws: int) -> list[int]:
    """Seeds of runs that confirm a probe of ``seed``: the same in any process, and others than a study has."""
    return [int(content_hash("confirmation", seed, number)[:15], 16) for number in range(draws)]


def until_verdicts_differ(probes: Iterable[Result]) -> Result:
    """The last of some probes of a load, which differ in their draws; without a verdict, where theirs are not the same.

    probes: at least one; none is run after the first whose verdict differs.
    """
    verdicts = set()
    for probe in probes:
        verdicts.add(probe.row["saturated"])
        if len(verdicts) > 1:
            probe.row.update(saturated=None, saturated_by=SaturatedBy.DIFFER)
            break
    return probe


def _channels(scenario: Scenario, load: float, window: Window, suspects: Ints) -> tuple[bool, Ints]:
    """Return whether a channel is overloaded, and the channels with a high score, int64.

    suspects: channels with a high score in the previous window, int64.
    """
    traffic = window.channels
    if traffic is None:
        return False, suspects[:0]
    scores = channel_scores(scenario, load, traffic)
    families = scores, scores[np.isin(traffic.channel, suspects)]
    overloaded = any((some > overload_score(len(some), TESTS)).any() for some in families)
    return overloaded, traffic.channel[scores > SUSPECT]
