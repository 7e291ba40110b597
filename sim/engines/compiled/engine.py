# SPDX-License-Identifier: Apache-2.0
"""The compiled engine: a discipline's kernel behind the interface of :mod:`flitlab.sim.engines.base`."""

from types import ModuleType
from typing import Any

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.pairs import PairCounts
from flitlab.models.rules.arrivals import make_arrivals
from flitlab.models.rules.packets import make_packets
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import (
    CREATED_FLITS,
    CREATED_PACKETS,
    DELIVERED_PACKETS,
    SENT_PACKETS,
    Execution,
    Flows,
    Outstanding,
    PacketLog,
    ProgramStatus,
    Snapshot,
    can_count_outstanding,
    check_tick_limit,
)
from flitlab.sim.engines.compiled import messages, ranks, records, sources
from flitlab.sim.engines.compiled.owed import owed
from flitlab.sim.engines.compiled.team import Team

MOST_COUNTED = 1 << 31
"""Flits that may come to a switch, by all that leads to it, before the counters of its pairs, of 32 bits, are read."""


class CompiledRun:
    """A simulation of packets under way in a compiled kernel (see :class:`flitlab.sim.engines.base.Run`).

    kernel: of a discipline, a module with ``build``, ``advance``, ``stuck`` and ``moved``. threads: for more than one
    it also has ``split`` and ``fold``.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario, load: float, seed: int, log: bool, threads: int = 1):
        self._kernel = kernel
        source, topology = scenario.source, scenario.topology
        flits, shares = source.flits, source.shares
        if isinstance(scenario.work, Workload):  # hosts draw nothing; what they send has lengths of its own
            load, flits, shares = 0.0, messages.packet_lengths(scenario.work), (1.0, 1.0)
        arrivals = make_arrivals(source.arrivals, load, source.mean_flits, scenario.traffic.rate, source.burst)
        packets = make_packets(scenario.traffic, flits, shares)
        self._topology = topology
        self._fixed = scenario.routes.oblivious and not isinstance(scenario.work, Workload)
        self._constants, self._state = self._kernel.build(scenario, arrivals, packets, seed)
        self._cursor = sources.start_cursor(topology.hosts)
        self._tick, self._counted = 0, 0
        self._pairs = PairCounts.none(topology.switches)
        self._countable = MOST_COUNTED // int((topology.in_degree + topology.host_count).max())
        if log:
            entries = np.zeros(((1 << 12) + 2 * topology.hosts, 3), np.int64)
            self._state = self._state._replace(tally=self._state.tally._replace(log=entries))
        self._team = Team(kernel, scenario, self._constants, self._state, threads) if threads > 1 else None
        if self._team:
            self._state = self._team.whole

    def advance(self, until: int) -> None:
        check_tick_limit(until)
        while self._tick < until:
            if self._tick >= self._counted + self._countable:
                self._count_pairs()
            stop = min(until, self._counted + self._countable)
            self._tick = self._move(stop)
            if self._tick < 0:
                raise AssertionError("a switch holds more packets than the proven bound: a bug in flitlab")
            if self._tick < stop and not self._team:
                self._state = records.with_room(self._state, self._topology.hosts)

    def _move(self, until: int) -> int:
        """Simulate ticks up to, not including, ``until``, or an earlier one where logs or pools are full."""
        if self._team:
            return self._team.advance(self._tick, until)
        return int(self._kernel.advance(self._constants, self._state, self._tick, until))

    def _whole(self) -> Any:
        """Return the state with all that several threads know of it."""
        return self._team.complete() if self._team else self._state

    def _count_pairs(self) -> None:
        """Add the counters of pairs to what was counted before, and set them to 0."""
        counters = self._state.tally.pairs
        self._pairs += PairCounts.of_table(self._topology.switches, counters)
        counters[:] = 0
        self._counted = self._tick

    def _count_created(self) -> None:
        net = self._constants.net
        sent = records.sent(self._state)
        sources.count_created(net.arrivals, net.packets, net.seed, self._tick, sent, self._cursor)

    def backlog(self) -> Ints:
        self._count_created()
        backlog: Ints = self._cursor[:, sources.FLITS] - self._state.tally.by_source
        return backlog

    def scalars(self) -> Ints:
        self._count_created()
        scalars: Ints = self._state.tally.scalars.copy()
        scalars[CREATED_PACKETS] = np.maximum(self._cursor[:, sources.SEQUENCE], 0).sum()
        scalars[CREATED_FLITS] = self._cursor[:, sources.FLITS].sum()
        return scalars

    def snapshot(self) -> Snapshot:
        state, n = self._whole(), self._topology.switches
        tally, scalars = state.tally, self.scalars()
        source, destination, flits = records.in_network(state)
        place, hosts = self._topology.host_switch, self._topology.hosts
        present = Flows(
            PairCounts.of(n, place[source] * n + place[destination], flits),
            _total(source, flits, hosts),
            _total(destination, flits, hosts),
        )
        pairs = self._pairs + PairCounts.of_table(n, tally.pairs)
        delivered = Flows(pairs, tally.by_source.copy(), tally.by_destination.copy())
        return Snapshot(
            self._tick, scalars, tally.histogram.copy(), tally.hops.copy(), tally.deflections.copy(),
            self._cursor[:, sources.FLITS].copy(), tally.channel_flits.copy(), delivered, present,
            self._owed(state) if can_count_outstanding(scalars) else None,
        )  # fmt: skip

    def _owed(self, state: Any) -> Outstanding | None:
        """What is owed to each channel; None where routes are not fixed when packets are created."""
        return owed(self._constants, state, self._topology, self._tick) if self._fixed else None

    def log(self) -> PacketLog:
        used = self._whole().tally.log[: self._state.tally.scalars[DELIVERED_PACKETS]]
        order = np.argsort(used[:, 0])
        return PacketLog(*used[order].T.copy())

    def deadlocked(self) -> bool:
        return bool(self._kernel.stuck(self._constants, self._whole(), self._tick))


def _total(index: Ints, amount: Ints, size: int) -> Ints:
    """Sum of the amounts that go to every index, int64 [size], in whole numbers."""
    total = np.zeros(size, np.int64)
    np.add.at(total, index, amount)
    return total


class CompiledApplicationRun(CompiledRun):
    """A run of a program under way in a kernel (see :class:`flitlab.sim.engines.base.ApplicationRun`)."""

    latest = int(records.LATE)

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``.

        Raises ``ValueError`` if the program is not done after 2**30 ticks, which is as far as they are counted.
        """
        super().advance(min(until, self.latest))
        if until > self.latest and not self.done():
            raise ValueError("the program takes more than 2**30 ticks; simulate fewer iterations, or mode: flow")

    def _count_created(self) -> None:
        joined = self._state.program.queue[:, [messages.PACKETS, messages.FLITS]]
        self._cursor[:, [sources.SEQUENCE, sources.FLITS]] = joined

    def done(self) -> bool:
        """Whether every operation is done."""
        return ranks.is_done(self._ranks)

    def program_status(self) -> ProgramStatus:
        """What there still is to be done at this tick."""
        scalars = self.scalars()
        created, sent, delivered = (int(scalars[place]) for place in (CREATED_PACKETS, SENT_PACKETS, DELIVERED_PACKETS))
        moved = sent + delivered + self._kernel.moved(self._state)
        return ProgramStatus(moved, created - sent, sent - delivered, ranks.has_events(self._ranks))

    def execution(self) -> Execution:
        """What became of the operations so far, copied."""
        return ranks.execution_of(self._ranks)

    def carried(self) -> Ints:
        """Flits granted to every channel between switches so far, int64 [channels]."""
        carried: Ints = self._state.tally.channel_flits.copy()
        return carried

    @property
    def _ranks(self) -> ranks.Ranks:
        state: ranks.Ranks = self._state.program.ranks
        return state


def start(
    kernel: ModuleType, scenario: Scenario, load: float, seed: int, log: bool = False, threads: int = 1
) -> CompiledRun:
    """A run at tick 0 in the kernel of a discipline, of the program if hosts run one.

    threads: that simulate it, if the kernel can be split.
    Raises ``ValueError`` for a load that hosts cannot create, and for a calculation too long to be counted in ticks.
    """
    kind = CompiledApplicationRun if isinstance(scenario.work, Workload) else CompiledRun
    return kind(kernel, scenario, load, seed, log, threads)
