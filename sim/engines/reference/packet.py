# SPDX-License-Identifier: Apache-2.0
"""A packet of the switching modes that send flits."""

from dataclasses import dataclass, field
from typing import Any

from flitlab.sim.engines.faults import NO_LOCATION
from flitlab.sim.engines.reference.ranks import Message


@dataclass(slots=True, eq=False)
class Packet:
    """A packet and its state.

    sequence: number of packets that its source host created before it. source, destination: hosts. origin, target:
    their switches. created, sent: ticks at which it entered and left the source queue. hop: channels between
    switches taken so far; deflections: those of them that were not minimal; detour: those that its distance fell
    short by (rules ``vc`` and ``frame``). arrived: tick at which its head arrived at the current switch. route: its
    routing state (``flitlab.models.rules.route``). receiver: the input VC or switch at which its head arrives next,
    or last arrived; None: the destination host, for its tail. in_flight: whether it has left for the receiver and
    not arrived at a switch. outlets: in virtual cut-through, the outputs that it may take, each with the VCs that
    it may take there. vc: the VC of the channel by which it came, -1 from its host. message: the message of a
    program that it belongs to. location: where its head is (not under wormhole switching;
    :class:`~flitlab.sim.engines.faults.Residents`). dropped: whether it was dropped on a failed link or in a failed
    switch. promised: whether its reply counts as outstanding at its destination, which owes a limited number.
    flit_ticks: ticks of a flit on the channel by which it came, or is coming (not under wormhole switching).
    """

    identity: int
    sequence: int
    source: int
    destination: int
    origin: int
    target: int
    flits: int
    created: int
    sent: int = -1
    hop: int = 0
    deflections: int = 0
    detour: int = 0
    route: int = 0
    arrived: int = -1
    in_flight: bool = False
    receiver: Any = None
    outlets: list[Any] = field(default_factory=list)
    vc: int = -1
    message: Message | None = None
    location: int = NO_LOCATION
    dropped: bool = False
    promised: bool = False
    flit_ticks: int = 1

    def feeds_from(self, flit_ticks: int) -> int:
        """Return the tick from which it never starves a channel of ``flit_ticks``: its flits are there in time."""
        return self.arrived + (self.flits - 1) * (self.flit_ticks - flit_ticks)

    def __lt__(self, other: "Packet") -> bool:
        """Whether this packet has priority over another one in deflection routing."""
        if self.hop != other.hop:
            return self.hop > other.hop
        return (self.created, self.identity) < (other.created, other.identity)
