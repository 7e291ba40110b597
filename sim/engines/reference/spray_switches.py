# SPDX-License-Identifier: Apache-2.0
"""Switches that spread packets over their outputs."""

import numpy as np

from flitlab.models.rules.spray.ports import AtSwitch, chosen_port, make_salts, make_switches, spray_port, spray_route
from flitlab.models.transport.fabric import FabricChange, SpraySession
from flitlab.sim.engines.reference.clock import Clock
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_links import SprayPacket


class SpraySwitches:
    """The choice of outputs in all switches.

    state: what adaptive switches know of queues and flows. routes: since the last change of the network;
    routes_changed: whether they differ from the first.
    """

    def __init__(self, session: SpraySession, clock: Clock):
        topology, t = session.topology, session.routes
        self.session, self.clock = session, clock
        self.salts = np.zeros(topology.switches + 1, np.int64)
        make_salts(session.seed, self.salts)
        self.state = make_switches(
            session.port_choice, session.seed, session.queue_bytes, topology.out_degree, 2 * len(session.flows.source)
        )
        self.routes, self.routes_changed = session.routes, False
        self._route = machine_code(spray_route, t, self.salts, 0, 0, 0, 0, 0)
        self._spray_port = machine_code(spray_port, t, t, False, self.salts, 0, 0, 0, 0, 0, 0)
        self._chosen_port = machine_code(
            chosen_port, t, t, False, self.salts, self.state, topology.out_start, 0, 0, 0, 0, 0, 0, 0
        )

    def fix_route(self, packet: SprayPacket, switch: int, paths: int) -> None:
        """Fix the route of a packet at its first switch. paths: that its transport uses."""
        packet.route = self._route(
            self.routes, self.salts, paths, switch, packet.target.switch, packet.key, packet.entropy
        )

    def output(self, packet: SprayPacket, switch: int) -> int:
        """The channel that a packet takes at a switch that is not its last."""
        session, out_start, target = self.session, self.session.topology.out_start, packet.target.switch
        if session.port_choice.policy == AtSwitch.ECMP:
            port = self._spray_port(
                self.routes, session.routes, self.routes_changed, self.salts, packet.route, packet.hop, switch,
                target, packet.key, packet.entropy,
            )  # fmt: skip
        else:
            data = packet.size if packet.is_data else 0
            port = self._chosen_port(
                self.routes, session.routes, self.routes_changed, self.salts, self.state, out_start, switch, target,
                packet.hop, packet.key, packet.entropy, data, self.clock.now,
            )  # fmt: skip
        return int(out_start[switch]) + int(port)

    def change(self, change: FabricChange) -> None:
        """Follow a change of the network: other queue sizes and routes."""
        self.state.queue_bytes[change.other] = change.settings.queue_bytes
        if change.routes is not None:
            self.routes, self.routes_changed = change.routes, change.moved

    def update_queue(self, number: int, low: int, high: int) -> None:
        """Update the bytes of data and of control packets in a queue that adaptive switches read."""
        if self.session.port_choice.policy != AtSwitch.ECMP:
            self.state.low[number], self.state.high[number] = low, high
