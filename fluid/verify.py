# SPDX-License-Identifier: Apache-2.0
"""Verification of saved certificates, with numpy and scipy's shortest paths only.

No code is shared with the solvers: distances, conservation and loads are computed independently.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from flitlab.fluid.collective.collective import ROOTED, Collective
from flitlab.fluid.saved import WORST, BadCertificate, Saved, between, of_collective
from flitlab.fluid.verify_collective import check_collective, exchange, lower_bound, tree_time
from flitlab.fluid.verify_worst import theta_interval
from flitlab.models.arrays import Bools, Floats, Ints, sums
from flitlab.models.instance import Instance
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.tables import DIGITS, VIA
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

TOLERANCE = 1e-9
"""Relative tolerance of a claim: rounding of sums in another order."""

NEGLIGIBLE = 1e-12
"""Relative loss of a lower bound up to which a remainder is put on every channel, not routed."""

BY_FLOW = ("mcf", "mcf_paths", "total")
"""Ceilings whose lower end a flow proves, and whose upper end channel prices prove."""

BY_PRICES = ("bounds", "cuts")
"""Ceilings whose upper end channel prices prove, each with several names behind a colon."""


OF_ROUTES = ("mcf_paths", WORST)
"""Ceilings that depend on the routes."""

OVER = {"mcf_paths": "over the routes", WORST: "by the split of the routes, under every demand"}
"""Routing to which a claim applies."""


@dataclass(frozen=True)
class Verified:
    """Bounds that a certificate proves; nan where it proves none."""

    lower: float
    upper: float

    def unproven(self, saved: Saved) -> str:
        """The claims of a certificate that are not proven, '' if all are."""
        missed = []
        # comparisons with nan are False, so nan proves nothing
        if not (np.isnan(saved.lower) or self.lower >= saved.lower * (1 - TOLERANCE)):
            missed.append(f"lower end {saved.lower:.9g} ({_proven_text(self.lower)})")
        if not (np.isnan(saved.upper) or self.upper <= saved.upper * (1 + TOLERANCE)):
            missed.append(f"upper end {saved.upper:.9g} ({_proven_text(self.upper)})")
        return f"not proven: {', '.join(missed)}" if missed else ""

    def confirms(self, saved: Saved) -> bool:
        """Whether every claimed end is proven."""
        return not self.unproven(saved)


def _proven_text(value: float) -> str:
    return "nothing proves one" if np.isnan(value) else f"proven is {value:.9g}"


def statement(saved: Saved) -> str:
    """The claim of a certificate as a sentence about its topology and traffic."""
    subject, unit = ("accepted", " flits/tick/host") if saved.ceiling == "total" else ("theta", "")
    ends = [f"{saved.lower:.9g}{unit} <= " if saved.lower == saved.lower else "", subject]
    ends += [f" <= {saved.upper:.9g}{unit}" if saved.upper == saved.upper else ""]
    if of_collective(saved.ceiling):
        name, able = saved.collective.replace("_", "-"), saved.able.replace(" ", " and ")
        toward = "from" if saved.collective in ("broadcast", "scatter") else "to"
        root = f" {toward} rank {', '.join(map(str, saved.root.tolist()))}" if saved.collective in ROOTED else ""
        unit, subject = " ticks/flit", f"{name}{root} between {saved.ranks}{_amounts(saved)}"
        ends = [f"{saved.lower:.9g}{unit} <= " if saved.lower == saved.lower else "", subject]
        ends += [f" <= {saved.upper:.9g}{unit}" if saved.upper == saved.upper else ""]
        return f"{''.join(ends)}, by any algorithm{f', where switches {able}' if able else ''}"
    over = OVER.get(saved.ceiling, "by any routing")
    return f"{''.join(ends)}, {over}{f', at load {saved.load:.9g}' if saved.load == saved.load else ''}"


def _amounts(saved: Saved) -> str:
    """The units of the ranks in a statement: '' where each has one, or the collective has only a vector."""
    units = saved.units.tolist()
    if saved.collective in ("broadcast", "reduce", "all_reduce") or all(amount == 1 for amount in units):
        return ""
    rest = f", ... ({len(units)} ranks)" if len(units) > MAX_AMOUNTS else ""
    return f" with amounts {', '.join(map(str, units[:MAX_AMOUNTS]))}{rest}"


MAX_AMOUNTS = 8
"""Amounts that a statement lists."""


def verify(instance: Instance, saved: Saved, collectives: Collection[Collective] = ()) -> Verified:
    """The bounds that a certificate proves of a scenario.

    Parameters
    ----------
    instance : Instance
        Topology, traffic and routes; the routes matter for some ceilings only.
    saved : Saved
        The certificate.
    collectives : collection of Collective
        Collectives that the configuration bounds. A certificate of a collective must be of one of them: everything that
        it states about its collective is compared, so nothing is taken from the file.

    Raises
    ------
    BadCertificate
        It belongs to another instance or collective, claims nothing or what no certificate can prove, or its prices or
        flow are invalid.
    """
    _check_claim(saved)
    if saved.ceiling in OF_ROUTES and instance.routes is None:
        raise BadCertificate(f"{saved.ceiling}: the scenario has no routes")
    if instance.traffic.background is not None and saved.ceiling != WORST and not of_collective(saved.ceiling):
        raise BadCertificate(f"{saved.ceiling}: no certificate proves a ceiling of traffic with a background")
    routes = instance.routes if saved.ceiling in OF_ROUTES else None
    whatever = of_collective(saved.ceiling)  # brings its own demand
    own = {
        "topology": instance.topology.content_hash,
        "traffic": "" if whatever else instance.traffic.content_hash,
        "routes": "" if routes is None else routes.content_hash,
    }  # fmt: skip
    for name, value in own.items():
        if getattr(saved, name) != value:
            other = "other routes" if name == "routes" else f"another {name}"
            raise BadCertificate(f"{saved.ceiling}: the certificate is of {other}")
    if whatever:
        check_collective(instance.topology, saved, collectives)
        return _of_collective(instance.topology, saved)
    _check_numbers(instance.topology, saved)
    _check_named_prices(instance.topology, saved)
    if saved.ceiling == WORST:
        return Verified(*theta_interval(instance, saved))
    upper = _upper(instance, saved, routes) if len(saved.network) else np.nan
    demand = _demand(instance)
    if saved.ceiling == "total":
        return Verified(_accepted(instance, saved), upper)
    lower = np.nan
    if len(saved.flow) or not demand.any():
        lower = min(_lower(instance, saved, routes, demand), _at_hosts(instance))
    return Verified(lower, upper)


def _of_collective(topology: Topology, saved: Saved) -> Verified:
    """The time that no algorithm is faster than, and of an all-to-all the time in which a flow delivers all data."""
    if saved.collective != "all_to_all":
        upper = float(tree_time(topology, saved)) if len(saved.tree) else np.nan
        return Verified(float(lower_bound(topology, saved)), upper)
    instance, times = exchange(topology, saved)
    _check_numbers(instance.topology, saved)
    lower = _upper(instance, saved, None) if len(saved.network) else np.nan
    upper = min(_lower(instance, saved, None, _demand(instance)), _at_hosts(instance)) if len(saved.flow) else np.nan
    return Verified(_time(times, lower), _time(times, upper))


def _time(times: Fraction, theta: float) -> float:
    """The time of an all-to-all whose concurrent flow has ``theta``; inf for 0."""
    return float(times) / theta if theta else np.inf


def provable(ceiling: str) -> bool:
    """Whether a saved certificate can prove a ceiling of this name."""
    if of_collective(ceiling):
        return True
    return ceiling in (*BY_FLOW, WORST) or ceiling.partition(":")[0] in BY_PRICES


def _check_claim(saved: Saved) -> None:
    """Raise :class:`BadCertificate` unless a certificate can prove such a claim."""
    if not provable(saved.ceiling):
        raise BadCertificate(f"no certificate proves a ceiling {saved.ceiling!r}")
    if not saved.claims:
        raise BadCertificate(f"{saved.ceiling}: nothing is claimed, neither a lower nor an upper end")
    for end in ("lower", "upper"):
        if not (np.isnan(getattr(saved, end)) or 0 <= getattr(saved, end) < np.inf):
            raise BadCertificate(f"{saved.ceiling}: the {end} end is claimed to be {getattr(saved, end)}")
    if saved.lower > saved.upper:
        raise BadCertificate(f"{saved.ceiling}: the lower end {saved.lower} is above the upper one, {saved.upper}")
    if saved.ceiling == "total" and not 0 < saved.load < np.inf:
        raise BadCertificate(f"total: the load must be positive and finite, not {saved.load}")
    if saved.ceiling != "total" and not np.isnan(saved.load):
        raise BadCertificate(f"{saved.ceiling}: does not depend on a load, but has {saved.load}")


def _check_numbers(topology: Topology, saved: Saved) -> None:
    """Raise :class:`BadCertificate` for missing, negative or infinite prices and flow, or unknown channels and
    switches.
    """
    sizes = {"network": topology.channels, "injection": topology.hosts, "ejection": topology.hosts}
    lengths = [getattr(saved, name) for name in sizes]
    if any(len(part) for part in lengths):
        for part, size in zip(lengths, sizes.values(), strict=True):
            if len(part) != size or not (np.isfinite(part).all() and (part >= 0).all()):
                raise BadCertificate(f"{saved.ceiling}: prices must be {size} finite numbers, none negative")
    if not (np.isfinite(saved.flow).all() and (saved.flow >= 0).all()):
        raise BadCertificate(f"{saved.ceiling}: flow must be finite and not negative")
    for name, count in (("channel", topology.channels), *dict.fromkeys(("node", "source", "target"), 0).items()):
        part, most = getattr(saved, name), count or topology.switches
        if len(part) and not (part.min() >= 0 and part.max() < most):
            raise BadCertificate(f"{saved.ceiling}: {name} has numbers that the network lacks")
    if len(np.unique(saved.node)) < len(saved.node):
        raise BadCertificate(f"{saved.ceiling}: a destination has two flows")


def _check_named_prices(topology: Topology, saved: Saved) -> None:
    """Raise :class:`BadCertificate` unless prices fit the named bound: equal prices, or those of a cut."""
    if not len(saved.network):
        return
    kind, _, name = saved.ceiling.partition(":")
    at_hosts = bool(saved.injection.any() or saved.ejection.any())
    fits = True
    if name == "volumetric":
        fits = not at_hosts and bool(saved.network.min() == saved.network.max() > 0)
    elif name == "hosts":
        fits = not saved.network.any()
    elif kind == "cuts" or name in ("cuts", "two_cluster"):
        fits = not at_hosts and _of_cut(topology, saved.network)
    if not fits:
        raise BadCertificate(f"{saved.ceiling}: the prices are not those of such a bound")


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


def _demand(instance: Instance) -> Floats:
    """float64 [switches, switches]: the demand between different switches."""
    return instance.traffic.switch_demand * between(instance.topology)


def _at_hosts(instance: Instance) -> float:
    """Theta at which the busiest host channel is full."""
    source, target, amount = instance.traffic.pairs()
    hosts = instance.topology.hosts
    busiest = max(np.bincount(source, amount, hosts).max(), np.bincount(target, amount, hosts).max())
    return instance.topology.host_capacity / float(busiest)


# Upper bounds: lengths


def _upper(instance: Instance, saved: Saved, routes: Routes | None) -> float:
    topology = instance.topology
    network, injection, ejection = saved.network, saved.injection, saved.ejection
    if saved.ceiling != "total":  # the bound is the same for every multiple of the prices
        network, injection, ejection = _rescaled(network, injection, ejection)
    with np.errstate(over="ignore"):  # an infinite worth bounds nothing
        at_hosts = float(injection.sum() + ejection.sum())
        worth = float(topology.capacity @ network) + (topology.host_capacity * at_hosts if at_hosts else 0.0)
    source, target, amount = instance.traffic.pairs()
    source, target, amount = source[amount > 0], target[amount > 0], amount[amount > 0]
    host_switch = topology.host_switch
    distance = _distances(topology, network, routes)[host_switch[source], host_switch[target]]
    cost = injection[source] + distance + ejection[target]
    if saved.ceiling == "total":
        # a pair pays its distance or gets 1 per undelivered flit of its offer
        offer = np.minimum(saved.load * amount, topology.host_capacity)
        return min(worth + float(offer @ np.maximum(0, 1 - cost)), float(offer.sum())) / topology.hosts
    if np.isinf(cost).any():  # a demand without a path
        return 0.0
    with np.errstate(over="ignore"):
        needed = float(amount @ cost)
    return worth / needed if 0 < needed < np.inf else np.nan


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
    return _via_intermediate(topology, by_target) if routes.form == VIA else by_target


def _toward(topology: Topology, routes: Routes | None, t: int) -> Bools:
    """bool [channels]: next hops toward switch t; all without routes."""
    if routes is None:
        return np.ones(topology.channels, bool)
    ports = minimal_ports(topology)[0] if routes.form == DIGITS else routes.ports
    port = (np.arange(topology.channels) - topology.out_start[topology.src]).astype(np.uint64)
    allowed: np.ndarray = (ports[t, topology.src] >> port) & np.uint64(1) == 1
    return allowed


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
    return np.where(between(topology), cheapest.reshape(n, n), 0.0)


# Lower bounds: flows


def _accepted(instance: Instance, saved: Saved) -> float:
    """Flits/tick/host that a flow delivers at a load, scaled until the fullest channel is full, no demand above its
    offer.

    nan where host channels would be full.
    """
    topology, host_switch, most = instance.topology, instance.topology.host_switch, instance.topology.host_capacity
    source, target, amount = instance.traffic.pairs()
    offer = np.minimum(saved.load * amount, most)
    busiest = max(np.bincount(end, offer, topology.hosts).max() for end in (source, target))
    if busiest > most * (1 + 1e-12):
        return np.nan
    offered = np.zeros((topology.switches, topology.switches))
    np.add.at(offered, (host_switch[source], host_switch[target]), offer)
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
        carried += float(np.minimum(served * _at_most(1.0, load, topology), offered)[between(topology)].sum())
    elif offered[between(topology)].any():
        return np.nan
    return carried / topology.hosts


def _lower(instance: Instance, saved: Saved, routes: Routes | None, demand: np.ndarray) -> float:
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
    instance: Instance, saved: Saved, flow: Floats, routes: Routes | None = None
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
        raise BadCertificate(f"{saved.ceiling}: a path does not lead from its source to its destination")
    if routes is not None:
        _check_paths(topology, saved, routes, commodity)
    served = np.zeros((topology.switches, topology.switches))
    np.add.at(served, (source[commodity], target[commodity]), flow)
    return served, np.bincount(saved.channel, np.repeat(flow, np.diff(saved.start)), topology.channels)


def _check_paths(topology: Topology, saved: Saved, routes: Routes, commodity: Ints) -> None:
    """Raise :class:`BadCertificate` unless every path with flow [of ``commodity``] belongs to the routing."""
    port = saved.channel - topology.out_start[topology.src[saved.channel]]
    if routes.form == VIA:
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
                raise BadCertificate(f"{saved.ceiling}: flow on a path that the routing does not have")


def _check_ports(topology: Topology, routes: Routes, saved: Saved, target: Ints) -> None:
    """Raise :class:`BadCertificate` unless every channel with flow is a next hop toward its target [entries]."""
    if not _next_hops(topology, routes, saved, target).all():
        raise BadCertificate(f"{saved.ceiling}: flow on a channel that the routing does not allow")


def _next_hops(topology: Topology, routes: Routes, saved: Saved, target: Ints) -> Bools:
    """bool [entries]: whether every channel with flow is a next hop toward a target [entries]."""
    ports = minimal_ports(topology)[0] if routes.form == DIGITS else routes.ports
    tail = topology.src[saved.channel]
    port = (saved.channel - topology.out_start[tail]).astype(np.uint64)
    allowed: Bools = (ports[target, tail] >> port) & np.uint64(1) == 1
    return allowed


def _check_via_paths(topology: Topology, routes: Routes, saved: Saved, target: Ints) -> None:
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
        raise BadCertificate(f"{saved.ceiling}: flow on a path that the routing does not have")


def _theta_by_destination(
    instance: Instance, saved: Saved, flow: Floats, routes: Routes | None, demand: np.ndarray
) -> float:
    topology = instance.topology
    missing = np.setdiff1d(np.flatnonzero(demand.any(axis=0)), saved.node)
    if len(missing):
        name = switch_names(topology).label(missing[0])
        raise BadCertificate(f"{saved.ceiling}: there is demand for switch {name}, but no flow")
    if routes is not None:
        if routes.paths is not None:
            raise BadCertificate(
                f"{saved.ceiling}: a flow by destination does not prove a flow over the routing's paths"
            )
        _check_ports(topology, routes, saved, np.repeat(saved.node, np.diff(saved.start)))
    (leaving, hidden), demand_to = _leaving(topology, saved, flow), demand[:, saved.node].T
    # share of the demand: all of it in the scale of the file, or the mean share that is delivered
    parts = flow.max() / saved.flow.max(), max(float(leaving.sum() / demand_to.sum()), 0.0)
    remainders = (np.maximum(part * demand_to - leaving + hidden, 0) for part in parts)
    loads = [_delivering(topology, saved, flow, routes, amount) for amount in remainders]
    return max(_at_most(part, load, topology) for part, load in zip(parts, loads, strict=True))


def _leaving(topology: Topology, saved: Saved, flow: Floats) -> tuple[np.ndarray, np.ndarray]:
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


def _delivering(topology: Topology, saved: Saved, flow: Floats, routes: Routes | None, remainder: Floats) -> Floats:
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
        load += _sent(topology, t, remainder[row], _toward(topology, routes, t), saved.ceiling)
    return load


def _joined(topology: Topology) -> bool:
    """Whether the network is strongly connected."""
    everything = _matrix(topology, np.ones(topology.channels), np.ones(topology.channels, bool))
    return bool(connected_components(everything, connection="strong", return_labels=False) == 1)


def _sent(topology: Topology, t: int, amount: Floats, allowed: Bools, ceiling: str) -> Floats:
    """float64 [channels]: the load of ``amount`` [switches] on shortest paths to switch t over allowed channels."""
    n, z = topology.switches, 1 / topology.capacity
    least = _least(topology, z, allowed)
    tail, head = topology.src[least].astype(np.int64), topology.dst[least]
    distance, after = dijkstra(sparse.csr_array((z[least], (head, tail)), (n, n)), indices=t, return_predecessors=True)
    if np.isinf(distance[amount > 0]).any():
        raise BadCertificate(f"{ceiling}: flow ends at a switch from which no allowed path leads on")
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
