# SPDX-License-Identifier: Apache-2.0
"""The counters and the packet log of a run of the reference engine."""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.histogram import BUCKETS, bucket
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import Scenario
from flitlab.sim.engines import base
from flitlab.sim.engines.base import Flows, PacketLog, Snapshot
from flitlab.sim.engines.reference.packet import Packet


class Ledger:
    """Counters of a run, updated event by event.

    moved: grants of packets, or of flits. packets: (id, tick of delivery, hops) of delivered packets; None without a
    log. The others are those of :class:`~flitlab.sim.engines.base.Snapshot` of the same names.
    """

    def __init__(self, scenario: Scenario, log: bool):
        self.counts = [0] * base.SCALARS
        self.histogram = [0] * BUCKETS
        self.moved = 0
        self.hops = [0] * base.HOP_BUCKETS
        self.deflections = [0] * base.HOP_BUCKETS
        self.created = np.zeros(scenario.topology.hosts, np.int64)
        self.channel_flits = [0] * scenario.topology.channels
        self.sent = _Flows(scenario)
        self.delivered = _Flows(scenario)
        self.dropped = _Flows(scenario)
        self.packets: list[tuple[int, int, int]] | None = [] if log else None

    def create(self, packet: Packet) -> None:
        """Count a packet that enters its source queue."""
        self.join(packet.source, 1, packet.flits)

    def join(self, source: int, packets: int, flits: int) -> None:
        """Count packets, of ``flits`` flits in all, that enter the source queue of a host."""
        self.counts[base.CREATED_PACKETS] += packets
        self.counts[base.CREATED_FLITS] += flits
        self.created[source] += flits

    def send(self, packet: Packet) -> None:
        """Count a packet that leaves its source queue."""
        self.counts[base.SENT_PACKETS] += 1
        self.sent.add(packet)

    def grant(self, channel: int | None, flits: int) -> None:
        """Count the grant of a network channel, or (None) of an ejection channel, to ``flits`` flits of a packet."""
        self.counts[base.GRANTS] += 1
        self.carry(channel, flits)

    def carry(self, channel: int | None, flits: int) -> None:
        """Count flits on a network channel; ejection channels (None) have no counter of their own."""
        self.moved += 1
        if channel is not None:
            self.channel_flits[channel] += flits

    def occupy(self, packets: int) -> None:
        """Update the maximum occupancy of a switch."""
        if packets > self.counts[base.OCCUPANCY_MAX]:
            self.counts[base.OCCUPANCY_MAX] = packets

    def deliver(self, packet: Packet, now: int) -> None:
        """Count a packet whose tail reaches its destination host at tick ``now``."""
        counts, latency = self.counts, now - packet.created
        counts[base.DELIVERED_PACKETS] += 1
        counts[base.DELIVERED_FLITS] += packet.flits
        counts[base.LATENCY] += latency
        counts[base.NETWORK_LATENCY] += now - packet.sent
        counts[base.HOPS] += packet.hop
        counts[base.HOPS_MAX] = max(counts[base.HOPS_MAX], packet.hop)
        counts[base.DEFLECTIONS] += packet.deflections
        self.histogram[bucket(latency)] += 1
        self.hops[min(packet.hop, base.HOP_BUCKETS - 1)] += 1
        self.deflections[min(packet.deflections, base.HOP_BUCKETS - 1)] += 1
        self.delivered.add(packet)
        if self.packets is not None:
            self.packets.append((packet.identity, now, packet.hop))

    def drop(self, packet: Packet) -> None:
        """Count a packet dropped on a failed link or in a failed switch."""
        self.counts[base.DROPPED_PACKETS] += 1
        self.counts[base.DROPPED_FLITS] += packet.flits
        self.dropped.add(packet)

    def scalars(self, events: int) -> Ints:
        """The scalar counters, int64 [SCALARS], copied; events: the value of EVENTS."""
        scalars = np.array(self.counts, np.int64)
        scalars[base.EVENTS] = events
        return scalars

    def snapshot(self, tick: int, events: int) -> Snapshot:
        """All counters, copied; tick: the current one. events: the value of EVENTS."""
        return Snapshot(
            tick,
            self.scalars(events),
            np.array(self.histogram, np.int64),
            np.array(self.hops, np.int64),
            np.array(self.deflections, np.int64),
            self.created.copy(),
            np.array(self.channel_flits, np.int64),
            delivered=self.delivered.counted(),
            present=self.sent.counted().minus(self.delivered.counted()).minus(self.dropped.counted()),
        )

    def log(self) -> PacketLog:
        """Every delivered packet, sorted by id. Raises ``ValueError`` without a log."""
        if self.packets is None:
            raise ValueError("the run was started without log=True")
        return PacketLog(*np.array(sorted(self.packets), np.int64).reshape(-1, 3).T.copy())


class _Flows:
    """Flits of packets by source and destination. sources: int64 [hosts]."""

    def __init__(self, scenario: Scenario):
        self._switches = scenario.topology.switches
        self._pairs = np.zeros((self._switches, self._switches), np.int64)
        self.sources, self._destinations = np.zeros((2, scenario.topology.hosts), np.int64)

    def add(self, packet: Packet) -> None:
        """Count the flits of a packet."""
        self._pairs[packet.origin, packet.target] += packet.flits
        self.sources[packet.source] += packet.flits
        self._destinations[packet.destination] += packet.flits

    def counted(self) -> Flows:
        """Return the counters, copied."""
        pairs = PairCounts.of_table(self._switches, self._pairs)
        return Flows(pairs, self.sources.copy(), self._destinations.copy())
