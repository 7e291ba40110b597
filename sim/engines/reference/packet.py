# SPDX-License-Identifier: Apache-2.0
"""A packet of the switching modes that send flits."""

from dataclasses import dataclass, field
from typing import Any

from flitlab.models.rules.order import outranks
from flitlab.sim.engines.reference.clock import Signal
from flitlab.sim.engines.reference.ranks import Message


@dataclass(slots=True, eq=False)
class Packet:
    """A packet and its state.

    sequence: number of packets that its source host created before it. source, destination: hosts. origin, target:
    their switches. created, sent: ticks at which it entered and left the source queue. hop: channels between switches
    taken so far; deflections: those of them that were not minimal. arrived: tick at which its head arrived at the
    current switch. route: its routing state (``flitlab.models.rules.route``). moved: the event of its head's next
    arrival, whose value is the input VC or switch; None: the tail at the destination. outlets: in virtual cut-through,
    the outputs that it may take, each with the VCs that it may take there. vc: the VC of the channel by which it came,
    -1 from its host. message: the message of a program that it belongs to. on: the output whose channel its head is on;
    None at a switch, and on the channel from or to a host. dropped: whether it was dropped on a failed link or in a
    failed switch.
    """

    identity: int
    sequence: int
    source: int
    destination: int
    origin: int
    target: int
    flits: int
    created: int
    moved: Signal
    sent: int = -1
    hop: int = 0
    deflections: int = 0
    route: int = 0
    arrived: int = -1
    outlets: list[Any] = field(default_factory=list)
    vc: int = -1
    message: Message | None = None
    on: Any = None
    dropped: bool = False

    def __lt__(self, other: "Packet") -> bool:
        """Whether this packet has priority over another one in deflection routing."""
        return bool(outranks(self.hop, self.created, self.identity, other.hop, other.created, other.identity))
