# SPDX-License-Identifier: Apache-2.0
"""Tori: grids of switches whose dimensions close into rings."""

from flitlab.models.registry import register
from flitlab.models.topology.families.mesh import Extents, grid
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec


@register("topology", "torus")
class Torus(TopologySpec):
    """Torus: a bi-directional link between switches that differ by 1, modulo the extent, in one coordinate.

    Switches are numbered row-major, the last dimension fastest. Valid: one or more dimensions; a dimension
    of extent 2 is a single link, one of extent 1 has none; up to 2 * 10**7 switches and channels.

    Example: ``topology: {kind: torus, dims: [4, 4, 4]}``

    Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 5.
    """

    dims: Extents

    def graph(self) -> Topology:
        return grid(self.kind, self.dims, wrap=True)
