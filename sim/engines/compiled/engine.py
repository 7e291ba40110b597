# SPDX-License-Identifier: Apache-2.0
"""The compiled engine: kernels of switching modes behind the interface of :mod:`flitlab.sim.engines.base`."""

from dataclasses import replace
from types import ModuleType

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.pairs import PairCounts
from flitlab.models.rules.classes import make_processes
from flitlab.models.rules.ports import channel_inputs, make_ports
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import (
    ChannelCounter,
    ClassCounter,
    Execution,
    Flows,
    Outstanding,
    PacketLog,
    ProgramStatus,
    Scalar,
    Snapshot,
    can_count_outstanding,
    check_tick_limit,
)
from flitlab.sim.engines.classes import class_tables, has_replies
from flitlab.sim.engines.compiled import State, invariants, messages, ranks, records, sources
from flitlab.sim.engines.compiled.partitioned_run import PartitionedRun
from flitlab.sim.engines.compiled.replies import created_replies
from flitlab.sim.engines.compiled.stalls import make_stall_counters

MAX_PAIR_FLITS = 1 << 31
"""Flits that may arrive at a switch before its 32-bit pair counters are read."""


class CompiledRun:
    """A run of packets in a compiled kernel (see :class:`flitlab.sim.engines.base.Run`).

    Parameters
    ----------
    kernel: of a switching mode: a module with ``make_constants_and_state`` and ``advance``, where packets wait for
    buffers ``has_deadlocked_packet``, where flits are granted ``total_grants``, where more than the pool grows
    ``enlarged``, where flits are counted before or after the tick of their grant ``settle_channels``, and for several
    threads ``split_state_into_partitions``, ``merge_partition_states`` and ``inputs_of_partitions``.
    scenario: of the run.
    load: flits/tick/host.
    seed: of all draws.
    log: whether to log every packet.
    threads: number of partitions.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario, load: float, seed: int, log: bool, threads: int = 1):
        self._kernel = kernel
        self._enlarged = getattr(kernel, "enlarged", records.enlarged)
        self._total_grants = getattr(kernel, "total_grants", records.packet_grants)
        self._has_deadlocked_packet = getattr(kernel, "has_deadlocked_packet", records.never_deadlocks)
        src_host, topology = scenario.source, scenario.topology
        flits, shares = src_host.flits, src_host.shares
        if isinstance(scenario.work, Workload):  # hosts draw no packets; the program determines lengths
            load, flits, shares = 0.0, messages.packet_lengths(scenario.work), (1.0, 1.0)
        source = replace(src_host, flits=flits, shares=shares)
        self._processes = make_processes(source, scenario.traffic, load, seed, scenario.host_flit_ticks)
        arrivals, packets, _ = self._processes[0]
        classes, options = class_tables(scenario, self._processes), {}
        if classes is not None:
            packets, options = packets._replace(flits=np.unique(classes.flits)), {"classes": classes}
        self._topology = topology
        drawn = not isinstance(scenario.work, Workload) and not has_replies(classes)
        self._routes_fixed = scenario.routes.oblivious and drawn
        self._constants, self._state = self._kernel.make_constants_and_state(
            scenario, arrivals, packets, seed, **options
        )
        self._cursor = sources.start_cursor(len(self._processes) * topology.hosts)
        self._tick, self._pairs_read_at = 0, 0
        self._pairs = PairCounts.none(topology.switches)
        self._pair_ticks = MAX_PAIR_FLITS // int((topology.in_degree + topology.host_count).max())
        if log:
            entries = np.zeros(((1 << 12) + 2 * topology.hosts, len(PacketLog._fields)), np.int64)
            self._state = self._state._replace(counters=self._state.counters._replace(log=entries))
        self._partitioned = (
            PartitionedRun(kernel, scenario, self._constants, self._state, threads) if threads > 1 else None
        )
        if self._partitioned:
            self._state = self._partitioned.merged

    def count_channels(self) -> None:
        """Count the traffic of channels from now, tick 0, on; raises ``ValueError`` where that is not possible."""
        rows = self._topology.channels + 2 * self._topology.hosts
        channels = np.zeros((rows, len(ChannelCounter)), np.int64)
        state = self._state._replace(counters=self._state.counters._replace(channels=channels))
        if "stalls" in state._fields:
            inputs = int(self._constants.net.ports.in_base[-1])
            state = state._replace(stalls=make_stall_counters(inputs, self._constants.vcs))
        self._state = self._partitioned.count_channels(state) if self._partitioned else state

    def advance(self, until: int) -> None:
        check_tick_limit(until, len(self._processes))
        while self._tick < until:
            if self._tick >= self._pairs_read_at + self._pair_ticks:
                self._count_pairs()
            stop = min(until, self._pairs_read_at + self._pair_ticks)
            self._tick = self._advance_kernel(stop)
            if self._tick < 0:
                raise AssertionError(f"{invariants.MESSAGES[np.int64(-self._tick)]}: a bug in flitlab")
            if self._tick < stop and not self._partitioned:
                self._state = self._enlarged(self._state, self._topology.hosts)

    def _advance_kernel(self, until: int) -> int:
        """Simulate ticks up to, not including, ``until``, or fewer if a log or a pool is full."""
        if self._partitioned:
            return self._partitioned.advance(self._tick, until)
        return int(self._kernel.advance(self._constants, self._state, self._tick, until))

    def _merged_state(self) -> State:
        """Return the state of all partitions."""
        return self._partitioned.complete() if self._partitioned else self._state

    def _count_pairs(self) -> None:
        """Add the pair counters to the totals, and zero them."""
        counters = self._state.counters.pairs
        self._pairs += PairCounts.of_table(self._topology.switches, counters)
        counters[:] = 0
        self._pairs_read_at = self._tick

    def _count_created(self) -> None:
        sent, hosts = records.first_unsent(self._state), self._topology.hosts
        for number, (arrivals, packets, seed) in enumerate(self._processes):
            own = slice(number * hosts, (number + 1) * hosts)
            sources.count_created(arrivals, packets, seed, self._tick, sent[own], self._cursor[own])
        self._count_replies(getattr(self._state, "pool", None))

    def _count_replies(self, pool: State) -> None:
        """Set the cursors of the source queues of replies, if hosts reply; pool: of the run."""
        replies = getattr(pool, "replies", None)
        if replies is None:
            return
        created = created_replies(replies, self._tick)
        some = np.flatnonzero(replies.made[:, 0])
        self._cursor[some[:, None], [sources.SEQUENCE, sources.FLITS]] = created[some]

    def _created(self) -> Ints:
        """Flits created by each host, int64 [hosts]."""
        created: Ints = self._cursor[:, sources.FLITS].reshape(-1, self._topology.hosts).sum(axis=0)
        return created

    def backlog(self) -> Ints:
        self._count_created()
        backlog: Ints = self._created() - self._state.counters.by_src_host
        return backlog

    def scalars(self) -> Ints:
        self._count_created()
        scalars: Ints = self._state.counters.scalars.copy()
        scalars[Scalar.CREATED_PACKETS] = np.maximum(self._cursor[:, sources.SEQUENCE], 0).sum()
        scalars[Scalar.CREATED_FLITS] = self._cursor[:, sources.FLITS].sum()
        return scalars

    def snapshot(self) -> Snapshot:
        state, n = self._merged_state(), self._topology.switches
        counters, scalars = state.counters, self.scalars()
        src_host, dst_host, flits = records.in_flight_packets(state)
        topology, hosts = self._topology, self._topology.hosts
        present = Flows(
            PairCounts.of(n, topology.host_switch[src_host] * n + topology.ejection_switch[dst_host], flits),
            _total(src_host, flits, hosts),
            _total(dst_host, flits, hosts),
        )
        pairs = self._pairs + PairCounts.of_table(n, counters.pairs)
        delivered = Flows(pairs, counters.by_src_host.copy(), counters.by_dst_host.copy())
        return Snapshot(
            self._tick, scalars, counters.histogram.copy(), counters.hops.copy(), counters.deflections.copy(),
            self._created(), counters.channel_flits.copy(), delivered, present,
            self._outstanding(state) if can_count_outstanding(scalars) else None, self._channels(state),
            self._stalls(state), self._classes(state),
        )  # fmt: skip

    def _classes(self, state: State) -> Ints | None:
        """The counters of every class of traffic, copied; None where all packets are of one class."""
        counted: Ints | None = state.counters.classes
        if counted is None:
            return None
        counted = counted.copy()
        by_class = self._cursor.reshape(len(counted), -1, self._cursor.shape[1])
        counted[:, ClassCounter.CREATED_PACKETS] = np.maximum(by_class[:, :, sources.SEQUENCE], 0).sum(axis=1)
        counted[:, ClassCounter.CREATED_FLITS] = by_class[:, :, sources.FLITS].sum(axis=1)
        return counted

    def _channels(self, state: State) -> Ints | None:
        """The traffic of channels, copied; None if it is not counted."""
        counted: Ints | None = state.counters.channels
        if counted is None:
            return None
        channels = counted.copy()
        if hasattr(self._kernel, "settle_channels"):
            self._kernel.settle_channels(self._constants, state, self._tick, channels)
        return channels

    def _stalls(self, state: State) -> Ints | None:
        """Stalls at the end of each channel, copied; None if they are not counted."""
        counters = getattr(state, "stalls", None)
        if counters is None:
            return None
        stalls: Ints = counters.ticks[channel_inputs(make_ports(self._topology))]
        return stalls

    def _outstanding(self, state: State) -> Outstanding | None:
        """Outstanding traffic of each channel; None where routes are not fixed at creation."""
        if not self._routes_fixed:
            return None
        return sources.outstanding_traffic(self._constants, state, self._topology, self._tick)

    def log(self) -> PacketLog:
        used = self._merged_state().counters.log[: self._state.counters.scalars[Scalar.DELIVERED_PACKETS]]
        order = np.argsort(used[:, 0])
        return PacketLog(*used[order].T.copy())

    def deadlocked(self) -> bool:
        return bool(self._has_deadlocked_packet(self._constants, self._merged_state(), self._tick))


def _total(index: Ints, amount: Ints, size: int) -> Ints:
    """Sum of amounts by index, int64 [size]."""
    total = np.zeros(size, np.int64)
    np.add.at(total, index, amount)
    return total


class CompiledApplicationRun(CompiledRun):
    """A run of a program in a compiled kernel (see :class:`flitlab.sim.engines.base.ApplicationRun`)."""

    latest = int(records.Tick.LIMIT)

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``.

        Raises
        ------
        ValueError
            The program is not done after 2**30 ticks, the most that are counted.
        """
        super().advance(min(until, self.latest))
        if until > self.latest and not self.done():
            raise ValueError("the program takes more than 2**30 ticks; simulate fewer iterations, or mode: flow")

    def _count_created(self) -> None:
        enqueued = self._state.program.queue[:, [messages.PACKETS, messages.FLITS]]
        self._cursor[:, [sources.SEQUENCE, sources.FLITS]] = enqueued

    def done(self) -> bool:
        """Whether every operation is done."""
        return ranks.is_done(self._ranks)

    def program_status(self) -> ProgramStatus:
        """Progress and remaining work at this tick."""
        scalars = self.scalars()
        created, sent, delivered = (
            int(scalars[counter]) for counter in (Scalar.CREATED_PACKETS, Scalar.SENT_PACKETS, Scalar.DELIVERED_PACKETS)
        )
        moved = sent + delivered + self._total_grants(self._state)
        return ProgramStatus(moved, created - sent, sent - delivered, ranks.has_events(self._ranks))

    def execution(self) -> Execution:
        """Times of the operations so far, copied."""
        return ranks.execution_of(self._ranks)

    def carried(self) -> Ints:
        """Flits granted to every channel between switches so far, int64 [channels]."""
        carried: Ints = self._state.counters.channel_flits.copy()
        return carried

    @property
    def _ranks(self) -> ranks.Ranks:
        state: ranks.Ranks = self._state.program.ranks
        return state


def start(
    kernel: ModuleType, scenario: Scenario, load: float, seed: int, log: bool = False, threads: int = 1
) -> CompiledRun:
    """Start a run at tick 0 in the kernel of a switching mode; of the program, if hosts run one.

    Parameters
    ----------
    kernel: see :class:`CompiledRun`.
    scenario: of the run.
    load: flits/tick/host.
    seed: of all draws.
    log: whether to log every packet.
    threads: number of partitions, if the kernel supports them.

    Raises
    ------
    ValueError
        Hosts cannot create the load, or a calculation is too long to be counted in ticks.
    """
    kind = CompiledApplicationRun if isinstance(scenario.work, Workload) else CompiledRun
    return kind(kernel, scenario, load, seed, log, threads)
