# SPDX-License-Identifier: Apache-2.0
"""Which channels and virtual channels the packets of a run may take."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from flitlab.models.rules.bits import port_list
from flitlab.models.rules.polarized import detour
from flitlab.models.rules.route import (
    ON_ESCAPE,
    another_path,
    choose_route,
    route_from,
    route_word,
    usable_ports,
)
from flitlab.models.rules.tables import ESCAPE_VC, RouteForm, Selection, Tables, VcPolicy
from flitlab.models.rules.ugal import MINIMAL_ROUTE, cheaper_path, choose_leg_count, revises_route
from flitlab.models.rules.vc import make_rings, reserved_vcs
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.reference.machine_code import RouteRules, machine_code
from flitlab.sim.engines.reference.packet import Packet

_BY_QUEUE_ESTIMATE = (Selection.UGAL_LOCAL, Selection.UGAL_GLOBAL, Selection.PROGRESSIVE)
_DRAWN = (RouteForm.PATHS, RouteForm.VIA, RouteForm.POLARIZED)
_MOST_FIXED_CHOICES = 1 << 17  # of about 300 bytes each


class PacketRouting:
    """The routes and the VC policy in use, and the decisions of packets by them.

    queue: the queue estimate of a channel between switches at a tick, in flits. class_vcs: the first VC of the class of
    a packet, by its sequence number, and one past the last; None where all packets are of one class.
    """

    def __init__(
        self,
        scenario: Scenario[Any],
        seed: int,
        queue: Callable[[int, int], int],
        class_vcs: Callable[[int], tuple[int, int]] | None,
    ):
        topology = scenario.topology
        self._seed = seed
        self._hosts = topology.hosts
        self._out_start = topology.out_start.tolist()
        self._dst = topology.dst.tolist()
        self._rings = make_rings(topology)
        self._queue = queue
        self._vcs = scenario.switching.vcs
        self._class_vcs = class_vcs
        self._route_word = machine_code(route_word, seed, 0, 0, 0)
        # by switch, destination, hop and held VC: all that choices depend on where the routes allow one port
        self._fixed_choices: dict[tuple[int, int, int, int], list[tuple[int, int, int]]] = {}
        self._has_one_port: dict[tuple[int, int], bool] = {}
        self.use(scenario.routes.tables(topology, scenario.switching.vc_policy), scenario.switching.vc_policy)

    def use(self, routes: Tables, policy: int) -> None:
        """Use routes and a VC policy from now on."""
        self.routes, self.policy = routes, policy
        self.reserved_vcs = reserved_vcs(routes, policy)
        self._rules = RouteRules(routes, self._rings)
        self._fixed_choices.clear()
        self._has_one_port.clear()
        self._may_fix_choices = (
            routes.form in (RouteForm.TABLE, RouteForm.DIGITS)
            and policy in (VcPolicy.ANY, VcPolicy.HOP, VcPolicy.RISING)
            and self._class_vcs is None
        )

    def draw(self, packet: Packet) -> None:
        """Draw the route of a packet, where the form of the routes has any to draw."""
        if self.routes.form in _DRAWN:
            packet.route = choose_route(
                self.routes, self._seed, packet.source, packet.destination, self._hosts, packet.sequence,
                packet.origin, packet.target,
            )  # fmt: skip

    def route_channels(self, packet: Packet) -> Iterator[int]:
        """Yield the channels between switches on the whole route of a packet, which is not adaptive."""
        return self._route_channels(packet, packet.route, packet.origin, 0)

    def decide(self, packet: Packet, now: int) -> None:
        """Decide the route of a packet that leaves its source queue, where the route depends on queue estimates.

        Under ugal this chooses minimal or non-minimal, under LEAST_QUEUED one of the drawn paths.
        """
        rule = self.routes.rule
        if rule in _BY_QUEUE_ESTIMATE:
            self._choose_route(packet, packet.route, packet.origin, now)
        elif rule == Selection.LEAST_QUEUED and packet.origin != packet.target:
            for attempt in range(1, self.routes.draws):
                drawn = another_path(
                    self.routes, self._seed, packet.source, packet.sequence, packet.origin, packet.target, attempt
                )
                first, second = (
                    self._queue_estimate(packet, route, packet.origin, now) for route in (packet.route, drawn)
                )
                packet.route = cheaper_path(self.routes, packet.route, drawn, first, second, packet.flits)

    def reroute(self, packet: Packet, switch: int, now: int) -> bool:
        """Decide the route of a packet at a switch again, by the queue estimates at the end of tick ``now``.

        Returns whether the packet may re-route there.
        """
        r = self.routes
        if not revises_route(r, packet.route, packet.hop, packet.origin, switch, packet.target):
            return False
        via = route_from(r, self._seed, packet.source, self._hosts, packet.sequence, switch, packet.hop)
        self._choose_route(packet, via, switch, now)
        return True

    def _choose_route(self, packet: Packet, via: int, switch: int, now: int) -> None:
        """Choose between the minimal route and the route ``via`` of a packet at a switch."""
        minimal, other = (self._queue_estimate(packet, route, switch, now) for route in (int(MINIMAL_ROUTE), via))
        packet.route = choose_leg_count(self.routes, via, switch, packet.target, minimal, other)

    def _queue_estimate(self, packet: Packet, route: int, switch: int, now: int) -> int:
        """Return the queue estimate in flits of the next channel of a packet on a route; UGAL_GLOBAL: of all its
        channels.
        """
        channels = self._route_channels(packet, route, switch, packet.hop)
        if self.routes.rule != Selection.UGAL_GLOBAL:
            channels = islice(channels, 1)
        return sum(self._queue(channel, now) for channel in channels)

    def _route_channels(self, packet: Packet, route: int, switch: int, hop: int) -> Iterator[int]:
        """Yield the channels between switches of a packet on a route that is not adaptive.

        switch, hop: where the path begins, and the hops that the packet has taken to it.
        """
        while not self._rules.at_destination(self.routes, route, hop, switch, packet.target):
            port = self._rules.next_port(
                self.routes, route, self._seed, switch, packet.target, packet.source, packet.destination,
                self._hosts, packet.sequence, hop,
            )  # fmt: skip
            channel = self._out_start[switch] + port
            yield channel
            switch, hop = self._dst[channel], hop + 1

    def choices(self, packet: Packet, switch: int) -> list[tuple[int, int, int]]:
        """The ports and VCs that a packet may take at a switch: (port, first VC, one past the last); empty at its
        destination.
        """
        key = switch, packet.target, packet.hop, packet.vc
        choices = self._fixed_choices.get(key)
        if choices is None:
            choices = [(port, *self._allowed_vcs(packet, switch, port)) for port in self.allowed_ports(packet, switch)]
            if self._may_fix_choices and self._is_fixed(packet, switch):
                self._fixed_choices[key] = choices
        return choices

    def _is_fixed(self, packet: Packet, switch: int) -> bool:
        """Whether the routes allow a packet at most one port at a switch, and few enough choices are known."""
        pair, target = (switch, packet.target), packet.target
        if pair not in self._has_one_port:
            ports = [] if switch == target else port_list(usable_ports(self.routes, packet.route, 0, switch, target))
            self._has_one_port[pair] = len(ports) <= 1
        return self._has_one_port[pair] and len(self._fixed_choices) < _MOST_FIXED_CHOICES

    def allowed_ports(self, packet: Packet, switch: int) -> list[int]:
        """The ports that a packet may take at a switch, ascending; empty at its destination."""
        r, route, hop = self.routes, packet.route, packet.hop
        if switch == packet.target and self._rules.at_destination(r, route, hop, switch, packet.target):
            return []
        if r.rule == Selection.ADAPTIVE:
            return port_list(usable_ports(r, route, hop, switch, packet.target))
        return [
            self._rules.next_port(
                r, route, self._seed, switch, packet.target, packet.source, packet.destination, self._hosts,
                packet.sequence, hop,
            )
        ]  # fmt: skip

    def route_word(self, packet: Packet) -> int:
        """The random word of the decision of a packet at its current switch."""
        return self._route_word(self._seed, packet.source, packet.sequence, packet.hop)  # type: ignore[no-any-return]

    def detour(self, packet: Packet, switch: int, channel: int) -> int:
        """The penalty in flits of a channel for a polarized packet; 0 for other routings."""
        if self.routes.form != RouteForm.POLARIZED:
            return 0
        return int(detour(self.routes, packet.origin, packet.target, switch, self._dst[channel], packet.flits))

    def enter(self, packet: Packet, vc: int) -> None:
        """Record the granted VC of a channel between switches; a packet on the escape VC stays on the escape
        network.
        """
        packet.vc = vc
        if self.policy == VcPolicy.ESCAPE and vc == ESCAPE_VC:
            packet.route = int(ON_ESCAPE)

    def _allowed_vcs(self, packet: Packet, switch: int, port: int) -> tuple[int, int]:
        """The first VC that a packet may take at a port, and one past the last."""
        channel = self._out_start[switch] + port
        low, high = (0, self._vcs) if self._class_vcs is None else self._class_vcs(packet.sequence)
        first, end = self._rules.allowed_vcs(
            self.routes, packet.route, self.policy, high - low, packet.hop, self._rings, packet.origin,
            packet.target, channel, switch, port, max(packet.vc - low, -1),
        )  # fmt: skip
        return low + first, low + end
