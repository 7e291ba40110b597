# SPDX-License-Identifier: Apache-2.0
"""Symmetries of a network: permutations of its switches that map channels to channels and hosts to hosts.

The library igraph finds them by partition refinement with backtracking. Each permutation is verified: the image of
every channel must exist. Translations follow from the numbers of switches.

Source: Junttila and Kaski, Engineering an efficient canonical labeling tool, ALENEX 2007,
doi:10.1137/1.9781611972870.13 (BLISS).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from flitlab.models.arrays import Floats, Ints
from flitlab.models.jit import njit
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic


@dataclass(frozen=True, eq=False)
class Symmetries:
    """Orbits (classes) under all symmetries.

    switch: int64 [switches], class of each switch. channel: int64 [channels], class of each channel; equal capacities.
    """

    switch: Ints
    channel: Ints

    @property
    def switches(self) -> Ints:
        """int64 [classes]: the first switch of each class."""
        first: Ints = np.unique(self.switch, return_index=True)[1]
        return first


def symmetries(topology: Topology) -> Symmetries | None:
    """The classes under all symmetries of a topology.

    None where the identity is the only symmetry, where capacities differ, and where channels are parallel.
    """
    index = _ChannelIndex(topology)
    if len(index.pair) == 0 or topology.capacity.min() < topology.capacity.max() or not index.differ:
        return None
    taken = [image for move in _generators(topology) if (image := _taken(topology, index, move)) is not None]
    if not taken:
        return None
    switches, channels = zip(*taken, strict=True)
    return Symmetries(_joined(topology.switches, switches), _joined(topology.channels, channels))


class _ChannelIndex:
    """Channels by their ends."""

    def __init__(self, topology: Topology) -> None:
        pair = topology.src.astype(np.int64) * topology.switches + topology.dst
        self.switches, self.order = topology.switches, np.argsort(pair, kind="stable")
        self.pair: Ints = pair[self.order]

    @property
    def differ(self) -> bool:
        """Whether no channels are parallel."""
        return bool((np.diff(self.pair) > 0).all())

    def find(self, source: Ints, target: Ints) -> Ints | None:
        """The channels from source to target switches; None unless all exist."""
        pairs = source * self.switches + target
        index = np.minimum(np.searchsorted(self.pair, pairs), len(self.pair) - 1)
        return self.order[index] if np.array_equal(self.pair[index], pairs) else None


def _generators(topology: Topology) -> list[Ints]:
    """Generators, int64 [switches], of the permutations that map channels to channels and hosts to hosts."""
    from igraph import Graph

    n = topology.switches
    forward, backward = topology.src * n + topology.dst, topology.dst * n + topology.src
    undirected = np.array_equal(np.sort(forward), np.sort(backward))
    edges = topology.src <= topology.dst if undirected else slice(None)
    ends = np.column_stack([topology.src[edges], topology.dst[edges]])
    generators = Graph(n=n, edges=ends, directed=not undirected).automorphism_group(color=topology.host_count.tolist())
    return [np.array(move, np.int64) for move in generators]


def _taken(topology: Topology, index: _ChannelIndex, move: Ints) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]] | None:
    """Switches that a permutation moves, and their images, and the same of channels; None if it is no symmetry.

    A permutation that maps channels to channels is injective; channels whose ends do not move are their own images.
    """
    moved = np.flatnonzero(move != np.arange(len(move)))
    if not np.array_equal(np.sort(move[moved]), moved):
        return None
    if not np.array_equal(topology.host_count[move[moved]], topology.host_count[moved]):
        return None
    moves = np.zeros(len(move), np.bool_)
    moves[moved] = True
    channel = np.flatnonzero(moves[topology.src] | moves[topology.dst])
    image = index.find(move[topology.src[channel]], move[topology.dst[channel]])
    return None if image is None else ((moved, move[moved]), (channel, image))


def _joined(size: int, images: Sequence[tuple[Ints, Ints]]) -> Ints:
    """int64 [size]: the class of each member. images: pairs of lists, members and their images."""
    ends = [np.concatenate(side) for side in zip(*images, strict=True)]
    links = scipy.sparse.coo_array((np.ones(len(ends[0]), np.int8), (ends[0], ends[1])), (size, size))
    classes: Ints = scipy.sparse.csgraph.connected_components(links, directed=False)[1].astype(np.int64)
    return classes


@dataclass(frozen=True, eq=False)
class Translations:
    """A group of translations of a Cayley graph of an abelian group: symmetries that map any switch to any other.

    Switch numbers are coordinates, the last one fastest; a translation adds the same coordinates to all. A group is
    verified by all channels of every switch. dims: its extents, whose product is the number of switches.

    generator: int64 [channels]; translations map channels to channels of the same generator and capacity, and every
    switch has one channel of each generator.
    """

    dims: tuple[int, ...]
    generator: Ints

    @property
    def generators(self) -> int:
        return int(self.generator.max()) + 1

    def step(self, origin: np.ndarray, switch: np.ndarray) -> np.ndarray:
        """Difference of switches in the group.

        Parameters
        ----------
        origin, switch : int64
            Switches.

        Returns
        -------
        int64
            switch - origin: the image of ``switch`` under the translation that maps ``origin`` to 0.
        """
        return _steps(self.dims, origin, switch)

    def common_demand(self, traffic: Traffic) -> Floats | None:
        """float64 [switches]: the demand for switch 0 if translations map it to that for every other switch; else None.

        Amounts are equal up to rounding; those of switch 0 are returned.
        """
        topology, n = traffic.topology, traffic.topology.switches
        if traffic.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
            if topology.host_count.min() < topology.host_count.max() or not _same(traffic.rate):
                return None
            row = np.full(n, traffic.rate[0] * topology.host_count[0])
            row *= topology.host_count[0] / (topology.hosts - (traffic.law == DestinationRule.UNIFORM))
            row[0] = 0
            return row
        source, target, amount = traffic.switch_pairs()
        if len(source) % n or len(source) == 0:
            return None
        step = self.step(target, source)
        order = np.argsort(step, kind="stable")
        table, steps = amount[order].reshape(-1, n), step[order].reshape(-1, n)
        if not (_same(steps.T) and _same(table.T)):
            return None
        row = np.zeros(n)
        at_zero = target == 0
        row[source[at_zero]] = amount[at_zero]
        return row


def _same(value: np.ndarray) -> bool:
    """Whether all rows are equal up to rounding."""
    return bool((np.abs(value - value[0]) <= 1e-12 * np.abs(value[0])).all())


def _steps(dims: tuple[int, ...], origin: np.ndarray, switch: np.ndarray) -> np.ndarray:
    coordinates = np.stack(np.unravel_index(np.arange(np.prod(dims)), dims), axis=1)
    return _difference(np.ascontiguousarray(coordinates), np.array(dims), origin, switch)


@njit
def _difference(coordinates: Ints, dims: Ints, origin: Ints, switch: Ints) -> Ints:
    index = np.zeros(len(switch), np.int64)
    for i in range(len(switch)):
        for d in range(len(dims)):
            step = coordinates[switch[i], d] - coordinates[origin[i], d]
            index[i] = index[i] * dims[d] + (step + dims[d] if step < 0 else step)
    return index


def translations(topology: Topology) -> Iterator[Translations]:
    """The translations of all groups that fit the switch numbers and make the network a Cayley graph."""
    for dims in _groups(topology):
        if (generator := _generator_of(topology, dims)) is not None:
            yield Translations(dims, generator)


def _groups(topology: Topology) -> list[tuple[int, ...]]:
    """Candidate groups: that of a grid, binary vectors, a ring."""
    n = topology.switches
    bits = n.bit_length() - 1
    stated = topology.grid.dims if topology.grid else topology.notes.get("dims", ())
    groups = [tuple(stated), (2,) * bits, (n,)]
    return [dims for dims in dict.fromkeys(groups) if dims and np.prod(dims) == n]


def _generator_of(topology: Topology, dims: tuple[int, ...]) -> Ints | None:
    """int64 [channels]: the generator of each channel; None if switches have different ones."""
    n, degree = topology.switches, topology.out_degree
    if n < 2 or topology.channels == 0 or degree.min() < degree.max():
        return None
    steps = _steps(dims, topology.src, topology.dst)
    order = np.lexsort((topology.capacity, steps, topology.src))
    for value in (steps, topology.capacity):
        table = value[order].reshape(n, -1)
        if (table != table[0]).any():
            return None
    generator = np.empty(topology.channels, np.int64)
    generator[order] = np.tile(np.arange(degree[0]), n)
    return generator
