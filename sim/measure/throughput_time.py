# SPDX-License-Identifier: Apache-2.0
"""Delivered traffic of a run with a timeline: by interval for a figure, and by epoch for the check against ceilings."""

from itertools import pairwise

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.mappings import Row
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.base import Flows, FluidRun
from flitlab.sim.measure.result import EpochTraffic

BINS = 100
"""Intervals of throughput over time, besides those that begin with an epoch."""


def edges_until(timeline: Timeline, last: int) -> set[int]:
    """Return the bounds of the intervals of throughput over time up to ``last``; the network is constant in each."""
    even = (last * i // BINS for i in range(BINS + 1))
    return {*even, *(epoch.tick for epoch in timeline.epochs if epoch.tick < last)}


def interval(start: int, end: int, tick_ns: float | None, host_throughput: float, **counted: int) -> Row:
    """Return a row of throughput_time.csv.

    Parameters
    ----------
    start, end : int
        Bounds in ticks.
    tick_ns : float or None
        Duration of a tick; None if unknown.
    host_throughput : float
        Received by a host, as a fraction of the NIC rate.
    counted : int
        Other counters, by column.
    """
    us = {} if tick_ns is None else {"from_us": start * tick_ns / 1e3, "to_us": end * tick_ns / 1e3}
    return {"from_tick": start, "to_tick": end, **us, "host_throughput": host_throughput, **counted}


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
