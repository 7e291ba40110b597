# SPDX-License-Identifier: Apache-2.0
"""Trees that reach the bound of an all-gather, and of the collectives that follow from it.

A broadcast is an all-gather in which only one rank has data. Reduce-scatter and reduce run backwards along trees of the
reversed network. With λ = p / q, arcs of capacity c carry p c trees and every unit has q parts, divided by their common
factor: then every set of vertices has enough capacity out of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, gcd

import numpy as np

from flitlab.fluid.collective import cuts
from flitlab.fluid.collective.maxflow import Residual, first_unreached, mark_reachable
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.packing import pack
from flitlab.fluid.collective.plan import OUT, arc_plan
from flitlab.fluid.collective.splitting import SplittingError, split_off
from flitlab.models.arrays import Ints
from flitlab.models.collective.tree import Tree, load


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of every rank that has data.

    network: that of the trees; ranks with channels of their own are vertices after all others. parts: k, the parts of
    every unit; a root has as many trees as its units have parts. bound: λ. reached: time of an all-gather over the
    trees, like the bound in units over a channel of capacity 1.
    """

    network: CollectiveNetwork
    trees: tuple[Tree, ...]
    parts: int
    bound: Fraction
    reached: Fraction


def all_gather_trees(network: CollectiveNetwork, parts: int | None = None) -> Forest:
    """Trees that reach the bound of an all-gather exactly, or with ``parts`` as closely as possible with that many
    parts.

    Where a switch without ranks cannot forward as much as the bound assumes, since less enters it than leaves it, the
    trees are the best ones with switches that only forward.

    Raises :class:`~flitlab.fluid.problem.FluidError` if some rank is cut off or numbers become too large,
    :class:`~flitlab.fluid.collective.splitting.SplittingError` if trees with ``parts`` need such a switch.
    """
    network = with_hosts_as_vertices(network)
    cut = cuts.all_gather(network)
    least = Fraction(cut.units, cut.capacity) if cut.capacity else Fraction(0)
    part_count, trees = _first_packed(
        network, _exact_candidates(network, least) if parts is None else _fixed_candidates(network, parts, least)
    )
    return Forest(network, trees, part_count, network.scale * least, all_gather_time(network, trees))


def broadcast_trees(network: CollectiveNetwork, root: int, parts: int | None = None) -> Forest:
    """Trees along which the vector of a rank reaches all others as early as any cut allows, like an all-gather.

    With ``parts`` they are as early as trees with that many parts can be.

    Parameters
    ----------
    network : CollectiveNetwork
        The network; its amounts are ignored.
    root : int
        The rank, 0 .. ranks - 1 (not checked).
    parts : int or None
        Number of parts of the vector, 1 or more; by default as many as the bound needs.

    Returns
    -------
    Forest
        Trees of the root only. In its network only the root has data: one unit, the vector. ``bound`` and ``reached``
        are times in vectors over a channel of capacity 1.

    Raises
    ------
    FluidError
        The root cannot reach some rank, or the linear program for switches that only forward has no usable solution.
    SplittingError
        Trees with ``parts`` need a switch without ranks that forwards more than enters it.

    Source: Edmonds 1973, Edge-disjoint branchings; for the packing see :mod:`flitlab.fluid.collective.packing`.
    """
    root_amount = (np.arange(network.ranks) == root).astype(np.int64)
    return all_gather_trees(replace(network, amount=root_amount, vertex_transitive=False), parts)


def with_hosts_as_vertices(network: CollectiveNetwork) -> CollectiveNetwork:
    """The network with ranks as vertices if they have channels of their own; rank r is vertex ``vertices`` + r."""
    if network.host is None:
        return network
    rank = network.vertices + np.arange(network.ranks)
    tail = np.concatenate([network.tail, network.rank_vertex, rank])
    head = np.concatenate([network.head, rank, network.rank_vertex])
    capacity = np.concatenate([network.capacity, np.full(2 * network.ranks, network.host)])
    order = np.lexsort((head, tail))
    return replace(
        network, vertices=network.vertices + network.ranks, tail=tail[order], head=head[order],
        capacity=capacity[order], rank_vertex=rank, host=None, vertex_transitive=False,
    )  # fmt: skip


PartCapacities = tuple[int, Ints]
"""Parts of every unit, and the parts that each arc carries, int64 [arcs]."""


def _first_packed(network: CollectiveNetwork, candidates: Iterable[PartCapacities]) -> tuple[int, tuple[Tree, ...]]:
    """Parts and trees of the first capacities that suffice; raises the last error if none do."""
    error: Exception = AssertionError("no capacities to try")
    for parts, arc_parts in candidates:
        try:
            return parts, tuple(packed_trees(replace(network, capacity=arc_parts), parts * network.weight))
        except SplittingError as problem:
            error = problem
    raise error


def _exact_candidates(network: CollectiveNetwork, least: Fraction) -> Iterator[PartCapacities]:
    """The fewest parts with integer arc capacities in the least time; then what switches can forward."""
    p, q = least.as_integer_ratio()
    common = gcd(q, p * gcd(*network.capacity.tolist()))
    yield q // common, _arc_parts(network.capacity, Fraction(p, common))
    plan = arc_plan(network, [OUT], [Fraction(weight, network.units) for weight in network.weight.tolist()])
    times = network.units // gcd(plan.parts, network.units)
    yield plan.parts * times // network.units, plan.uses[0] * times


def _fixed_candidates(network: CollectiveNetwork, parts: int, least: Fraction) -> Iterator[PartCapacities]:
    """Arc capacities for a number of parts in the least time, and in the next time with integers."""
    time = _least_time(network, parts, least)
    yield parts, _arc_parts(network.capacity, time)
    yield parts, _arc_parts(network.capacity, Fraction(ceil(time)))


def _least_time(network: CollectiveNetwork, parts: int, least: Fraction) -> Fraction:
    """The least time in which arcs carry integer numbers of parts and satisfy all cuts.

    The search starts from a time that satisfies all cuts before rounding, and increases it until the violated cut has
    enough capacity.
    """
    time, n, done = least * parts, network.vertices, 0
    giving, sinks = np.flatnonzero(network.weight), np.flatnonzero(network.is_rank)
    tail = np.concatenate([network.tail, np.full(len(giving), n)])
    residual = Residual.of(n + 1, tail, np.concatenate([network.head, giving]))
    source_side = np.zeros(n + 1, bool)
    while True:
        capacity = np.concatenate([_arc_parts(network.capacity, time), parts * network.weight[giving]])
        done = first_unreached(residual, capacity, n, sinks, done, parts * network.units)
        if done == len(sinks):
            return time
        mark_reachable(residual, n, source_side)
        side = source_side[:-1]
        out = network.capacity[side[network.tail] & ~side[network.head]].tolist()
        while sum(int(time * c) for c in out) < parts * network.units_in(side):
            time = min(Fraction(int(time * c) + 1, c) for c in out)


def _arc_parts(capacity: Ints, time: Fraction) -> Ints:
    """int64 [arcs]: the parts that arcs carry in a time."""
    p, q = time.as_integer_ratio()
    return np.array([p * c // q for c in capacity.tolist()], np.int64)


def packed_trees(network: CollectiveNetwork, count: Ints) -> Iterator[Tree]:
    """Trees that reach all ranks within the arc capacities.

    Parameters
    ----------
    network : CollectiveNetwork
        Its capacities count trees.
    count : int64 [vertices]
        Trees of each root.

    Raises
    ------
    SplittingError
        A vertex without ranks cannot be split off.
    ValueError
        There are no such trees.
    """
    vertex, number = np.flatnonzero(network.is_rank), np.cumsum(network.is_rank) - 1
    logical = split_off(network.tail, network.head, network.capacity, count, network.is_rank)
    for bundle in pack(len(vertex), number[logical.tail], number[logical.head], logical.capacity, count[vertex]):
        yield Tree(int(vertex[bundle.root]), bundle.count, tuple(logical.paths[a] for a in bundle.arc[1:].tolist()))


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
