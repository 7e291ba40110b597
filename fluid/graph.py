# SPDX-License-Identifier: Apache-2.0
"""A graph, a demand and next hops as named tuples of flat arrays, which compiled code and LPs both read."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from flitlab.models.arrays import Bytes, Floats, Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import UNIFORM, UNIFORM_SELF, Traffic, summed_pairs


class Graph(NamedTuple):
    """Directed channels, sorted by source.

    src, dst: int64 [channels]. capacity: float64 [channels].
    out_start, in_start: int64 [nodes + 1]; into v come in_channel[in_start[v]:in_start[v + 1]], from the nodes
    in_node: int32 [channels] at the same places.
    """

    src: Ints
    dst: Ints
    capacity: Floats
    out_start: Ints
    in_start: Ints
    in_channel: Ints
    in_node: Ints32

    @classmethod
    def of(cls, topology: Topology) -> "Graph":
        """The network channels of a topology."""
        return cls.from_channels(topology.switches, topology.src, topology.dst, topology.capacity)

    @classmethod
    def from_channels(cls, nodes: int, src: npt.ArrayLike, dst: npt.ArrayLike, capacity: npt.ArrayLike) -> "Graph":
        """A graph from channel arrays that are sorted by source."""
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        in_channel = np.argsort(dst, kind="stable")
        every = np.arange(nodes + 1)
        return cls(
            src, dst, np.asarray(capacity, float), np.searchsorted(src, every),
            np.searchsorted(dst[in_channel], every), in_channel, src[in_channel].astype(np.int32),
        )  # fmt: skip

    @property
    def nodes(self) -> int:
        return len(self.out_start) - 1

    def matrix(self) -> "scipy.sparse.csr_array":
        """[nodes, nodes], an entry where there is a channel."""
        return scipy.sparse.csr_array((np.ones(self.channels), (self.src, self.dst)), (self.nodes, self.nodes))

    @property
    def channels(self) -> int:
        return len(self.src)


class Demand(NamedTuple):
    """Commodities grouped by destination: those of target[i] are start[i]:start[i + 1].

    target: int64 [targets]. start: int64 [targets + 1]. source: int64, amount: float64 [commodities].
    """

    target: Ints
    start: Ints
    source: Ints
    amount: Floats

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Demand":
        """A demand from the positive entries [s, t], s != t, of a matrix; the diagonal needs no network."""
        target, source = np.nonzero(matrix.T > 0)
        apart = source != target
        source, target = source[apart], target[apart]
        return cls._sorted(source, target, np.asarray(matrix[source, target], float))

    @classmethod
    def of_traffic(cls, traffic: Traffic) -> "Demand":
        """What is demanded between different switches; sparse patterns never become a matrix."""
        return cls._sorted(*traffic.switch_pairs())

    @classmethod
    def of_pairs(cls, nodes: int, source: Ints, target: Ints, amount: Floats) -> "Demand":
        """A demand from pairs of nodes in any order; what several of them demand is added up."""
        return cls._sorted(*summed_pairs(nodes, source, target, amount))

    @classmethod
    def _sorted(cls, source: Ints, target: Ints, amount: Floats) -> "Demand":
        """From pairs of different switches by target and source."""
        count = np.bincount(target)
        present = np.flatnonzero(count)
        # of numpy's pairs, each end is every other number; compiled code would need a version of its own for that
        source = np.ascontiguousarray(source)
        return cls(present, np.concatenate([[0], np.cumsum(count[present])]), source, amount)

    @property
    def size(self) -> int:
        return len(self.source)

    @property
    def destination(self) -> Ints:
        """int64 [commodities]: the target of every commodity."""
        return self.target[self.row]

    @property
    def row(self) -> Ints:
        """int64 [commodities]: the index into ``target`` of every commodity."""
        return np.repeat(np.arange(len(self.target)), np.diff(self.start))

    def find(self, nodes: int, source: Ints, target: Ints) -> Ints:
        """int64: the commodity of each pair of different nodes, which must have one."""
        commodity: Ints = np.searchsorted(self.destination * nodes + self.source, target * nodes + source)
        return commodity

    def scaled(self, factor: float) -> "Demand":
        return self._replace(amount=self.amount * factor)

    @property
    def total(self) -> float:
        """All that is demanded."""
        return float(self.amount.sum())

    def listed(self) -> "Demand":
        """The demand itself, as it has an entry for every pair."""
        return self

    def part(self, low: int, high: int) -> "Demand":
        """The demand for target[low:high] alone."""
        begin, end = self.start[low], self.start[high]
        start = self.start[low : high + 1] - begin
        return Demand(self.target[low:high], start, self.source[begin:end], self.amount[begin:end])


class Product(NamedTuple):
    """A demand of sent[s] * taken[t] between any two different nodes, of which no list is kept.

    sent, taken: float64 [nodes]. target: int64 [targets], the nodes with taken > 0.
    """

    sent: Floats
    taken: Floats
    target: Ints

    @classmethod
    def of_traffic(cls, traffic: Traffic) -> "Product | None":
        """What is demanded between different switches where all hosts are sent the same; None elsewhere."""
        if traffic.law not in (UNIFORM, UNIFORM_SELF):
            return None
        topology = traffic.topology
        count = np.bincount(topology.host_switch, minlength=topology.switches).astype(float)
        rate = np.bincount(topology.host_switch, traffic.rate, topology.switches)
        return cls(rate / (topology.hosts - (traffic.law == UNIFORM)), count, np.flatnonzero(count))

    @property
    def size(self) -> int:
        """Pairs of different nodes with demand."""
        sends = self.sent > 0
        return int(sends.sum()) * len(self.target) - int(sends[self.target].sum())

    @property
    def total(self) -> float:
        """All that is demanded."""
        return float(self.sent.sum() * self.taken.sum() - (self.sent * self.taken).sum())

    def listed(self) -> Demand:
        """The demand of the product as a list, with an entry for every pair."""
        whole = self.part(0, len(self.target))
        kept = np.diff(whole.start) > 0
        return Demand(whole.target[kept], whole.start[np.append(True, kept)], whole.source, whole.amount)

    def part(self, low: int, high: int) -> Demand:
        """The demand for target[low:high] alone, with an entry for every pair."""
        return Demand(self.target[low:high], *_listed(self.sent, self.taken, self.target[low:high]))


@njit
def _listed(sent: Floats, taken: Floats, target: Ints) -> tuple[Ints, Ints, Floats]:
    """Start, source and amount of a demand sent[s] * taken[t] for some targets."""
    senders = np.flatnonzero(sent > 0.0)
    start = np.zeros(len(target) + 1, np.int64)
    source, amount = np.empty(len(target) * len(senders), np.int64), np.empty(len(target) * len(senders))
    size = 0
    for i in range(len(target)):
        for s in senders:
            if s != target[i]:
                source[size], amount[size] = s, sent[s] * taken[target[i]]
                size += 1
        start[i + 1] = size
    return start, source[:size], amount[:size]


ROWS = 32
"""Targets of which the demand is listed at a time where it is not listed as a whole."""


def blocks(demand: Demand | Product) -> Iterator[tuple[int, int]]:
    """(low, high), places of targets that are handled together."""
    for low in range(0, len(demand.target), ROWS):
        yield low, min(low + ROWS, len(demand.target))


class Dags(NamedTuple):
    """The next hops a routing allows, per destination; all arrays empty: every channel is allowed.

    ports: uint64 [nodes, nodes], as in :class:`~flitlab.models.routing.routes.Routes`.
    order: int32 [nodes, nodes], row t: nodes so that each comes after all its next hops toward t, -1 padded.
    via: int64 [switches], unless empty the switches over any one of which a way leads: by next hops toward it, and
    from it by those toward the destination. Sources and destinations of the demand are among them.
    hops: the most channels of a way where every channel is allowed; 0: any number. threshold: uint8 [nodes, nodes,
    ports], by which next hops are drawn, ``port_threshold`` of :class:`~flitlab.models.routing.routes.Routes`; empty:
    alike.
    """

    ports: npt.NDArray[np.uint64]
    order: Ints32
    via: Ints
    hops: int = 0
    threshold: Bytes = np.zeros((0, 0, 0), np.uint8)


UNRESTRICTED = Dags(np.zeros((0, 0), np.uint64), np.zeros((0, 0), np.int32), np.zeros(0, np.int64))
