# SPDX-License-Identifier: Apache-2.0
"""A packet of the disciplines that send flits, as the reference engine moves it from place to place."""

from dataclasses import dataclass, field
from typing import Any

from flitlab.models.rules.order import outranks
from flitlab.sim.engines.reference.clock import Signal
from flitlab.sim.engines.reference.ranks import Message


@dataclass(slots=True, eq=False)
class Packet:
    """A packet and where it has got to.

    sequence: how many packets its source host created before it. source, destination: hosts.
    origin, target: their switches. created, sent: ticks at which it entered and left the source queue.
    hop: channels between switches taken so far; deflections: those of them that it did not want.
    arrived: tick of its head at the present switch.
    way: what its routes follow from (``flitlab.models.rules.route``).
    moved: happens when its head arrives at the next place (its value; None and the tail: the destination).
    outlets: in virtual cut-through, the outputs it may take here, each with the VCs it may take there.
    vc: that it holds on the channel between switches by which it has come, -1 if it has come from its host.
    message: that it is a part of, if hosts run a program. on: the output whose channel its head is on, None at a switch
    or on the way from or to a host. lost: whether it was lost with a link or a switch.
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
        """Whether this packet goes before another one in hot-potato."""
        return bool(outranks(self.hop, self.created, self.identity, other.hop, other.created, other.identity))
