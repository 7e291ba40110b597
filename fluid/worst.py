# SPDX-License-Identifier: Apache-2.0
"""The worst demand of a fixed traffic split, among all in which no host sends or receives more than one unit.

The load of a channel is the sum over pairs of their demand times their share on it, so the worst demand of a channel
solves a transportation problem; that of the network is the worst of its channels. Sources: Towles and Dally, SPAA 2002,
doi:10.1145/564870.564894; Applegate and Cohen, SIGCOMM 2003, doi:10.1145/863955.863991.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flitlab.fluid.graph import Dags, Demand, Graph
from flitlab.fluid.mcf.paths import paths_of
from flitlab.fluid.problem import TooLargeError, check_capacities, dags_of
from flitlab.fluid.symmetries import Translations, translations
from flitlab.fluid.transport import max_value_shipment
from flitlab.models.arrays import Floats, Int, Ints, sums
from flitlab.models.jit import kernel, njit
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.bits import contains
from flitlab.models.rules.port_sets import allows, ports_at
from flitlab.models.rules.route import port_part
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.graph import Topology

MAX_PRICES = 20_000_000
"""Prices that are kept as a proof; with more of them there is none."""

MAX_VISITS = 1e11
"""Channels times pairs of switches up to which the search runs; half an hour on one core without translations."""


@dataclass(frozen=True, eq=False)
class WorstDemand:
    """The worst demand of a split, and the proof that none is worse.

    channel: the bottleneck, -1 if no demand crosses the network. source, target: int64 [pairs], switches; amount:
    float64 [pairs], what all hosts of one send to the other if every host sends one unit at most. lower, upper: theta
    that every demand reaches, and theta of this demand; equal up to rounding. priced: int64 [k], channels; price:
    float64 [k, switches] of their sources, which prove that no demand loads them more (see
    :func:`~flitlab.fluid.transport.max_value_shipment`); None if there are too many. For the other channels it is
    enough that each source sends all to its costliest target, or each target receives all from its costliest source.
    """

    channel: int
    source: Ints
    target: Ints
    amount: Floats
    lower: float
    upper: float
    priced: Ints
    price: Floats | None


class Share(NamedTuple):
    """Shares of the traffic from s to t on a channel, for all pairs that use it.

    source, target: int64 [pairs], switches. part: float64 [pairs].
    """

    source: Ints
    target: Ints
    part: Floats


@njit
def _visits(graph: Graph, dags: Dags, v: Int) -> tuple[Ints, Ints, Floats]:
    """The pairs of nodes (s, t) whose traffic passes node v, and its share."""
    nodes = len(dags.ports)
    part = np.zeros(nodes)
    source, target, parts = [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)], [0.0 for _ in range(0)]
    for t in range(nodes):
        if t == v:
            continue
        part[:] = 0.0
        below = True
        for i in range(nodes):
            s = np.int64(dags.order[t, i])
            if s < 0:
                break
            if s == v:
                part[s], below = 1.0, False
            elif not below:
                part[s] = _forwarded(graph, dags, s, t, part)
            if part[s] > 0.0:
                source.append(s)
                target.append(np.int64(t))
                parts.append(part[s])
    return np.array(source), np.array(target), np.array(parts)


@kernel
def _forwarded(graph: Graph, dags: Dags, s: Int, t: Int, part: Floats) -> float:
    """The share of the traffic at node s toward t that passes the node with the shares ``part`` of the next nodes."""
    total = 0.0
    for a in range(graph.out_start[s], graph.out_start[s + 1]):
        total += _port_share(dags, s, t, a - graph.out_start[s]) * part[graph.dst[a]]
    return total


@kernel
def _port_share(dags: Dags, s: Int, t: Int, port: Int) -> float:
    """The share of the traffic at node s toward t that leaves it by a port."""
    ports = ports_at(dags.ports[t], s)
    return port_part(1.0, dags.threshold, ports, t, s, port) if contains(ports, port) else 0.0


@njit
def _leaving(dags: Dags, v: Int, target: Ints, port: Int) -> Floats:
    """float64 [targets]: the share of the traffic at node v toward each target that leaves it by a port."""
    return np.array([_port_share(dags, v, t, port) for t in target])


class Shares:
    """Shares of traffic on channels under a routing's fixed split; with intermediate switches, those of one leg.

    They are computed for the channels out of one switch at a time, to limit memory.
    """

    def __init__(self, topology: Topology, routes: Routes):
        self.topology = topology
        self.graph = Graph.of(topology)
        self._dags: Dags | None = None
        if routes.paths is None:
            self._dags = dags_of(topology, routes)
            return
        pairs = Demand.of(np.outer(topology.host_count > 0, topology.ejection_count > 0).astype(float))
        paths = paths_of(routes.paths, self.graph, pairs)
        order = np.argsort(paths.channel, kind="stable")
        self._first = np.searchsorted(paths.channel[order], np.arange(topology.channels + 1))
        path = np.repeat(np.arange(len(paths.flow)), paths.hops)[order]
        pair = paths.commodity[path]
        self._crossing = Share(pairs.source[pair], pairs.destination[pair], paths.flow[path])

    def out_of(self, v: int) -> Iterator[tuple[int, Share]]:
        """The channels out of switch v, each with its share; a pair may be listed once for each of its paths."""
        channels = range(self.graph.out_start[v], self.graph.out_start[v + 1])
        if self._dags is None:
            for a in channels:
                own, every = slice(self._first[a], self._first[a + 1]), self._crossing
                yield a, Share(every.source[own], every.target[own], every.part[own])
            return
        visits = Share(*_visits(self.graph, self._dags, v))
        for port, a in enumerate(channels):
            part = visits.part * _leaving(self._dags, v, visits.target, port)
            crossing = part > 0
            yield a, Share(visits.source[crossing], visits.target[crossing], part[crossing])


def worst_case(topology: Topology, routes: Routes) -> WorstDemand:
    """The worst demand of the fixed split of routes, which must be oblivious.

    If translations preserve the routes, the channels out of one switch represent all. Only channels whose bound exceeds
    the worst load so far are solved. With intermediate switches, every demand in which all hosts send and receive one
    unit loads a channel equally.

    Raises :class:`~flitlab.fluid.problem.FluidError` for invalid capacities, next hops that form a cycle, and networks
    that are too large.
    """
    check_capacities(topology)
    shares = Shares(topology, routes)
    if routes.form == RouteForm.VIA:
        return _via_intermediate(topology, shares)
    group = _symmetry(topology, routes)
    search = _WorstChannel(topology, shares)
    if group is None and topology.channels * topology.switches**2 > MAX_VISITS:
        raise TooLargeError(
            f"{topology.channels} channels and {topology.switches} switches without symmetries that help are too many: "
            f"channels times pairs may be {MAX_VISITS:g}"
        )
    tails = [0] if group else list(range(topology.switches))
    bound = {v: search.bounds(v) for v in tails}
    for v in sorted(tails, key=lambda v: -bound[v].max(initial=0.0)):
        search.solve(v, bound[v])
    return search.worst(group)


def _via_intermediate(topology: Topology, shares: Shares) -> WorstDemand:
    hosts, n = topology.host_count / 1, topology.switches
    middle, most, channel = hosts / topology.hosts, 0.0, -1
    for v in range(n):
        for a, share in shares.out_of(v):
            by_legs = hosts[share.source] * middle[share.target] + middle[share.source] * hosts[share.target]
            if (load := float(share.part @ by_legs) / topology.capacity[a]) > most:
                most, channel = load, a
    host_switch = topology.host_switch.astype(np.int64)
    # packets within a switch use channels, too
    ends = np.array([host_switch, np.roll(host_switch, topology.hosts // 2)])
    (source, target), amount = np.unique(ends, axis=1, return_counts=True)
    theta = 1 / most if most > 0 else np.inf
    none = np.zeros(0, np.int64), np.zeros((0, n))
    return WorstDemand(channel, source, target, amount.astype(float), theta, theta, *none)


class _WorstChannel:
    """The worst channel so far, its demand, and the prices of all channels that were solved."""

    def __init__(self, topology: Topology, shares: Shares):
        self.topology = topology
        self.shares = shares
        self.sending = topology.host_count.astype(np.int64)
        self.receiving = topology.ejection_count.astype(np.int64)
        self.unit = max(int(np.gcd.reduce(np.concatenate([self.sending, self.receiving]))), 1)
        self.most, self.proven, self.channel = 0.0, 0.0, -1
        self.demand = Share(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        self.prices: dict[int, Floats] = {}

    def bounds(self, v: int) -> Floats:
        """float64 [channels out of v]: upper bounds on load over capacity, by rows or by columns."""
        return np.array([self._bound(a, self._matrix(share)) for a, share in self.shares.out_of(v)])

    def _bound(self, a: int, matrix: "_Matrix") -> float:
        source, target, value = matrix
        by_row, by_column = (value.max(axis=axis, initial=0.0) for axis in (1, 0))
        most = min(self.sending[source] @ by_row, self.receiving[target] @ by_column)
        return float(most / self.topology.capacity[a])

    def solve(self, v: int, bound: Floats) -> None:
        """Solve the channels out of v whose bound exceeds the worst load so far."""
        self.proven = max(self.proven, bound[bound <= self.most].max(initial=0.0))
        if not (bound > self.most).any():
            return
        for (a, share), most in zip(self.shares.out_of(v), bound, strict=True):
            if most > self.most:
                self._solve(a, self._matrix(share))
            else:
                self.proven = max(self.proven, most)

    def _solve(self, a: int, matrix: "_Matrix") -> None:
        source, target, value = matrix
        supply, capacity = self.sending[source], self.receiving[target]
        sent, price = max_value_shipment(value, supply // self.unit, capacity // self.unit)
        load = self.unit * float((value * sent).sum()) / self.topology.capacity[a]
        target_price = np.maximum(value - price[:, None], 0.0).max(axis=0)
        self.proven = max(
            self.proven, load, float(supply @ price + capacity @ target_price) / self.topology.capacity[a]
        )
        self.prices[a] = np.zeros(self.topology.switches)
        self.prices[a][source] = price
        if load > self.most:
            self.most, self.channel = load, a
            s, t = np.nonzero(sent)
            crossing = source[s] != target[t]
            s, t = s[crossing], t[crossing]
            self.demand = Share(source[s], target[t], self.unit * sent[s, t].astype(float))

    def _matrix(self, share: Share) -> "_Matrix":
        hosted = (self.sending[share.source] > 0) & (self.receiving[share.target] > 0)
        source, s = np.unique(share.source[hosted], return_inverse=True)
        target, t = np.unique(share.target[hosted], return_inverse=True)
        value = sums(s * len(target) + t, share.part[hosted], len(source) * len(target))
        return source, target, value.reshape(len(source), len(target))

    def worst(self, group: Translations | None) -> WorstDemand:
        """The worst demand with its proof."""
        lower, upper = (1 / most if most > 0 else np.inf for most in (self.proven, self.most))
        return WorstDemand(self.channel, *self.demand, lower, upper, *self._proof(group))

    def _proof(self, group: Translations | None) -> tuple[Ints, Floats | None]:
        """The channels that have prices, and the prices; translations copy them to all channels."""
        n = self.topology.switches
        solved = np.array(sorted(self.prices), np.int64)
        channels = len(solved) * (n if group else 1)
        if channels * n > MAX_PRICES:
            return np.zeros(0, np.int64), None
        price = np.array([self.prices[a] for a in solved.tolist()]).reshape(-1, n)
        if group is None:
            return solved, price
        row = np.full(group.generators, -1)
        row[group.generator[solved]] = np.arange(len(solved))
        alike = np.flatnonzero(row[group.generator] >= 0)
        from_tail = [group.step(np.full(n, tail), np.arange(n)) for tail in self.topology.src[alike]]
        return alike, price[row[group.generator[alike], None], np.reshape(from_tail, (-1, n))]


_Matrix = tuple[Ints, Ints, Floats]
"""Shares of a channel as a matrix: its sources and targets with hosts, and the share from s to t."""


def _symmetry(topology: Topology, routes: Routes) -> Translations | None:
    """Translations that preserve hosts, channels and the next hops of routes; None if there are none."""
    if routes.paths is not None or routes.port_threshold is not None or len(set(topology.host_count.tolist())) > 1:
        return None
    if topology.is_multistage:
        return None
    ports = dags_of(topology, routes).ports
    tail, port = topology.src, np.arange(topology.channels) - topology.out_start[topology.src]
    for group in translations(topology):
        first = np.zeros((topology.switches, group.generators), bool)
        first[tail, group.generator] = allows(ports, 0, tail, port)
        if all(
            np.array_equal(
                allows(ports, t, tail, port),
                first[group.step(np.full(topology.channels, t), tail), group.generator],
            )
            for t in range(topology.switches)
        ):
            return group
    return None
