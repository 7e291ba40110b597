# SPDX-License-Identifier: Apache-2.0
"""One probe of a search for saturation: a sequential test of whether a load is carried.

Three criteria speak of a window: backlogs grow by more than arrivals vary, that of all traffic together (``loss``), of
a host (``starving``), or of a channel (``channel``; only where routes are fixed when packets are created). Their bounds
allow for the number of hosts, channels and windows of a search (:mod:`flitlab.sim.measure.growth`). A load is saturated
if two of them say so in one window, or any in two consecutive windows; it is carried if none does in a window that
rules out an overload of the resolution wanted. Otherwise the run goes on: the next window begins where the last one
ended, so that its draws are fresh, and is four times as long; the longest is repeated where one criterion alone said
so in it. Channels whose score is high in a window are a
family of their own in the next, which needs less evidence for fewer of them.

A network may be bistable: it carries a load for a random time, until blocked packets fill its buffers and throughput
collapses. Near saturation the verdict of one run is then that of its draws, so a search confirms it with fresh ones.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Run
from flitlab.sim.measure.growth import channel_scores, hosts_grow, overload_score, resolution, total_grows
from flitlab.sim.measure.point import Measure, observe, result, warm_up
from flitlab.sim.measure.result import Result
from flitlab.sim.measure.saturation import CHANNEL, DIFFER, LOSS, SHORT, STARVING
from flitlab.sim.measure.window import Window
from flitlab.sim.measure.windows import longer

TESTS = 256
"""Tests of a search, at most, of four in each window: over these, probabilities of false alarms add up."""

SUSPECT = 2.5
"""Score of a channel from which on the next window tests it again."""


def measure_probe(run: Run, scenario: Scenario, load: float, how: Measure) -> Result:
    """Measure a run from its beginning until a load is seen to be carried or not, in windows of up to ``how.longest``.

    The columns are those of the last window; ``saturated`` is None where even that was too short to tell.
    Raises :class:`~flitlab.sim.measure.standstill.StandstillError` if nothing moves that should.
    """
    assert how.resolution is not None
    start, settled = warm_up(run, scenario, how)
    ticks, before, suspects = how.ticks, False, np.zeros(0, np.int64)
    while True:
        seen = observe(run, scenario, load, start, replace(how, ticks=ticks, ci=None))
        channel, suspects = _channels(scenario, load, seen.window, suspects)
        said = {
            LOSS: total_grows(scenario, load, seen.window, TESTS),
            STARVING: hosts_grow(scenario, load, seen.window, seen.created, seen.backlog, TESTS), CHANNEL: channel,
        }  # fmt: skip
        alarms = sum(said.values())
        reached = resolution(scenario, load, seen.window.after)
        saturated = alarms > 1 or bool(alarms and before)
        start, before, length = start + ticks, alarms > 0, ticks
        ticks = min(longer(ticks, how.ticks * how.longest), LONGEST_RUN - start)
        longest = ticks <= length
        if saturated or ticks < length or (not alarms and (longest or reached <= how.resolution)):
            break
    row: dict[str, Any] = {"saturated": saturated if saturated or not alarms else None, "resolution": reached}
    row["saturated_by"] = next((name for name, says in said.items() if says and saturated), SHORT if alarms else "")
    return result(run, scenario, load, seen, row | {"warmup_ticks": start - length, "steady": settled})


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
            probe.row.update(saturated=None, saturated_by=DIFFER)
            break
    return probe


def _channels(scenario: Scenario, load: float, window: Window, suspects: Ints) -> tuple[bool, Ints]:
    """(whether a channel is overloaded, the channels whose score is high).

    suspects: the channels whose score was high in the window before, int64.
    """
    found = window.channels
    if found is None:
        return False, suspects[:0]
    scores = channel_scores(scenario, load, found)
    families = scores, scores[np.isin(found.channel, suspects)]
    overloaded = any((some > overload_score(len(some), TESTS)).any() for some in families)
    return overloaded, found.channel[scores > SUSPECT]
