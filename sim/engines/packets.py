# SPDX-License-Identifier: Apache-2.0
"""Runs that keep a table of their packets: for switching modes that compute when each is sent and delivered."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.histogram import BUCKETS, bucket
from flitlab.models.pairs import PairCounts
from flitlab.models.rules.arrivals import make_arrivals, next_arrival
from flitlab.models.rules.packets import destination, length, make_packets
from flitlab.models.scenario import Scenario
from flitlab.sim.engines import base
from flitlab.sim.engines.base import HOP_BUCKETS, Flows, PacketLog, Scalar, Snapshot, check_tick_limit
from flitlab.sim.engines.classes import reject_classes
from flitlab.sim.engines.faults import Faults


class _Col(NamedTuple):
    """Columns of PacketRun.rows: ticks, hosts, flits, channels between switches."""

    CREATED: int = 0
    SOURCE: int = 1
    DESTINATION: int = 2
    FLITS: int = 3
    IDENTITY: int = 4  # the number that both engines know a packet by
    SENT: int = 5
    DELIVERED: int = 6
    DROPPED: int = 7
    HOPS: int = 8


Col = _Col()

NEVER = 1 << 40
"""Tick of an event that has not happened."""


class PacketRun(ABC):
    """A :class:`~flitlab.sim.engines.base.Run` whose engine computes when packets are sent and delivered.

    Memory grows with every packet.

    rows: int64 [packets, columns], all packets created so far, by tick of creation, then by host. channel_flits: int64
    [channels], flits granted. now: the current tick.
    """

    def __init__(self, scenario: Scenario, load: float, seed: int, log: bool = False):
        reject_classes(scenario, f"mode {scenario.switching.mode}")
        source = scenario.source
        arrivals = make_arrivals(
            source.arrivals, load, source.mean_flits, scenario.traffic.rate, source.burst,
            flit_ticks=scenario.host_flit_ticks,
        )  # fmt: skip
        self._arrivals, self._seed = arrivals, seed
        self._packets = make_packets(scenario.traffic, source.flits, source.shares)
        self.topology, self.now = scenario.topology, 0
        self.rows = np.zeros((0, len(Col)), np.int64)
        self.channel_flits = np.zeros(self.topology.channels, np.int64)
        self._coming = [self._drawn(host) for host in range(self.topology.hosts) if arrivals.keep[host] >= 0]
        self._next = [next(coming) for coming in self._coming]

    @abstractmethod
    def move(self, first: int, until: int) -> None:
        """Fill in columns SENT and DELIVERED for all events before tick ``until``; later events may be filled in, too.

        first: the first row of packets created since the last call.
        """

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``; raises ``ValueError`` beyond 2**30."""
        check_tick_limit(until)
        first, created = len(self.rows), []
        for place, coming in enumerate(self._coming):
            while self._next[place][Col.CREATED] < until:
                created.append(self._next[place])
                self._next[place] = next(coming)
        self.rows = np.vstack([self.rows, np.array(sorted(created), np.int64).reshape(-1, len(Col))])
        self.move(first, until)
        self.now = max(self.now, until)

    def _drawn(self, host: int) -> Iterator[list[int]]:
        """The unlimited sequence of packets of a host."""
        counter, position, sequence = -1, -self._arrivals.base, 0
        while True:
            counter, position = next_arrival(self._arrivals, self._packets, self._seed, host, counter + 1, position)
            to = destination(self._packets, self._seed, host, sequence)
            flits = length(self._packets, self._seed, host, counter)
            identity = sequence * self.topology.hosts + host
            yield [int(position) >> self._arrivals.shift, host, int(to), int(flits), identity, NEVER, NEVER, NEVER, 0]
            sequence += 1

    def _sent(self) -> Bools:
        return self.rows[:, Col.SENT] < self.now

    def _delivered(self) -> Bools:
        return self.rows[:, Col.DELIVERED] < self.now

    def _gone(self) -> Bools:
        """Whether each packet has been delivered or dropped, bool [packets]."""
        return self._delivered() | (self.rows[:, Col.DROPPED] < self.now)

    def scalars(self) -> Ints:
        """The scalar counters at this tick, int64 [scalars]."""
        rows, delivered = self.rows, self.rows[self._delivered()]
        late = [(delivered[:, Col.DELIVERED] - delivered[:, since]).sum() for since in (Col.CREATED, Col.SENT)]
        sent, flits = self._sent().sum(), delivered[:, Col.FLITS].sum()
        counts = [len(rows), rows[:, Col.FLITS].sum(), sent, len(delivered), flits, *late]
        scalars = np.array(counts + [0] * (len(Scalar) - len(counts)), np.int64)
        hops, dropped = delivered[:, Col.HOPS], rows[self._gone() & ~self._delivered()]
        scalars[base.Scalar.HOPS], scalars[base.Scalar.HOPS_MAX] = hops.sum(), hops.max(initial=0)
        scalars[base.Scalar.DROPPED_PACKETS] = len(dropped)
        scalars[base.Scalar.DROPPED_FLITS] = dropped[:, Col.FLITS].sum()
        return scalars

    def backlog(self) -> Ints:
        """Flits created and neither delivered nor dropped, by source, int64 [hosts]."""
        return self._flows(self.rows[~self._gone()]).sources

    def snapshot(self) -> Snapshot:
        """All counters at this tick."""
        rows, delivered, latency = self.rows, self._delivered(), np.zeros(BUCKETS, np.int64)
        for ticks in rows[delivered, Col.DELIVERED] - rows[delivered, Col.CREATED]:
            latency[bucket(ticks)] += 1
        hops, deflections = np.zeros((2, HOP_BUCKETS), np.int64)
        np.add.at(hops, np.minimum(rows[delivered, Col.HOPS], HOP_BUCKETS - 1), 1)
        deflections[0] = delivered.sum()
        return Snapshot(
            self.now, self.scalars(), latency, hops, deflections, self._flows(rows).sources,
            self.channel_flits.copy(), self._flows(rows[delivered]), self._flows(rows[self._sent() & ~self._gone()]),
        )  # fmt: skip

    def _flows(self, rows: Ints) -> Flows:
        topology, n, hosts = self.topology, self.topology.switches, self.topology.hosts
        ends = topology.host_switch[rows[:, Col.SOURCE]], topology.ejection_switch[rows[:, Col.DESTINATION]]
        pairs = PairCounts.of(n, ends[0] * n + ends[1], rows[:, Col.FLITS])
        sources, destinations = (np.zeros(hosts, np.int64) for _ in range(2))
        np.add.at(sources, rows[:, Col.SOURCE], rows[:, Col.FLITS])
        np.add.at(destinations, rows[:, Col.DESTINATION], rows[:, Col.FLITS])
        return Flows(pairs, sources, destinations)

    def log(self) -> PacketLog:
        """The log of all delivered packets, sorted by id."""
        rows = self.rows[self._delivered()]
        rows = rows[np.argsort(rows[:, Col.IDENTITY])]
        none = np.zeros(len(rows), np.int64)
        return PacketLog(
            rows[:, Col.IDENTITY], rows[:, Col.DELIVERED], rows[:, Col.HOPS], rows[:, Col.CREATED], rows[:, Col.SENT],
            rows[:, Col.DESTINATION], rows[:, Col.FLITS], deflections=none, send=none - 1,
        )  # fmt: skip

    def deadlocked(self) -> bool:
        """Whether packets wait for each other in a cycle: never, since they wait only for time."""
        return False


class FaultyPacketRun(PacketRun, Faults):
    """A :class:`PacketRun` whose links and switches fail and return: a failed channel is busy until it returns.

    free: int64 [channels + 2 hosts], tick from which a channel is free: those between switches, then one from each
    host, then one to each host.
    """

    def __init__(self, scenario: Scenario[Any], load: float, seed: int, log: bool = False):
        PacketRun.__init__(self, scenario, load, seed, log)
        Faults.__init__(self, scenario)
        self.free = np.zeros(self.topology.channels + 2 * self.topology.hosts, np.int64)

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``, and apply the changes due before each."""
        while self.now < until:
            self.begin_tick(self.now)
            super().advance(min(until, self.next_tick(self.now)))

    def drop(self, packets: Sequence[Any] | np.ndarray, tick: int) -> None:
        """Count packets as dropped; int64 [dropped], rows."""
        self.rows[packets, Col.DROPPED] = tick

    def block(self, channels: Ints, tick: int) -> None:
        """Keep failed channels busy; int64 [failed]."""
        self.free[channels] += NEVER

    def unblock(self, channels: Ints, tick: int) -> None:
        """End what :meth:`block` began; int64 [restored]."""
        self.free[channels] -= NEVER
