# SPDX-License-Identifier: Apache-2.0
"""Trees that reach the bound of an all-gather on a network, and those of the collectives that follow from it.

A broadcast is an all-gather in which one rank alone has data. Reduce-scatter and reduce run backwards along trees of
the reversed network. For λ = p / q, every set of vertices is left by enough if arcs of capacity c take p c trees and
every unit has q; both are divided by what they have in common.
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
from flitlab.fluid.collective.tree_times import all_gather_time
from flitlab.models.arrays import Ints
from flitlab.models.collective.tree import Tree


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of every rank that has data.

    network: in which the trees are; where ranks have channels of their own, they are vertices of it, after all others.
    parts: k, into how many parts every unit is divided; a root has as many trees as its units have parts. bound: λ.
    reached: the time of an all-gather over the trees, like the bound in units over a channel of capacity 1.
    """

    network: CollectiveNetwork
    trees: tuple[Tree, ...]
    parts: int
    bound: Fraction
    reached: Fraction


def all_gather_trees(network: CollectiveNetwork, parts: int | None = None) -> Forest:
    """Trees that reach the bound of an all-gather exactly; with ``parts`` those that come nearest to it with so many.

    Where a switch without ranks forwards less than the bound takes for granted, since not as much can enter it as leave
    it, the trees are the best that there are with switches that only forward.

    Raises :class:`~flitlab.fluid.problem.FluidError` if some rank is cut off or numbers become too large,
    :class:`~flitlab.fluid.collective.splitting.SplittingError` if trees of so many parts need such a switch.
    """
    network = with_hosts_as_vertices(network)
    cut = cuts.all_gather(network)
    least = Fraction(cut.units, cut.capacity) if cut.capacity else Fraction(0)
    part_count, trees = _first_packed(
        network, _exact_candidates(network, least) if parts is None else _fixed_candidates(network, parts, least)
    )
    return Forest(network, trees, part_count, network.scale * least, all_gather_time(network, trees))


def broadcast_trees(network: CollectiveNetwork, root: int, parts: int | None = None) -> Forest:
    """Trees along which the vector of a rank reaches all others as early as any cut allows; else like an all-gather.

    In the forest's network the root alone has data, one unit, which is the vector.
    """
    root_amount = (np.arange(network.ranks) == root).astype(np.int64)
    return all_gather_trees(replace(network, amount=root_amount, vertex_transitive=False), parts)


def with_hosts_as_vertices(network: CollectiveNetwork) -> CollectiveNetwork:
    """A network in which ranks with channels of their own are vertices, rank r being vertex ``vertices`` + r."""
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
"""A number of parts of every unit, and how many of all parts each arc takes, int64 [arcs]."""


def _first_packed(network: CollectiveNetwork, candidates: Iterable[PartCapacities]) -> tuple[int, tuple[Tree, ...]]:
    """The number of parts and the trees of the first room that suffices; raises the last error if none does."""
    error: Exception = AssertionError("no room")
    for parts, arc_parts in candidates:
        try:
            return parts, tuple(packed(replace(network, capacity=arc_parts), parts * network.weight))
        except SplittingError as problem:
            error = problem
    raise error


def _exact_candidates(network: CollectiveNetwork, least: Fraction) -> Iterator[PartCapacities]:
    """The least number of parts for which arcs take whole numbers in the least time; else what switches can forward."""
    p, q = least.as_integer_ratio()
    common = gcd(q, p * gcd(*network.capacity.tolist()))
    yield q // common, _arc_parts(network.capacity, Fraction(p, common))
    plan = arc_plan(network, [OUT], [Fraction(weight, network.units) for weight in network.weight.tolist()])
    times = network.units // gcd(plan.parts, network.units)
    yield plan.parts * times // network.units, plan.uses[0] * times


def _fixed_candidates(network: CollectiveNetwork, parts: int, least: Fraction) -> Iterator[PartCapacities]:
    """What arcs take in the least time for a number of parts, and in the next that makes whole numbers of it."""
    time = _least_time(network, parts, least)
    yield parts, _arc_parts(network.capacity, time)
    yield parts, _arc_parts(network.capacity, Fraction(ceil(time)))


def _least_time(network: CollectiveNetwork, parts: int, least: Fraction) -> Fraction:
    """The least time in which arcs take whole numbers of parts and still all that a cut asks for.

    Starting from a time that no cut forbids but for what is lost by rounding down, it goes up to where the cut that
    is short of capacity has enough.
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
    """int64 [arcs]: how many parts arcs take in a time."""
    p, q = time.as_integer_ratio()
    return np.array([p * c // q for c in capacity.tolist()], np.int64)


def packed(network: CollectiveNetwork, count: Ints) -> Iterator[Tree]:
    """Trees that reach all ranks, ``count`` of each root, int64 [vertices], with no more over an arc than its capacity.

    Raises :class:`~flitlab.fluid.collective.splitting.SplittingError` if a vertex without ranks cannot be split off,
    ``ValueError`` if there are no such trees.
    """
    vertex, number = np.flatnonzero(network.is_rank), np.cumsum(network.is_rank) - 1
    logical = split_off(network.tail, network.head, network.capacity, count, network.is_rank)
    for bundle in pack(len(vertex), number[logical.tail], number[logical.head], logical.capacity, count[vertex]):
        yield Tree(int(vertex[bundle.root]), bundle.count, tuple(logical.paths[a] for a in bundle.arc[1:].tolist()))
