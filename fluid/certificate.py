"""Bounds that anyone can recompute: upper ones from lengths, lower ones from flows; no solver is trusted.

Every ceiling that this package reports has passed through here at the end.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fluid.mcf.paths import Paths
from fluid.problem import UNRESTRICTED, Dags, Demand, Graph, Problem, shortest_ways
from fluid.trees import price
from models.topology.graph import Topology
from models.traffic.traffic import Traffic


@dataclass(frozen=True, eq=False)
class Certificate:
    """Lengths z >= 0 of all channels; any such lengths bound what can be carried.

    network: float64 [channels]. injection, ejection: float64 [hosts], 0 where host channels are infinite.
    """

    network: np.ndarray
    injection: np.ndarray
    ejection: np.ndarray

    @classmethod
    def on_network(cls, topology: Topology, network: np.ndarray) -> "Certificate":
        """Lengths on the network channels only."""
        return cls(np.asarray(network, float), np.zeros(topology.hosts), np.zeros(topology.hosts))

    def capacity_length(self, topology: Topology) -> float:
        """Sum of capacity * z over all channels: the most length that flits can travel in a tick."""
        hosts = float(self.injection.sum() + self.ejection.sum())
        # an infinite host capacity times no length is nothing
        return float(topology.capacity @ self.network) + (topology.host_capacity * hosts if hosts else 0.0)


def _check_lengths(topology: Topology, z: Certificate) -> None:
    sizes = (topology.channels, topology.hosts, topology.hosts)
    for part, size in zip((z.network, z.injection, z.ejection), sizes, strict=True):
        if part.shape != (size,):
            raise ValueError(f"{part.shape} lengths for {size} channels")
        if not (np.isfinite(part).all() and (part >= 0).all()):
            raise ValueError("lengths must be finite and not negative")


def distances(graph: Graph, z: np.ndarray, dags: Dags = UNRESTRICTED) -> np.ndarray:
    """float64 [nodes, nodes]: distance from s to t under channel lengths z, inf where there is no path."""
    nodes = graph.nodes
    every = np.arange(nodes)
    start, source = np.arange(nodes + 1) * nodes, np.tile(every, nodes)
    pairs = Demand(every, start, source, np.ones(len(source)))
    distance, _ = price(graph, pairs, dags, np.asarray(z, float))
    return distance.reshape(nodes, nodes).T


def switch_distances(topology: Topology, z: np.ndarray) -> np.ndarray:
    """float64 [switches, switches]: distance [s, t] under lengths z >= 0 of the network channels."""
    return distances(Graph.of(topology), z)


def verify_upper(topology: Topology, traffic: Traffic, z: Certificate, ways: Dags | Paths = UNRESTRICTED) -> float:
    """Upper bound on theta: capacity * z over demand * distance; with ``ways`` for flow within or over them only.

    Whatever carries theta * T uses at least theta * demand * distance of the length there is.
    Raises ``ValueError`` for lengths that are negative, not finite or of the wrong number.
    """
    _check_lengths(topology, z)
    between = network_length(Graph.of(topology), Demand.of(traffic.switch_demand), z.network, ways)
    needed = between + traffic.rate @ z.injection + traffic.column_sums @ z.ejection
    return float(z.capacity_length(topology) / needed) if needed > 0 else np.inf


def network_length(graph: Graph, demand: Demand, z: np.ndarray, ways: Dags | Paths = UNRESTRICTED) -> float:
    """Sum of demand * distance over the commodities."""
    return float(demand.amount @ shortest_ways(graph, demand, z, ways))


def verify_total(topology: Topology, traffic: Traffic, load: float, z: Certificate) -> float:
    """Upper bound on the flits per tick accepted at a load: capacity * z + offers * (1 - distance)+.

    Weak duality: a pair pays its distance to the channels and keeps the rest of 1, if any, for itself.
    """
    _check_lengths(topology, z)
    distance = switch_distances(topology, z.network)
    if hosts_overloaded(topology, traffic, load) or z.injection.any() or z.ejection.any():
        source, target, amount = offered_pairs(topology, traffic, load)
        place = topology.host_switch
        far = z.injection[source] + distance[place[source], place[target]] + z.ejection[target]
        kept = float(amount @ np.maximum(0, 1 - far))
    else:
        kept = load * float((traffic.switch_demand * np.maximum(0, 1 - distance)).sum())
    return z.capacity_length(topology) + kept


def hosts_overloaded(topology: Topology, traffic: Traffic, load: float) -> bool:
    """Whether some host offers, or is offered, more than its channel takes."""
    return load * max(traffic.rate.max(), traffic.column_sums.max()) > topology.host_capacity * (1 + 1e-12)


def offered_pairs(topology: Topology, traffic: Traffic, load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As ``traffic.pairs()`` at a load, no pair above the capacity of the host channels it must use."""
    source, target, amount = traffic.pairs()
    return source, target, np.minimum(load * amount, topology.host_capacity)


def verify_flow(problem: Problem, flow: np.ndarray, amount: np.ndarray | None = None) -> np.ndarray:
    """What each commodity gets of a flow by destination, once scaled until the fullest channel is full.

    flow: float64 [targets, channels] >= 0. amount: float64 [commodities], what the flow is meant to deliver
    (default: the demand). Where rounding left a node short of conservation, the missing is taken to cross
    every channel, which no repair could exceed. Returns float64 [commodities].
    Raises ``ValueError`` for negative flow or flow on channels that the routes do not allow.
    """
    graph, demand = problem.graph, problem.demand
    amount = demand.amount if amount is None else amount
    if not (flow >= 0).all():
        raise ValueError("flow must not be negative")
    short = -net_outflow(graph, flow)
    short[demand.row, demand.source] += amount
    short[np.arange(len(demand.target)), demand.target] = 0
    if problem.restricted:
        _check_allowed(problem, *np.nonzero(flow))
    load = flow.sum(axis=0) + np.maximum(short, 0).sum()
    return amount / max((load / graph.capacity).max(), np.finfo(float).tiny)


def net_outflow(graph: Graph, flow: np.ndarray) -> np.ndarray:
    """float64 [targets, nodes]: flow [targets, channels] out of every node less the flow into it."""
    channel, one = np.arange(graph.channels), np.ones(graph.channels)
    out, into = (
        sparse.csr_array((one, (channel, end)), (graph.channels, graph.nodes)) for end in (graph.src, graph.dst)
    )
    return flow @ (out - into)


def verify_paths(problem: Problem, paths: Paths) -> np.ndarray:
    """What each commodity gets of path flows, once scaled until the fullest channel is full; [commodities].

    Paths without channels carry nothing. Raises ``ValueError`` for negative flow and for paths that do not
    lead from source to destination over allowed channels.
    """
    graph, demand = problem.graph, problem.demand
    real = paths.lengths > 0
    begin, end = paths.start[:-1][real], paths.start[1:][real]
    commodity, channel, flow = paths.commodity[real], paths.channel, paths.flow[real]
    if not (flow >= 0).all():
        raise ValueError("flow must not be negative")
    joined = graph.dst[channel[:-1]] == graph.src[channel[1:]]
    joined[end[:-1] - 1] = True  # two paths need not meet
    if not (joined.all() and (graph.src[channel[begin]] == demand.source[commodity]).all()
            and (graph.dst[channel[end - 1]] == demand.destination[commodity]).all()):  # fmt: skip
        raise ValueError("a path does not lead from its source to its destination")
    if problem.paths is not None and not all(map(np.array_equal, paths[:3], problem.paths[:3])):
        raise ValueError("flow on paths that the routes do not allow")
    if problem.restricted:
        _check_allowed(problem, np.repeat(demand.row[commodity], end - begin), channel)
    load = np.bincount(channel, np.repeat(flow, end - begin), graph.channels)
    served = np.bincount(commodity, flow, demand.size)
    return served / max((load / graph.capacity).max(), np.finfo(float).tiny)


def _check_allowed(problem: Problem, row: np.ndarray, channel: np.ndarray) -> None:
    graph = problem.graph
    port = (channel - graph.out_start[graph.src[channel]]).astype(np.uint64)
    ports = problem.dags.ports[problem.demand.target[row], graph.src[channel]]
    if not (ports >> port & np.uint64(1)).all():
        raise ValueError("flow on a channel that the routes do not allow")
