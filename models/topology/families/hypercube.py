# SPDX-License-Identifier: Apache-2.0
"""The family of binary hypercubes."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.graph import Grid, Topology
from flitlab.models.topology.spec import TopologySpec


@register("topology", "hypercube")
class Hypercube(TopologySpec):
    """Binary hypercube: a bi-directional link between switches whose numbers differ in one bit.

    Coordinate i of a switch is bit i (of value 2**i) of its number. Valid: dim 1 to 20, 2**dim switches.

    Example: ``topology: {kind: hypercube, dim: 6}``

    Source: Saad and Schultz, Topological properties of hypercubes, IEEE Trans. Computers 37, 1988.
    """

    dim: int = Field(ge=1, le=20)

    def graph(self) -> Topology:
        switches, bits = np.arange(2**self.dim), np.arange(self.dim)
        coordinates = switches[:, None] >> bits & 1
        low = [switches[coordinates[:, i] == 0] for i in bits]
        links = np.concatenate([np.column_stack([v, v | 1 << i]) for i, v in enumerate(low)])
        cube = Grid((2,) * self.dim, False, coordinates)
        return Topology.from_links(self.kind, len(switches), links, grid=cube)
