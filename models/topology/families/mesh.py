# SPDX-License-Identifier: Apache-2.0
"""Meshes: grids of switches with bi-directional links between neighbours."""

from math import prod
from typing import Annotated

import numpy as np
from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.graph import Grid, Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec

Extents = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=32)]
"""Extents of the dimensions of a grid, each 1 or more."""


def grid(kind: str, dims: list[int], wrap: bool) -> Topology:
    """Build a mesh, or with ``wrap`` a torus, numbered with the last dimension fastest.

    Parameters
    ----------
    kind: of the topology.
    dims: extents of the dimensions.
    wrap: whether dimensions close into rings.
    """
    switches = prod(dims)
    # the last switch has a neighbour ahead only in a ring, and a ring of two would repeat its only link
    pairs = [extent if wrap and extent > 2 else extent - 1 for extent in dims]
    limit_size(switches, "dims", "switches")
    limit_size(2 * sum(switches // extent * k for extent, k in zip(dims, pairs, strict=True)), "dims")
    place = np.arange(switches).reshape(dims)
    links = []
    for axis, k in enumerate(pairs):
        neighbour = np.roll(place, -1, axis)
        ends = [np.take(end, range(k), axis).ravel() for end in (place, neighbour)]
        links.append(np.column_stack(ends))
    coordinates = np.indices(dims).reshape(len(dims), -1).T.astype(np.int64)
    return Topology.from_links(
        kind, place.size, np.concatenate(links), grid=Grid(tuple(dims), wrap, coordinates)
    )  # fmt: skip


@register("topology", "mesh")
class Mesh(TopologySpec):
    """Mesh: a bi-directional link between switches that differ by 1 in one coordinate.

    Switches are numbered row-major, the last dimension fastest. Valid: one or more dimensions of extent
    1 (no links) or more, up to 2 * 10**7 switches and channels.

    Example: ``topology: {kind: mesh, dims: [8, 8]}``

    Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 5.
    """

    dims: Extents

    def graph(self) -> Topology:
        return grid(self.kind, self.dims, wrap=False)
