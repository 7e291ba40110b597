# SPDX-License-Identifier: Apache-2.0
"""Proofs by channel prices and by a flow, verified with numpy and scipy's shortest paths only.

No code is shared with the solvers: distances, conservation and loads are computed independently.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.saved import Saved, is_partition
from flitlab.models.arrays import Bools, Floats, Ints, sums
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.port_sets import allows
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

if TYPE_CHECKING:  # reading a certificate needs no solver
    from flitlab.fluid.mcf.paths import Paths

NEGLIGIBLE = 1e-12
"""Relative loss of a lower bound up to which a remainder is put on every channel, not routed."""


@dataclass(frozen=True, eq=False)
class FlowProof(Saved):
    """Channel prices, which prove an upper bound, and a flow, which proves a lower bound on theta.

    network, injection, ejection: float64 [channels], [hosts], [hosts], prices, all empty if they prove nothing. Flow
    over paths: source, target: int [commodities], switches; first, start, channel, flow as in
    :class:`~flitlab.fluid.mcf.paths.Paths`, without empty paths. Flow by destination: node: int [destinations],
    switches; start: int [destinations + 1]; channel, flow: toward each destination. Other arrays are empty.
    """

    network: Floats
    injection: Floats
    ejection: Floats
    node: Ints
    source: Ints
    target: Ints
    first: Ints
    start: Ints
    channel: Ints
    flow: Floats

    @classmethod
    def parts(cls, instance: Instance, row: Ceiling) -> Fields:
        """The prices and the flow of a row; a flow of 0 is enough where no switch sends to another."""
        z, none = row.certificate, np.zeros(0)
        has_flow = row.flow is not None or len(instance.traffic.switch_pairs()[0]) == 0
        return {
            "lower": float(row.lower) if has_flow else np.nan, "upper": np.nan if z is None else float(row.upper),
            "network": none if z is None else z.network, "injection": none if z is None else z.injection,
            "ejection": none if z is None else z.ejection,
            **flow_arrays(instance, cast("Floats | Paths | None", row.flow)),
        }  # fmt: skip

    def check_form(self) -> None:
        """Raise :class:`BadCertificate` unless the arrays of the flow fit each other."""
        if not (len(self.flow) or len(self.start)):
            if any(len(part) for part in (self.node, self.source, self.target, self.first, self.channel)):
                self.reject("has paths or destinations without a flow")
        elif len(self.node):
            fit = not (len(self.source) or len(self.target) or len(self.first))
            fit &= is_partition(self.start, len(self.node), len(self.channel)) and len(self.channel) == len(self.flow)
            if not fit:
                self.reject("the parts of a flow by destination do not fit each other")
        else:
            fit = len(self.target) == len(self.source) and is_partition(self.first, len(self.source), len(self.flow))
            fit &= is_partition(self.start, len(self.flow), len(self.channel)) and bool((np.diff(self.start) > 0).all())
            if not fit:
                self.reject("the parts of a flow over paths do not fit each other")

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """The least theta that the flow reaches, and the largest one that the prices allow."""
        self.check_numbers(instance.topology)
        return self.theta(instance, instance.routes if self.of_routes else None)

    def theta(self, instance: Instance, routes: Routes | None) -> tuple[float, float]:
        """Bounds on theta: lower, upper; by any routing, or over the paths of ``routes``."""
        upper = _upper(instance, self, routes) if len(self.network) else np.nan
        demand = instance.traffic.switch_demand * _between(instance.topology)
        if not len(self.flow) and demand.any():
            return np.nan, upper
        return min(_lower(instance, self, routes, demand), _at_hosts(instance)), upper

    def check_numbers(self, topology: Topology) -> None:
        """Raise :class:`BadCertificate` for missing, negative or infinite prices and flow, or unknown channels and
        switches.
        """
        sizes = (topology.channels, topology.hosts, topology.hosts)
        prices = (self.network, self.injection, self.ejection)
        if any(len(part) for part in prices):
            for part, size in zip(prices, sizes, strict=True):
                if len(part) != size or not (np.isfinite(part).all() and (part >= 0).all()):
                    self.reject(f"prices must be {size} finite numbers, none negative")
        if not (np.isfinite(self.flow).all() and (self.flow >= 0).all()):
            self.reject("flow must be finite and not negative")
        self.check_range("channel", topology.channels)
        for name in ("node", "source", "target"):
            self.check_range(name, topology.switches)
        if len(np.unique(self.node)) < len(self.node):
            self.reject("a destination has two flows")


class RoutedFlowProof(FlowProof):
    """Prices and a flow of theta over the paths of the routes."""

    of_routes = True
    scope = "over the routes"


class TotalProof(FlowProof):
    """Prices and a flow of the largest total accepted at a load."""

    subject = "accepted"
    unit = " flits/tick/host"

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """Flits/tick/host: what the flow delivers, and the most that the prices allow."""
        self.check_numbers(instance.topology)
        return _accepted(instance, self), _most_accepted(instance, self) if len(self.network) else np.nan


class BoundProof(FlowProof):
    """Prices of a bound or cut: equal prices, or those of the hosts or of a cut, as its name says."""

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """Bounds on theta, for prices that are those of such a bound."""
        self.check_numbers(instance.topology)
        if len(self.network) and not self._fits_name(instance.topology):
            self.reject("the prices are not those of such a bound")
        return self.theta(instance, None)

    def _fits_name(self, topology: Topology) -> bool:
        kind, _, name = self.ceiling.partition(":")
        at_hosts = bool(self.injection.any() or self.ejection.any())
        if name == "volumetric":
            return not at_hosts and bool(self.network.min() == self.network.max() > 0)
        if name == "hosts":
            return not self.network.any()
        return (kind != "cuts" and name not in ("cuts", "two_cluster")) or (
            not at_hosts and _of_cut(topology, self.network)
        )


def flow_arrays(instance: Instance, flow: "Floats | Paths | None") -> Fields:
    """The arrays of a flow of the instance by name, as in a :class:`FlowProof`.

    flow: float64 [destinations with demand, channels], or paths.
    """
    none: np.ndarray = np.zeros(0, np.int64)
    arrays: Fields = {
        **dict.fromkeys(("node", "source", "target", "first", "start", "channel"), none),
        "flow": np.zeros(0),
    }
    source, target, _ = instance.traffic.switch_pairs()
    if isinstance(flow, np.ndarray):
        rows, channel = np.nonzero(flow)
        node = np.unique(target)
        start = np.searchsorted(rows, np.arange(len(node) + 1))
        arrays |= {"node": node, "start": start, "channel": channel, "flow": flow[rows, channel]}
    elif flow is not None:
        arrays |= {"source": source, "target": target, **flow._asdict()}
    return arrays


def _between(topology: Topology) -> Bools:
    """bool [switches, switches]: pairs of different switches."""
    return ~np.eye(topology.switches, dtype=bool)


def _of_cut(topology: Topology, z: Floats) -> bool:
    """Whether channels of one price, and no others, lead from some set of switches to the other switches."""
    leaving = z > 0
    if not leaving.any() or z[leaving].min() < z[leaving].max():
        return False
    inside = np.zeros(topology.switches, bool)
    reached = topology.src[leaving]
    while not inside[reached].all():
        inside[reached] = True
        reached = topology.dst[inside[topology.src] & ~leaving]
    return not inside[topology.dst[leaving]].any()


def _rescaled(*parts: np.ndarray) -> list[np.ndarray]:
    """The same numbers times a power of two, the largest between 1/2 and 1: sums neither overflow nor underflow."""
    exponent = int(np.frexp(max(part.max(initial=0.0) for part in parts))[1])
    return [np.ldexp(part, -exponent) for part in parts]


def _at_hosts(instance: Instance) -> float:
    """Theta at which the busiest host channel is full."""
    source, target, amount = instance.traffic.pairs()
    hosts = instance.topology.hosts
    busiest = max(np.bincount(source, amount, hosts).max(), np.bincount(target, amount, hosts).max())
    return instance.topology.host_capacity / float(busiest)


# Upper bounds: prices


def _upper(instance: Instance, saved: FlowProof, routes: Routes | None) -> float:
    """The theta that prices allow, inf or nan if they bound nothing; it is the same for every multiple of them."""
    network, injection, ejection = _rescaled(saved.network, saved.injection, saved.ejection)
    amount, cost = _pair_costs(instance, network, injection, ejection, routes)
    if np.isinf(cost).any():  # a demand without a path
        return 0.0
    with np.errstate(over="ignore"):
        needed = float(amount @ cost)
    return _worth(instance.topology, network, injection, ejection) / needed if 0 < needed < np.inf else np.nan


def _most_accepted(instance: Instance, saved: FlowProof) -> float:
    """Flits/tick/host that prices allow at a load: a pair pays its distance, or gets 1 per undelivered flit of its
    offer.
    """
    topology, prices = instance.topology, (saved.network, saved.injection, saved.ejection)
    amount, cost = _pair_costs(instance, *prices, None)
    offer = np.minimum(saved.load * amount, topology.host_capacity)
    worth = _worth(topology, *prices) + float(offer @ np.maximum(0, 1 - cost))
    return min(worth, float(offer.sum())) / topology.physical_hosts


def _worth(topology: Topology, network: Floats, injection: Floats, ejection: Floats) -> float:
    """What all capacity is worth per tick at prices of channels and of hosts; an infinite worth bounds nothing."""
    with np.errstate(over="ignore"):
        at_hosts = float(injection.sum() + ejection.sum())
        return float(topology.capacity @ network) + (topology.host_capacity * at_hosts if at_hosts else 0.0)


def _pair_costs(
    instance: Instance, network: Floats, injection: Floats, ejection: Floats, routes: Routes | None
) -> tuple[Floats, Floats]:
    """float64 [pairs of hosts with demand] each: their demand, and the price of a flit on their cheapest path."""
    source, target, amount = instance.traffic.pairs()
    source, target, amount = source[amount > 0], target[amount > 0], amount[amount > 0]
    topology = instance.topology
    ends = topology.host_switch[source], topology.ejection_switch[target]
    distance = _distances(topology, network, routes)[ends]
    return amount, injection[source] + distance + ejection[target]


def _distances(topology: Topology, z: Floats, routes: Routes | None) -> Floats:
    """float64 [switches, switches]: distance [s, t] under prices z, over the paths of the routes if given."""
    n = topology.switches
    if routes is None:
        distance: Floats = dijkstra(_matrix(topology, z, np.ones(topology.channels, bool)))
        return distance
    if routes.paths is not None:
        return _path_distances(topology, z, routes)
    by_target = np.full((n, n), np.inf)
    for t in range(n):
        by_target[:, t] = dijkstra(_matrix(topology, z, _toward(topology, routes, t)).T, indices=t)
    return _via_intermediate(topology, by_target) if routes.form == RouteForm.VIA else by_target


def _toward(topology: Topology, routes: Routes | None, t: int) -> Bools:
    """bool [channels]: next hops toward switch t; all without routes."""
    if routes is None:
        return np.ones(topology.channels, bool)
    ports = minimal_ports(topology)[0] if routes.form == RouteForm.DIGITS else routes.ports
    return allows(ports, t, topology.src, np.arange(topology.channels) - topology.out_start[topology.src])


def _via_intermediate(topology: Topology, leg: np.ndarray) -> Floats:
    """float64 [switches, switches]: distance over the best intermediate switch with hosts. leg: distances [s, t]."""
    shortest = np.full_like(leg, np.inf)
    for middle in np.flatnonzero(topology.host_count):
        np.minimum(shortest, leg[:, middle, None] + leg[middle], out=shortest)
    return shortest


def _matrix(topology: Topology, z: Floats, allowed: Bools) -> sparse.csr_array:
    """Sparse matrix of the prices of allowed channels, the least of parallel ones; explicit zeros are channels of
    price 0.
    """
    least, n = _least(topology, z, allowed), topology.switches
    return sparse.csr_array((z[least], (topology.src[least], topology.dst[least])), (n, n))


def _least(topology: Topology, z: Floats, allowed: Bools) -> np.ndarray:
    """int64: the cheapest allowed channel between every two switches, by switch and next switch."""
    channel = np.flatnonzero(allowed)
    ends = topology.src[channel] * topology.switches + topology.dst[channel]
    order = np.lexsort((z[channel], ends))
    shortest: np.ndarray = channel[order][np.unique(ends[order], return_index=True)[1]]
    return shortest


def _path_distances(topology: Topology, z: Floats, routes: Routes) -> Floats:
    """float64 [switches, switches]: cost of the cheapest path of each pair; inf without any, 0 within a switch."""
    table, n = routes.paths, topology.switches
    assert table is not None
    hops = np.diff(table.path_start)
    paths = np.repeat(np.arange(n * n), np.diff(table.pair_start))
    switch, cost = paths // n, np.zeros(len(paths))
    for hop in range(int(hops.max(initial=0))):
        longer = np.flatnonzero(hops > hop)
        channel = topology.out_start[switch[longer]] + table.port[table.path_start[longer] + hop]
        cost[longer] += z[channel]
        switch[longer] = topology.dst[channel]
    cheapest = np.full(n * n, np.inf)
    np.minimum.at(cheapest, paths, cost)
    return np.where(_between(topology), cheapest.reshape(n, n), 0.0)


# Lower bounds: flows


def _accepted(instance: Instance, saved: FlowProof) -> float:
    """Flits/tick/host that a flow delivers at a load, scaled until the fullest channel is full, no demand above its
    offer.

    nan where host channels would be full.
    """
    topology, most = instance.topology, instance.topology.host_capacity
    source, target, amount = instance.traffic.pairs()
    offer = np.minimum(saved.load * amount, most)
    busiest = max(np.bincount(end, offer, topology.hosts).max() for end in (source, target))
    if busiest > most * (1 + 1e-12):
        return np.nan
    offered = np.zeros((topology.switches, topology.switches))
    np.add.at(offered, (topology.host_switch[source], topology.ejection_switch[target]), offer)
    carried = float(np.diag(offered).sum())
    if saved.flow.any():
        (flow,) = _rescaled(saved.flow)
        if len(saved.first):
            served, load = _by_paths(instance, saved, flow)
        else:
            leaving, hidden = _leaving(topology, saved, flow)
            served = np.zeros_like(offered)
            served[:, saved.node] = np.maximum(leaving, 0).T
            load = _delivering(topology, saved, flow, None, np.maximum(-leaving, 0) + hidden)
        carried += float(np.minimum(served * _at_most(1.0, load, topology), offered)[_between(topology)].sum())
    elif offered[_between(topology)].any():
        return np.nan
    return carried / topology.physical_hosts


def _lower(instance: Instance, saved: FlowProof, routes: Routes | None, demand: np.ndarray) -> float:
    """The theta of a flow, scaled until the fullest network channel is full; inf if nothing is demanded."""
    topology = instance.topology
    if not demand.any():
        return np.inf
    if not saved.flow.any():
        return np.nan
    (flow,) = _rescaled(saved.flow)
    if not len(saved.first):
        return _theta_by_destination(instance, saved, flow, routes, demand)
    served, load = _by_paths(instance, saved, flow, routes)
    return _at_most(float((served[demand > 0] / demand[demand > 0]).min()), load, topology)


def _at_most(part: float, load: Floats, topology: Topology) -> float:
    """The theta of a load that serves a ``part`` of the demand, scaled until the fullest channel is full."""
    fullest = float((load / topology.capacity).max())
    return part / fullest if fullest > 0 else np.nan


def _by_paths(
    instance: Instance, saved: FlowProof, flow: Floats, routes: Routes | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """float64 [switches, switches]: flow from s to t over paths; float64 [channels]: its load."""
    topology = instance.topology
    source, target = saved.source, saved.target
    commodity = np.repeat(np.arange(len(source)), np.diff(saved.first))
    begin, end = saved.start[:-1], saved.start[1:]
    joined = topology.dst[saved.channel[:-1]] == topology.src[saved.channel[1:]]
    joined[end[:-1] - 1] = True
    ends = (topology.src[saved.channel[begin]] == source[commodity]) & (
        topology.dst[saved.channel[end - 1]] == target[commodity]
    )
    if not (joined.all() and ends.all()):
        saved.reject("a path does not lead from its source to its destination")
    if routes is not None:
        _check_paths(topology, saved, routes, commodity)
    served = np.zeros((topology.switches, topology.switches))
    np.add.at(served, (source[commodity], target[commodity]), flow)
    return served, np.bincount(saved.channel, np.repeat(flow, np.diff(saved.start)), topology.channels)


def _check_paths(topology: Topology, saved: FlowProof, routes: Routes, commodity: Ints) -> None:
    """Raise :class:`BadCertificate` unless every path with flow [of ``commodity``] belongs to the routing."""
    port = saved.channel - topology.out_start[topology.src[saved.channel]]
    if routes.form == RouteForm.VIA:
        _check_via_paths(topology, routes, saved, saved.target[commodity])
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
                saved.reject("flow on a path that the routing does not have")


def _check_ports(topology: Topology, routes: Routes, saved: FlowProof, target: Ints) -> None:
    """Raise :class:`BadCertificate` unless every channel with flow is a next hop toward its target [entries]."""
    if not _next_hops(topology, routes, saved, target).all():
        saved.reject("flow on a channel that the routing does not allow")


def _next_hops(topology: Topology, routes: Routes, saved: FlowProof, target: Ints) -> Bools:
    """bool [entries]: whether every channel with flow is a next hop toward a target [entries]."""
    ports = minimal_ports(topology)[0] if routes.form == RouteForm.DIGITS else routes.ports
    tail = topology.src[saved.channel]
    return allows(ports, target, tail, saved.channel - topology.out_start[tail])


def _check_via_paths(topology: Topology, routes: Routes, saved: FlowProof, target: Ints) -> None:
    """Raise :class:`BadCertificate` unless every path leads by next hops to a switch with hosts, then to its target
    [paths].
    """
    hops = np.diff(saved.start)
    path = np.repeat(np.arange(len(hops)), hops)
    position = np.arange(len(path)) - saved.start[path]
    allowed = np.zeros(len(hops), bool)
    for hop in range(int(hops.max(initial=0))):
        long = hops > hop
        middle = np.where(long, topology.src[saved.channel[np.where(long, saved.start[:-1] + hop, 0)]], target)
        right = _next_hops(topology, routes, saved, np.where(position < hop, middle[path], target[path]))
        allowed |= np.logical_and.reduceat(right, saved.start[:-1]) & (topology.host_count[middle] > 0)
    if not allowed.all():
        saved.reject("flow on a path that the routing does not have")


def _theta_by_destination(
    instance: Instance, saved: FlowProof, flow: Floats, routes: Routes | None, demand: np.ndarray
) -> float:
    topology = instance.topology
    missing = np.setdiff1d(np.flatnonzero(demand.any(axis=0)), saved.node)
    if len(missing):
        name = switch_names(topology).label(missing[0])
        saved.reject(f"there is demand for switch {name}, but no flow")
    if routes is not None:
        if routes.paths is not None:
            saved.reject("a flow by destination does not prove a flow over the routing's paths")
        _check_ports(topology, routes, saved, np.repeat(saved.node, np.diff(saved.start)))
    (leaving, hidden), demand_to = _leaving(topology, saved, flow), demand[:, saved.node].T
    # share of the demand: all of it in the scale of the file, or the mean share that is delivered
    parts = flow.max() / saved.flow.max(), max(float(leaving.sum() / demand_to.sum()), 0.0)
    remainders = (np.maximum(part * demand_to - leaving + hidden, 0) for part in parts)
    loads = [_delivering(topology, saved, flow, routes, amount) for amount in remainders]
    return max(_at_most(part, load, topology) for part, load in zip(parts, loads, strict=True))


def _leaving(topology: Topology, saved: FlowProof, flow: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Net outflow of every other switch, for each destination, and a bound on its rounding error.

    float64 [destinations, switches] each: a sum of k doubles has an error of less than k times their sum in ulps.
    """
    row = np.repeat(np.arange(len(saved.node)), np.diff(saved.start))
    tail, head = topology.src[saved.channel], topology.dst[saved.channel]
    net, passing, terms = (np.zeros((len(saved.node), topology.switches)) for _ in range(3))
    for end, sign in ((tail, 1.0), (head, -1.0)):
        np.add.at(net, (row, end), sign * flow)
        np.add.at(passing, (row, end), flow)
        np.add.at(terms, (row, end), 1.0)
    hidden = np.finfo(float).eps * terms * passing
    for part in (net, hidden):
        part[np.arange(len(saved.node)), saved.node] = 0
    return net, hidden


def _delivering(topology: Topology, saved: FlowProof, flow: Floats, routes: Routes | None, remainder: Floats) -> Floats:
    """float64 [channels]: the load of a flow, and of its remainders at switches, float64 [destinations, switches].

    Remainders follow shortest allowed paths with lengths 1 / capacity; if they are negligible, they are put on every
    channel, provided that the network is connected.
    """
    load = sums(saved.channel, flow, topology.channels)
    everywhere: Floats = load + remainder.sum()
    little = (everywhere / topology.capacity).max() <= (1 + NEGLIGIBLE) * (load / topology.capacity).max()
    if little and routes is None and _joined(topology):
        return everywhere
    for row in np.flatnonzero(remainder.any(axis=1)):
        t = int(saved.node[row])
        load += _sent(topology, t, remainder[row], _toward(topology, routes, t), saved)
    return load


def _joined(topology: Topology) -> bool:
    """Whether the network is strongly connected."""
    everything = _matrix(topology, np.ones(topology.channels), np.ones(topology.channels, bool))
    return bool(connected_components(everything, connection="strong", return_labels=False) == 1)


def _sent(topology: Topology, t: int, amount: Floats, allowed: Bools, saved: FlowProof) -> Floats:
    """float64 [channels]: the load of ``amount`` [switches] on shortest paths to switch t over allowed channels."""
    n, z = topology.switches, 1 / topology.capacity
    least = _least(topology, z, allowed)
    tail, head = topology.src[least].astype(np.int64), topology.dst[least]
    distance, after = dijkstra(sparse.csr_array((z[least], (head, tail)), (n, n)), indices=t, return_predecessors=True)
    if np.isinf(distance[amount > 0]).any():
        saved.reject("flow ends at a switch from which no allowed path leads on")
    reached = np.flatnonzero(np.isfinite(distance) & (np.arange(n) != t))
    after[t] = t
    channel = np.zeros(n, np.int64)
    channel[reached] = least[np.searchsorted(tail * n + head, reached * n + after[reached])]
    hops, switch = np.zeros(n, np.int64), after.copy()
    switch[np.isinf(distance)] = t
    while (switch != t).any():
        hops += switch != t
        switch = after[switch]
    load, carried = np.zeros(topology.channels), amount.copy()
    # in the order of hops: different distances may be equal in doubles
    for depth in range(int(hops[reached].max(initial=0)), -1, -1):
        going = reached[hops[reached] == depth]
        load[channel[going]] = carried[going]
        np.add.at(carried, after[going], carried[going])
    return load
