# SPDX-License-Identifier: Apache-2.0
"""What rules ``vc`` and ``frame`` of hot-potato switching share: the choice of an output, and the path of a packet."""

from collections.abc import Sequence

import numpy as np

from flitlab.models.rules.bits import port_set
from flitlab.models.rules.deflect import least_bound_port
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.topology.distances import distances
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.packet import Packet


class HotPotatoNetwork(Network[Deflection]):
    """A run under one of these rules. flits: of every packet."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        self.flits = scenario.source.flits[0]
        self._distances: list[list[int]] = distances(scenario.topology).tolist()

    def distance(self, packet: Packet, switch: int) -> int:
        """Channels from a switch to the destination of a packet at least."""
        return self._distances[switch][packet.target]

    def minimal_ports(self, packet: Packet, switch: int) -> list[int]:
        """The ports of a switch on shortest paths of a packet."""
        ports = int(self.scenario.routes.ports[packet.target, switch])
        return [port for port in range(ports.bit_length()) if ports >> port & 1]

    def least_bound(self, counts: Sequence[int], packet: Packet) -> int | None:
        """The index of the output that a packet takes, by the packets bound to each; None if all have V."""
        least = min(counts)
        if least == self.times.vcs:
            return None
        if counts.count(least) == 1:
            return counts.index(least)
        ports, bound = port_set(range(len(counts))), np.array(counts, np.int64)
        port = least_bound_port(ports, bound, 0, self.times.vcs, self.seed, packet.identity, packet.hop)
        return port if port >= 0 else None

    def take_hop(self, packet: Packet, switch: int, next_switch: int) -> None:
        """Count a channel that a packet takes, and what it adds to the shortest path."""
        packet.hop += 1
        packet.detour += 1 + self.distance(packet, next_switch) - self.distance(packet, switch)

    def has_arrived(self, packet: Packet) -> bool:
        """Whether the hops of a packet lead to its destination."""
        return packet.hop == self.distance(packet, packet.origin) + packet.detour
