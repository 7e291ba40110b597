# SPDX-License-Identifier: Apache-2.0
"""Times of trees, recomputed from the network and the trees only."""

from collections.abc import Iterable
from fractions import Fraction

from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.models.collective.tree import Tree, load


def all_gather_time(network: CollectiveNetwork, trees: Iterable[Tree]) -> Fraction:
    """The time of an all-gather over trees, in units over a channel of capacity 1: that of the most loaded arc.

    Raises ``ValueError`` if a tree does not reach every rank, or uses a missing arc, or if the trees per root are not
    proportional to the units of the roots.
    """
    trees = list(trees)
    parts = parts_of_unit(network, trees)
    for tree in trees:
        check_spanning(network, tree)
    return longest_arc_time(network, trees) / parts


def parts_of_unit(network: CollectiveNetwork, trees: Iterable[Tree]) -> Fraction:
    """Trees per unit. Raises ``ValueError`` if units have different numbers of trees."""
    count = dict.fromkeys(range(network.vertices), 0)
    for tree in trees:
        if tree.count <= 0:
            raise ValueError(f"root {tree.root} has {tree.count} trees: there must be at least 1")
        count[tree.root] += tree.count
    weight = network.weight.tolist()
    parts = Fraction(sum(count.values()), sum(weight))
    wrong = [v for v, trees_of_root in count.items() if trees_of_root != parts * weight[v]]
    if wrong:
        v = wrong[0]
        raise ValueError(f"{count[v]} trees have the root {v}, where {weight[v]} of {sum(weight)} units start")
    return parts


def check_spanning(network: CollectiveNetwork, tree: Tree) -> None:
    """Raise ``ValueError`` if a tree does not reach every rank."""
    missing = set(network.rank_vertex.tolist()) - tree.reached()
    if missing:
        raise ValueError(f"a tree of root {tree.root} does not reach the rank at {min(missing)}")


def longest_arc_time(network: CollectiveNetwork, trees: Iterable[Tree]) -> Fraction:
    """The longest time that an arc needs for all trees over it, each with a part of size 1.

    Raises ``ValueError`` if a tree uses an arc that the network lacks.
    """
    ends = zip(network.tail.tolist(), network.head.tolist(), strict=True)
    capacity = dict(zip(ends, network.capacity.tolist(), strict=True))
    used = load(trees)
    if missing := sorted(used.keys() - capacity.keys()):
        raise ValueError(f"a tree uses the arc {missing[0]}, which the network lacks")
    return max((network.scale * Fraction(count, capacity[arc]) for arc, count in used.items()), default=Fraction(0))
