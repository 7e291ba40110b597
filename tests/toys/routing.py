"""A routing of a user's own: all that it takes stands in this file."""

import numpy as np

from flitlab.models.registry import register
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.rules.tables import Selection
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


@register("routing", "highest")
class Highest(RoutingSpec):
    """Every packet takes, of the shortest paths, the one by way of the neighbour with the highest number.

    Example: ``routing: {kind: highest}``

    Source: the reference for the pieces that a routing is made of is docs/routing.md.
    """

    def routes(self, topology: Topology) -> Routes:
        hops = distances(topology).astype(int)  # [switch, target]
        port = np.arange(topology.channels) - topology.out_start[topology.src]
        ports = np.zeros((topology.switches,) * 2, np.uint64)  # [target, switch], a bit for each port
        for channel, closer in enumerate(hops[topology.dst] < hops[topology.src]):
            ports[closer, topology.src[channel]] = np.uint64(1 << port[channel])
        return Routes(self.kind, ports, Selection.RANDOM, int(hops.max()))
