"""A graph, a demand and next hops as named tuples of flat arrays, which compiled code and LPs both read."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from flitlab.models.arrays import Bytes, Floats, Ints, Ints32
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic, summed_pairs


class Graph(NamedTuple):
    """Directed channels, sorted by source.

    src, dst: int64 [channels]. capacity: float64 [channels].
    out_start, in_start: int64 [nodes + 1]; into v come in_channel[in_start[v]:in_start[v + 1]].
    """

    src: Ints
    dst: Ints
    capacity: Floats
    out_start: Ints
    in_start: Ints
    in_channel: Ints

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
            np.searchsorted(dst[in_channel], every), in_channel,
        )  # fmt: skip

    @property
    def nodes(self) -> int:
        return len(self.out_start) - 1

    def matrix(self) -> csr_array:
        """[nodes, nodes], an entry where there is a channel."""
        return csr_array((np.ones(self.channels), (self.src, self.dst)), (self.nodes, self.nodes))

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
