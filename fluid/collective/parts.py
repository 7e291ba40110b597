# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the time of an all-reduce by disjoint parts of the network.

Let a message carry one partial result for every element of the vector. Then 2 (k - 1) messages per element cross
between k parts that contain all ranks; so the time is at least that over the capacity out of all parts, and over the
capacity into them. Any family of parts is a proof. If every vertex is a rank, the best one is the strength of a graph;
otherwise it is searched among nested sets.

Source: Harary and Schwenk, Journal of the Franklin Institute 297 (1974), for gossip by one-way calls; Cunningham,
Journal of the ACM 32 (1985), for the strength.
"""

import heapq
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from flitlab.fluid.collective.maxflow import Residual, mark_reachable, send_up_to, set_capacities
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.models.arrays import Ints

Counted = Literal["out", "in", "both"]
"""Which capacity bounds: out of the parts, into them, or the lesser of both."""

WORK = 30_000_000
"""Vertices times arcs up to which parts are searched for; beyond, single ranks and single switches are tried."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Disjoint parts of a network, each with a rank, that contain all ranks.

    part: int64 [vertices], of_rank: int64 [ranks]: the part of each, 0 .. count - 1, -1 of vertices in none. out, into:
    capacity out of all parts, and into them, times ``scale`` as in
    :class:`~flitlab.fluid.collective.network.CollectiveNetwork`. counted: which of them bounds. best: whether no other
    parts are known to prove more.
    """

    part: Ints
    of_rank: Ints
    count: int
    out: int
    into: int
    scale: Fraction
    counted: Counted = "both"
    best: bool = False

    @classmethod
    def of(cls, network: CollectiveNetwork, part: Ints, of_rank: Ints, counted: Counted = "both") -> "Parts":
        """The parts that labels define.

        Parameters
        ----------
        network : CollectiveNetwork
            The network.
        part : int64 [vertices]
            Labels; a vertex whose label is negative or no rank's is in no part.
        of_rank : int64 [ranks]
            Labels.
        counted : Counted
            Which capacity bounds.

        Raises
        ------
        ValueError
            An infinite channel joins a rank to a switch in another part.
        """
        labels = np.unique(of_rank)
        index = np.minimum(np.searchsorted(labels, part), len(labels) - 1)
        part = np.where(labels[index] == part, index, -1)
        of_rank = np.searchsorted(labels, of_rank)
        tail, head = part[network.tail], part[network.head]
        out, into = (
            int(network.capacity[(end >= 0) & (tail != head)].sum()) for end in (tail, head)
        )  # fmt: skip
        part_of_vertex = part[network.rank_vertex]
        separated = part_of_vertex != of_rank
        if separated.any() and network.host is None:
            raise ValueError("a rank and its switch are in different parts, with an infinite channel between")
        hosts = (int(separated.sum()) + int((separated & (part_of_vertex >= 0)).sum())) * (network.host or 0)
        return cls(part, of_rank, len(labels), out + hosts, into + hosts, network.scale, counted)

    @property
    def labels(self) -> tuple[Ints, Ints]:
        """int64 [vertices] and [ranks]: the part of each."""
        return self.part, self.of_rank

    @property
    def capacity(self) -> int:
        """The capacity that bounds, as an integer."""
        return {"out": self.out, "in": self.into, "both": min(self.out, self.into)}[self.counted]

    @property
    def time(self) -> Fraction:
        """Lower bound on the time of an all-reduce over the size of its vector, with channels of capacity 1."""
        return self.scale * 2 * (self.count - 1) / self.capacity if self.count > 1 else Fraction(0)

    @property
    def text(self) -> str:
        """What crosses between the parts, in words."""
        return (
            f"{2 * (self.count - 1)} messages of every element between {self.count} parts, through "
            f"{self.capacity / self.scale}"
        )


def all_reduce_parts(network: CollectiveNetwork, least_cut: int, counted: Counted = "both") -> Parts:
    """The best parts that are known.

    Parameters
    ----------
    network : CollectiveNetwork
        The network.
    least_cut : int
        Least integer capacity out of a set that has some rank and lacks some.
    counted : Counted
        Which capacity bounds.
    """
    singles = _singles(network, counted)
    if singles.count < 2:
        return singles
    if network.ranks_only:
        if singles.out <= singles.count * least_cut:  # every part has at least the least cut out of it
            return replace(singles, best=True)
        return _strongest(network, singles) if _affordable(network) else singles
    families = [singles, _switches(network, counted)]
    if _affordable(network):
        nested = _LaminarFamily(network)
        families += [nested.best(max(families, key=_time), outward) for outward in (True, False)]
    return max(families, key=_time)


def _time(parts: Parts) -> Fraction:
    return parts.time


def _affordable(network: CollectiveNetwork) -> bool:
    return network.vertices * len(network.tail) <= WORK


def _singles(network: CollectiveNetwork, counted: Counted) -> Parts:
    """Every rank as a part; where infinite channels join ranks, a switch with its ranks."""
    if network.host is None:
        return _switches(network, counted)
    return Parts.of(network, np.full(network.vertices, -1), np.arange(network.ranks), counted)


def _switches(network: CollectiveNetwork, counted: Counted) -> Parts:
    """Each switch with its ranks."""
    return Parts.of(network, np.arange(network.vertices), network.rank_vertex, counted)


def _strongest(network: CollectiveNetwork, parts: Parts) -> Parts:
    """The partition of the least capacity across over (parts - 1), by Newton's method."""
    while True:
        share = Fraction(parts.out, parts.count - 1)
        label, value = _least_partition(network, share.numerator, share.denominator)
        if value >= -share.numerator:
            return replace(parts, best=True)
        parts = Parts.of(network, label, label[network.rank_vertex], parts.counted)


def _least_partition(network: CollectiveNetwork, p: int, q: int) -> tuple[Ints, int]:
    """Labels of a partition of the vertices with the least sum of q B+(P) - p over its parts P, and that sum.

    Greedy algorithm over vertices: y_v grows as far as the constraint y(P) <= q B+(P) - p allows for all sets P. Tight
    sets are the proof; tight sets that intersect are one part.
    """
    n, arcs = network.vertices, len(network.tail)
    every = np.arange(n)
    tail = np.concatenate([network.tail, np.full(n, n), every])
    head = np.concatenate([network.head, every, np.full(n, n + 1)])
    residual, reached = Residual.of(n + 2, tail, head), np.zeros(n + 2, bool)
    capacity = np.concatenate([q * network.capacity, np.zeros(2 * n, np.int64)])
    into, out = capacity[arcs : arcs + n], capacity[arcs + n :]
    out[:] = unbounded = 2 * q * int(network.capacity.sum()) + n * p + 1
    y, label = np.zeros(n, np.int64), every.copy()
    for v in range(n):
        into[v], out[v] = unbounded, 0
        set_capacities(residual, capacity, len(capacity))
        least = send_up_to(residual, n, n + 1, unbounded)
        mark_reachable(residual, n, reached)
        y[v] = least - int(y[y > 0].sum()) - p
        into[v], out[v] = max(y[v], 0), max(-y[v], 0)
        label[np.isin(label, label[reached[:n]])] = label[v]
    return label, int(y.sum())


class _LaminarFamily:
    """A laminar family of sets of vertices: every vertex, and the union of two maximal sets, repeatedly.

    joins: the two sets of every union, by number; single vertices have the first numbers. out, into: capacity of each
    set. ranks: whether a set has any.
    """

    def __init__(self, network: CollectiveNetwork):
        """Unite the two sets with the largest relative capacity between them, repeatedly."""
        self.network = network
        n = network.vertices
        out, into = (np.zeros(n, np.int64) for _ in range(2))
        np.add.at(out, network.tail, network.capacity)
        np.add.at(into, network.head, network.capacity)
        self.out, self.into, self.ranks = out.tolist(), into.tolist(), network.is_rank.tolist()
        self.joins: list[tuple[int, int]] = []
        between: list[dict[int, int]] = [{} for _ in range(n)]
        for u, v, c in zip(network.tail.tolist(), network.head.tolist(), network.capacity.tolist(), strict=True):
            between[u][v] = between[u].get(v, 0) + c
            between[v][u] = between[v].get(u, 0) + c
        waiting = [self._offer(u, v, c) for u in range(n) for v, c in between[u].items() if u < v]
        heapq.heapify(waiting)
        while waiting:
            _, a, b = heapq.heappop(waiting)
            if between[a] and between[b]:
                self._join(a, b, between)
                new = len(between) - 1
                for other, c in between[new].items():
                    heapq.heappush(waiting, self._offer(other, new, c))

    def _offer(self, a: int, b: int, between: int) -> tuple[float, int, int]:
        """A candidate union as a heap entry; the largest share comes first."""
        return -between / min(self.out[a] + self.into[a], self.out[b] + self.into[b]), a, b

    def _join(self, a: int, b: int, between: list[dict[int, int]]) -> None:
        """Unite two sets; beside: capacity of each maximal set to other ones, both directions together."""
        shared = between[a][b]
        for of_set in (self.out, self.into):
            of_set.append(of_set[a] + of_set[b] - shared)
        self.ranks.append(self.ranks[a] or self.ranks[b])
        self.joins.append((a, b))
        merged: dict[int, int] = {}
        for old in (a, b):
            for other, c in between[old].items():
                if other not in (a, b):
                    merged[other] = merged.get(other, 0) + c
                    del between[other][old]
            between[old] = {}
        for other, c in merged.items():
            between[other][len(between)] = c
        between.append(merged)

    def best(self, parts: Parts, outward: bool) -> Parts:
        """The parts among these sets and single ranks with the least capacity over (parts - 1), by Newton's method.

        parts: the start. outward: whether the capacity out of the parts counts, or that into them.
        """
        while True:
            share = Fraction(parts.out if outward else parts.into, parts.count - 1)
            better = self._least(share, self.out if outward else self.into, parts.counted)
            if better is None:
                return parts
            parts = better

    def _least(self, share: Fraction, capacity: list[int], counted: Counted) -> Parts | None:
        """Parts with the least sum of q capacity - p, if they prove more than the share p / q; else None."""
        p, q = share.as_integer_ratio()
        n, hosts = (
            self.network.vertices,
            np.bincount(self.network.rank_vertex, minlength=self.network.vertices).tolist(),
        )
        least: list[int] = []
        split: list[bool] = []
        for a, width in enumerate(capacity):
            whole = q * width - p if self.ranks[a] else 0
            pieces = whole + 1
            if a >= n:
                pieces = sum(least[b] for b in self.joins[a - n])
            elif hosts[a] and self.network.host is not None:
                pieces = hosts[a] * (q * self.network.host - p)
            least.append(min(whole, pieces))
            split.append(pieces < whole)
        tops = set(range(len(capacity))).difference(*self.joins)
        if sum(least[a] for a in tops) >= -p:
            return None
        return self._labelled(tops, split, counted)

    def _labelled(self, tops: set[int], split: list[bool], counted: Counted) -> Parts:
        """The parts after sets are split, from the largest ones down."""
        network, n = self.network, self.network.vertices
        part, of_rank = np.full(n, -1), -2 - np.arange(network.ranks)
        waiting = [(a, -1) for a in tops]
        while waiting:
            a, label = waiting.pop()
            whole = label >= 0 or not split[a]
            if a >= n:
                waiting += [(b, max(label, a if whole else -1)) for b in self.joins[a - n]]
            elif whole:
                part[a] = a if label < 0 else label
        part_of_vertex = part[network.rank_vertex]
        return Parts.of(network, part, np.where(part_of_vertex >= 0, part_of_vertex, of_rank), counted)
