# SPDX-License-Identifier: Apache-2.0
"""Follows packets in the reference engine, where they are objects and the ledger sees them."""

from typing import Any, ClassVar

from flitlab.models.rules.ports import make_ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffered import Buffered
from flitlab.sim.engines.reference.deflection import DeflectionNetwork
from flitlab.sim.engines.reference.ledger import Ledger
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.packet import Packet
from flitlab.sim.engines.reference.vct import VctNetwork
from flitlab.sim.engines.reference.wormhole import WormholeNetwork
from flitlab.sim.engines.reference.wormhole_hosts import Flit
from flitlab.sim.engines.trace.base import PacketState


class WatchingLedger(Ledger):
    """A ledger that keeps one packet, or all (``identity`` None), from their creation on.

    known: packets by id. done: ids of those delivered.
    """

    def __init__(self, scenario: Scenario[Buffered], identity: int | None):
        super().__init__(scenario, log=False)
        self.identity = identity
        self.known: dict[int, Packet] = {}
        self.done: set[int] = set()

    def create(self, packet: Packet) -> None:
        super().create(packet)
        if self.identity in (None, packet.identity):
            self.known[packet.identity] = packet

    def deliver(self, packet: Packet, now: int) -> None:
        super().deliver(packet, now)
        if packet.identity in self.known:
            self.done.add(packet.identity)


def watched_run(
    network: type[Network[Any]], scenario: Scenario[Buffered], load: float, seed: int, identity: int | None = None
) -> tuple[Network[Any], WatchingLedger]:
    """Return a run at tick 0, and the ledger that keeps one of its packets, or all."""
    run, ledger = network(scenario, load, seed), WatchingLedger(scenario, identity)
    run.ledger = ledger
    return run, ledger


class ReferenceWatch:
    """A run of the reference engine that follows one packet (see :class:`~flitlab.sim.engines.trace.base.PacketWatch`).

    trail: the input VCs, or switches, that the packet's head has been sent to. observed_run: a run that is followed
    already, with its ledger.
    """

    network: ClassVar[type[Network[Any]]]

    def __init__(
        self, scenario: Scenario[Buffered], load: float, seed: int, identity: int,
        observed_run: tuple[Network[Any], WatchingLedger] | None = None,
    ):  # fmt: skip
        self.run, self.ledger = observed_run or watched_run(self.network, scenario, load, seed, identity)
        self.identity = identity
        self.header = scenario.switching.header
        self.vcs = scenario.switching.vcs
        self.first_port = make_ports(scenario.topology).in_base
        self.trail: list[Any] = []

    def advance(self, until: int) -> None:
        self.run.advance(until)

    def deadlocked(self) -> bool:
        return self.run.deadlocked()

    def observe(self, now: int) -> PacketState | None:
        packet = self.ledger.known.get(self.identity)
        if packet is None or packet.sent < 0:
            return None
        moving = packet.in_flight
        if moving and packet.receiver is not None and len(self.trail) <= packet.hop:
            self.trail.append(packet.receiver)
        return self.state_of(packet, moving, PacketState(
            packet.hop, -1, packet.arrived == now, None, moving and packet.receiver is None,
            self.identity in self.ledger.done, deflections=packet.deflections,
        ))  # fmt: skip

    def state_of(self, packet: Packet, moving: bool, sight: PacketState) -> PacketState:
        """Complete a state with what the switching mode knows; moving: whether the packet's head is in flight."""
        raise NotImplementedError


class VctWatch(ReferenceWatch):
    """Follows a packet of virtual cut-through; its places are input VCs."""

    network = VctNetwork

    def state_of(self, packet: Packet, moving: bool, sight: PacketState) -> PacketState:
        vc = self.trail[-1]
        at_front = bool(vc.queue) and vc.queue[0] is packet
        return sight._replace(
            place=vc.index, eligible=max(packet.arrived + self.header, vc.tail_left_at) if at_front else None
        )


class WormholeWatch(ReferenceWatch):
    """Follows a packet of wormhole switching; its places are input VCs."""

    network = WormholeNetwork

    tails = 0

    def state_of(self, packet: Packet, moving: bool, sight: PacketState) -> PacketState:
        vc, head = self.trail[-1], Flit(packet, 0)
        in_flight = moving and packet.receiver is vc
        ejecting = not in_flight and head not in vc.flits
        at_front = bool(vc.flits) and vc.flits[0] == head
        left = self.trail if ejecting else self.trail[:-1]
        # a VC is free at the end of the tick in which a tail leaves it
        while self.tails < len(left) and left[self.tails].outlet is None:
            self.tails += 1
        return sight._replace(
            place=int(self.first_port[vc.switch.index]) * self.vcs + vc.index,
            eligible=vc.front_since + self.header if at_front else None,
            ejecting=ejecting, allocated=at_front and vc.outlet is not None, tails=self.tails,
        )  # fmt: skip


class DeflectionWatch(ReferenceWatch):
    """Follows a packet of deflection routing; its places are switches."""

    network = DeflectionNetwork

    def state_of(self, packet: Packet, moving: bool, sight: PacketState) -> PacketState:
        return sight._replace(place=self.trail[-1].index, eligible=None if moving else packet.arrived + self.header)
