# SPDX-License-Identifier: Apache-2.0
"""Rooted trees for an all-reduce: parts of the vector are reduced along in-trees to a root, and spread along out-trees.

Which share of the vector has which root, and which capacity its in-trees and its out-trees get, a linear program says
(:mod:`flitlab.fluid.collective.plan`), of whose solutions :mod:`flitlab.fluid.collective.centres` takes one for trees
that are not deep. Rooted trees are never slower than a reduce-scatter with an all-gather after it. Whether they are
always the fastest of all that works element by element is not known.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from flitlab.fluid.collective import cuts
from flitlab.fluid.collective.centres import plan_around_centres
from flitlab.fluid.collective.forest import packed, with_hosts_as_vertices
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.tree_times import check_spanning, longest_arc_time
from flitlab.models.arrays import Ints
from flitlab.models.collective.tree import Tree


@dataclass(frozen=True)
class RootedPair:
    """Trees with one root: along ``into`` parts of the vector are reduced to it, along ``out`` the results go back.

    Both are written as trees out of the root; what goes along ``into`` goes against its arcs.
    """

    into: Tree
    out: Tree

    @property
    def root(self) -> int:
        return self.out.root

    @property
    def count(self) -> int:
        """How many parts of the vector have these trees."""
        return self.out.count


@dataclass(frozen=True, eq=False)
class RootedForest:
    """Rooted trees of all parts of the vector.

    network: in which the trees are; where ranks have channels of their own, they are vertices of it, after all others.
    parts: into how many parts the vector is divided; every one has its trees. reached: the time of an all-reduce, in
    vectors over a channel of capacity 1.
    """

    network: CollectiveNetwork
    trees: tuple[RootedPair, ...]
    parts: int
    reached: Fraction


def rooted_trees(network: CollectiveNetwork) -> RootedForest:
    """The fastest rooted trees of an all-reduce on a network, of which amounts do not matter.

    Raises :class:`~flitlab.fluid.collective.splitting.SplittingError` if a vertex without ranks cannot be split off,
    :class:`~flitlab.fluid.problem.FluidError` if ranks are cut off from each other, or HiGHS finds no optimum.
    """
    network = with_hosts_as_vertices(network)
    cuts.all_reduce(network)  # refuses ranks that are cut off
    plan = plan_around_centres(network)
    toward, away = (replace(network, capacity=use) for use in plan.uses)
    trees = tuple(_paired(_by_root(toward.reversed(), plan.roots), _by_root(away, plan.roots)))
    return RootedForest(network, trees, plan.parts, rooted_time(network, trees))


def rooted_time(network: CollectiveNetwork, trees: tuple[RootedPair, ...]) -> Fraction:
    """The time of an all-reduce over rooted trees, in vectors over a channel of capacity 1.

    Raises ``ValueError`` if a tree does not reach every rank or uses what is no arc, or two that belong together have
    different roots or counts.
    """
    for pair in trees:
        if (pair.into.root, pair.into.count) != (pair.root, pair.count) or pair.count <= 0:
            raise ValueError(f"the in-tree and the out-tree of root {pair.root} are not of the same parts")
        check_spanning(network, pair.into)
        check_spanning(network, pair.out)
    parts = sum(pair.count for pair in trees)
    against = (Tree(path[-1], pair.count, (path[::-1],)) for pair in trees for path in pair.into.paths)
    return longest_arc_time(network, [*against, *(pair.out for pair in trees)]) / parts


def _by_root(network: CollectiveNetwork, roots: Ints) -> dict[int, list[Tree]]:
    """Out-trees by root, as many of each as it is to have, over arcs that take as many as their capacity."""
    trees: dict[int, list[Tree]] = {}
    for tree in packed(network, roots):
        trees.setdefault(tree.root, []).append(tree)
    return trees


def _paired(into: dict[int, list[Tree]], out: dict[int, list[Tree]]) -> Iterator[RootedPair]:
    """In-trees and out-trees of the same roots, deep ones with others that are not, divided to be of equal counts."""
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
    """Hops from the root to the vertex that is farthest from it along the tree."""
    depth = {tree.root: 0}
    for path in tree.paths:
        depth[path[-1]] = depth[path[0]] + len(path) - 1
    return max(depth.values())
