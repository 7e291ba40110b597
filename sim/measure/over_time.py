# SPDX-License-Identifier: Apache-2.0
"""What is delivered while a network changes: interval by interval, for a figure, and epoch by epoch, to be checked."""

from itertools import pairwise
from typing import Any

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.base import Flows, FluidRun
from flitlab.sim.measure.result import Part

BINS = 100
"""Intervals of throughput over time, besides those that begin with an epoch."""


def edges_until(timeline: Timeline, last: int) -> set[int]:
    """The ends of the intervals of throughput over time, in which nothing happens to the network, up to ``last``."""
    even = (last * i // BINS for i in range(BINS + 1))
    return {*even, *(epoch.tick for epoch in timeline.epochs if epoch.tick < last)}


def interval(start: int, end: int, tick_ns: float | None, host_throughput: float, **counted: int) -> dict[str, Any]:
    """A row of throughput_time.csv: from a tick to another.

    tick_ns: None where nobody knows how long a tick is. host_throughput: what a host receives, as a part of what its
    network interface sends. counted: what else was counted, by column.
    """
    us = {} if tick_ns is None else {"from_us": start * tick_ns / 1e3, "to_us": end * tick_ns / 1e3}
    return {"from_tick": start, "to_tick": end, **us, "host_throughput": host_throughput, **counted}


class Progress:
    """How far the messages of a program have come whenever somebody looks, in mode ``flow``.

    It advances the run, by way of the ticks at which epochs begin.
    """

    def __init__(self, run: FluidRun, scenario: Scenario[Any, Workload], timeline: Timeline):
        self.run, self.scenario, self.timeline = run, scenario, timeline
        self._begins = [epoch.tick for epoch in timeline.epochs]
        self._flits = {0: 0.0}
        self._of_sends = {0: run.progress()}

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""
        for tick in [*self._begins, until]:
            if max(self._flits) < tick <= until:
                self.run.advance(tick)
                self._look(tick)

    def _look(self, tick: int) -> None:
        progress = self.run.progress()
        self._flits[tick] = float(progress.sum())
        if tick in self._begins:
            self._of_sends[tick] = progress

    def rows(self, end: int) -> list[dict[str, Any]]:
        """Rows of throughput_time.csv until the tick at which the program was done."""
        topology, tick_ns = self.scenario.topology, float(self.scenario.work.messages.tick_ns)
        inside = [tick for tick in self._flits if tick < end and self._is_kept(tick, end)]
        looks = {tick: self._flits[tick] for tick in inside} | {end: max(self._flits.values())}
        nic = topology.hosts * topology.host_capacity
        return [
            interval(a, b, tick_ns, (looks[b] - looks[a]) / ((b - a) * nic)) for a, b in pairwise(sorted(looks))
        ]  # fmt: skip

    def _is_kept(self, tick: int, end: int) -> bool:
        """Whether a look is one of about BINS, or of an epoch's beginning."""
        before = max((other for other in self._flits if other < tick), default=-1)
        return tick in self._begins or before < 0 or tick * BINS // end != before * BINS // end

    def parts(self, end: int) -> tuple[Part, ...]:
        """What left its source in each epoch, until the tick at which the program was done.

        A fluid is on all channels of its way at a time, so that none is under way as an epoch begins.
        """
        last = self.run.progress()
        looks = {tick: progress for tick, progress in self._of_sends.items() if tick < end} | {end: last}
        none, found = self._flows(np.zeros_like(last)), []
        for epoch, (a, b) in enumerate(pairwise(sorted(looks))):
            window = (b - a) / self.scenario.switching.flits_per_tick(self.scenario.topology)
            found.append(Part(epoch, self._flows(looks[b] - looks[a]), none, window))
        return tuple(found)

    def _flows(self, flits: Floats) -> Flows:
        """Whole flits of each send, float64 [operations], by the ends of their messages."""
        program, host, topology = self.scenario.work.program, self.scenario.work.host, self.scenario.topology
        sends = np.flatnonzero(flits >= 1)
        amount = flits[sends].astype(np.int64)
        source, target = host[program.rank[sends]], host[program.peer[sends]]
        place = topology.host_switch[source] * topology.switches + topology.host_switch[target]
        ends = (np.bincount(hosts, amount, topology.hosts).astype(np.int64) for hosts in (source, target))
        return Flows(PairCounts.of(topology.switches, place, amount), *ends)
