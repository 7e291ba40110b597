# SPDX-License-Identifier: Apache-2.0
"""Upper bounds that anyone can recompute, and bottlenecks: prices of channels prove them, and no solver is trusted.

Every upper bound that this package reports is verified here, and every lower bound in
:mod:`flitlab.fluid.delivered`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flitlab.fluid.graph import UNRESTRICTED, Dags, Demand, Graph
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import Orbit, demand_of, network_cost, shortest_distances
from flitlab.models.arrays import Bools, Floats
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

TARGET_BATCH = 1024
"""Destinations whose distances are computed together: a list of all pairs would take several tables."""

FULL = 0.95
"""A channel is a bottleneck if every flow that reaches the lower bound uses at least this share of its capacity."""
ROUNDING = 1e-9
"""Least relative gap that is assumed: bounds are sums of doubles."""


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
        s, t = topology.host_switch[source], topology.ejection_switch[target]
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


class Bottlenecks(NamedTuple):
    """Which channels limit theta. network: bool [channels]. hosts: whether host channels, taken together, do."""

    network: Bools
    hosts: bool

    @property
    def any(self) -> bool:
        """Whether some bottleneck is known."""
        return self.hosts or bool(self.network.any())


def bottlenecks(topology: Topology, certificate: Certificate, lower: float, upper: float) -> Bottlenecks:
    """The channels that every near-optimal flow fills, as channel prices prove.

    Let prices z make the distances of a demand T add up to 1. A flow of theta T has theta <= sum of z_a f_a, and sum of
    z_a c_a = upper. So every flow with theta >= lower has sum of z_a (c_a - f_a) <= upper - lower: complementary
    slackness for optima that are known up to a gap. The wider the gap, the less a price c_a z_a proves.

    Parameters
    ----------
    topology : Topology
        The network.
    certificate : Certificate
        Prices that prove ``upper``.
    lower : float
        Theta that some flow reaches, > 0.
    upper : float
        Upper bound on theta.
    """
    at_hosts = float(certificate.injection.sum() + certificate.ejection.sum())
    hosts = topology.host_capacity * at_hosts if at_hosts else 0.0
    price = topology.capacity * certificate.network
    enough = max(1 - lower / upper, ROUNDING) / (1 - FULL) * (price.sum() + hosts)
    return Bottlenecks((price > 0) & (price >= enough), hosts > 0 and hosts >= enough)
