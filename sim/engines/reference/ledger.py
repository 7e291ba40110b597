# SPDX-License-Identifier: Apache-2.0
"""The counters and the packet log of a run of the reference engine."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.histogram import BUCKETS, bucket
from flitlab.models.pairs import PairCounts
from flitlab.models.rules.ports import channel_inputs, make_ports
from flitlab.models.rules.stalls import STALL_SETS
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import (
    CLASS_COLUMNS,
    HOP_BUCKETS,
    ChannelCounter,
    ClassCounter,
    Flows,
    PacketLog,
    Scalar,
    Snapshot,
)
from flitlab.sim.engines.reference.packet import Packet


class Ledger:
    """Counters of a run, updated event by event.

    moved: grants of packets, or of flits. channels: None unless the run counts the traffic of channels. stalls:
    None unless it counts stalls: int64 [inputs, STALL_SETS], ticks by the set of reasons. classes: None without classes
    of traffic. packets: a row of :class:`~flitlab.sim.engines.base.PacketLog` for each delivered packet; None without a
    log. The others are those of :class:`~flitlab.sim.engines.base.Snapshot` of the same names.
    """

    def __init__(self, scenario: Scenario, log: bool):
        classes = len(scenario.traffic.classes)
        self.classes = np.zeros((classes, CLASS_COLUMNS), np.int64) if classes else None
        self.counts = [0] * len(Scalar)
        self.histogram = [0] * BUCKETS
        self.moved = 0
        self.hops = [0] * HOP_BUCKETS
        self.deflections = [0] * HOP_BUCKETS
        self.created = [0] * scenario.topology.hosts
        self.channel_flits = [0] * scenario.topology.channels
        self.channels: Ints | None = None
        self.stalls: Ints | None = None
        self._ports = make_ports(scenario.topology)
        self._from_hosts = scenario.topology.channels
        self._to_hosts = self._from_hosts + scenario.topology.hosts
        self.sent = _Flows(scenario)
        self.delivered = _Flows(scenario)
        self.dropped = _Flows(scenario)
        self.packets: list[tuple[int, ...]] | None = [] if log else None

    def create(self, packet: Packet) -> None:
        """Count a packet that enters its source queue."""
        self.join(packet.source, 1, packet.flits)
        if self.classes is not None:
            self.classes[packet.sequence % len(self.classes), :2] += 1, packet.flits  # created packets and flits

    def join(self, source: int, packets: int, flits: int) -> None:
        """Count packets, of ``flits`` flits in all, that enter the source queue of a host."""
        self.counts[Scalar.CREATED_PACKETS] += packets
        self.counts[Scalar.CREATED_FLITS] += flits
        self.created[source] += flits

    def count_channels(self) -> None:
        """Count the traffic of channels from now on."""
        self.channels = np.zeros((2 * self._to_hosts - self._from_hosts, len(ChannelCounter)), np.int64)

    def count_stalls(self) -> None:
        """Count the stalls of front flits from now on."""
        self.stalls = np.zeros((len(self._ports.in_switch), STALL_SETS), np.int64)

    def stall(self, reasons: Mapping[int, int], vcs: int) -> None:
        """Count a tick of stalls.

        reasons: why the front flit of each input VC stalls, bits of :data:`~flitlab.models.rules.stalls.Stall`, or 0.
        vcs: VCs of an input.
        """
        by_input: defaultdict[int, int] = defaultdict(int)
        for vc, why in reasons.items():
            by_input[vc // vcs] |= why
        for entry, why in by_input.items():
            if why and self.stalls is not None:
                self.stalls[entry, why] += 1

    def enter(self, host: int, flits: int, packets: int = 1) -> None:
        """Count flits, and packets whose first flit is among them, granted on the channel from a host."""
        if self.channels is not None:
            self._count(self.channels, self._from_hosts + host, flits, packets)

    def cross(self, channel: int | None, host: int, flits: int, packets: int = 1) -> None:
        """Count flits, and packets whose first flit is among them, granted on a channel between switches or (None) to a
        host.
        """
        if self.channels is not None:
            self._count(self.channels, self._to_hosts + host if channel is None else channel, flits, packets)

    def _count(self, channels: Ints, row: int, flits: int, packets: int) -> None:
        channels[row, ChannelCounter.FLITS] += flits
        channels[row, ChannelCounter.PACKETS] += packets

    def send(self, packet: Packet) -> None:
        """Count a packet that leaves its source queue."""
        self.counts[Scalar.SENT_PACKETS] += 1
        self.sent.add(packet)

    def grant(self, channel: int | None, flits: int) -> None:
        """Count the grant of a network channel, or (None) of an ejection channel, to ``flits`` flits of a packet."""
        self.counts[Scalar.GRANTS] += 1
        self.moved += 1
        if channel is not None:
            self.channel_flits[channel] += flits

    def carry(self, channel: int | None, flits: int) -> None:
        """Count flits on a network channel; ejection channels (None) have no counter of their own."""
        self.moved += 1
        if channel is not None:
            self.channel_flits[channel] += flits

    def occupy(self, packets: int, of_input: int = 0) -> None:
        """Update the maximum occupancy of a switch and of an input."""
        counts = self.counts
        if packets > counts[Scalar.OCCUPANCY_MAX]:
            counts[Scalar.OCCUPANCY_MAX] = packets
        if of_input > counts[Scalar.INPUT_PACKETS_MAX]:
            counts[Scalar.INPUT_PACKETS_MAX] = of_input

    def deliver(self, packet: Packet, now: int) -> None:
        """Count a packet whose tail reaches its destination host at tick ``now``."""
        counts, latency, hop, deflections = self.counts, now - packet.created, packet.hop, packet.deflections
        counts[Scalar.DELIVERED_PACKETS] += 1
        counts[Scalar.DELIVERED_FLITS] += packet.flits
        counts[Scalar.LATENCY] += latency
        counts[Scalar.NETWORK_LATENCY] += now - packet.sent
        counts[Scalar.HOPS] += hop
        if hop > counts[Scalar.HOPS_MAX]:
            counts[Scalar.HOPS_MAX] = hop
        counts[Scalar.DEFLECTIONS] += deflections
        self.histogram[bucket(latency)] += 1
        self.hops[hop if hop < HOP_BUCKETS else -1] += 1
        self.deflections[deflections if deflections < HOP_BUCKETS else -1] += 1
        self.delivered.add(packet)
        if self.classes is not None:
            self._deliver_of_class(packet, latency, now)
        if self.packets is not None:
            self.packets.append((
                packet.identity, now, packet.hop, packet.created, packet.sent, packet.destination, packet.flits,
                packet.deflections, -1 if packet.message is None else packet.message.send,
            ))  # fmt: skip

    def _deliver_of_class(self, packet: Packet, latency: int, now: int) -> None:
        """Count a delivered packet for its class of traffic."""
        assert self.classes is not None
        counts = self.classes[packet.sequence % len(self.classes)]
        counts[ClassCounter.DELIVERED_PACKETS] += 1
        counts[ClassCounter.DELIVERED_FLITS] += packet.flits
        counts[ClassCounter.LATENCY] += latency
        counts[ClassCounter.NETWORK_LATENCY] += now - packet.sent
        counts[len(ClassCounter) + bucket(latency)] += 1

    def drop(self, packet: Packet) -> None:
        """Count a packet dropped on a failed link or in a failed switch."""
        self.counts[Scalar.DROPPED_PACKETS] += 1
        self.counts[Scalar.DROPPED_FLITS] += packet.flits
        self.dropped.add(packet)
        if self.classes is not None:
            counts = self.classes[packet.sequence % len(self.classes)]
            counts[ClassCounter.DROPPED_PACKETS] += 1
            counts[ClassCounter.DROPPED_FLITS] += packet.flits

    def scalars(self, events: int) -> Ints:
        """The scalar counters, int64 [scalars], copied; events: the value of EVENTS."""
        scalars = np.array(self.counts, np.int64)
        scalars[Scalar.EVENTS] = events
        return scalars

    def snapshot(self, tick: int, events: int) -> Snapshot:
        """All counters, copied; tick: the current one. events: the value of EVENTS."""
        return Snapshot(
            tick,
            self.scalars(events),
            np.array(self.histogram, np.int64),
            np.array(self.hops, np.int64),
            np.array(self.deflections, np.int64),
            np.array(self.created, np.int64),
            np.array(self.channel_flits, np.int64),
            delivered=self.delivered.counted(),
            present=self.sent.counted().minus(self.delivered.counted()).minus(self.dropped.counted()),
            channels=None if self.channels is None else self.channels.copy(),
            stalls=None if self.stalls is None else self.stalls[channel_inputs(self._ports)],
            classes=None if self.classes is None else self.classes.copy(),
        )

    def log(self) -> PacketLog:
        """Every delivered packet, sorted by id. Raises ``ValueError`` without a log."""
        if self.packets is None:
            raise ValueError("the run was started without log=True")
        return PacketLog(*np.array(sorted(self.packets), np.int64).reshape(-1, len(PacketLog._fields)).T.copy())


class _Flows:
    """Flits of packets by source and destination."""

    def __init__(self, scenario: Scenario):
        self._switches = scenario.topology.switches
        self._pairs: defaultdict[int, int] = defaultdict(int)
        self._sources, self._destinations = ([0] * scenario.topology.hosts for _ in range(2))

    def add(self, packet: Packet) -> None:
        """Count the flits of a packet."""
        self._pairs[packet.origin * self._switches + packet.target] += packet.flits
        self._sources[packet.source] += packet.flits
        self._destinations[packet.destination] += packet.flits

    def counted(self) -> Flows:
        """Return the counters, copied."""
        place, amount = np.array([*self._pairs.items()], np.int64).reshape(-1, 2).T
        pairs = PairCounts.of(self._switches, place, amount)
        return Flows(pairs, self.sources(), np.array(self._destinations, np.int64))

    def sources(self) -> Ints:
        """Flits by source host, int64 [hosts]."""
        return np.array(self._sources, np.int64)
