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

    queue_bytes: room of a queue, the packet in service included. random_drop: a queue within three packets of full
    drops every tenth packet at random. link_us: rounded up to ticks, at least one. capacity 1 of a channel or host is
    ``nic_mbps``. feeder_packets: room of the queue at the host's rate that each subflow has to itself before the
    network (:func:`~flitlab.models.transport.feeders.with_feeders`); 0: none.
    """

    packet_bytes: int = 1000
    nic_mbps: float = 64.0
    link_us: float = 100.0
    queue_bytes: int = 100_000
    random_drop: bool = True
    feeder_packets: int = 0

    def check(self) -> None:
        """Raises ``SpecError`` for a queue that nothing fits into."""
        if self.queue_bytes <= 0:
            raise SpecError("a queue needs room for a packet; at least 1", key="queue_packets")
        if self.packet_bytes > self.queue_bytes:
            raise SpecError(f"a packet does not fit into a queue of {self.queue_bytes} bytes", key="packet_bytes")


def tick_of(topology: Topology, queues: Queues) -> Fraction:
    """Seconds of a tick: of one byte on the fastest channel."""
    fastest = max(float(topology.capacity.max(initial=0.0)), topology.host_capacity)
    if not np.isfinite(fastest):
        raise SpecError("must be finite in a simulation", key="host_capacity")
    return Fraction(8, 10**6) / (Fraction(repr(float(queues.nic_mbps))) * Fraction(repr(fastest)))
