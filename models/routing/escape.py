# SPDX-License-Identifier: Apache-2.0
"""Escape channels for adaptive routing."""

import numpy as np

from flitlab.models.arrays import Bytes, Masks
from flitlab.models.jit import njit
from flitlab.models.registry import SpecError
from flitlab.models.routing.dor import dimension_order_ports, line_grid
from flitlab.models.routing.updown import updown_ports
from flitlab.models.rules.bits import popcount, select
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names


def escape_ports(topology: Topology) -> tuple[Bytes, str, int]:
    """The port uint8 [t, v] of a routing with one path per pair and acyclic dependencies, its name, its longest route.

    Dimension order on meshes, hypercubes and HyperX, up*/down* elsewhere. Raises ``SpecError`` on a uni-directional
    topology.

    Parameters
    ----------
    topology: the network.
    """
    grid = line_grid(topology)
    if grid is not None and not grid.wrap:
        ports, longest = dimension_order_ports(topology, grid)
        return _one_each(ports), "dor", longest
    if topology.directed:
        raise SpecError(
            "escape channels follow dor or updown, and this uni-directional topology has neither; hop serves it",
            key="vc_policy",
        )
    ports, longest, roots = updown_ports(topology)
    return _one_each(ports), f"updown from {switch_names(topology).values(roots)}", longest


@njit
def _one_each(ports: Masks) -> Bytes:
    """One port of each set, uint8, chosen by destination and switch to share the load; 0 of empty sets."""
    port = np.zeros(ports.shape, np.uint8)
    for t in range(len(ports)):
        for v in range(len(ports)):
            count = popcount(ports[t, v])
            if count > 0:
                port[t, v] = select(ports[t, v], (t + v) % count)
    return port
