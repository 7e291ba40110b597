# SPDX-License-Identifier: Apache-2.0
"""Hosts in wormhole switching, which send flit by flit."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.clock import Allocator, Phase
from flitlab.sim.engines.reference.matching import RoundRobin
from flitlab.sim.engines.reference.packet import Packet
from flitlab.sim.engines.reference.source_queues import ClassQueues


class Flit(NamedTuple):
    """A flit of a packet; number: its index in the packet, 0 for the head flit."""

    packet: Packet
    number: int

    @property
    def is_head(self) -> bool:
        return self.number == 0

    @property
    def is_tail(self) -> bool:
        return self.number == self.packet.flits - 1


class Outlet(Protocol):
    """An output VC of a host. credits: free flits downstream known to the host."""

    credits: int

    @property
    def channel(self) -> Any:
        """The injection channel (:class:`~flitlab.sim.engines.reference.wormhole.WormholeChannel`)."""

    def send(self, flit: Flit, now: int) -> None:
        """Send a flit to the downstream buffer."""


class Injection:
    """The packets of a class of traffic, or all packets of a host, on its injection channel.

    vcs: the output VCs that they may take. arbiter: among these. flit: the next flit to send, of the packet
    ``flit.packet``, on ``outlet``; None between packets.
    """

    def __init__(self, vcs: Sequence[Outlet]):
        self.vcs = vcs
        self.arbiter = RoundRobin()
        self.outlet = vcs[0]
        self.flit: Flit | None = None

    def free_vc(self, taken: Sequence[Outlet]) -> Outlet | None:
        """The next VC in round robin with credits, and without a packet of another class; None if there is none."""
        ready = [i for i, vc in enumerate(self.vcs) if vc.credits and vc not in taken]
        return self.vcs[self.arbiter.select(ready)] if ready else None

    def take(self, vc: Outlet, packet: Packet) -> None:
        """Begin a packet on a VC."""
        self.arbiter.last_served = self.vcs.index(vc)
        self.outlet, self.flit = vc, Flit(packet, 0)


class WormholeHost(network.Host, Allocator):
    """Sends a flit whenever its channel is free: its packets one after another, each on the next injection VC in round
    robin with credits.

    With classes of traffic it chooses the class for every flit. injections: one for each class.
    """

    phase = Phase.SENDING
    waiting: network.SourceQueue
    network: Any
    injections: list[Injection]

    def __init__(self, net: Any, index: int):
        network.Host.__init__(self, net, index)
        Allocator.__init__(self, net.clock)

    def connect(self, vcs: Sequence[Outlet]) -> None:
        """Attach the injection VCs."""
        ranges = [self.network.class_vcs(number) for number in range(len(self.network.processes))]
        self.injections = [Injection(vcs[first:end]) for first, end in ranges]

    def schedule_send(self, now: int) -> None:
        self.schedule_at(now)

    def allocate(self, now: int) -> None:
        """Send the next flit if an injection VC has a credit."""
        if self.free_at > now:
            self.schedule_at(self.free_at)
            return
        idle = all(injection.flit is None for injection in self.injections)
        if idle and not any(self._may_start(number) for number in range(len(self.injections))):
            return
        offers = self._offers()
        if offers:
            number = self.waiting.serve(offers) if isinstance(self.waiting, ClassQueues) else 0
            injection = self.injections[number]
            if injection.flit is None:
                injection.take(offers[number], self.leave(now))
                self.network.queues.occupy(self.network.source(self.index, number))
            self._send(injection, now)
        if self.waiting or any(injection.flit is not None for injection in self.injections):
            self.schedule_at(max(now + 1, self.free_at))

    def _offers(self) -> dict[int, Outlet]:
        """The VC on which each class can send a flit."""
        taken = [injection.outlet for injection in self.injections if injection.flit is not None]
        offers: dict[int, Outlet] = {}
        for number, injection in enumerate(self.injections):
            vc: Outlet | None = injection.outlet
            if injection.flit is None:
                vc = injection.free_vc(taken) if self._may_start(number) else None
            if vc is not None and vc.credits:
                offers[number] = vc
        return offers

    def _may_start(self, number: int) -> bool:
        """Whether a packet of a class waits that may start; number: of the class."""
        waiting = self.waiting.queues[number] if isinstance(self.waiting, ClassQueues) else self.waiting
        return (
            bool(waiting)
            and self.network.faults.may_start(number)
            and self.network.queues.may_start(self.network.source(self.index, number), self.network.clock.now)
        )

    def _send(self, injection: Injection, now: int) -> None:
        flit = injection.flit
        assert flit is not None
        injection.outlet.send(flit, now)
        self.free_at = now + injection.outlet.channel.flit_ticks
        self.network.ledger.enter(self.index, 1, int(flit.is_head))
        if flit.is_tail:
            self.network.tail_leaves(flit.packet, self.free_at)
            self.network.replies.end(flit.packet, self.free_at)
            self.network.queues.release(self.network.source_of(flit.packet), self.free_at)
        injection.flit = None if flit.is_tail else Flit(flit.packet, flit.number + 1)
