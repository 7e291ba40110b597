# SPDX-License-Identifier: Apache-2.0
"""Runs a program to its end and measures its times, ranks, messages and channel utilisation."""

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Ints
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.base import ApplicationRun, MessageDropped, PacketProgramRun
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.executed import Executed
from flitlab.sim.measure.pauses import ProgramPauses, program_pauses
from flitlab.sim.measure.point import channel_columns
from flitlab.sim.measure.result import EpochTraffic, Result
from flitlab.sim.measure.throughput_time import Progress
from flitlab.sim.measure.unfinished import StallDetector
from flitlab.sim.measure.unfinished import UnfinishedError as UnfinishedError

MAX_BINS = 256
"""The most intervals of utilisation over time; beyond, neighbours are merged."""

FIRST_BIN = 64
"""Ticks of an interval at first."""

MAX_STORED = 4_000_000
"""The most numbers stored for utilisation over time; networks with many channels have fewer intervals."""


class ProgramMeasure(NamedTuple):
    """The limit of a program's run.

    max_ticks: None for no limit. channels: whether the traffic of channels is counted.
    """

    max_ticks: int | None = None
    channels: bool = False


def measure_program(
    run: ApplicationRun, scenario: Scenario[SwitchingMode, Workload], load: float, how: ProgramMeasure
) -> Result:
    """Run a program to its end.

    Parameters
    ----------
    run : ApplicationRun
        The run at tick 0.
    scenario : Scenario
        Its scenario.
    load : float
        Not used.
    how : ProgramMeasure
        The limit of the run.

    Returns
    -------
    Result
        Its detail has the rows of ranks.csv, steps.csv, utilisation.csv, messages.csv, critical_path.csv and
        timeline.csv, and with lossless queues pauses.csv and pauses_time.csv, by name.

    Raises
    ------
    UnfinishedError
        If the program does not end, or not within ``max_ticks``.
    """
    timeline = scenario.timeline
    progress = None if timeline is None else _progress(run, scenario, timeline)
    pauses = program_pauses(run)
    edges, carried = run_to_end(run, scenario, how.max_ticks, progress, pauses)
    executed = Executed.of(scenario, run.execution())
    row = executed.row() | executed.use(edges, carried) | measured("programs", executed)
    delivered = executed.delivered()
    none = delivered.minus(delivered)
    window = (executed.ticks + 1) / scenario.switching.flits_per_tick(scenario.topology)
    detail, end = executed.detail(edges, carried), executed.ticks + 1
    if pauses is not None:
        columns, tables = pauses.results(end)
        row |= columns
        detail |= tables
    if how.channels:
        counted = replace(cast("PacketProgramRun", run).snapshot(), tick=end)
        detail |= channel_columns(counted)
    if timeline is None:
        return Result(row, detail, delivered, none, window)
    parts: tuple[EpochTraffic, ...] = ()
    if progress is not None:
        detail["throughput_time"], parts = progress.rows(end), progress.parts(end)
    return Result(row, detail, delivered, none, window, capacity=timeline.capacity(0, end), parts=parts)


def _progress(run: Any, scenario: Scenario[SwitchingMode, Workload], timeline: Timeline) -> Progress | None:
    """Return the sampler of message progress for a timeline; None for engines without progress."""
    return Progress(run, scenario, timeline) if hasattr(run, "progress") else None


def run_to_end(
    run: ApplicationRun, scenario: Scenario[SwitchingMode, Workload], max_ticks: int | None,
    progress: Progress | None = None, pauses: ProgramPauses | None = None,
) -> tuple[Ints, Floats]:  # fmt: skip
    """Advance a run until every operation is complete.

    Parameters
    ----------
    max_ticks : int or None
        The most ticks.
    progress : Progress, optional
        Advances and samples the run.
    pauses : ProgramPauses, optional
        Samples pauses at the edges.

    Returns
    -------
    edges : int64 [edges]
        Bounds of equal intervals, in ticks.
    carried : float64 [edges, channels]
        Flits on each channel up to each edge.

    Raises
    ------
    UnfinishedError
        If the program does not end in time.
    """
    bins = max(16, min(MAX_BINS, MAX_STORED // max(scenario.topology.channels, 1)))
    width, edges, carried = FIRST_BIN, [0], [np.asarray(run.carried(), float)]
    watch = StallDetector(run, scenario)
    last = run.latest if max_ticks is None else min(max_ticks + 1, run.latest)
    while not run.done():
        if edges[-1] >= last:
            watch.fail(_too_long(scenario, run.latest, max_ticks))
        if len(edges) > bins:
            edges, carried, width = edges[::2], carried[::2], 2 * width
        edges.append(edges[-1] + width)
        try:
            (progress or run).advance(min(edges[-1], last))
        except MessageDropped as error:
            watch.fail(str(error))
        carried.append(np.asarray(run.carried(), float))
        if pauses is not None:
            pauses.sample(edges)
        if not run.done():
            watch.check(edges[-1])
    return np.array(edges), np.array(carried)


def _too_long(scenario: Scenario, latest: int, max_ticks: int | None) -> str:
    if max_ticks is not None and max_ticks < latest:
        return f"the program takes longer than measure.max_ticks, {max_ticks:,} ticks"
    far = f"the limit of mode {scenario.switching.mode} (simulate fewer iterations, or use mode flow)"
    return f"the program takes longer than {latest:,} ticks, {far}"
