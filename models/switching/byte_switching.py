# SPDX-License-Identifier: Apache-2.0
"""The common part of the modes with transports: packets of bytes, stored and forwarded by every channel."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from flitlab.models.arrays import Floats
from flitlab.models.switching.hash_form import common_form
from flitlab.models.switching.switching_mode import FLOWS, Counted, SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source


def capacity_key(topology: Topology, key: str) -> str:
    """The key at fault for an error: for a capacity, the key that sets the slowest links."""
    slowed = "capacity_of" in topology.notes and topology.notes["capacity_of"]["factor"] < 1
    return "topology.capacity_of.factor" if slowed and key == "topology.capacity" else key


@dataclass(frozen=True)
class ByteSwitching(SwitchingMode):
    """A switching mode whose flit is a byte and whose tick is the time of a byte on the fastest channel."""

    counts: ClassVar[Counted | None] = FLOWS
    programs: ClassVar[bool] = True
    supports_timeline: ClassVar[bool] = True
    send_ends_at_injection: ClassVar[bool] = False  # packets may be dropped before they leave

    @property
    @abstractmethod
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""

    @abstractmethod
    def link_ticks(self, topology: Topology) -> int:
        """Propagation ticks of a link, at least 1.

        Parameters
        ----------
        topology: the network.
        """

    def hashed(self, source: Source) -> tuple[dict[str, Any], list[str]]:
        """The common form without fields of its own, and the hash of all fields."""
        return common_form(self.mode, {}), [self.content_hash]

    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks of a packet over channels of equal speed, each of which stores and forwards it.

        Parameters
        ----------
        topology: the network.
        hops: channels between switches.
        flits: bytes of the packet.
        """
        return (hops + 2) * (self.link_ticks(topology) + flits)

    def flits_per_tick(self, topology: Topology) -> float:
        """The capacity of the fastest channel, host channels included. It moves a byte per tick.

        Parameters
        ----------
        topology: the network.
        """
        return max(float(topology.capacity.max(initial=0.0)), topology.host_capacity)

    def serialization_ticks(self, topology: Topology, length: Floats) -> Floats:
        """Ticks that a host's channel is busy until the last byte of a message has left.

        Parameters
        ----------
        topology: the network.
        length: float64, bytes of the messages.

        Returns
        -------
        Ticks, float64, as ``length``.
        """
        return length * (self.flits_per_tick(topology) / topology.host_capacity)

    def min_message_ticks(self, topology: Topology) -> int:
        """The fewest ticks of any message: 3, a lower bound.

        Parameters
        ----------
        topology: the network.
        """
        return 3

    def channel_rate(self, topology: Topology) -> Floats | float:
        """The most that a channel carries per tick: 1, as the ticks in which it sends are counted.

        Parameters
        ----------
        topology: the network.
        """
        return 1.0

    def stall_message(self, ticks: int) -> str:
        """The end of the sentence "no packet ..." that reports a stall after so many ticks."""
        return f"has reached its receiver for {ticks:,} ticks"
