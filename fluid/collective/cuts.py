# SPDX-License-Identifier: Apache-2.0
"""Exact lower bounds on the time of collectives by one cut of the network.

What must leave a side S takes at least (units that must leave S) / (capacity of the arcs out of S). Newton's method for
fractional programs finds the best S: a maximum flow to each rank either reaches the value of the current time, or its
minimum cut proves a longer one.

Source: Dinkelbach, Management Science 13 (1967), doi:10.1287/mnsc.13.7.492.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from flitlab.fluid.collective.maxflow import Residual, first_unreached, mark_reachable
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Ints

Leaving = Literal["inside", "outside", "vector"]
"""Data that must leave a side: the units of the ranks inside, of those outside, or one vector, of size 1."""


@dataclass(frozen=True, eq=False)
class CollectiveCut:
    """A side S of a network, which may separate ranks from their switches, and the data that must leave it.

    side: bool [vertices], the vertices in S. inside: bool [ranks], the ranks in S. units: what must leave. capacity: of
    all channels out of S, times ``scale`` as in :class:`~flitlab.fluid.collective.network.CollectiveNetwork`.
    """

    side: Bools
    inside: Bools
    units: int
    capacity: int
    scale: Fraction

    @classmethod
    def of(cls, network: CollectiveNetwork, side: Bools, inside: Bools, leaving: Leaving) -> "CollectiveCut":
        """The cut of a side.

        Parameters
        ----------
        network : CollectiveNetwork
            The network.
        side : bool [vertices]
            Vertices in S.
        inside : bool [ranks]
            Ranks in S.
        leaving : Leaving
            What must leave S.

        Raises
        ------
        ValueError
            An infinite channel leaves S.
        """
        capacity = network.out_of(side)
        separated = int((side[network.rank_vertex] != inside).sum())
        if separated and network.host is None:
            raise ValueError("a rank and its switch are on different sides of a cut, with an infinite channel between")
        units = 1 if leaving == "vector" else int(network.amount[inside if leaving == "inside" else ~inside].sum())
        return cls(side, inside, units, capacity + separated * (network.host or 0), network.scale)

    @classmethod
    def between_vertices(cls, network: CollectiveNetwork, side: Bools, leaving: Leaving) -> "CollectiveCut":
        """The cut of a set of vertices with all their ranks.

        Parameters
        ----------
        network : CollectiveNetwork
            The network.
        side : bool [vertices]
            Vertices in S.
        leaving : Leaving
            What must leave S.
        """
        return cls.of(network, side, side[network.rank_vertex], leaving)

    @property
    def time(self) -> Fraction:
        """The least time for what must leave S, in units over a channel of capacity 1."""
        return self.scale * self.units / self.capacity if self.units else Fraction(0)

    @property
    def text(self) -> str:
        """What leaves S, in words.

        >>> Cut(np.array([True, False]), np.array([True, False]), 15, 4, Fraction(1)).text
        'what leaves S: 15 units through 4'
        """
        unit = "unit" if self.units == 1 else "units"
        return f"what leaves S: {self.units} {unit} through {self.capacity / self.scale}"

    @property
    def labels(self) -> tuple[Ints, Ints]:
        """int64 [vertices] and [ranks]: 0 in S, -1 outside."""
        return self.side.astype(np.int64) - 1, self.inside.astype(np.int64) - 1

    def reversed(self) -> "CollectiveCut":
        """A cut of the reversed network as a cut of the network: the other side."""
        return replace(self, side=~self.side, inside=~self.inside)


def all_gather(network: CollectiveNetwork) -> CollectiveCut:
    """The cut of λ, the greatest w(S) / B+(S) over the sides that lack some rank."""
    at_host = int(network.amount.argmin())
    return _gathering(network, network.sinks, at_host)


def reduce_scatter(network: CollectiveNetwork) -> CollectiveCut:
    """The cut that proves the longest time of a reduce-scatter: results of ranks outside S need data of ranks inside.

    It is the cut of an all-gather (:func:`all_gather`) on the reversed network, seen from the other side.

    Parameters
    ----------
    network : CollectiveNetwork
        The network; ``amount`` are the units of the result that each rank receives.

    Returns
    -------
    CollectiveCut
        S has some rank. ``units``: the results of the ranks outside S, as many as must leave S. ``time``: the lower
        bound, in units over a channel of capacity 1; 0 where nothing has to move.

    Raises
    ------
    FluidError
        The data of a rank cannot reach some rank that receives units.

    Source: Dinkelbach, Management Science 13 (1967), doi:10.1287/mnsc.13.7.492; proof in docs/collectives.md, lower
    bounds.
    """
    return all_gather(network.reversed()).reversed()


def gather(network: CollectiveNetwork, root: int) -> CollectiveCut:
    """The cut of a gather to a rank: the units inside S must reach the root outside."""
    return _gathering(network, network.rank_vertex[[root]], root)


def scatter(network: CollectiveNetwork, root: int) -> CollectiveCut:
    """The cut of a scatter from a rank: the units of ranks outside S come from the root inside."""
    return gather(network.reversed(), root).reversed()


def broadcast(network: CollectiveNetwork, root: int) -> CollectiveCut:
    """The cut of a broadcast from a rank: its vector must leave every S that contains the root and lacks some rank."""
    others = network.is_rank.copy()
    others[network.rank_vertex[root]] = False
    root_only = np.arange(network.ranks) == root
    at_host = (
        None
        if network.host is None
        else CollectiveCut.of(network, np.zeros(network.vertices, bool), root_only, "vector")
    )
    return _longest(at_host, _narrowest(network, int(network.rank_vertex[root]), np.flatnonzero(others)), network)


def reduce(network: CollectiveNetwork, root: int) -> CollectiveCut:
    """The cut of a reduction to a rank: a vector must leave every S that has some rank and lacks the root."""
    return broadcast(network.reversed(), root).reversed()


def all_reduce(network: CollectiveNetwork) -> CollectiveCut:
    """The cut of an all-reduce: a vector must leave every S that has some rank and lacks some.

    Rank 0 is on one side of the narrowest cut, so broadcasts from it or reductions to it have that cut.
    """
    return _longest(broadcast(network, 0), reduce(network, 0), network)


def _longest(one: CollectiveCut | None, other: CollectiveCut | None, network: CollectiveNetwork) -> CollectiveCut:
    """The cut that proves the longer time, the first of equal ones; an empty cut if there are none."""
    cuts = [cut for cut in (one, other) if cut is not None]
    nowhere = np.zeros(network.vertices, bool), np.zeros(network.ranks, bool)
    return max(cuts, key=lambda cut: cut.time, default=CollectiveCut(*nowhere, 0, 0, network.scale))


def _gathering(network: CollectiveNetwork, sinks: Ints, at_host: int) -> CollectiveCut:
    """The cut of the longest time for units of S to reach a rank outside, at one of the vertices ``sinks``.

    Where ranks have channels of their own, the best side that separates a rank from its switch has all ranks but one,
    ``at_host``. Other such sides add host channels, and what comes through them, to this side or to a set of vertices.
    """
    host_cut = None
    if network.host is not None:
        every = np.ones(network.vertices, bool)
        host_cut = CollectiveCut.of(network, every, np.arange(network.ranks) != at_host, "inside")
    return _longest(host_cut, _densest(network, sinks), network)


def _densest(network: CollectiveNetwork, sinks: Ints) -> CollectiveCut | None:
    """The set of vertices with the greatest w(S) / B+(S) that lacks a sink; None where all units are at the sinks.

    Raises :class:`~flitlab.fluid.problem.FluidError` where units cannot leave a set.
    """
    cut = _all_but_one(network, sinks)
    if cut is None:
        return None
    n, giving = network.vertices, np.flatnonzero(network.weight)
    tail = np.concatenate([network.tail, np.full(len(giving), n)])
    residual = Residual.of(n + 1, tail, np.concatenate([network.head, giving]))
    reached, done = np.zeros(n + 1, bool), 0
    while True:
        p, q = Fraction(cut.units, cut.capacity).as_integer_ratio()
        capacity = np.concatenate([p * network.capacity, q * network.weight[giving]])
        done = first_unreached(residual, capacity, n, sinks, done, q * network.units)
        if done == len(sinks):
            return cut
        mark_reachable(residual, n, reached)
        cut = CollectiveCut.between_vertices(network, reached[:-1].copy(), "inside")
        if cut.capacity == 0:
            raise _cut_off(sinks[done])


def _all_but_one(network: CollectiveNetwork, sinks: Ints) -> CollectiveCut | None:
    """The greatest w(S) / B+(S) of sets that lack just one sink; None where all units are at the sinks."""
    into = np.zeros(network.vertices, np.int64)
    np.add.at(into, network.head, network.capacity)
    candidates = [v for v in sinks.tolist() if network.units > network.weight[v]]
    if unreachable := [v for v in candidates if into[v] == 0]:
        raise _cut_off(unreachable[0])
    ratios = [Fraction(network.units - int(network.weight[v]), int(into[v])) for v in candidates]
    if not ratios:
        return None
    first = candidates[ratios.index(max(ratios))]
    return CollectiveCut.between_vertices(network, np.arange(network.vertices) != first, "inside")


def _narrowest(network: CollectiveNetwork, root: int, sinks: Ints) -> CollectiveCut | None:
    """The set of vertices with the least B+(S) that has the root and lacks a sink; None if there are no sinks.

    Raises :class:`~flitlab.fluid.problem.FluidError` where a sink is unreachable.
    """
    if len(sinks) == 0:
        return None
    side = np.arange(network.vertices) == root
    residual = Residual.of(network.vertices, network.tail, network.head)
    done = 0
    while True:
        cut = CollectiveCut.between_vertices(network, side, "vector")
        if cut.capacity == 0:
            raise _cut_off(sinks[done])
        done = first_unreached(residual, network.capacity, root, sinks, done, cut.capacity)
        if done == len(sinks):
            return cut
        side = np.zeros(network.vertices, bool)
        mark_reachable(residual, root, side)


def _cut_off(vertex: int) -> FluidError:
    return FluidError(f"the collective is not possible: switch {vertex}, which has ranks, is cut off from others")
