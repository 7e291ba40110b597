# SPDX-License-Identifier: Apache-2.0
"""Links and their queues in mode datagram, and the tick that follows from their rate."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True)
class Queues:
    """Links and their queues: ``switching:`` of mode datagram.

    queue_bytes: capacity of a queue, including the packet in service. random_drop: a queue within three packets of full
    drops every tenth packet at random. link_us: rounded up to ticks, at least one. nic_mbps: rate at capacity 1 of a
    channel or host. feeder_packets: capacity of the private queue of each subflow before the network
    (:func:`~flitlab.models.transport.feeders.with_feeders`); 0: none.
    """

    packet_bytes: int = 1000
    nic_mbps: float = 64.0
    link_us: float = 100.0
    queue_bytes: int = 100_000
    random_drop: bool = True
    feeder_packets: int = 0

    def check(self) -> None:
        """Raise ``SpecError`` for a queue that holds no packet."""
        if self.queue_bytes <= 0:
            raise SpecError("must be at least 1: a queue must hold a packet", key="queue_packets")
        if self.packet_bytes > self.queue_bytes:
            raise SpecError(f"a packet does not fit into a queue of {self.queue_bytes} bytes", key="packet_bytes")


def tick_of(topology: Topology, queues: Queues) -> Fraction:
    """Seconds of a tick: of one byte on the fastest channel."""
    fastest = max(float(topology.capacity.max(initial=0.0)), topology.host_capacity)
    if not np.isfinite(fastest):
        raise SpecError("must be finite in a simulation", key="host_capacity")
    return Fraction(8, 10**6) / (Fraction(repr(float(queues.nic_mbps))) * Fraction(repr(fastest)))
