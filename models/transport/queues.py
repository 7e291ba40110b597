# SPDX-License-Identifier: Apache-2.0
"""Links and their queues in mode datagram; the tick and the propagation ticks that follow from rate and delay."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Protocol

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


class Links(Protocol):
    """What ``switching:`` says of links in a mode with transports: rate at capacity 1, and propagation delay."""

    @property
    def nic_mbps(self) -> float: ...

    @property
    def link_us(self) -> float: ...


def exact(value: float | Fraction) -> Fraction:
    """A number as it is written."""
    return value if isinstance(value, Fraction) else Fraction(repr(float(value)))


def fastest_capacity(topology: Topology) -> float:
    """The capacity of the fastest channel, host channels included."""
    return max(float(topology.capacity.max(initial=0.0)), topology.host_capacity)


def tick_of(topology: Topology, links: Links) -> Fraction:
    """Seconds of a tick: of one byte on the fastest channel. Raises ``SpecError`` for an infinite rate."""
    fastest = fastest_capacity(topology)
    if not np.isfinite(fastest):
        raise SpecError("must be finite in a simulation", key="host_capacity")
    return Fraction(8, 10**6) / (exact(links.nic_mbps) * exact(fastest))


def propagation_ticks(topology: Topology, links: Links) -> int:
    """Ticks of ``link_us``, rounded up, at least 1."""
    return max(1, ceil(exact(links.link_us) / 10**6 / tick_of(topology, links)))
