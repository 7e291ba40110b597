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
from flitlab.fluid.collective.maxflow import Residual, first_short, reach
from flitlab.fluid.collective.network import Network
from flitlab.fluid.collective.packing import pack
from flitlab.fluid.collective.plan import OUT, planned
from flitlab.fluid.collective.reached import reached
from flitlab.fluid.collective.splitting import SplittingError, split_off
from flitlab.models.arrays import Ints
from flitlab.models.collective.tree import Tree


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of every rank that has data.

    network: in which the trees are; where ranks have channels of their own, they are vertices of it, after all others.
    parts: k, into how many parts every unit is divided; a root has as many trees as its units have parts. bound: λ.
    reached: the time of an all-gather over the trees, like the bound in units over a channel of capacity 1.
    """

    network: Network
    trees: tuple[Tree, ...]
    parts: int
    bound: Fraction
    reached: Fraction


def all_gather_trees(network: Network, parts: int | None = None) -> Forest:
    """Trees that reach the bound of an all-gather exactly; with ``parts`` those that come nearest to it with so many.

    Where a switch without ranks forwards less than the bound takes for granted, since not as much can enter it as leave
    it, the trees are the best that there are with switches that only forward.

    Raises :class:`~flitlab.fluid.problem.FluidError` if some rank is cut off or numbers become too large,
    :class:`~flitlab.fluid.collective.splitting.SplittingError` if trees of so many parts need such a switch.
    """
    network = with_hosts_as_vertices(network)
    cut = cuts.all_gather(network)
    least = Fraction(cut.units, cut.capacity) if cut.capacity else Fraction(0)
    found, trees = _first_packed(network, _exactly(network, least) if parts is None else _with(network, parts, least))
    return Forest(network, trees, found, network.scale * least, reached(network, trees))


def broadcast_trees(network: Network, root: int, parts: int | None = None) -> Forest:
    """Trees along which the vector of a rank reaches all others as early as any cut allows; else like an all-gather.

    In the forest's network the root alone has data, one unit, which is the vector.
    """
    alone = (np.arange(network.ranks) == root).astype(np.int64)
    return all_gather_trees(replace(network, amount=alone, alike=False), parts)


def with_hosts_as_vertices(network: Network) -> Network:
    """A network in which ranks with channels of their own are vertices, rank r being vertex ``vertices`` + r."""
    if network.host is None:
        return network
    rank = network.vertices + np.arange(network.ranks)
    tail = np.concatenate([network.tail, network.place, rank])
    head = np.concatenate([network.head, rank, network.place])
    capacity = np.concatenate([network.capacity, np.full(2 * network.ranks, network.host)])
    order = np.lexsort((head, tail))
    return replace(
        network, vertices=network.vertices + network.ranks, tail=tail[order], head=head[order],
        capacity=capacity[order], place=rank, host=None, alike=False,
    )  # fmt: skip


Room = tuple[int, Ints]
"""A number of parts of every unit, and how many of all parts each arc takes, int64 [arcs]."""


def _first_packed(network: Network, rooms: Iterable[Room]) -> tuple[int, tuple[Tree, ...]]:
    """The number of parts and the trees of the first room that suffices; raises the last error if none does."""
    error: Exception = AssertionError("no room")
    for parts, room in rooms:
        try:
            return parts, tuple(packed(replace(network, capacity=room), parts * network.weight))
        except SplittingError as problem:
            error = problem
    raise error


def _exactly(network: Network, least: Fraction) -> Iterator[Room]:
    """The least number of parts for which arcs take whole numbers in the least time; else what switches can forward."""
    p, q = least.as_integer_ratio()
    common = gcd(q, p * gcd(*network.capacity.tolist()))
    yield q // common, _room(network.capacity, Fraction(p, common))
    plan = planned(network, [OUT], [Fraction(weight, network.units) for weight in network.weight.tolist()])
    times = network.units // gcd(plan.parts, network.units)
    yield plan.parts * times // network.units, plan.uses[0] * times


def _with(network: Network, parts: int, least: Fraction) -> Iterator[Room]:
    """What arcs take in the least time for a number of parts, and in the next that makes whole numbers of it."""
    time = _least_time(network, parts, least)
    yield parts, _room(network.capacity, time)
    yield parts, _room(network.capacity, Fraction(ceil(time)))


def _least_time(network: Network, parts: int, least: Fraction) -> Fraction:
    """The least time in which arcs take whole numbers of parts and still all that a cut asks for.

    Starting from a time that no cut forbids but for what is lost by rounding down, it goes up to where the cut that
    is short of capacity has enough.
    """
    time, n, done = least * parts, network.vertices, 0
    giving, sinks = np.flatnonzero(network.weight), np.flatnonzero(network.is_rank)
    tail = np.concatenate([network.tail, np.full(len(giving), n)])
    residual = Residual.of(n + 1, tail, np.concatenate([network.head, giving]))
    near = np.zeros(n + 1, bool)
    while True:
        capacity = np.concatenate([_room(network.capacity, time), parts * network.weight[giving]])
        done = first_short(residual, capacity, n, sinks, done, parts * network.units)
        if done == len(sinks):
            return time
        reach(residual, n, near)
        side = near[:-1]
        out = network.capacity[side[network.tail] & ~side[network.head]].tolist()
        while sum(int(time * c) for c in out) < parts * network.units_in(side):
            time = min(Fraction(int(time * c) + 1, c) for c in out)


def _room(capacity: Ints, time: Fraction) -> Ints:
    """int64 [arcs]: how many parts arcs take in a time."""
    p, q = time.as_integer_ratio()
    return np.array([p * c // q for c in capacity.tolist()], np.int64)


def packed(network: Network, count: Ints) -> Iterator[Tree]:
    """Trees that reach all ranks, ``count`` of each root, int64 [vertices], with no more over an arc than its capacity.

    Raises :class:`~flitlab.fluid.collective.splitting.SplittingError` if a vertex without ranks cannot be split off,
    ``ValueError`` if there are no such trees.
    """
    vertex, number = np.flatnonzero(network.is_rank), np.cumsum(network.is_rank) - 1
    ways = split_off(network.tail, network.head, network.capacity, count, network.is_rank)
    for bundle in pack(len(vertex), number[ways.tail], number[ways.head], ways.capacity, count[vertex]):
        yield Tree(int(vertex[bundle.root]), bundle.count, tuple(ways.paths[a] for a in bundle.arc[1:].tolist()))
