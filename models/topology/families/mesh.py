# SPDX-License-Identifier: Apache-2.0
"""Meshes, tori, twisted tori and hypercubes: grids of switches with bi-directional links between neighbours."""

from collections.abc import Iterator
from math import prod
from typing import Annotated

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
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
    """Switches along each dimension."""

    def graph(self) -> Topology:
        return grid(self.kind, self.dims, wrap=False)


@register("topology", "torus", aliases=("kary_ncube",))
class Torus(TopologySpec):
    """Torus: a bi-directional link between switches that differ by 1, modulo the extent, in one coordinate.

    Switches are numbered row-major, the last dimension fastest. Valid: one or more dimensions; a dimension
    of extent 2 is a single link, one of extent 1 has none; up to 2 * 10**7 switches and channels.

    Example: ``topology: {kind: torus, dims: [4, 4, 4]}``

    Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 5.
    """

    dims: Extents
    """Switches along each dimension."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Tori of two to five dimensions of extent 3 and more."""

        def grids(dims: list[int], most: int) -> Iterator[list[int]]:
            """Extents from 3, falling, of two to five dimensions."""
            if len(dims) > 1:
                yield dims
            if len(dims) < 5:
                for extent in range(3, min(dims[-1] if dims else most, most) + 1):
                    yield from grids([*dims, extent], most // extent)

        for dims in grids([], equipment.most_switches):
            degree, switches = 2 * len(dims), prod(dims)
            yield from flat(equipment, {"kind": "torus", "dims": dims}, switches, degree, switches * len(dims))

    def graph(self) -> Topology:
        return grid(self.kind, self.dims, wrap=True)


@register("topology", "hypercube")
class Hypercube(TopologySpec):
    """Binary hypercube: a bi-directional link between switches whose numbers differ in one bit.

    Coordinate i of a switch is bit i (of value 2**i) of its number. Valid: dim 1 to 20, 2**dim switches.

    Example: ``topology: {kind: hypercube, dim: 6}``

    Source: Saad and Schultz, Topological properties of hypercubes, IEEE Trans. Computers 37, 1988.
    """

    dim: int = Field(ge=1, le=20)
    """Dimensions: 2**dim switches."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Hypercubes of four and more dimensions; smaller ones are a HyperX."""
        for dim in range(4, min(20, equipment.most_switches.bit_length() - 1) + 1):
            yield from flat(equipment, {"kind": "hypercube", "dim": dim}, 2**dim, dim, dim * 2 ** (dim - 1))

    def graph(self) -> Topology:
        switches, bits = np.arange(2**self.dim), np.arange(self.dim)
        coordinates = switches[:, None] >> bits & 1
        low = [switches[coordinates[:, i] == 0] for i in bits]
        links = np.concatenate([np.column_stack([v, v | 1 << i]) for i, v in enumerate(low)])
        cube = Grid((2,) * self.dim, False, coordinates)
        return Topology.from_links(self.kind, len(switches), links, grid=cube)


def shifted_dimensions(dims: list[int]) -> list[int]:
    """Return the longest dimensions, along which wrap-around links of the others are shifted; among equals the
    first.
    """
    longest = [axis for axis, extent in enumerate(dims) if extent == max(dims)]
    return longest if len(longest) < len(dims) else [0]


def twisted_links(dims: list[int], twist: int) -> Ints:
    """int64 [m, 2]: links of the twisted torus, each once, numbered with the last dimension fastest."""
    switches = np.arange(prod(dims)).reshape(dims)
    shifted = shifted_dimensions(dims)
    links = []
    for axis, extent in enumerate(dims):
        neighbour = np.roll(switches, -1, axis)
        if axis not in shifted:
            last = [slice(None)] * len(dims)
            last[axis] = slice(extent - 1, extent)
            neighbour[tuple(last)] = np.roll(neighbour[tuple(last)], [-twist] * len(shifted), shifted)
        links.append(np.column_stack([switches.ravel(), neighbour.ravel()]))
    return np.unique(np.sort(np.concatenate(links), axis=1), axis=0)


@register("topology", "twisted_torus")
class TwistedTorus(TopologySpec):
    """Twisted torus: a torus in which going round a shorter dimension leads ``twist`` places along the longest ones.

    The link from the last to the first switch of a line along a dimension that is shorter than the longest ends
    ``twist`` places further, modulo the extent, in every dimension that is as long as the longest. (If all extents are
    equal, the first dimension counts as the longest.) All other links are those of the torus; two that join the same
    switches are one, and none joins a switch to itself. Twist 0 is the torus.

    Extents with a ratio of 2, and a twist of half the longest, make it symmetric in all dimensions: 2 a x a with twist
    a is the rectangular twisted torus, 2 a x a x a the prismatic doubly twisted torus (a face-centred cubic lattice),
    and 2 a x 2 a x a is a body-centred cubic lattice. Their diameters are a, floor(3 a / 2) and floor(3 a / 2), in
    place of the torus's a + floor(a / 2), a + 2 floor(a / 2) and 2 a + floor(a / 2).

    Switches are numbered row-major, the last dimension fastest, and have up to 2 links a dimension.
    Valid: one or more dimensions; any twist from 0; up to 2 * 10**7 switches and channels.

    Example: ``topology: {kind: twisted_torus, dims: [8, 4], twist: 4}``

    Example: ``topology: {kind: twisted_torus, dims: [4, 4, 8], twist: 4}``

    Source: Camara, Moreto, Vallejo, Beivide, Miguel-Alonso, Martinez and Navaridas, IEEE Trans. Parallel and
    Distributed Systems 21, 2010, doi:10.1109/TPDS.2010.30; lattices: Camarero, Martinez and Beivide, Lattice graphs for
    high-scale interconnection topologies, the same journal, 2015.
    """

    dims: Extents
    """Switches along each dimension."""
    twist: int
    """Places by which going round a shorter dimension leads along the longest."""

    def graph(self) -> Topology:
        switches = prod(self.dims)
        limit_size(switches, "dims", "switches")
        limit_size(2 * switches * len(self.dims), "dims")
        twist = self.twist % max(self.dims)
        links, notes = twisted_links(self.dims, twist), {"dims": self.dims, "twist": twist}
        return Topology.from_links(self.kind, switches, links, notes=notes)
