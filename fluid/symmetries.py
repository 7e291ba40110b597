# SPDX-License-Identifier: Apache-2.0
"""Symmetries of a network: permutations of its switches that map channels to channels and hosts to hosts.

The library igraph finds them by partition refinement with backtracking. Each permutation is verified: the image of
every channel must exist.

Source: Junttila and Kaski, Engineering an efficient canonical labeling tool, ALENEX 2007,
doi:10.1137/1.9781611972870.13 (BLISS).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from flitlab.models.arrays import Ints
from flitlab.models.topology.graph import Topology


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
