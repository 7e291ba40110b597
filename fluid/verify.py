"""Saved certificates verified with nothing but numpy and scipy's shortest paths.

Nothing here is shared with the solvers: distances, conservation and loads are computed afresh.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from fluid.saved import BadCertificate, Saved, between
from models.routing.minimal import minimal_ports
from models.routing.routes import DIGITS, VIA, Routes
from models.scenario import Scenario
from models.topology.graph import Topology

TOLERANCE = 1e-9
"""By what part of it a claim may miss what is found: rounding, in another order of summation."""


@dataclass(frozen=True)
class Verified:
    """Bounds that a certificate proves; nan where it has nothing to prove one with."""

    lower: float
    upper: float

    def confirms(self, saved: Saved) -> bool:
        """Whether the proven interval lies within the claimed one; an end without proof, or claim, is no objection."""
        below = self.lower < saved.lower * (1 - TOLERANCE)
        above = self.upper > saved.upper * (1 + TOLERANCE)
        return not (below or above)


def verify(scenario: Scenario, saved: Saved) -> Verified:
    """What a certificate proves of a scenario; the routes count for ``mcf_paths`` only.

    Raises :class:`BadCertificate` if it belongs to another scenario, or its lengths or flow are none.
    """
    for name, own in (("topology", scenario.topology), ("traffic", scenario.traffic)):
        if getattr(saved, name) != own.content_hash:
            raise BadCertificate(f"{saved.ceiling}: the certificate is of another {name}")
    routes = scenario.routes if saved.ceiling == "mcf_paths" else None
    lower = upper = np.nan
    if len(saved.network):
        upper = _upper(scenario, saved, routes)
    if len(saved.flow) and saved.ceiling == "total":
        lower = _accepted(scenario, saved)
    elif len(saved.flow):
        lower = min(_lower(scenario, saved, routes), _at_hosts(scenario))
    elif saved.ceiling in ("mcf", "mcf_paths") and not _demand(scenario).any():
        lower = _at_hosts(scenario)
    return Verified(lower, upper)


def _demand(scenario: Scenario) -> np.ndarray:
    """float64 [switches, switches]: what needs the network."""
    return scenario.traffic.switch_demand * between(scenario.topology)


def _at_hosts(scenario: Scenario) -> float:
    """Theta at which the busiest host channel is full."""
    source, target, amount = scenario.traffic.pairs()
    hosts = scenario.topology.hosts
    busiest = max(np.bincount(source, amount, hosts).max(), np.bincount(target, amount, hosts).max())
    return scenario.topology.host_capacity / float(busiest)


# Upper bounds: lengths


def _upper(scenario: Scenario, saved: Saved, routes: Routes | None) -> float:
    topology = scenario.topology
    sizes = (topology.channels, topology.hosts, topology.hosts)
    for part, size in zip((saved.network, saved.injection, saved.ejection), sizes, strict=True):
        if part.shape != (size,) or not (np.isfinite(part).all() and (part >= 0).all()):
            raise BadCertificate(f"{saved.ceiling}: lengths must be {size} finite numbers, none negative")
    at_hosts = float(saved.injection.sum() + saved.ejection.sum())
    room = float(topology.capacity @ saved.network) + (topology.host_capacity * at_hosts if at_hosts else 0.0)
    distance = _distances(topology, saved.network, routes)
    if saved.ceiling == "total":
        return (room + _kept(scenario, saved, distance)) / topology.hosts
    source, target, amount = scenario.traffic.pairs()
    place = topology.host_switch
    far = saved.injection[source] + distance[place[source], place[target]] + saved.ejection[target]
    needed = float(amount @ far)
    return room / needed if needed > 0 else np.inf


def _kept(scenario: Scenario, saved: Saved, distance: np.ndarray) -> float:
    """What pairs keep of their offers, no offer above what a host channel takes: offer * (1 - distance)+."""
    source, target, amount = scenario.traffic.pairs()
    place = scenario.topology.host_switch
    offer = np.minimum(saved.load * amount, scenario.topology.host_capacity)
    far = saved.injection[source] + distance[place[source], place[target]] + saved.ejection[target]
    return float(offer @ np.maximum(0, 1 - far))


def _distances(topology: Topology, z: np.ndarray, routes: Routes | None) -> np.ndarray:
    """float64 [switches, switches]: distance [s, t] under lengths z, over the paths of the routes if they are given."""
    n = topology.switches
    if routes is None:
        return dijkstra(_matrix(topology, z, np.ones(topology.channels, bool)))
    if routes.paths is not None:
        return _path_distances(topology, z, routes)
    ports = minimal_ports(topology)[0] if routes.form == DIGITS else routes.ports
    port = (np.arange(topology.channels) - topology.out_start[topology.src]).astype(np.uint64)
    found = np.full((n, n), np.inf)
    for t in range(n):
        allowed = (ports[t, topology.src] >> port) & np.uint64(1) == 1
        found[:, t] = dijkstra(_matrix(topology, z, allowed).T, indices=t)
    return _over_others(topology, found) if routes.form == VIA else found


def _over_others(topology: Topology, leg: np.ndarray) -> np.ndarray:
    """float64 [switches, switches]: two of the distances ``leg`` [s, t], over the best of the switches with hosts."""
    found = np.full_like(leg, np.inf)
    for middle in np.flatnonzero(topology.host_count):
        np.minimum(found, leg[:, middle, None] + leg[middle], out=found)
    return found


def _matrix(topology: Topology, z: np.ndarray, allowed: np.ndarray) -> sparse.csr_array:
    """Lengths of the allowed channels, the least of parallel ones; explicit zeros are channels of no length."""
    channel = np.flatnonzero(allowed)
    ends = topology.src[channel] * topology.switches + topology.dst[channel]
    order = np.lexsort((z[channel], ends))
    least = channel[order][np.unique(ends[order], return_index=True)[1]]
    n = topology.switches
    return sparse.csr_array((z[least], (topology.src[least], topology.dst[least])), (n, n))


def _path_distances(topology: Topology, z: np.ndarray, routes: Routes) -> np.ndarray:
    """float64 [switches, switches]: the cheapest path of each pair; inf without any, 0 within a switch."""
    table, n = routes.paths, topology.switches
    assert table is not None
    hops = np.diff(table.path_start)
    paths = np.repeat(np.arange(n * n), np.diff(table.pair_start))
    at, cost = paths // n, np.zeros(len(paths))
    for hop in range(int(hops.max(initial=0))):
        going = np.flatnonzero(hops > hop)
        channel = topology.out_start[at[going]] + table.port[table.path_start[going] + hop]
        cost[going] += z[channel]
        at[going] = topology.dst[channel]
    found = np.full(n * n, np.inf)
    np.minimum.at(found, paths, cost)
    return np.where(between(topology), found.reshape(n, n), 0.0)


# Lower bounds: flows


def _check_flow(topology: Topology, saved: Saved) -> None:
    if not (np.isfinite(saved.flow).all() and (saved.flow >= 0).all()):
        raise BadCertificate(f"{saved.ceiling}: flow must be finite and not negative")
    if not (saved.channel.min() >= 0 and saved.channel.max() < topology.channels):
        raise BadCertificate(f"{saved.ceiling}: flow on channels that the network does not have")


def _accepted(scenario: Scenario, saved: Saved) -> float:
    """What a flow carries at a load, per host, once the fullest channel is full: of no demand more than its offer.

    nan where host channels would have to take part.
    """
    topology, place, most = scenario.topology, scenario.topology.host_switch, scenario.topology.host_capacity
    _check_flow(topology, saved)
    source, target, amount = scenario.traffic.pairs()
    offer = np.minimum(saved.load * amount, most)
    busiest = max(np.bincount(end, offer, topology.hosts).max() for end in (source, target))
    if busiest > most * (1 + 1e-12):
        return np.nan
    offered = np.zeros((topology.switches, topology.switches))
    np.add.at(offered, (place[source], place[target]), offer)
    lost = 0.0
    if len(saved.first):
        served = _by_paths(scenario, saved)
        flow = np.repeat(saved.flow, np.diff(saved.start))
    else:
        served, flow = np.zeros_like(offered), saved.flow
        leaving = _leaving(topology, saved)
        served[:, saved.node] = np.maximum(leaving, 0).T
        lost = float(np.maximum(-leaving, 0).sum())
    use = np.bincount(saved.channel, flow, topology.channels) / topology.capacity
    within = float(np.diag(offered).sum())
    carried = np.minimum(served / use.max(), offered)[between(topology)].sum() - lost / use.max()
    return (within + float(carried)) / topology.hosts


def _lower(scenario: Scenario, saved: Saved, routes: Routes | None) -> float:
    """The theta of a flow, scaled until the fullest network channel is full."""
    topology = scenario.topology
    _check_flow(topology, saved)
    if len(saved.first):
        served, missing = _served_by_paths(scenario, saved, routes), 0.0
        flow = np.repeat(saved.flow, np.diff(saved.start))
    else:
        served, missing = _served_by_destination(scenario, saved, routes)
        flow = saved.flow
    load = np.bincount(saved.channel, flow, topology.channels) + missing
    return served / float((load / topology.capacity).max())


def _served_by_paths(scenario: Scenario, saved: Saved, routes: Routes | None) -> float:
    """The least that a commodity gets of its demand."""
    demand, served = _demand(scenario), _by_paths(scenario, saved, routes)
    return float((served[demand > 0] / demand[demand > 0]).min())


def _by_paths(scenario: Scenario, saved: Saved, routes: Routes | None = None) -> np.ndarray:
    """float64 [switches, switches]: what path flows carry from s to t."""
    topology = scenario.topology
    source, target = saved.source, saved.target
    commodity = np.repeat(np.arange(len(source)), np.diff(saved.first))
    begin, end = saved.start[:-1], saved.start[1:]
    if not (end > begin).all():
        raise BadCertificate(f"{saved.ceiling}: a path has no channels")
    joined = topology.dst[saved.channel[:-1]] == topology.src[saved.channel[1:]]
    joined[end[:-1] - 1] = True
    ends = (topology.src[saved.channel[begin]] == source[commodity]) & (
        topology.dst[saved.channel[end - 1]] == target[commodity]
    )
    if not (joined.all() and ends.all()):
        raise BadCertificate(f"{saved.ceiling}: a path does not lead from its source to its destination")
    if routes is not None:
        _check_paths(topology, saved, routes, commodity)
    served = np.zeros((topology.switches, topology.switches))
    np.add.at(served, (source[commodity], target[commodity]), saved.flow)
    return served


def _check_paths(topology: Topology, saved: Saved, routes: Routes, commodity: np.ndarray) -> None:
    """Raises unless every path with flow [of ``commodity``] is one of the routing's."""
    port = saved.channel - topology.out_start[topology.src[saved.channel]]
    if routes.form == VIA:
        _check_over_others(topology, routes, saved, saved.target[commodity])
        return
    if routes.paths is None:
        target = np.repeat(saved.target[commodity], np.diff(saved.start))
        _check_ports(topology, routes, saved, target)
        return
    table = routes.paths
    for k in range(len(saved.source)):
        pair = saved.source[k] * topology.switches + saved.target[k]
        known = {
            table.port[table.path_start[p] : table.path_start[p + 1]].tobytes()
            for p in range(table.pair_start[pair], table.pair_start[pair + 1])
        }
        for p in range(saved.first[k], saved.first[k + 1]):
            if saved.flow[p] > 0 and port[saved.start[p] : saved.start[p + 1]].astype(np.uint8).tobytes() not in known:
                raise BadCertificate(f"{saved.ceiling}: flow on a path that the routing does not have")


def _check_ports(topology: Topology, routes: Routes, saved: Saved, target: np.ndarray) -> None:
    """Raises unless every channel with flow is a next hop toward its target [entries]."""
    if not _next_hops(topology, routes, saved, target).all():
        raise BadCertificate(f"{saved.ceiling}: flow on a channel that the routing does not allow")


def _next_hops(topology: Topology, routes: Routes, saved: Saved, target: np.ndarray) -> np.ndarray:
    """bool [entries]: whether every channel with flow is a next hop toward a target [entries]."""
    ports = minimal_ports(topology)[0] if routes.form == DIGITS else routes.ports
    tail = topology.src[saved.channel]
    port = (saved.channel - topology.out_start[tail]).astype(np.uint64)
    return (ports[target, tail] >> port) & np.uint64(1) == 1


def _check_over_others(topology: Topology, routes: Routes, saved: Saved, target: np.ndarray) -> None:
    """Raises unless every path leads by next hops toward a switch with hosts, and from it toward its target [paths]."""
    hops = np.diff(saved.start)
    path = np.repeat(np.arange(len(hops)), hops)
    place = np.arange(len(path)) - saved.start[path]
    proper = np.zeros(len(hops), bool)
    for hop in range(int(hops.max(initial=0))):
        long = hops > hop
        middle = np.where(long, topology.src[saved.channel[np.where(long, saved.start[:-1] + hop, 0)]], target)
        right = _next_hops(topology, routes, saved, np.where(place < hop, middle[path], target[path]))
        proper |= np.logical_and.reduceat(right, saved.start[:-1]) & (topology.host_count[middle] > 0)
    if not proper.all():
        raise BadCertificate(f"{saved.ceiling}: flow on a path that the routing does not have")


def _served_by_destination(scenario: Scenario, saved: Saved, routes: Routes | None) -> tuple[float, float]:
    """The part of the demand that a flow by destination serves, and how much of that rounding left on its way.

    What is missing may be taken to cross every channel: no repair needs more.
    """
    topology, demand = scenario.topology, _demand(scenario)
    if routes is not None:
        _check_ports(topology, routes, saved, np.repeat(saved.node, np.diff(saved.start)))
    leaving = _leaving(topology, saved)
    wanted = demand[:, saved.node].T
    part = float(leaving.sum() / wanted.sum())
    return part, float(np.maximum(part * wanted - leaving, 0).sum())


def _leaving(topology: Topology, saved: Saved) -> np.ndarray:
    """float64 [destinations, switches]: what of the flow for each destination leaves every other switch, net."""
    row = np.repeat(np.arange(len(saved.node)), np.diff(saved.start))
    leaving = np.zeros((len(saved.node), topology.switches))
    np.add.at(leaving, (row, topology.src[saved.channel]), saved.flow)
    np.add.at(leaving, (row, topology.dst[saved.channel]), -saved.flow)
    leaving[np.arange(len(saved.node)), saved.node] = 0
    return leaving
