# SPDX-License-Identifier: Apache-2.0
"""Graph, demand and next hops as named tuples of flat arrays, for compiled code and LPs."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from flitlab.models.arrays import Bytes, Floats, Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic, summed_pairs


class Graph(NamedTuple):
    """Directed channels, sorted by source node.

    src, dst: int64 [channels]. capacity: float64 [channels], flits/tick. out_start, in_start: int64 [nodes + 1].
    Channels out of v are out_start[v]:out_start[v + 1]; channels into v are in_channel[in_start[v]:in_start[v + 1]],
    int64, from the nodes in_node, int32 [channels], at the same indices.
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
        """The graph of the network channels of a topology."""
        return cls.from_channels(topology.switches, topology.src, topology.dst, topology.capacity)

    @classmethod
    def from_channels(cls, nodes: int, src: npt.ArrayLike, dst: npt.ArrayLike, capacity: npt.ArrayLike) -> "Graph":
        """A graph from channel arrays that are sorted by source.

        Parameters
        ----------
        nodes : int
            Number of nodes.
        src, dst : int [channels]
            Ends of the channels.
        capacity : float [channels]
            Flits/tick.
        """
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
        """Sparse matrix [nodes, nodes] with an entry for every channel."""
        return scipy.sparse.csr_array((np.ones(self.channels), (self.src, self.dst)), (self.nodes, self.nodes))

    @property
    def channels(self) -> int:
        return len(self.src)


class Demand(NamedTuple):
    """Commodities grouped by destination: those of target[i] are start[i]:start[i + 1].

    target: int64 [targets], ascending. start: int64 [targets + 1]. source: int64 [commodities]. amount: float64
    [commodities], flits/tick.
    """

    target: Ints
    start: Ints
    source: Ints
    amount: Floats

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Demand":
        """The demand of a matrix. matrix: float [nodes, nodes]; positive entries [s, t], s != t, are commodities."""
        target, source = np.nonzero(matrix.T > 0)
        different = source != target
        source, target = source[different], target[different]
        return cls._sorted(source, target, np.asarray(matrix[source, target], float))

    @classmethod
    def of_traffic(cls, traffic: Traffic) -> "Demand":
        """The demand between different switches; sparse patterns never become a matrix."""
        return cls._sorted(*traffic.switch_pairs())

    @classmethod
    def of_pairs(cls, nodes: int, source: Ints, target: Ints, amount: Floats) -> "Demand":
        """A demand from pairs of nodes in any order; amounts of equal pairs are summed.

        Parameters
        ----------
        nodes : int
            Number of nodes.
        source, target : int64 [pairs]
            Different nodes.
        amount : float64 [pairs]
            Flits/tick.
        """
        return cls._sorted(*summed_pairs(nodes, source, target, amount))

    @classmethod
    def _sorted(cls, source: Ints, target: Ints, amount: Floats) -> "Demand":
        """A demand from pairs of different switches that are sorted by target and source."""
        count = np.bincount(target)
        present = np.flatnonzero(count)
        # a strided array would need another compilation of the kernels
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
        """Commodities of pairs of nodes.

        Parameters
        ----------
        nodes : int
            Number of nodes.
        source, target : int64 [pairs]
            Pairs with demand.

        Returns
        -------
        int64 [pairs]
            Commodities.
        """
        commodity: Ints = np.searchsorted(self.destination * nodes + self.source, target * nodes + source)
        return commodity

    def scaled(self, factor: float) -> "Demand":
        return self._replace(amount=self.amount * factor)

    @property
    def total(self) -> float:
        """The total demand in flits/tick."""
        return float(self.amount.sum())

    def listed(self) -> "Demand":
        """The demand itself: an entry for every pair."""
        return self

    def part(self, low: int, high: int) -> "Demand":
        """The demand for target[low:high] only."""
        begin, end = self.start[low], self.start[high]
        start = self.start[low : high + 1] - begin
        return Demand(self.target[low:high], start, self.source[begin:end], self.amount[begin:end])


class Product(NamedTuple):
    """A demand sent[s] * taken[t] between all different nodes, without a list of pairs.

    sent, taken: float64 [nodes]. target: int64 [targets], the nodes with taken > 0.
    """

    sent: Floats
    received: Floats
    target: Ints

    @classmethod
    def of_traffic(cls, traffic: Traffic) -> "Product | None":
        """The demand between different switches where all hosts receive the same; None for other traffic."""
        if traffic.law not in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
            return None
        topology = traffic.topology
        if topology.is_multistage and traffic.law == DestinationRule.UNIFORM:
            return None  # what a host does not send itself is between different switches
        count = topology.ejection_count.astype(float)
        rate = np.bincount(topology.host_switch, traffic.rate, topology.switches)
        return cls(rate / (topology.hosts - (traffic.law == DestinationRule.UNIFORM)), count, np.flatnonzero(count))

    @property
    def size(self) -> int:
        """Pairs of different nodes with demand."""
        sends = self.sent > 0
        return int(sends.sum()) * len(self.target) - int(sends[self.target].sum())

    @property
    def total(self) -> float:
        """The total demand in flits/tick."""
        return float(self.sent.sum() * self.received.sum() - (self.sent * self.received).sum())

    def listed(self) -> Demand:
        """The demand as a list, with an entry for every pair."""
        whole = self.part(0, len(self.target))
        with_demand = np.diff(whole.start) > 0
        return Demand(whole.target[with_demand], whole.start[np.append(True, with_demand)], whole.source, whole.amount)

    def part(self, low: int, high: int) -> Demand:
        """The demand for target[low:high] only, with an entry for every pair."""
        return Demand(self.target[low:high], *_listed(self.sent, self.received, self.target[low:high]))


@njit
def _listed(sent: Floats, received: Floats, target: Ints) -> tuple[Ints, Ints, Floats]:
    """Start, source and amount of a demand sent[s] * taken[t] for some targets."""
    senders = np.flatnonzero(sent > 0.0)
    start = np.zeros(len(target) + 1, np.int64)
    source, amount = np.empty(len(target) * len(senders), np.int64), np.empty(len(target) * len(senders))
    size = 0
    for i in range(len(target)):
        for s in senders:
            if s != target[i]:
                source[size], amount[size] = s, sent[s] * received[target[i]]
                size += 1
        start[i + 1] = size
    return start, source[:size], amount[:size]


ROWS = 32
"""Destinations whose demand is listed together where it is not listed as a whole."""


def blocks(demand: Demand | Product) -> Iterator[tuple[int, int]]:
    """Ranges (low, high) of target indices that are processed together."""
    for low in range(0, len(demand.target), ROWS):
        yield low, min(low + ROWS, len(demand.target))


class Dags(NamedTuple):
    """The next hops that a routing allows, per destination; with empty arrays every channel is allowed.

    ports: table of port sets, as in :class:`~flitlab.models.routing.routes.Routes`. order: int32 [nodes, nodes], row
    t: nodes in topological order, each after all its next hops toward t; -1 pads. via: int64 [switches]; if not empty,
    every path leads by next hops to one of these switches, and from there to its destination. Sources and destinations
    of the demand are among them. hops: most channels of a path where every channel is allowed; 0: no limit. threshold:
    uint8 [nodes, nodes, ports], the weights of next hops, ``port_threshold`` of
    :class:`~flitlab.models.routing.routes.Routes`; empty: equal weights.
    """

    ports: npt.NDArray[np.uint64]
    order: Ints32
    via: Ints
    hops: int = 0
    threshold: Bytes = np.zeros((0, 0, 0), np.uint8)


UNRESTRICTED = Dags(np.zeros((0, 0), np.uint64), np.zeros((0, 0), np.int32), np.zeros(0, np.int64))
