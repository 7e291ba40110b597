# SPDX-License-Identifier: Apache-2.0
"""Twisted tori: wrap-around links are shifted along the longest dimension."""

from math import prod

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.registry import register
from flitlab.models.topology.families.mesh import Extents
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


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
