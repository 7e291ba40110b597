# SPDX-License-Identifier: Apache-2.0
"""Least times of an all-reduce that disjoint parts of a network prove.

Let a message carry, for every element of the vector, one partial result. Then 2 (k - 1) messages of each element cross
between k parts that have all ranks among them; so the time is at least that over what leaves the parts together, and
over what enters them. Any family of parts is a proof; the best one is a graph's strength where every vertex is a
rank, and searched for among nested sets elsewhere.

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
"""Whether what leaves the parts counts, or what enters them, or the lesser of the two."""

WORK = 30_000_000
"""Vertices times arcs up to which parts are searched for; beyond, each rank alone is tried, and each switch."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Disjoint parts of a network, each with a rank, and all ranks in them.

    part: int64 [vertices], of_rank: int64 [ranks]: the part of each, 0 .. count - 1, -1 of vertices in none. out, into:
    capacity out of all parts together, and into them, as ``scale`` has it in
    :class:`~flitlab.fluid.collective.network.CollectiveNetwork`. counted: which of them bounds. best: whether it is known
    that no other parts prove more.
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
        """The parts that labels make, of any numbers; a vertex is in none if it has no rank's or a negative one."""
        labels = np.unique(of_rank)
        place = np.minimum(np.searchsorted(labels, part), len(labels) - 1)
        part = np.where(labels[place] == part, place, -1)
        of_rank = np.searchsorted(labels, of_rank)
        tail, head = part[network.tail], part[network.head]
        out, into = (
            int(network.capacity[(end >= 0) & (tail != head)].sum()) for end in (tail, head)
        )  # fmt: skip
        at = part[network.rank_vertex]
        apart = at != of_rank
        if apart.any() and network.host is None:
            raise ValueError("a rank and its switch are in different parts, with an infinite channel between")
        hosts = (int(apart.sum()) + int((apart & (at >= 0)).sum())) * (network.host or 0)
        return cls(part, of_rank, len(labels), out + hosts, into + hosts, network.scale, counted)

    @property
    def labels(self) -> tuple[Ints, Ints]:
        """int64 [vertices] and [ranks]: the part of each."""
        return self.part, self.of_rank

    @property
    def capacity(self) -> int:
        """The capacity that bounds."""
        return {"out": self.out, "in": self.into, "both": min(self.out, self.into)}[self.counted]

    @property
    def time(self) -> Fraction:
        """The time of an all-reduce over the size of its vector, at least, over channels of capacity 1."""
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

    least_cut: the least capacity out of a set that has some rank and lacks some, in the network's whole numbers.
    """
    singles = _singles(network, counted)
    if singles.count < 2:
        return singles
    if network.ranks_only:
        if singles.out <= singles.count * least_cut:  # no parts can have less out of each of them
            return replace(singles, best=True)
        return _strongest(network, singles) if _affordable(network) else singles
    families = [singles, _switches(network, counted)]
    if _affordable(network):
        nested = _Nested(network)
        families += [nested.best(max(families, key=_time), outward) for outward in (True, False)]
    return max(families, key=_time)


def _time(parts: Parts) -> Fraction:
    return parts.time


def _affordable(network: CollectiveNetwork) -> bool:
    return network.vertices * len(network.tail) <= WORK


def _singles(network: CollectiveNetwork, counted: Counted) -> Parts:
    """Each rank alone; those of a switch together, with it, where an infinite channel joins them."""
    if network.host is None:
        return _switches(network, counted)
    return Parts.of(network, np.full(network.vertices, -1), np.arange(network.ranks), counted)


def _switches(network: CollectiveNetwork, counted: Counted) -> Parts:
    """Each switch with its ranks."""
    return Parts.of(network, np.arange(network.vertices), network.rank_vertex, counted)


def _strongest(network: CollectiveNetwork, parts: Parts) -> Parts:
    """The partition of the least capacity across over one less than its parts, by Newton's method."""
    while True:
        share = Fraction(parts.out, parts.count - 1)
        label, value = _least_partition(network, share.numerator, share.denominator)
        if value >= -share.numerator:
            return replace(parts, best=True)
        parts = Parts.of(network, label, label[network.rank_vertex], parts.counted)


def _least_partition(network: CollectiveNetwork, p: int, q: int) -> tuple[Ints, int]:
    """Labels of a partition of the vertices with the least sum of q B+(P) - p over its parts P, and that sum.

    Vertices join one by one; y, of which a set never has more than its q B+ - p, grows at each as far as it can. The
    sets that allow no more are the proof, and those that meet are one part.
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


class _Nested:
    """Sets of vertices of which any two are disjoint or nested: every vertex, and joins of two sets that are maximal.

    joins: the two sets of every join, by number; the single vertices have the first numbers. out, into: capacity of
    each set. ranks: whether it has any.
    """

    def __init__(self, network: CollectiveNetwork):
        """Join the two sets of which one has the largest share of its capacity to the other, again and again."""
        self.network = network
        n = network.vertices
        out, into = (np.zeros(n, np.int64) for _ in range(2))
        np.add.at(out, network.tail, network.capacity)
        np.add.at(into, network.head, network.capacity)
        self.out, self.into, self.ranks = out.tolist(), into.tolist(), network.is_rank.tolist()
        self.joins: list[tuple[int, int]] = []
        beside: list[dict[int, int]] = [{} for _ in range(n)]
        for u, v, c in zip(network.tail.tolist(), network.head.tolist(), network.capacity.tolist(), strict=True):
            beside[u][v] = beside[u].get(v, 0) + c
            beside[v][u] = beside[v].get(u, 0) + c
        waiting = [self._offer(u, v, c) for u in range(n) for v, c in beside[u].items() if u < v]
        heapq.heapify(waiting)
        while waiting:
            _, a, b = heapq.heappop(waiting)
            if beside[a] and beside[b]:
                self._join(a, b, beside)
                new = len(beside) - 1
                for other, c in beside[new].items():
                    heapq.heappush(waiting, self._offer(other, new, c))

    def _offer(self, a: int, b: int, between: int) -> tuple[float, int, int]:
        """A join as the heap has it, that of the largest share first."""
        return -between / min(self.out[a] + self.into[a], self.out[b] + self.into[b]), a, b

    def _join(self, a: int, b: int, beside: list[dict[int, int]]) -> None:
        """Make one set of two; beside: for each set that is in no other one, the capacity to others both ways."""
        between = beside[a][b]
        for of_set in (self.out, self.into):
            of_set.append(of_set[a] + of_set[b] - between)
        self.ranks.append(self.ranks[a] or self.ranks[b])
        self.joins.append((a, b))
        merged: dict[int, int] = {}
        for old in (a, b):
            for other, c in beside[old].items():
                if other not in (a, b):
                    merged[other] = merged.get(other, 0) + c
                    del beside[other][old]
            beside[old] = {}
        for other, c in merged.items():
            beside[other][len(beside)] = c
        beside.append(merged)

    def best(self, parts: Parts, outward: bool) -> Parts:
        """The parts among these sets, and single ranks, with the least capacity out of (or into) them over their number
        less one, by Newton's method from those given."""
        while True:
            share = Fraction(parts.out if outward else parts.into, parts.count - 1)
            better = self._least(share, self.out if outward else self.into, parts.counted)
            if better is None:
                return parts
            parts = better

    def _least(self, share: Fraction, capacity: list[int], counted: Counted) -> Parts | None:
        """Parts with the least sum of q capacity - p, if that proves more than the share p / q did."""
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
        """The parts that are left when sets are split as they are to be, from the largest ones down."""
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
        at = part[network.rank_vertex]
        return Parts.of(network, part, np.where(at >= 0, at, of_rank), counted)
