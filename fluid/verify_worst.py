# SPDX-License-Identifier: Apache-2.0
"""Verification of a saved worst demand and its prices, with numpy and scipy's sparse matrices only.

No code is shared with the solver: the split of the routes is computed independently, destination by destination.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy import sparse

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.saved import BadCertificate, Saved
from flitlab.models.arrays import Bools, Bytes, Floats, Ints, Masks, sums
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import PathTable, Routes
from flitlab.models.rules.port_sets import allows
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.traffic import Traffic

if TYPE_CHECKING:  # reading a certificate needs no solver
    from flitlab.fluid.worst import WorstDemand


@dataclass(frozen=True, eq=False)
class DemandProof(Saved):
    """A demand, which proves the upper end, and prices, which prove the lower one.

    source, target: int [pairs], switches; amount: float64 [pairs]. channel: int [k], channels with prices; price:
    float64 [k * switches], of their sources.
    """

    source: Ints
    target: Ints
    channel: Ints
    amount: Floats
    price: Floats

    of_routes = True
    with_background = True
    scope = "by the split of the routes, under every demand"

    @classmethod
    def parts(cls, instance: Instance, row: Ceiling) -> Fields:
        """The worst demand and the prices of a row."""
        worst = cast("WorstDemand", row.flow)
        return {
            "source": worst.source, "target": worst.target, "channel": worst.priced, "amount": worst.amount,
            "price": np.zeros(0) if worst.price is None else worst.price.ravel(),
            "lower": np.nan if worst.price is None else float(row.lower),
        }  # fmt: skip

    def check_form(self) -> None:
        """Raise :class:`~flitlab.fluid.saved.BadCertificate` unless the arrays fit each other."""
        fit = len(self.source) == len(self.target) == len(self.amount)
        if not fit or (len(self.price) % len(self.channel) if len(self.channel) else len(self.price)):
            self.reject("the parts of a worst demand do not fit each other")

    def demand(self) -> tuple[Ints, Ints, Floats]:
        """Source switches, destination switches and amounts of the worst demand."""
        return self.source, self.target, self.amount

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """Bounds on the load that the split carries under every demand, by the saved prices and demand.

        Demands are those in which no host sends or receives more than the busiest host of the scenario does at that
        load. With prices u, the load of a channel is at most the sum of hosts * u over sources and of hosts * v over
        targets, where v(t) is the largest excess over u(s) of the share of s -> t on the channel. Without prices, the
        load is at most that of each source sending all to its costliest target, or of each target receiving all from
        its costliest source.
        """
        topology, routes = instance.topology, instance.routes
        hosts, receiving = topology.host_count, topology.ejection_count
        self.check_range("channel", topology.channels)
        for name in ("source", "target"):
            self.check_range(name, topology.switches)
        if routes is None or not routes.oblivious:
            self.reject("the scenario has no routes that fix the split of traffic")
        demand, price = _demand(topology, self), _price(topology, self)
        load, by_target = (np.zeros(topology.channels) for _ in range(2))
        from_source = np.zeros((topology.switches, topology.channels))
        with_price = price.T @ hosts
        for t, part in _parts(topology, routes):
            load += demand[:, t] @ part
            part[hosts == 0] = 0.0
            by_target += receiving[t] * part.max(axis=0)
            with_price += receiving[t] * np.maximum(part[:, self.channel] - price, 0.0).max(axis=0)
            np.maximum(from_source, part, out=from_source)
        most = np.minimum(by_target, hosts @ from_source)
        most[self.channel] = np.minimum(most[self.channel], with_price)
        if routes.form == RouteForm.VIA:
            most = _via_intermediate(topology, routes) @ hosts
        lower, upper = (_theta(topology, of_channel) for of_channel in (most, load))
        return _as_load(instance, lower), _as_load(instance, upper)


def _theta(topology: Topology, load: Floats) -> float:
    """Theta at which the first network or host channel is full."""
    fullest = float((load / topology.capacity).max(initial=0.0))
    return min(1 / fullest if fullest > 0 else np.inf, topology.host_capacity)


def _as_load(instance: Instance, flits: float) -> float:
    """The load at which the busiest host of the scenario sends or receives ``flits`` per tick."""
    traffic, hosts = instance.traffic, instance.topology.hosts
    fixed = [np.zeros(hosts)] * 2 if traffic.background is None else _at_hosts(traffic.background, hosts)
    loads = [
        max(flits - before, 0.0) / growing
        for ends in zip(fixed, _at_hosts(traffic, hosts), strict=True)
        for before, growing in zip(*ends, strict=True) if growing > 0
    ]  # fmt: skip
    return float(min(loads, default=flits))


def _at_hosts(traffic: Traffic, hosts: int) -> list[Floats]:
    """float64 [hosts] each: flits/tick that every host sends, and receives, at load 1."""
    source, target, amount = traffic.pairs()
    return [sums(source, amount, hosts), sums(target, amount, hosts)]


def _demand(topology: Topology, saved: DemandProof) -> Floats:
    """float64 [switches, switches]: the saved demand."""
    if not (np.isfinite(saved.amount).all() and (saved.amount >= 0).all()):
        saved.reject("demands must be finite and not negative")
    demand = np.zeros((topology.switches, topology.switches))
    np.add.at(demand, (saved.source, saved.target), saved.amount)
    hosts = np.array([topology.ejection_count, topology.host_count])
    if (np.array([demand.sum(axis=0), demand.sum(axis=1)]) > hosts).any():
        saved.reject("a switch sends or receives more than a unit for each of its hosts")
    return demand


def _price(topology: Topology, saved: DemandProof) -> Floats:
    """float64 [switches, priced channels]: the saved prices."""
    if len(saved.price) != len(saved.channel) * topology.switches or len(set(saved.channel)) < len(saved.channel):
        saved.reject("a channel with prices must have one for every switch")
    if not (np.isfinite(saved.price).all() and (saved.price >= 0).all()):
        saved.reject("prices must be finite and not negative")
    return saved.price.reshape(len(saved.channel), topology.switches).T


def _parts(topology: Topology, routes: Routes) -> Iterator[tuple[int, Floats]]:
    """Every switch t with hosts, with float64 [switches, channels]: the share of the traffic from s to t on each
    channel.
    """
    targets = topology.dst_switches.tolist()
    if routes.paths is not None:
        for t in targets:
            yield t, _by_paths(topology, routes.paths, t)
        return
    ports = minimal_ports(topology)[0] if routes.form == RouteForm.DIGITS else routes.ports
    if routes.form != RouteForm.VIA:
        for t in targets:
            yield t, _by_next_hops(topology, routes, ports, t)
        return
    sent, received = _legs(topology, routes, ports)
    for t in targets:
        yield t, sent + received[t]


def _legs(topology: Topology, routes: Routes, ports: Masks) -> tuple[Floats, Floats]:
    """float64 [switches, channels] each: shares of first legs from s, and of second legs to t, on each channel.

    The intermediate switch is that of a random host.
    """
    sent = np.zeros((topology.switches, topology.channels))
    received = np.zeros_like(sent)
    middle = topology.host_count / topology.hosts
    for t in range(topology.switches):
        part = _by_next_hops(topology, routes, ports, t)
        sent += middle[t] * part
        received[t] = middle @ part
    return sent, received


def _via_intermediate(topology: Topology, routes: Routes) -> Floats:
    """float64 [channels, switches]: the load that each host of a switch adds to a channel by sending and receiving a
    unit.
    """
    sent, received = _legs(topology, routes, routes.ports)
    both: Floats = (sent + received).T
    return both


def _by_next_hops(topology: Topology, routes: Routes, ports: Masks, t: int) -> Floats:
    """float64 [switches, channels]: the share of the traffic from s to t on each channel."""
    n, tail = topology.switches, topology.src
    port = np.arange(topology.channels) - topology.out_start[tail]
    allowed = allows(ports, t, tail, port)
    if routes.port_threshold is None:
        share = allowed / np.maximum(np.bincount(tail[allowed], minlength=n), 1)[tail]
    else:
        share = _weighed(topology, allowed, routes.port_threshold[t], port)
    step = sparse.csr_array((share, (tail, topology.dst)), (n, n))
    visits, moving = np.eye(n), np.eye(n)
    for _ in range(n):  # rows: switch of a packet after this many hops; columns: its source
        moving = step.T @ moving
        if not moving.any():
            break
        visits += moving
    else:
        raise BadCertificate(f"the next hops toward switch {switch_names(topology).label(t)} form a cycle")
    part: Floats = visits[tail].T * share
    return part


def _weighed(topology: Topology, allowed: Bools, threshold: Bytes, port: Ints) -> Floats:
    """float64 [channels]: the share of a switch's traffic that takes each channel, by thresholds of 8 bits."""
    share = np.zeros(topology.channels)
    for v in range(topology.switches):
        own = np.flatnonzero(allowed[topology.out_start[v] : topology.out_start[v + 1]]) + topology.out_start[v]
        if len(own):
            ends = np.append(threshold[v, port[own[:-1]]].astype(float), 256.0)
            share[own] = np.diff(ends, prepend=0.0) / 256
    return share


def _by_paths(topology: Topology, table: PathTable, t: int) -> Floats:
    """float64 [switches, channels]: like :func:`_by_next_hops`, with traffic split over the paths of each pair."""
    n, share = topology.switches, table.shares
    part = np.zeros((n, topology.channels))
    for s in topology.src_switches.tolist():
        first, last = table.pair_start[s * n + t], table.pair_start[s * n + t + 1]
        for p in range(first, last):
            switch = s
            for port in table.port[table.path_start[p] : table.path_start[p + 1]].tolist():
                channel = topology.out_start[switch] + port
                part[s, channel] += share[p]
                switch = topology.dst[channel]
    return part
