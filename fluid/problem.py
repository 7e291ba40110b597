"""A flow problem between switches, as flat arrays that both compiled code and LPs read."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fluid.mcf.paths import Paths, cheapest, paths_of
from fluid.trees import dag_order, price
from models.routing.minimal import minimal_ports
from models.routing.routes import DIGITS, VIA, Routes
from models.topology.graph import Topology
from models.traffic.traffic import Traffic


class FluidError(ValueError):
    """A ceiling is not defined for this scenario; the message says why."""


class Graph(NamedTuple):
    """Directed channels, sorted by source.

    src, dst: int64 [channels]. capacity: float64 [channels].
    out_start, in_start: int64 [nodes + 1]; into v come in_channel[in_start[v]:in_start[v + 1]].
    """

    src: np.ndarray
    dst: np.ndarray
    capacity: np.ndarray
    out_start: np.ndarray
    in_start: np.ndarray
    in_channel: np.ndarray

    @classmethod
    def of(cls, topology: Topology) -> "Graph":
        """The network channels of a topology."""
        return cls.from_channels(topology.switches, topology.src, topology.dst, topology.capacity)

    @classmethod
    def from_channels(cls, nodes: int, src, dst, capacity) -> "Graph":
        """From channel arrays that are sorted by source."""
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

    @property
    def channels(self) -> int:
        return len(self.src)


class Demand(NamedTuple):
    """Commodities grouped by destination: those of target[i] are start[i]:start[i + 1].

    target: int64 [targets]. start: int64 [targets + 1]. source: int64, amount: float64 [commodities].
    """

    target: np.ndarray
    start: np.ndarray
    source: np.ndarray
    amount: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Demand":
        """The positive entries [s, t], s != t, of a matrix between nodes; the diagonal needs no network."""
        columns = np.array(matrix.T, float)
        np.fill_diagonal(columns, 0.0)
        target, source = np.nonzero(columns > 0)
        present, start = np.unique(target, return_index=True)
        start = np.append(start, len(target)).astype(np.int64)
        return cls(present.astype(np.int64), start, source.astype(np.int64), columns[target, source])

    @property
    def size(self) -> int:
        return len(self.source)

    @property
    def destination(self) -> np.ndarray:
        """int64 [commodities]: the target of every commodity."""
        return self.target[self.row]

    @property
    def row(self) -> np.ndarray:
        """int64 [commodities]: the index into ``target`` of every commodity."""
        return np.repeat(np.arange(len(self.target)), np.diff(self.start))

    def scaled(self, factor: float) -> "Demand":
        return self._replace(amount=self.amount * factor)


class Dags(NamedTuple):
    """The next hops a routing allows, per destination; all arrays empty: every channel is allowed.

    ports: uint64 [nodes, nodes], as in :class:`~models.routing.routes.Routes`.
    order: int32 [nodes, nodes], row t: nodes so that each comes after all its next hops toward t, -1 padded.
    """

    ports: np.ndarray
    order: np.ndarray


UNRESTRICTED = Dags(np.zeros((0, 0), np.uint64), np.zeros((0, 0), np.int32))


@dataclass(frozen=True, eq=False)
class Problem:
    """Route ``demand`` over ``graph``, within ``dags`` or, if they are given, over ``paths`` (of equal flow)."""

    graph: Graph
    demand: Demand
    dags: Dags = UNRESTRICTED
    paths: Paths | None = None

    @classmethod
    def of(cls, topology: Topology, traffic: Traffic, routes: Routes | None = None) -> "Problem":
        """The switch-level problem of a scenario, restricted to the routes if they are given.

        Over an intermediate switch (VIA) the demand is that of the two legs: from every source to every such
        switch, and from there on. Raises :class:`FluidError` if nothing is demanded, if a demand cannot be met at
        all, or if the next hops toward some switch form a cycle or a dead end.
        """
        if not traffic.rate.sum() > 0:
            raise FluidError("the demand matrix is zero: nothing to bound")
        graph = Graph.of(topology)
        demand = Demand.of(traffic.switch_demand)
        dags, paths = UNRESTRICTED, None
        if routes is not None and routes.paths is not None:
            paths = paths_of(routes.paths, topology.switches, graph, demand)
        elif routes is not None:
            if routes.form == VIA:
                demand = Demand.of(_by_legs(topology, traffic.switch_demand))
            ports = minimal_ports(topology)[0] if routes.form == DIGITS else routes.ports
            order = dag_order(graph, ports)
            cyclic = np.flatnonzero(order[:, 0] < 0)
            if len(cyclic):
                raise FluidError(f"the next hops toward switch {cyclic[0]} form a cycle or a dead end")
            dags = Dags(ports, order)
        problem = cls(graph, demand, dags, paths)
        distance = problem.distances(np.ones(graph.channels))
        lost = np.flatnonzero(np.isinf(distance))
        if len(lost):
            s, t = demand.source[lost[0]], demand.destination[lost[0]]
            way = "path" if routes is None else "route"
            raise FluidError(f"switch {s} has demand for switch {t} but no {way} to it")
        return problem

    @property
    def restricted(self) -> bool:
        return len(self.dags.ports) > 0

    @property
    def ways(self) -> "Dags | Paths":
        """What restricts the flow."""
        return self.dags if self.paths is None else self.paths

    def distances(self, z: np.ndarray) -> np.ndarray:
        """float64 [commodities]: the shortest way of each under lengths z; inf where there is none."""
        return shortest_ways(self.graph, self.demand, z, self.ways)


def shortest_ways(graph: Graph, demand: Demand, z: np.ndarray, ways: "Dags | Paths") -> np.ndarray:
    """float64 [commodities]: distance under lengths z, within the next hops or over the paths that are allowed."""
    return cheapest(ways, z) if isinstance(ways, Paths) else price(graph, demand, ways, z)[0]


def _by_legs(topology: Topology, demand: np.ndarray) -> np.ndarray:
    """float64 [switches, switches]: what is sent from s to t if everything goes over the switch of a random host."""
    share = topology.host_count / topology.hosts
    return np.outer(demand.sum(axis=1), share) + np.outer(share, demand.sum(axis=0))
