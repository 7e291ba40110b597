# SPDX-License-Identifier: Apache-2.0
"""Escape channels for adaptive routing."""

import numpy as np

from flitlab.models.arrays import Bytes, Masks
from flitlab.models.registry import SpecError
from flitlab.models.routing.dor import dimension_order_ports, line_grid
from flitlab.models.routing.updown import updown_ports
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names


def escape_ports(topology: Topology) -> tuple[Bytes, str, int]:
    """The port uint8 [t, v] of a routing with one path per pair and no cycle of dependencies, its name, its longest.

    Dimension order on meshes, hypercubes and HyperX, up*/down* elsewhere. Raises ``SpecError`` on a uni-directional
    topology.
    """
    grid = line_grid(topology)
    if grid is not None and not grid.wrap:
        ports, longest = dimension_order_ports(topology, grid)
        return _lowest(ports), "dor", longest
    if topology.directed:
        raise SpecError(
            "escape channels follow dor or updown, and this uni-directional topology has neither; hop serves it",
            key="vc_policy",
        )
    ports, longest, roots = updown_ports(topology)
    return _lowest(ports), f"updown from {switch_names(topology).values(roots)}", longest


def _lowest(ports: Masks) -> Bytes:
    """uint8: the position of the lowest set bit; 0 for empty sets."""
    lowest = ports & (~ports + np.uint64(1))
    place: Bytes = np.log2(np.maximum(lowest, np.uint64(1)).astype(float)).astype(np.uint8)
    return place
