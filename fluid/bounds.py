"""Bounds without optimisation: counted hops, the Moore bound, single-switch cuts, host channels."""

from dataclasses import dataclass

import numpy as np

from fluid.certificate import Certificate, verify_upper
from fluid.hosts import host_bound, host_certificate
from fluid.problem import Demand
from models.topology.graph import Topology
from models.traffic.traffic import Traffic


@dataclass(frozen=True, eq=False)
class Bound:
    """One upper bound on theta, with the lengths that prove it, if lengths do."""

    name: str
    upper: float
    note: str
    certificate: Certificate | None


def volumetric(topology: Topology, traffic: Traffic) -> Bound:
    """Total capacity over total demand * hops: every flit uses a channel per hop."""
    z = Certificate.on_network(topology, np.ones(topology.channels))
    note = "total capacity / demand x hop distance"
    return Bound("volumetric", verify_upper(topology, traffic, z), note, z)


def moore(topology: Topology, traffic: Traffic) -> Bound:
    """As volumetric, with distances that no graph of this degree can beat (the demand-weighted Moore bound).

    Per source the largest demands are put nearest. Source: Cerf, Cowan, Mullin and Stanton, Networks 4
    (1974), doi:10.1002/net.3230040405 (average distance); here for the demand at hand.
    """
    demand = np.array(traffic.switch_demand)
    np.fill_diagonal(demand, 0)
    distance = moore_distances(topology.switches, int(topology.out_degree.max(initial=0)), topology.directed)
    least = float((-np.sort(-demand, axis=1)[:, : topology.switches - 1] @ distance).sum())
    upper = topology.capacity.sum() / least if least > 0 else np.inf
    return Bound("moore", float(upper), "total capacity / demand x Moore distance", None)


def moore_distances(switches: int, degree: int, directed: bool) -> np.ndarray:
    """int64 [switches - 1]: the least distances to all other switches from one, in increasing order."""
    growth = degree if directed else degree - 1
    distance = np.empty(switches - 1, np.int64)
    placed, layer, hops = 0, max(degree, 1), 1
    while placed < len(distance):
        distance[placed : placed + layer] = hops
        placed, layer, hops = placed + layer, max(layer * growth, 1), hops + 1
    return distance


def cuts(topology: Topology, traffic: Traffic) -> Bound:
    """The tightest cut around a single switch: its channels out (in) over its demand out (in)."""
    demand = np.array(traffic.switch_demand)
    np.fill_diagonal(demand, 0)
    n = topology.switches
    ways = []
    for ends, axis, word in ((topology.src, 1, "out of"), (topology.dst, 0, "into")):
        capacity = np.bincount(ends, topology.capacity, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = np.where(demand.sum(axis) > 0, capacity / demand.sum(axis), np.inf)
        v = int(theta.argmin())
        ways.append((float(theta[v]), f"channels {word} switch {v}", (ends == v).astype(float)))
    upper, note, z = min(ways, key=lambda way: way[0])
    return Bound("cuts", upper, note, Certificate.on_network(topology, z))


def hosts(topology: Topology, traffic: Traffic) -> Bound:
    """The busiest host channel."""
    upper = host_bound(topology, traffic)
    if np.isinf(upper):
        return Bound("hosts", upper, "host channels are infinite", None)
    return Bound("hosts", upper, "busiest host channel", host_certificate(topology, traffic))


def all_bounds(topology: Topology, traffic: Traffic) -> list[Bound]:
    """Every bound of this module; those on the network are inf if no demand crosses it."""
    if Demand.of(traffic.switch_demand).size == 0:
        return [hosts(topology, traffic)]
    return [bound(topology, traffic) for bound in (volumetric, moore, cuts, hosts)]
