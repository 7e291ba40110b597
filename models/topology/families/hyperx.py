# SPDX-License-Identifier: Apache-2.0
"""HyperX: grids whose lines are complete graphs."""

from collections.abc import Iterator
from math import prod
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
from flitlab.models.topology.families.mesh import Extents
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


def _from_one(multiplicity: int | list[int]) -> int | list[int]:
    if min(multiplicity if isinstance(multiplicity, list) else [multiplicity], default=1) < 1:
        raise ValueError("must be 1 or more")
    return multiplicity


Multiplicity = Annotated[int | list[int], AfterValidator(_from_one)]
"""Parallel links between two neighbours, in all dimensions or in each."""


def clique_links(switches: np.ndarray, axis: int) -> Ints:
    """Return links between any two entries of ``switches`` on the same line along ``axis``, int64 [m, 2].

    Parameters
    ----------
    switches: int64 [dims], switch numbers by coordinates.
    axis: the dimension.
    """
    lines = np.moveaxis(switches, axis, -1).reshape(-1, switches.shape[axis])
    u, v = np.triu_indices(switches.shape[axis], 1)
    return np.column_stack([lines[:, u].ravel(), lines[:, v].ravel()])


def hyperx_links(dims: list[int], multiplicity: list[int]) -> Ints:
    """Return the links of a HyperX, int64 [m, 2]; switches are numbered with the last dimension fastest.

    Any two switches that differ in coordinate i only are a row (u, v), u < v, multiplicity[i] times in succession. Rows
    are ordered by dimension; m = P / 2 * sum K_i (S_i - 1) for P switches.

    Parameters
    ----------
    dims: extents S_i, 1 or more.
    multiplicity: parallel links K_i in each dimension, as many entries as ``dims`` (not checked).

    Source: Ahn, Binkert, Davis, McLaren and Schreiber, SC 2009, doi:10.1145/1654059.1654101.
    """
    place = np.arange(prod(dims)).reshape(dims)
    cliques = [np.repeat(clique_links(place, i), k, axis=0) for i, k in enumerate(multiplicity)]
    return np.concatenate([np.zeros((0, 2), np.int64), *cliques])


def hyperx_degree(dims: list[int], multiplicity: list[int]) -> int:
    """Links at each switch."""
    return sum(k * (s - 1) for s, k in zip(dims, multiplicity, strict=True))


def relative_bisection(dims: list[int], multiplicity: list[int], hosts_per_switch: int) -> float | None:
    """Return links cut per host of one half where an even dimension is cut in the middle: least K S / (2 T).

    None without an even dimension or without hosts.

    Parameters
    ----------
    dims: extents S of the dimensions.
    multiplicity: parallel links K of each dimension.
    hosts_per_switch: T.
    """
    widths = [k * s for s, k in zip(dims, multiplicity, strict=True) if s > 1]
    return min(widths) / (2 * hosts_per_switch) if widths and hosts_per_switch else None


@register("topology", "hyperx")
class HyperX(TopologySpec):
    """HyperX (L, S, K, T): switches are the points of a grid with L dimensions of S_i coordinates each.

    Any two switches that differ in one coordinate only are joined, by K_i parallel links if that is
    coordinate i. dims: the S_i. multiplicity: K, one number for all dimensions or one for each.
    hosts_per_switch: T. One dimension makes a complete graph, dimensions of 2 a hypercube, equal ones a
    flattened butterfly.

    P = prod S_i switches, numbered row-major with the last dimension fastest; degree sum K_i (S_i - 1);
    P / 2 * degree links; T P hosts; diameter: the number of dimensions with S_i > 1. ``notes`` gives the
    relative bisection min K_i S_i / (2 T), 1 being enough for all hosts of one half to send to the other
    (an odd S_i cannot be halved: its narrowest cut is wider by a factor of 1 + 1 / S_i).

    Valid: any extents and multiplicities from 1, up to 2 * 10**7 channels.

    Example: ``topology: {kind: hyperx, dims: [4, 6], multiplicity: [2, 1], hosts_per_switch: 5}``

    Source: Ahn, Binkert, Davis, McLaren and Schreiber, SC 2009, doi:10.1145/1654059.1654101.
    """

    dims: Extents
    """Switches along each dimension."""
    multiplicity: Multiplicity = 1
    """Parallel links, one number or one for each dimension."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Full meshes, and grids of two and three dimensions with equal trunks."""
        most, links = equipment.most_switches, equipment.most_links
        sides = range(2, links + 2)
        lines = [[s] for s in sides if s <= most]
        planes = [[s, t] for s in sides for t in range(2, s + 1) if s * t <= most]
        cubes = [[s, t, u] for s, t in planes for u in range(2, t + 1) if s * t * u <= most]
        for dims in (*lines, *planes, *cubes):
            switches, degree = prod(dims), hyperx_degree(dims, [1] * len(dims))
            yield from flat(
                equipment, {"kind": "hyperx", "dims": dims}, switches, degree, switches * degree // 2, "multiplicity"
            )

    def graph(self) -> Topology:
        multiplicity = self._multiplicities()
        switches = prod(self.dims)
        limit_size(switches * max(1, hyperx_degree(self.dims, multiplicity)), "dims")
        notes: Notes = {"dims": self.dims, "multiplicity": multiplicity}
        if self.hosts is None:
            notes["relative_bisection"] = relative_bisection(self.dims, multiplicity, self.hosts_per_switch)
        return Topology.from_links(self.kind, switches, hyperx_links(self.dims, multiplicity), notes=notes)

    def _multiplicities(self) -> list[int]:
        if isinstance(self.multiplicity, int):
            return [self.multiplicity] * len(self.dims)
        if len(self.multiplicity) != len(self.dims):
            message = f"{len(self.multiplicity)} entries for {len(self.dims)} dimensions"
            raise SpecError(message, key="multiplicity")
        return self.multiplicity


@register("topology", "flattened_butterfly", aliases=("flatfly",))
class FlattenedButterfly(TopologySpec):
    """k-ary n-flat: the routers of each row of a k-ary n-fly butterfly merged into one.

    Routers are the words of n - 1 digits in base k; any two that differ in one digit only are linked. Each
    has k hosts.

    k**(n - 1) routers, numbered by the value of their word; degree (n - 1)(k - 1); k**n hosts; diameter
    n - 1. Valid: k and n from 2, up to 2 * 10**7 channels.

    Example: ``topology: {kind: flattened_butterfly, k: 5, n: 3}``

    Source: Kim, Dally and Abts, ISCA 2007, doi:10.1145/1250662.1250679.
    """

    k: int = Field(ge=2)
    """Routers of a row, and hosts of a router."""
    n: int = Field(ge=2, le=64)
    """Dimensions + 1."""

    def graph(self) -> Topology:
        routers, dims = self.k ** (self.n - 1), [self.k] * (self.n - 1)
        limit_size(routers * len(dims) * (self.k - 1), "n")
        topology = Topology.from_links(
            self.kind, routers, hyperx_links(dims, [1] * len(dims)), notes={"dims": dims}
        )  # fmt: skip
        return topology.with_hosts(self.k)
