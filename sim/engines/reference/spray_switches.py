# SPDX-License-Identifier: Apache-2.0
"""Switches that spread packets over their outputs."""

from flitlab.models.rules.spray.ports import AtSwitch, chosen_port, spray_port, spray_route
from flitlab.models.transport.fabric import FabricChange, SpraySession, make_routing
from flitlab.sim.engines.reference.clock import Clock
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_links import SprayPacket


class SpraySwitches:
    """The choice of outputs in all switches, by the routes since the last change of the network."""

    def __init__(self, session: SpraySession, clock: Clock):
        self.session, self.clock = session, clock
        self.routing = make_routing(session)
        routes = self.routing.routes
        self._route = machine_code(spray_route, routes.present, routes.salts, *[0] * 5)
        self._spray_port = machine_code(spray_port, routes, *[0] * 6)
        self._chosen_port = machine_code(chosen_port, self.routing, *[0] * 7)

    def fix_route(self, packet: SprayPacket, switch: int, paths: int) -> None:
        """Fix the route of a packet at its first switch. paths: that its transport uses."""
        routes = self.routing.routes
        packet.route = self._route(
            routes.present, routes.salts, paths, switch, packet.target.switch, packet.key, packet.entropy
        )

    def output(self, packet: SprayPacket, switch: int) -> int:
        """The channel that a packet takes at a switch that is not its last."""
        routing, target = self.routing, packet.target.switch
        if self.session.port_choice.policy == AtSwitch.ECMP:
            port = self._spray_port(
                routing.routes, packet.route, packet.hop, switch, target, packet.key, packet.entropy
            )
        else:
            data = packet.size if packet.is_data else 0
            port = self._chosen_port(
                routing, switch, target, packet.hop, packet.key, packet.entropy, data, self.clock.now
            )
        return int(routing.out_start[switch]) + int(port)

    def change(self, change: FabricChange) -> None:
        """Follow a change of the network: other queue sizes and routes."""
        self.routing.switches.queue_bytes[change.other] = change.settings.queue_bytes
        if change.routes is not None:
            routes = self.routing.routes._replace(present=change.routes, moved=change.moved)
            self.routing = self.routing._replace(routes=routes)

    def update_queue(self, number: int, low: int, high: int) -> None:
        """Update the bytes of data and of control packets in a queue that adaptive switches read."""
        if self.session.port_choice.policy != AtSwitch.ECMP:
            switches = self.routing.switches
            switches.low[number], switches.high[number] = low, high
