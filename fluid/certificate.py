# SPDX-License-Identifier: Apache-2.0
"""Certificates that anyone can recompute: prices prove upper bounds, flows prove lower bounds; no solver is trusted.

Every ceiling that this package reports is verified here.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from flitlab.fluid.graph import UNRESTRICTED, Dags, Demand, Graph
from flitlab.fluid.mcf.dense import send
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import Orbit, Problem, demand_of, network_cost, shortest_distances
from flitlab.models.arrays import Bools, Floats, Integers, Ints, Ints32, sums
from flitlab.models.jit import njit
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

TARGET_BATCH = 1024
"""Destinations whose distances are computed together: a list of all pairs would take several tables."""

EPSILON = float(np.finfo(float).eps)
NEGLIGIBLE, NEGLIGIBLE_WITH_GAP = 1e-12, 1e-9
"""Relative loss of a lower bound up to which a remainder is put on every channel, not routed; and where a gap is
expected."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Prices z >= 0 of all channels (dual variables of the capacities); any such prices prove an upper bound.

    network: float64 [channels]. injection, ejection: float64 [hosts], 0 where host channels are infinite.
    """

    network: Floats
    injection: Floats
    ejection: Floats

    @classmethod
    def on_network(cls, topology: Topology, network: np.ndarray) -> "Certificate":
        """Prices of network channels only.

        Parameters
        ----------
        topology : Topology
            The network.
        network : float64 [channels]
            The prices, >= 0.
        """
        return cls(np.asarray(network, float), np.zeros(topology.hosts), np.zeros(topology.hosts))

    def capacity_worth(self, topology: Topology) -> float:
        """What all capacity is worth at these prices: sum of capacity * z over all channels, per tick."""
        hosts = float(self.injection.sum() + self.ejection.sum())
        # an infinite capacity at price 0 is worth 0, not nan
        return float(topology.capacity @ self.network) + (topology.host_capacity * hosts if hosts else 0.0)


def _check_prices(topology: Topology, z: Certificate) -> None:
    sizes = (topology.channels, topology.hosts, topology.hosts)
    for part, size in zip((z.network, z.injection, z.ejection), sizes, strict=True):
        if part.shape != (size,):
            raise ValueError(f"prices of shape {part.shape} for {size} channels")
        if not (np.isfinite(part).all() and (part >= 0).all()):
            raise ValueError("prices must be finite and not negative")


def distances(graph: Graph, z: Floats, dags: Dags = UNRESTRICTED) -> Floats:
    """Distances between all nodes under channel prices.

    Parameters
    ----------
    graph : Graph
        The graph.
    z : float64 [channels]
        Prices >= 0.
    dags : Dags
        Next hops that are allowed; by default every channel.

    Returns
    -------
    float64 [nodes, nodes]
        Distance from s to t; inf where there is no path.
    """
    nodes = graph.nodes
    by_target = np.empty((nodes, nodes))
    for first in range(0, nodes, TARGET_BATCH):
        targets = np.arange(first, min(first + TARGET_BATCH, nodes))
        start, source = np.arange(len(targets) + 1) * nodes, np.tile(np.arange(nodes), len(targets))
        distance, _ = price(graph, Demand(targets, start, source, np.ones(len(source))), dags, np.asarray(z, float))
        by_target[targets] = distance.reshape(-1, nodes)
    return by_target.T


def switch_distances(topology: Topology, z: Floats) -> Floats:
    """Distances [s, t] between all switches under channel prices.

    Parameters
    ----------
    topology : Topology
        The network.
    z : float64 [channels]
        Prices >= 0 of the network channels.

    Returns
    -------
    float64 [switches, switches]
        Distances; inf where there is no path.
    """
    return distances(Graph.of(topology), z)


def verify_upper(topology: Topology, traffic: Traffic, z: Certificate, allowed: Dags | Paths = UNRESTRICTED) -> float:
    """Upper bound on theta by LP duality: capacity * z over demand * distance.

    A flow of theta * T costs at least theta * demand * distance, and at most what the capacity is worth.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    z : Certificate
        Channel prices.
    allowed : Dags or Paths
        Next hops, or paths, to which the flow is restricted; by default none.

    Returns
    -------
    float
        Theta; inf if the demand costs nothing.

    Raises
    ------
    ValueError
        Prices are negative, not finite, or not as many as channels.
    """
    _check_prices(topology, z)
    between = demand_cost(topology, traffic, z.network, allowed)
    needed = between + traffic.rate @ z.injection + traffic.column_sums @ z.ejection
    return float(z.capacity_worth(topology) / needed) if needed > 0 else np.inf


def demand_cost(topology: Topology, traffic: Traffic, z: Floats, allowed: Dags | Paths = UNRESTRICTED) -> float:
    """Sum of demand * distance under channel prices.

    If symmetries preserve the demand and all prices, the distances of one orbit are enough.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    z : float64 [channels]
        Prices of the network channels.
    allowed : Dags or Paths
        Restriction of the flow.
    """
    graph = Graph.of(topology)
    orbit = Orbit.of(topology, traffic) if isinstance(allowed, Dags) and len(allowed.ports) == 0 else None
    if orbit is not None and orbit.invariant(z):
        return orbit_cost(graph, orbit, z)
    return network_cost(graph, demand_of(traffic), z, allowed)


def orbit_cost(graph: Graph, orbit: Orbit, z: Floats) -> float:
    """Cost of the demand of a whole orbit under prices that its symmetries preserve.

    Parameters
    ----------
    graph : Graph
        The graph.
    orbit : Orbit
        Demand of the representatives.
    z : float64 [channels]
        Prices.
    """
    return network_cost(graph, orbit.demand, z)


def verify_total(topology: Topology, traffic: Traffic, load: float, z: Certificate) -> float:
    """Upper bound on the total accepted at a load: capacity * z + sum of offer * max(0, 1 - distance).

    Weak duality: a pair either pays its distance to the channels or gets 1 for each flit that is not delivered.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    load : float
        Factor of the demand.
    z : Certificate
        Channel prices.

    Returns
    -------
    float
        Flits/tick of all hosts.
    """
    _check_prices(topology, z)
    demand = Demand.of_traffic(traffic)
    distance = shortest_distances(Graph.of(topology), demand, z.network, UNRESTRICTED)
    if hosts_overloaded(topology, traffic, load) or z.injection.any() or z.ejection.any():
        source, target, amount = offered_pairs(topology, traffic, load)
        s, t = topology.host_switch[source], topology.host_switch[target]
        host_price = z.injection[source] + z.ejection[target]
        crossing = s != t
        host_price[crossing] += distance[demand.find(topology.switches, s[crossing], t[crossing])]
        return z.capacity_worth(topology) + float(amount @ np.maximum(0, 1 - host_price))
    local = max(float(traffic.rate.sum()) - float(demand.amount.sum()), 0.0)
    return z.capacity_worth(topology) + load * (local + float(demand.amount @ np.maximum(0, 1 - distance)))


def hosts_overloaded(topology: Topology, traffic: Traffic, load: float) -> bool:
    """Whether some host sends or receives more than the capacity of its channel at a load.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    load : float
        Factor of the demand.
    """
    overloaded: bool = load * max(traffic.rate.max(), traffic.column_sums.max()) > topology.host_capacity * (1 + 1e-12)
    return overloaded


def offered_pairs(topology: Topology, traffic: Traffic, load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of hosts and their offers at a load, each at most the capacity of a host channel.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    load : float
        Factor of the demand.

    Returns
    -------
    source, target : int64 [pairs]
        Hosts.
    amount : float64 [pairs]
        Flits/tick.
    """
    source, target, amount = traffic.pairs()
    return source, target, np.minimum(load * amount, topology.host_capacity)


def verify_flow(problem: Problem, flow: Floats, amount: Floats | None = None) -> Floats:
    """Rate of each commodity in a flow by destination, scaled until the fullest channel is full.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    flow : float64 [targets, channels]
        Flow >= 0 toward each destination, in any scale.
    amount : float64 [commodities], optional
        What the flow delivers; by default the demand.

    Returns
    -------
    float64 [commodities]
        Flits/tick.

    Raises
    ------
    ValueError
        As :func:`delivering_load`.
    """
    amount = problem.demand.amount if amount is None else amount
    load = delivering_load(problem, flow, amount)
    rate: Floats = amount / max((load / problem.graph.capacity).max(), np.finfo(float).tiny)
    return rate


def delivering_load(problem: Problem, flow: Floats, amount: Floats) -> Floats:
    """A channel load at which a flow certainly delivers ``amount``.

    What violates conservation at a node, within the rounding of sums of doubles, is routed over the shortest allowed
    path to its destination, with lengths 1 / capacity.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    flow : float64 [targets, channels]
        Flow >= 0 toward each destination.
    amount : float64 [commodities]
        What the flow is to deliver.

    Returns
    -------
    float64 [channels]
        Load.

    Raises
    ------
    ValueError
        Flow is negative or on channels that the routes do not allow, or no allowed path leads on from a node.
    """
    graph = problem.graph
    if not (flow >= 0).all():
        raise ValueError("flow must not be negative")
    if problem.restricted:
        _check_allowed(problem, *np.nonzero(flow))
    shortfall, hidden = _shortfall(problem, flow, amount), rounding_error(graph, flow)
    hidden[np.arange(len(hidden)), problem.demand.target] = 0
    load: np.ndarray = flow.sum(axis=0)
    use, remainder = load / graph.capacity, np.maximum(shortfall, 0).sum()
    # a negligible remainder is put on every channel
    if (use + (remainder + hidden.sum()) / graph.capacity).max() <= (1 + NEGLIGIBLE) * use.max():
        whole: Floats = load + remainder
        return whole
    return load + _route_remainder(problem, shortfall + hidden, np.zeros((0, graph.channels)))


class SparseFlow(NamedTuple):
    """A flow by destination as lists: channels toward the i-th destination are start[i]:start[i + 1].

    start: int64 [targets + 1]. channel: int32, amount: float64 [entries].
    """

    start: Ints
    channel: Ints32
    amount: Floats

    def dense(self, channels: int) -> Floats:
        """float64 [targets, channels]: the flow as a matrix."""
        count = np.diff(self.start)
        flow = np.zeros((len(count), channels))
        flow[np.repeat(np.arange(len(count)), count), self.channel] = self.amount
        return flow


def delivering_load_sparse(problem: Problem, demand: Demand, flow: SparseFlow) -> Floats:
    """A channel load at which a sparse flow certainly delivers ``demand``, like :func:`delivering_load`.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    demand : Demand
        Part of the demand of the problem.
    flow : SparseFlow
        Flow toward the destinations of ``demand``.

    Returns
    -------
    float64 [channels]
        Load.
    """
    graph = problem.graph
    if not (flow.amount >= 0).all():
        raise ValueError("flow must not be negative")
    if problem.restricted:
        target = np.repeat(demand.target, np.diff(flow.start))
        if not _allowed(problem, target, flow.channel).all():
            raise ValueError("flow on a channel that the routes do not allow")
    load, remainder = _remainder(graph, demand, flow)
    use = load / graph.capacity
    if (use + remainder.sum() / graph.capacity).max() <= (1 + NEGLIGIBLE_WITH_GAP) * use.max():
        whole: Floats = load + remainder.sum()
        return whole
    part = Problem(graph, demand, problem.dags)
    return load + _route_remainder(part, remainder, np.zeros((0, graph.channels)))


@njit
def _remainder(graph: Graph, demand: Demand, flow: SparseFlow) -> tuple[Floats, Floats]:
    """Load of a flow, and the amount that it may leave at each node, rounding included.

    A sum of k doubles has an error of less than k times their sum in ulps. Returns float64 [channels] and float64
    [targets, nodes].
    """
    nodes, targets = len(graph.in_start) - 1, len(demand.target)
    load, remainder = np.zeros(len(graph.src)), np.zeros((targets, nodes))
    outflow, inflow, terms = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for i in range(targets):
        outflow[:] = 0.0
        inflow[:] = 0.0
        terms[:] = 2.0
        j, end = flow.start[i], flow.start[i + 1]
        while j < end:
            u, begin, sent = graph.src[flow.channel[j]], j, 0.0
            while j < end and graph.src[flow.channel[j]] == u:  # channels out of a node are usually adjacent
                a, amount = flow.channel[j], flow.amount[j]
                load[a] += amount
                inflow[graph.dst[a]] += amount
                terms[graph.dst[a]] += 1.0
                sent += amount
                j += 1
            outflow[u] += sent
            terms[u] += j - begin
        for k in range(demand.start[i], demand.start[i + 1]):
            remainder[i, demand.source[k]] = demand.amount[k]
        for v in range(nodes):
            rounding = EPSILON * terms[v] * (inflow[v] + outflow[v] + remainder[i, v])
            remainder[i, v] = max(remainder[i, v] + inflow[v] - outflow[v] + rounding, 0.0)
        remainder[i, demand.target[i]] = 0.0
    return load, remainder


def completed_flow(problem: Problem, flow: Floats, amount: Floats) -> np.ndarray:
    """A flow without the shortfall that a solver's tolerances leave: the rest is routed over shortest paths.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    flow : float64 [targets, channels]
        Flow of a solver.
    amount : float64 [commodities]
        What the flow is to deliver.

    Returns
    -------
    float64 [targets, channels]
        Flow that delivers ``amount``.
    """
    whole = flow.copy()
    _route_remainder(problem, _shortfall(problem, flow, amount), whole)
    return whole


def _shortfall(problem: Problem, flow: Floats, amount: Floats) -> Floats:
    """float64 [targets, nodes]: inflow and supply of a node that do not leave it."""
    demand = problem.demand
    shortfall = -net_outflow(problem.graph, flow)
    shortfall[demand.row, demand.source] += amount
    shortfall[np.arange(len(demand.target)), demand.target] = 0
    return shortfall


def _route_remainder(problem: Problem, remainder: Floats, flow: Floats) -> Floats:
    """Route the positive remainders at nodes to their destinations; returns their load, float64 [channels].

    remainder: float64 [targets, nodes]. flow: float64 [targets or 0, channels], to which they are added.
    """
    graph, demand = problem.graph, problem.demand
    row, node = np.nonzero(remainder > 0)
    start = np.searchsorted(row, np.arange(len(demand.target) + 1))
    missing = Demand(demand.target, start, node, remainder[row, node])
    load = np.zeros(graph.channels)
    volume = send(graph, missing, problem.dags, 1 / graph.capacity, 0.0, load, flow)
    if not np.isfinite(volume):
        raise ValueError("flow ends at a node from which no allowed path leads on")
    return load


def rounding_error(graph: Graph, flow: Floats) -> Floats:
    """Upper bound on the rounding error of :func:`net_outflow`.

    Parameters
    ----------
    graph : Graph
        The graph.
    flow : float64 [targets, channels]
        Flow by destination.

    Returns
    -------
    float64 [targets, nodes]
        Error.
    """
    out, into = _incidence(graph)
    terms = np.bincount(graph.src, minlength=graph.nodes) + np.bincount(graph.dst, minlength=graph.nodes) + 2
    error: np.ndarray = np.finfo(float).eps * terms * (flow @ (out + into))
    return error


def net_outflow(graph: Graph, flow: Floats) -> Floats:
    """Outflow minus inflow of every node.

    Parameters
    ----------
    graph : Graph
        The graph.
    flow : float64 [targets, channels]
        Flow by destination.

    Returns
    -------
    float64 [targets, nodes]
        Net outflow.
    """
    out, into = _incidence(graph)
    net: Floats = flow @ (out - into)
    return net


def _incidence(graph: Graph) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Incidence matrices [channels, nodes]: 1 at the node where a channel begins, and where it ends."""
    channel, one = np.arange(graph.channels), np.ones(graph.channels)
    out, into = (
        sparse.csr_array((one, (channel, end)), (graph.channels, graph.nodes)) for end in (graph.src, graph.dst)
    )
    return out, into


def verify_paths(problem: Problem, paths: Paths) -> Floats:
    """float64 [commodities]: rates of path flows, scaled until the fullest channel is full.

    Paths without channels carry nothing. Raises ``ValueError`` for negative flow, and for paths that do not lead from
    source to destination over allowed channels.
    """
    _check_paths(problem, paths)
    load = paths.load(problem.graph.channels)
    rate: Floats = _served(problem, paths) / max((load / problem.graph.capacity).max(), np.finfo(float).tiny)
    return rate


def verify_orbit(problem: Problem, paths: Paths) -> tuple[float, np.ndarray]:
    """Theta, and the channel load at theta (float64 [channels]), of path flows that symmetries copy to all
    destinations.

    All channels of a class carry equal shares of the load of the class. ``paths`` are those of the commodities of
    ``problem.orbit``. Raises ``ValueError`` as :func:`verify_paths`.
    """
    assert problem.orbit is not None
    orbit = problem.orbit
    one = Problem(problem.graph, orbit.demand)
    _check_paths(one, paths)
    use = (np.bincount(orbit.row, paths.load(problem.graph.channels)) / orbit.capacity)[orbit.row]
    theta = (_served(one, paths) / orbit.demand.amount).min() / use.max()
    return float(theta), use / use.max() * problem.graph.capacity


def _served(problem: Problem, paths: Paths) -> Floats:
    """float64 [commodities]: the flow over paths that have channels."""
    real = paths.hops > 0
    return sums(paths.commodity[real], paths.flow[real], problem.demand.size)


def _check_paths(problem: Problem, paths: Paths) -> None:
    """Raise ``ValueError`` unless every path that has channels leads from source to destination over allowed
    channels.
    """
    graph, demand = problem.graph, problem.demand
    real = paths.hops > 0
    begin, end = paths.start[:-1][real], paths.start[1:][real]
    commodity, channel = paths.commodity[real], paths.channel
    if not (paths.flow[real] >= 0).all():
        raise ValueError("flow must not be negative")
    joined = graph.dst[channel[:-1]] == graph.src[channel[1:]]
    joined[end[:-1] - 1] = True  # two paths need not meet
    if not (joined.all() and (graph.src[channel[begin]] == demand.source[commodity]).all()
            and (graph.dst[channel[end - 1]] == demand.destination[commodity]).all()):  # fmt: skip
        raise ValueError("a path does not lead from its source to its destination")
    if problem.paths is not None and not all(
        np.array_equal(getattr(paths, name), getattr(problem.paths, name)) for name in ("first", "start", "channel")
    ):
        raise ValueError("flow on paths that the routes do not allow")
    if problem.via_intermediate:
        _check_via_paths(problem, paths)
    elif problem.restricted:
        _check_allowed(problem, np.repeat(demand.row[commodity], end - begin), channel)


def _check_allowed(problem: Problem, row: np.ndarray, channel: Integers) -> None:
    if not _allowed(problem, problem.demand.target[row], channel).all():
        raise ValueError("flow on a channel that the routes do not allow")


def _allowed(problem: Problem, target: Ints, channel: Integers) -> Bools:
    """bool [entries]: whether each channel is a next hop toward its target."""
    graph = problem.graph
    port = (channel - graph.out_start[graph.src[channel]]).astype(np.uint64)
    allowed: Bools = (problem.dags.ports[target, graph.src[channel]] >> port & np.uint64(1)).astype(bool)
    return allowed


def _check_via_paths(problem: Problem, paths: Paths) -> None:
    """Raise ``ValueError`` unless every path leads by next hops to some intermediate switch, and from there to its
    target.
    """
    graph, real = problem.graph, np.flatnonzero(paths.hops)
    begin, hops = paths.start[real], paths.hops[real]
    path = np.repeat(np.arange(len(real)), hops)
    position = np.arange(len(path)) - (np.cumsum(hops) - hops)[path]
    target = problem.demand.destination[paths.commodity[real]]
    allowed = np.zeros(len(real), bool)
    for hop in range(int(hops.max(initial=0))):
        # candidate intermediate switch: the tail of the channel ``hop``, or of the last one
        middle = graph.src[paths.channel[begin + np.minimum(hop, hops - 1)]]
        toward = np.where(position < hop, middle[path], target[path])
        whole = np.logical_and.reduceat(_allowed(problem, toward, paths.channel), begin)
        allowed |= whole & np.isin(middle, problem.dags.via)
    if not allowed.all():
        raise ValueError("flow on a path that the routes do not allow")
