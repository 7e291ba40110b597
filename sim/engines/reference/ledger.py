"""What a run counts."""

import numpy as np

from flitlab.models.histogram import BUCKETS, bucket
from flitlab.models.scenario import Scenario
from flitlab.sim.engines import base
from flitlab.sim.engines.base import Flows, PacketLog, Snapshot
from flitlab.sim.engines.reference.packet import Packet


class Ledger:
    """Counters of a run, kept up to date event by event. ``moved``: grants of packets, or of flits."""

    def __init__(self, scenario: Scenario, log: bool):
        self.counts = [0] * base.SCALARS
        self.histogram = [0] * BUCKETS
        self.moved = 0
        self.hops = [0] * base.LONG
        self.deflections = [0] * base.LONG
        self.created = np.zeros(scenario.topology.hosts, np.int64)
        self.channel_flits = [0] * scenario.topology.channels
        self.sent = _no_flows(scenario)
        self.delivered = _no_flows(scenario)
        self.packets: list[tuple[int, int, int]] | None = [] if log else None

    def create(self, packet: Packet) -> None:
        """A packet entered its source queue."""
        self.join(packet.source, 1, packet.flits)

    def join(self, source: int, packets: int, flits: int) -> None:
        """Packets of so many flits in all entered the source queue of a host."""
        self.counts[base.CREATED_PACKETS] += packets
        self.counts[base.CREATED_FLITS] += flits
        self.created[source] += flits

    def send(self, packet: Packet) -> None:
        """A packet left its source queue."""
        self.counts[base.SENT_PACKETS] += 1
        _add(self.sent, packet)

    def grant(self, channel: int | None, flits: int) -> None:
        """A packet was granted a network channel, or (None) an ejection channel, for so many of its flits."""
        self.counts[base.GRANTS] += 1
        self.carry(channel, flits)

    def carry(self, channel: int | None, flits: int) -> None:
        """Flits cross a network channel, or (None) an ejection channel, which is not counted."""
        self.moved += 1
        if channel is not None:
            self.channel_flits[channel] += flits

    def occupy(self, packets: int) -> None:
        """So many packets are resident in some switch."""
        if packets > self.counts[base.OCCUPANCY_MAX]:
            self.counts[base.OCCUPANCY_MAX] = packets

    def deliver(self, packet: Packet, now: int) -> None:
        """The tail of a packet reached its destination host."""
        counts, latency = self.counts, now - packet.created
        counts[base.DELIVERED_PACKETS] += 1
        counts[base.DELIVERED_FLITS] += packet.flits
        counts[base.LATENCY] += latency
        counts[base.NETWORK_LATENCY] += now - packet.sent
        counts[base.HOPS] += packet.hop
        counts[base.HOPS_MAX] = max(counts[base.HOPS_MAX], packet.hop)
        counts[base.DEFLECTIONS] += packet.deflections
        self.histogram[bucket(latency)] += 1
        self.hops[min(packet.hop, base.LONG - 1)] += 1
        self.deflections[min(packet.deflections, base.LONG - 1)] += 1
        _add(self.delivered, packet)
        if self.packets is not None:
            self.packets.append((packet.identity, now, packet.hop))

    def scalars(self, events: int) -> np.ndarray:
        """int64 [SCALARS]."""
        scalars = np.array(self.counts, np.int64)
        scalars[base.EVENTS] = events
        return scalars

    def snapshot(self, tick: int, events: int) -> Snapshot:
        """All counters, copied."""
        return Snapshot(
            tick,
            self.scalars(events),
            np.array(self.histogram, np.int64),
            np.array(self.hops, np.int64),
            np.array(self.deflections, np.int64),
            self.created.copy(),
            np.array(self.channel_flits, np.int64),
            delivered=Flows(*(part.copy() for part in self.delivered)),
            present=Flows(*(sent - done for sent, done in zip(self.sent, self.delivered, strict=True))),
        )

    def log(self) -> PacketLog:
        """Every delivered packet by id. Raises ``ValueError`` if no log was asked for."""
        if self.packets is None:
            raise ValueError("the run was started without log=True")
        return PacketLog(*np.array(sorted(self.packets), np.int64).reshape(-1, 3).T.copy())


def _no_flows(scenario: Scenario) -> Flows:
    n, hosts = scenario.topology.switches, scenario.topology.hosts
    return Flows(np.zeros((n, n), np.int64), np.zeros(hosts, np.int64), np.zeros(hosts, np.int64))


def _add(flows: Flows, packet: Packet) -> None:
    flows.pairs[packet.origin, packet.target] += packet.flits
    flows.sources[packet.source] += packet.flits
    flows.destinations[packet.destination] += packet.flits
