# SPDX-License-Identifier: Apache-2.0
"""A program that runs to its end: its time, what its ranks did in it, its messages, and the use of the channels."""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Ints
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.base import ApplicationRun, MessageDropped
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.ending import UnfinishedError as UnfinishedError
from flitlab.sim.measure.ending import Watch
from flitlab.sim.measure.executed import Executed
from flitlab.sim.measure.over_time import Progress
from flitlab.sim.measure.result import Part, Result

MOST_BINS = 256
"""Intervals of utilisation over time: where there are more, each two of them become one."""

FIRST_BIN = 64
"""Ticks of an interval in the beginning."""

MOST_KEPT = 4_000_000
"""Numbers that are kept for utilisation over time; fewer intervals where there are many channels."""


class Ending(NamedTuple):
    """How long a program may take.

    max_ticks: None for as long as it takes.
    """

    max_ticks: int | None = None


def measure_program(run: ApplicationRun, scenario: Scenario[Any, Workload], load: float, how: Ending) -> Result:
    """Run a program to its end.

    Of detail, rows of ranks.csv, steps.csv, utilisation.csv, messages.csv, critical_path.csv and timeline.csv, by name.
    Raises :class:`~flitlab.sim.measure.ending.UnfinishedError` if it has no end, or none within ``max_ticks``.
    """
    timeline = scenario.timeline
    progress = None if timeline is None else _progress(run, scenario, timeline)
    edges, carried = run_to_end(run, scenario, how.max_ticks, progress)
    executed = Executed.of(scenario, run.execution())
    row = executed.row() | executed.use(edges, carried) | measured("programs", executed)
    delivered = executed.delivered()
    none = delivered.minus(delivered)
    window = (executed.ticks + 1) / scenario.switching.pace(scenario.topology)
    detail, end = executed.detail(edges, carried), executed.ticks + 1
    if timeline is None:
        return Result(row, detail, delivered, none, window)
    parts: tuple[Part, ...] = ()
    if progress is not None:
        detail["throughput_time"], parts = progress.rows(end), progress.parts(end)
    return Result(row, detail, delivered, none, window, capacity=timeline.capacity(0, end), parts=parts)


def _progress(run: Any, scenario: Scenario[Any, Workload], timeline: Timeline) -> Progress | None:
    """What looks how far messages have come while the network changes; None where an engine does not say."""
    return Progress(run, scenario, timeline) if hasattr(run, "progress") else None


def run_to_end(
    run: ApplicationRun, scenario: Scenario[Any, Workload], max_ticks: int | None, progress: Progress | None = None
) -> tuple[Ints, Floats]:
    """Advance a run until every operation is done; what channels carried meanwhile.

    progress: what advances it and looks at it, None if nothing does. Returns the edges of equal intervals, int64
    [edges], in ticks, and the flits carried up to each, float64 [edges, channels].
    Raises :class:`~flitlab.sim.measure.ending.UnfinishedError`.
    """
    bins = max(16, min(MOST_BINS, MOST_KEPT // max(scenario.topology.channels, 1)))
    width, edges, carried = FIRST_BIN, [0], [np.asarray(run.carried(), float)]
    watch = Watch(run, scenario)
    last = run.latest if max_ticks is None else min(max_ticks + 1, run.latest)
    while not run.done():
        if edges[-1] >= last:
            watch.give_up(_too_long(scenario, run.latest, max_ticks))
        if len(edges) > bins:
            edges, carried, width = edges[::2], carried[::2], 2 * width
        edges.append(edges[-1] + width)
        try:
            (progress or run).advance(min(edges[-1], last))
        except MessageDropped as error:
            watch.give_up(str(error))
        carried.append(np.asarray(run.carried(), float))
        if not run.done():
            watch.look(edges[-1])
    return np.array(edges), np.array(carried)


def _too_long(scenario: Scenario, latest: int, max_ticks: int | None) -> str:
    if max_ticks is not None and max_ticks < latest:
        return f"the program takes longer than measure.max_ticks, {max_ticks:,} ticks"
    far = f"as far as mode {scenario.switching.mode} counts (simulate fewer iterations, or mode flow)"
    return f"the program takes longer than {latest:,} ticks, {far}"
