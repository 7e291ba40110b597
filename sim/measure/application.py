# SPDX-License-Identifier: Apache-2.0
"""Runs a program to its end and measures its times, ranks, messages and channel utilisation."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Row
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.base import ApplicationRun, Flows, FluidRun, MessageDropped, PacketProgramRun
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.executed import Executed
from flitlab.sim.measure.pauses import ProgramPauses, program_pauses
from flitlab.sim.measure.point import channel_columns
from flitlab.sim.measure.result import BINS, EpochTraffic, Result, interval
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


class Progress:
    """Advances a run of mode ``flow`` and samples the progress of its messages, at every epoch besides."""

    def __init__(self, run: FluidRun, scenario: Scenario[SwitchingMode, Workload], timeline: Timeline):
        self.run, self.scenario, self.timeline = run, scenario, timeline
        self._begins = [epoch.tick for epoch in timeline.epochs]
        self._flits = {0: 0.0}
        self._of_sends = {0: run.progress()}

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""
        for tick in [*self._begins, until]:
            if max(self._flits) < tick <= until:
                self.run.advance(tick)
                self._sample(tick)

    def _sample(self, tick: int) -> None:
        progress = self.run.progress()
        self._flits[tick] = float(progress.sum())
        if tick in self._begins:
            self._of_sends[tick] = progress

    def rows(self, end: int) -> list[Row]:
        """Rows of throughput_time.csv until the tick at which the program ended."""
        topology, tick_ns = self.scenario.topology, float(self.scenario.work.messages.tick_ns)
        inside = [tick for tick in self._flits if tick < end and self._is_row_edge(tick, end)]
        samples = {tick: self._flits[tick] for tick in inside} | {end: max(self._flits.values())}
        nic = topology.hosts * topology.host_capacity
        return [
            interval(a, b, tick_ns, (samples[b] - samples[a]) / ((b - a) * nic)) for a, b in pairwise(sorted(samples))
        ]  # fmt: skip

    def _is_row_edge(self, tick: int, end: int) -> bool:
        """Whether a sample bounds a row: one of about BINS, or the start of an epoch."""
        before = max((other for other in self._flits if other < tick), default=-1)
        return tick in self._begins or before < 0 or tick * BINS // end != before * BINS // end

    def parts(self, end: int) -> tuple[EpochTraffic, ...]:
        """Traffic that left its sources in each epoch, until the tick at which the program ended.

        A fluid is on all channels of its path at once, so none is in flight at the start of an epoch.
        """
        last = self.run.progress()
        samples = {tick: progress for tick, progress in self._of_sends.items() if tick < end} | {end: last}
        none, epochs = self._flows(np.zeros_like(last)), []
        for epoch, (a, b) in enumerate(pairwise(sorted(samples))):
            window = (b - a) / self.scenario.switching.flits_per_tick(self.scenario.topology)
            epochs.append(EpochTraffic(epoch, self._flows(samples[b] - samples[a]), none, window))
        return tuple(epochs)

    def _flows(self, flits: Floats) -> Flows:
        """Whole flits of each send, float64 [operations], by source and destination."""
        program, host, topology = self.scenario.work.program, self.scenario.work.host, self.scenario.topology
        sends = np.flatnonzero(flits >= 1)
        amount = flits[sends].astype(np.int64)
        source, target = host[program.rank[sends]], host[program.peer[sends]]
        pair = topology.host_switch[source] * topology.switches + topology.ejection_switch[target]
        ends = (np.bincount(hosts, amount, topology.hosts).astype(np.int64) for hosts in (source, target))
        return Flows(PairCounts.of(topology.switches, pair, amount), *ends)


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
