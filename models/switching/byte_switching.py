# SPDX-License-Identifier: Apache-2.0
"""What disciplines share whose hosts talk over transports, in packets of bytes that a channel takes in whole."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from flitlab.models.arrays import Floats
from flitlab.models.switching.hash_form import common_form
from flitlab.models.switching.switching_mode import FLOWS, Counted, SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source


def capacity_key(topology: Topology, place: str) -> str:
    """The place of the configuration that is at fault: for a capacity the key that sets the slowest links."""
    slowed = "capacity_of" in topology.notes and topology.notes["capacity_of"]["factor"] < 1
    return "topology.capacity_of.factor" if slowed and place == "topology.capacity" else place


@dataclass(frozen=True)
class ByteSwitching(SwitchingMode):
    """A discipline whose flit is a byte and whose tick is the time of one on the fastest channel."""

    counts: ClassVar[Counted | None] = FLOWS
    programs: ClassVar[bool] = True
    supports_timeline: ClassVar[bool] = True
    send_ends_at_injection: ClassVar[bool] = False  # packets may be lost before they leave

    @property
    @abstractmethod
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""

    @abstractmethod
    def link_ticks(self, topology: Topology) -> int:
        """Ticks from the end of a link to the other, 1 at least."""

    def hashed(self, source: Source) -> tuple[dict[str, Any], list[str]]:
        """The common form with no field of its own, and the hash of all that it does have."""
        return common_form(self.mode, {}), [self.content_hash]

    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks of a packet of so many bytes where all channels are equally fast: each takes in all of it first."""
        return (hops + 2) * (self.link_ticks(topology) + flits)

    def flits_per_tick(self, topology: Topology) -> float:
        """The capacity of the fastest channel, host channels included: it moves a byte a tick."""
        return max(float(topology.capacity.max(initial=0.0)), topology.host_capacity)

    def serialization_ticks(self, topology: Topology, length: Floats) -> Floats:
        """Ticks, float64, that a host's channel is busy with so many bytes, until the last of them has left."""
        return length * (self.flits_per_tick(topology) / topology.host_capacity)

    def min_message_ticks(self, topology: Topology) -> int:
        """Ticks that a message takes at least, whatever it holds: 3 is fewer than any does."""
        return 3

    def channel_rate(self, topology: Topology) -> Floats | float:
        """What a channel carries in a tick at most: 1, as the ticks are counted for which a channel was sending."""
        return 1.0

    def stall_message(self, ticks: int) -> str:
        """What no packet has done for so long that none will any more."""
        return f"has reached its receiver for {ticks:,} ticks"
