# SPDX-License-Identifier: Apache-2.0
"""Rooted trees of an all-reduce: parts of the vector are reduced along in-trees to a root, and spread along out-trees.

A linear program (:mod:`flitlab.fluid.collective.plan`) chooses the share of the vector of each root and the capacities
of in-trees and out-trees; :mod:`flitlab.fluid.collective.centres` selects a solution with trees of small depth. Rooted
trees are never slower than a reduce-scatter followed by an all-gather. Whether they are always optimal among
element-wise algorithms is unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from flitlab.fluid.collective import cuts
from flitlab.fluid.collective.centres import plan_around_centres
from flitlab.fluid.collective.forest import packed_trees, with_hosts_as_vertices
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.tree_times import check_spanning, longest_arc_time
from flitlab.models.arrays import Ints
from flitlab.models.collective.tree import Tree


@dataclass(frozen=True)
class RootedPair:
    """An in-tree and an out-tree of one root: parts are reduced along ``into``, results return along ``out``.

    Both are written as trees out of the root; data on ``into`` moves against its arcs.
    """

    into: Tree
    out: Tree

    @property
    def root(self) -> int:
        return self.out.root

    @property
    def count(self) -> int:
        """Parts of the vector that use these trees."""
        return self.out.count


@dataclass(frozen=True, eq=False)
class RootedForest:
    """Rooted trees of all parts of the vector.

    network: that of the trees; ranks with channels of their own are vertices after all others. parts: of the vector;
    each has its trees. reached: time of an all-reduce, in vectors over a channel of capacity 1.
    """

    network: CollectiveNetwork
    trees: tuple[RootedPair, ...]
    parts: int
    reached: Fraction


def rooted_trees(network: CollectiveNetwork) -> RootedForest:
    """The fastest rooted trees of an all-reduce on a network; amounts are ignored.

    Raises :class:`~flitlab.fluid.collective.splitting.SplittingError` if a vertex without ranks cannot be split off,
    :class:`~flitlab.fluid.problem.FluidError` if ranks are cut off from each other, or HiGHS finds no optimum.
    """
    network = with_hosts_as_vertices(network)
    cuts.all_reduce(network)  # rejects ranks that are cut off
    plan = plan_around_centres(network)
    inward, outward = (replace(network, capacity=use) for use in plan.uses)
    trees = tuple(_paired(_by_root(inward.reversed(), plan.roots), _by_root(outward, plan.roots)))
    return RootedForest(network, trees, plan.parts, rooted_time(network, trees))


def rooted_time(network: CollectiveNetwork, trees: tuple[RootedPair, ...]) -> Fraction:
    """The time of an all-reduce over rooted trees, in vectors over a channel of capacity 1.

    Raises ``ValueError`` if a tree does not reach every rank or uses a missing arc, or the trees of a pair have
    different roots or counts.
    """
    for pair in trees:
        if (pair.into.root, pair.into.count) != (pair.root, pair.count) or pair.count <= 0:
            raise ValueError(f"the in-tree and the out-tree of root {pair.root} have different roots or counts")
        check_spanning(network, pair.into)
        check_spanning(network, pair.out)
    parts = sum(pair.count for pair in trees)
    against = (Tree(path[-1], pair.count, (path[::-1],)) for pair in trees for path in pair.into.paths)
    return longest_arc_time(network, [*against, *(pair.out for pair in trees)]) / parts


def _by_root(network: CollectiveNetwork, roots: Ints) -> dict[int, list[Tree]]:
    """Out-trees by root, within the arc capacities."""
    trees: dict[int, list[Tree]] = {}
    for tree in packed_trees(network, roots):
        trees.setdefault(tree.root, []).append(tree)
    return trees


def _paired(into: dict[int, list[Tree]], out: dict[int, list[Tree]]) -> Iterator[RootedPair]:
    """In-trees and out-trees of equal roots in pairs of equal counts, deep ones with shallow ones."""
    for root, first in into.items():
        waiting, others = sorted(first, key=_depth), sorted(out[root], key=_depth, reverse=True)
        while waiting:
            one, other = waiting.pop(), others.pop()
            count = min(one.count, other.count)
            yield RootedPair(replace(one, count=count), replace(other, count=count))
            for tree, rest in ((one, waiting), (other, others)):
                if tree.count > count:
                    rest.append(replace(tree, count=tree.count - count))


def _depth(tree: Tree) -> int:
    """Hops from the root to the farthest vertex along the tree."""
    depth = {tree.root: 0}
    for path in tree.paths:
        depth[path[-1]] = depth[path[0]] + len(path) - 1
    return max(depth.values())
