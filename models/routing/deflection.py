# SPDX-License-Identifier: Apache-2.0
"""Hot-potato deflection routing."""

import numpy as np

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.rules.tables import MaxPorts, Selection
from flitlab.models.topology.graph import Topology


@register("routing", "deflection", aliases=("hot_potato",))
class Deflection(RoutingSpec):
    """Hot-potato: minimal channels while they are free, else any free channel; no flow control.

    Selects switching mode ``deflection`` whatever ``switching.mode`` says.

    Example: ``routing: {kind: deflection}``

    Source: UNI section III-B.2; Baran 1964, doi:10.1109/TCOM.1964.1088883.
    """

    def routes(self, topology: Topology) -> Routes:
        if (topology.in_degree != topology.out_degree).any():
            v = int(np.flatnonzero(topology.in_degree != topology.out_degree)[0])
            raise SpecError(
                "needs as many channels into every switch as out of it; switch "
                f"{v} has {topology.in_degree[v]} in and {topology.out_degree[v]} out (minimal, ecmp and ksp serve it)",
                key="kind",
            )
        ports, diameter = minimal_ports(topology, MaxPorts.MASK)
        return Routes(self.kind, ports, Selection.RANDOM, diameter, deflection=True)
