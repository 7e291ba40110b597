# SPDX-License-Identifier: Apache-2.0
"""Trees of one root that load all channels equally when translations copy them to every root.

Where translations act on the ranks, the trees of all roots together load an arc as often as the trees of one root use
arcs of its generator. So trees of one root that use every generator in proportion to its capacity reach (N - 1) /
(capacity out of a vertex), which is optimal by the cut around a single vertex. The trees follow shortest paths, so
their depth is the diameter.

Source: Zhao et al., arXiv:2202.03356 (breadth-first broadcast).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from flitlab.fluid.collective.network import integer_capacities
from flitlab.fluid.symmetries import Translations, translations
from flitlab.models.arrays import Bools, Ints
from flitlab.models.collective.tree import Tree
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, eq=False)
class BalancedTrees:
    """Trees of every root, stored as the trees of root 0 and the translations to other roots.

    root_trees: the trees of root 0. reached: time of an all-gather over all trees, in units over a channel of capacity
    1.
    """

    group: Translations
    root_trees: tuple[Tree, ...]
    reached: Fraction

    @property
    def vertices(self) -> int:
        return len(self.group.generator) // self.group.generators

    @property
    def count(self) -> int:
        """k, the parts of every root's data."""
        return sum(tree.count for tree in self.root_trees)

    @cached_property
    def _opposite(self) -> Ints:
        """int64 [vertices]: the inverse -v of every vertex v in the group."""
        every = np.arange(self.vertices)
        return self.group.step(every, np.zeros_like(every))

    def translated(self, root: int) -> Ints:
        """int64 [vertices]: the vertex of the trees of ``root`` that corresponds to v in the trees of 0."""
        return self.group.step(np.full(self.vertices, self._opposite[root]), np.arange(self.vertices))

    def trees_of(self, root: int) -> tuple[Tree, ...]:
        """The trees of one root."""
        to = self.translated(root).tolist()
        return tuple(
            Tree(root, tree.count, tuple(tuple(to[v] for v in path) for path in tree.paths)) for tree in self.root_trees
        )

    def __iter__(self) -> Iterator[Tree]:
        """The trees of all roots, one root after the other."""
        for root in range(self.vertices):
            yield from self.trees_of(root)


def balanced_trees(topology: Topology) -> BalancedTrees | None:
    """Balanced trees of every switch; None if no translations are known, or shortest paths do not suffice.

    Every switch is a rank, and all have equally much data. Raises :class:`~flitlab.fluid.problem.FluidError` for
    capacities without a common denominator.
    """
    for group in translations(topology):
        if (balanced := _balanced(topology, group)) is not None:
            return balanced
    return None


def _balanced(topology: Topology, group: Translations) -> BalancedTrees | None:
    """The trees of a group; None if it has none over shortest paths."""
    n, degree = topology.switches, group.generators
    whole, scale = integer_capacities(topology.capacity[:degree].tolist())
    capacity = np.empty(degree, np.int64)
    capacity[group.generator[:degree]] = whole
    total = int(capacity.sum())
    count = total // gcd(total, n - 1)
    level, into = _levels(topology, group)
    if (level < 0).any():
        return None
    shortest = level[into] == level - 1
    choice = _parents(shortest[:, 1:], (n - 1) * count * capacity // total, count)
    if choice is None:
        return None
    return BalancedTrees(group, _trees(choice, into, level), Fraction(n - 1, total) * scale)


def _levels(topology: Topology, group: Translations) -> tuple[Ints, Ints]:
    """Hops from switch 0 to each switch, int64 [switches] (-1: unreachable), and the tails of the channels into each.

    The latter is int64 [generators, switches].
    """
    into = np.empty((group.generators, topology.switches), np.int64)
    into[group.generator, topology.dst] = topology.src
    level = np.full(topology.switches, -1)
    level[0], hops = 0, 0
    while (new := (level < 0) & (level[into] == hops).any(axis=0)).any():
        hops += 1
        level[new] = hops
    return level, into


def _parents(allowed: Bools, supply: Ints, count: int) -> Ints | None:
    """Generators of the last arcs to each vertex but 0, int64 [count, vertices - 1]; each is used ``supply`` times in
    all.

    allowed: bool [generators, vertices - 1]. None if there is no such choice.
    """
    generators, others = allowed.shape
    generator, vertex = np.nonzero(allowed)
    source, sink = generators + others, generators + others + 1
    tail = np.concatenate([np.full(generators, source), generator, np.arange(others) + generators])
    head = np.concatenate([np.arange(generators), vertex + generators, np.full(others, sink)])
    capacity = np.concatenate([supply, np.full(len(vertex), count), np.full(others, count)]).astype(np.int32)
    max_flow = maximum_flow(csr_array((capacity, (tail, head)), shape=(sink + 1, sink + 1)), source, sink)
    if max_flow.flow_value < count * others:
        return None
    used = max_flow.flow[:generators, generators:source].T.tocoo()
    positive = used.data > 0
    order = np.argsort(used.coords[0][positive], kind="stable")
    chosen = np.repeat(used.coords[1][positive][order], used.data[positive][order])
    return chosen.reshape(others, count).T.astype(np.int64)


def _trees(choice: Ints, into: Ints, level: Ints) -> tuple[Tree, ...]:
    """The trees of root 0, one for each distinct row of ``choice``; vertices join in the order of their distance."""
    order = np.argsort(level, kind="stable")[1:]
    rows, counts = np.unique(choice, axis=0, return_counts=True)
    return tuple(
        Tree(0, int(count), tuple(zip(into[row[order - 1], order].tolist(), order.tolist(), strict=True)))
        for row, count in zip(rows, counts, strict=True)
    )
