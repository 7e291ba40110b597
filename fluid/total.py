# SPDX-License-Identifier: Apache-2.0
"""The largest total accepted at an offered load, where no demand gets more than its offer."""

from dataclasses import dataclass, replace

import numpy as np

from flitlab.fluid.attempts import Attempts, best_of, both_methods
from flitlab.fluid.ceiling import Method
from flitlab.fluid.certificate import Certificate, hosts_overloaded, offered_pairs, verify_total
from flitlab.fluid.delivered import verify_flow, verify_paths
from flitlab.fluid.graph import Demand, Graph
from flitlab.fluid.mcf import arcs
from flitlab.fluid.mcf.choose import EXACT_GAP, MAX_PATH_PAIRS, PROMISED
from flitlab.fluid.mcf.paths import Paths, balance, cheapest, extend, trimmed
from flitlab.fluid.mcf.sparse import Effort, effort, first_paths
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import FluidError, Problem, check_numbers
from flitlab.models.arrays import Floats
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic


@dataclass(frozen=True, eq=False)
class TotalBounds:
    """Bounds on the total accepted, in flits/tick.

    flow: proof of the lower bound, as in :class:`~flitlab.fluid.ceiling.Ceiling`; None where host channels are part of
    it. note: methods that failed before, and why.
    """

    lower: float
    upper: float
    method: str
    certificate: Certificate
    flow: np.ndarray | Paths | None = None
    note: str = ""

    def tightened(self, other: "TotalBounds") -> "TotalBounds":
        """The larger lower bound and the smaller upper one, each with its proof."""
        below, above = max(self, other, key=lambda one: one.lower), min(self, other, key=lambda one: one.upper)
        method, lower = both_methods(below.method, above.method), min(below.lower, above.upper)
        return replace(below, lower=lower, upper=above.upper, certificate=above.certificate, method=method)


@dataclass(frozen=True, eq=False)
class _Offer:
    """The flow problem of a load. Its graph contains the host channels if some can be full.

    Then node n + p sends and node n + P + p receives for pool p of P: the host channels of a switch are pooled, which
    can only increase the bound, or each is a pool of its own.
    """

    topology: Topology
    traffic: Traffic
    load: float
    problem: Problem
    channel_index: np.ndarray  # int64: where the channels of the network, then of the pools, are in the graph
    local: float  # accepted without any channel
    pools: tuple[np.ndarray, np.ndarray] | None = None  # int64 [hosts] each: the pools of a host; None without

    @classmethod
    def of(cls, topology: Topology, traffic: Traffic, load: float, by_host: bool = False) -> "_Offer":
        n, most, ends = topology.switches, topology.host_capacity, (topology.host_switch, topology.ejection_switch)
        if hosts_overloaded(topology, traffic, load):
            source, target, amount = offered_pairs(topology, traffic, load)
            sent, received = (np.bincount(end, amount, topology.hosts) for end in (source, target))
            if max(sent.max(), received.max()) > most * (1 + 1e-12):
                pools = (np.arange(topology.hosts),) * 2 if by_host else ends
                count = topology.hosts if by_host else n
                capacities = [
                    np.bincount(pool, np.minimum(host_totals, most), count)
                    for pool, host_totals in zip(pools, (sent, received), strict=True)
                ]
                graph, channel_index = _with_host_channels(topology, pools, capacities)
                # demand within a switch uses its host channels
                first, second = n + pools[0][source], n + count + pools[1][target]
                demand = Demand.of_pairs(graph.nodes, first, second, amount)
                return cls(topology, traffic, load, Problem(graph, demand), channel_index, 0.0, pools)
            demand = Demand.of_pairs(n, ends[0][source], ends[1][target], amount)
            offered = float(amount.sum())
        else:
            demand = Demand.of_traffic(traffic).scaled(load)
            offered = load * float(traffic.rate.sum())
        local = max(offered - float(demand.amount.sum()), 0.0)
        return cls(topology, traffic, load, Problem(Graph.of(topology), demand), np.arange(topology.channels), local)

    def certificate(self, z: Floats) -> Certificate:
        """Prices of the topology's channels, from prices z of the problem's channels."""
        if self.pools is None:
            return Certificate.on_network(self.topology, z)
        m, full = self.topology.channels, self.topology.host_capacity * (1 - 1e-12)
        injection, ejection = np.split(z[self.channel_index[m:]], 2)
        return Certificate(
            z[self.channel_index[:m]],
            np.where(self.load * self.traffic.rate >= full, injection[self.pools[0]], 0),
            np.where(self.load * self.traffic.column_sums >= full, ejection[self.pools[1]], 0),
        )

    def accepted(self, served: np.ndarray) -> float:
        """Total of commodities that are served, after the limits of single host channels. served: float64
        [commodities].
        """
        if self.pools is None:
            return self.local + float(np.minimum(served, self.problem.demand.amount).sum())
        n, nodes, demand = self.topology.switches, self.problem.graph.nodes, self.problem.demand
        most, share = self.topology.host_capacity, np.minimum(served / demand.amount, 1)
        source, target, amount = offered_pairs(self.topology, self.traffic, self.load)
        first, second = n + self.pools[0][source], (n + nodes) // 2 + self.pools[1][target]
        amount = amount * share[demand.find(nodes, first, second)]
        for end in (source, target):
            busy = np.bincount(end, amount, self.topology.hosts)
            amount = amount * np.minimum(1, most / np.maximum(busy, 1e-300))[end]
        return float(amount.sum())


def _with_host_channels(
    topology: Topology, pools: tuple[np.ndarray, np.ndarray], capacities: list[np.ndarray]
) -> tuple[Graph, np.ndarray]:
    """The graph with an injection and an ejection channel per pool, and the numbers of its channels."""
    n, count = topology.switches, len(capacities[0])
    pool, switches = np.arange(count), np.zeros((2, count), np.int64)
    switches[0][pools[0]], switches[1][pools[1]] = topology.host_switch, topology.ejection_switch
    src = np.concatenate([topology.src, n + pool, switches[1]])
    dst = np.concatenate([topology.dst, switches[0], n + count + pool])
    capacity = np.concatenate([topology.capacity, *capacities])
    # hosts or switches without traffic: unused channels, but logarithms and LPs need positive capacities
    capacity[capacity == 0] = capacity.mean()
    order = np.lexsort((dst, src))
    return Graph.from_channels(n + 2 * count, src[order], dst[order], capacity[order]), np.argsort(order)


def total(topology: Topology, traffic: Traffic, load: float, gap: float, method: Method) -> TotalBounds:
    """Bounds on the largest total accepted at a load.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    load : float
        Factor of the demand.
    gap : float
        Relative gap at which the search may end.
    method : Method
        ``exact``, ``approx`` or ``auto``.

    Returns
    -------
    Total
        Flits/tick of all hosts.

    Raises
    ------
    FluidError
        Too many commodities, numbers over too wide a range, or no method gives a bound.
    """
    check_numbers(topology, traffic)
    offer = _Offer.of(topology, traffic, load)
    pooled = offer.pools is not None
    if pooled:
        receiving = int(np.count_nonzero(traffic.column_sums))  # each with a flow on every channel and from every host
        if arcs.is_suitable(receiving * (topology.channels + 3 * topology.hosts), method, gap < EXACT_GAP):
            offer, pooled = _Offer.of(topology, traffic, load, by_host=True), False
    problem = offer.problem
    if problem.demand.size == 0:
        none = Certificate.on_network(topology, np.zeros(topology.channels))
        return TotalBounds(offer.local, offer.local, "local", none)

    def by_lp() -> TotalBounds:
        solution = arcs.total_flow(problem)
        served = verify_flow(problem, solution.flow, solution.amount)
        return _certified(offer, solution.prices, served, f"arc LP ({solution.solver})", solution.flow)

    def by_multipliers() -> TotalBounds:
        if problem.demand.size > MAX_PATH_PAIRS:
            raise FluidError(f"{problem.demand.size} commodities are too many (at most {MAX_PATH_PAIRS})")
        z, paths = accept(problem, EXACT_GAP if method == "exact" else gap, effort(problem), offer.local)
        return _certified(offer, z, verify_paths(problem, paths), "multipliers", paths.carrying())

    lp: Attempts = {"arc LP": by_lp}
    first_order: Attempts = {"multipliers": by_multipliers}
    lp_suits = arcs.is_suitable(arcs.columns(problem) + problem.demand.size, method, gap < EXACT_GAP)
    # pooling host channels may leave a gap that no method closes
    target_gap = np.inf if pooled else PROMISED if method == "exact" else gap
    bounds: TotalBounds = best_of((lp if lp_suits else {}) | first_order, {}, target_gap)
    return bounds


def _certified(offer: _Offer, z: Floats, served: np.ndarray, method: str, flow: np.ndarray | Paths) -> TotalBounds:
    """Both bounds: from prices, and from what a flow serves within the capacities."""
    topology, traffic, load = offer.topology, offer.traffic, offer.load
    certificate = offer.certificate(z)
    upper = min(verify_total(topology, traffic, load, certificate), load * float(traffic.rate.sum()))
    lower = min(offer.accepted(served), upper)
    if not 0 <= lower <= upper < np.inf:
        raise ValueError(f"{method} ended with bounds of {lower:g} and {upper:g}")
    return TotalBounds(lower, upper, method, certificate, flow if offer.pools is None else None)


def accept(problem: Problem, gap: float, work: Effort, local: float) -> tuple[Floats, Paths]:
    """Prices and feasible path flows of large total, like :func:`flitlab.fluid.mcf.sparse.multipliers`.

    A commodity may also stay unserved, at cost 1, and weights are prices: exp(b + alpha * (use - 1)).

    Parameters
    ----------
    problem : Problem
        The flow problem; its demand is the offer.
    gap : float
        Relative gap at which it ends.
    work : Effort
        Limits of the work.
    local : float
        Flits/tick accepted without any channel.

    Returns
    -------
    float64 [channels]
        Prices.
    Paths
        Feasible flows.
    """
    graph, demand, capacity = problem.graph, problem.demand, problem.graph.capacity
    rng = np.random.default_rng(1)
    paths = _fitting(problem, first_paths(problem, Paths.unserved(np.zeros(demand.size)), work.rounds, rng))
    best, upper = np.zeros(graph.channels), float(demand.amount.sum())
    z, _ = _scaled(problem, 1 / capacity, price(graph, demand, problem.dags, 1 / capacity)[0])
    bias = np.log(z * capacity)
    best_paths, lower = trimmed(paths, np.ones(graph.channels)), 0.0
    alpha = np.log(graph.channels + 1) / 2
    for sweep in range(work.sweeps):
        use = paths.load(graph.channels) / capacity
        z = np.exp(np.minimum(bias + alpha * (use - 1), 50)) / capacity
        balance(graph, paths, rng.permutation(demand.size), alpha, work.passes, 0.0, use * capacity, z)
        use = paths.load(graph.channels) / capacity
        feasible = trimmed(paths, np.maximum(use, 1))
        if feasible.flow.sum() > lower:
            lower, best_paths = feasible.flow.sum(), feasible

        log_weight = bias + alpha * (use - 1)
        z = np.exp(np.minimum(log_weight, 50)) / capacity
        distance, priced = price(graph, demand, problem.dags, z, (1 - 1e-9) * cheapest(paths, z))
        scaled, bound = _scaled(problem, z, distance)
        if bound < upper:
            upper, best = bound, scaled
        if upper + local <= (1 + gap) * (lower + local):
            break
        bias = np.maximum(log_weight, log_weight.max() - 30)
        paths = Paths(*extend(paths, priced, sweep % 3 == 2, np.zeros(demand.size)))
    return best, best_paths


def _fitting(problem: Problem, paths: Paths) -> Paths:
    """Flows within the capacities; the rest is unserved."""
    graph, amount = problem.graph, problem.demand.amount
    fitting = trimmed(paths, np.maximum(paths.load(graph.channels) / graph.capacity, 1))
    served = np.bincount(fitting.commodity, fitting.flow, len(amount))
    fitting.flow[fitting.hops == 0] = np.maximum(amount - served, 0)
    return fitting


def _scaled(problem: Problem, z: Floats, distance: np.ndarray) -> tuple[Floats, float]:
    """The multiple of prices z with the least bound, and that bound: capacity * z + sum of offer * max(0, 1 -
    distance).

    As a function of the factor s the bound is convex and piecewise linear with breaks at s = 1 / distance. Its slope is
    the worth of the capacity minus the cost of the pairs nearer than 1 / s.
    """
    amount, length = problem.demand.amount, float(problem.graph.capacity @ z)
    order = np.argsort(distance, kind="stable")
    needed = np.cumsum(amount[order] * distance[order])
    k = min(int(np.searchsorted(needed, length)), len(order) - 1)
    best = 1 / max(distance[order[k]], 1e-300)
    bound = best * length + float(amount @ np.maximum(0, 1 - best * distance))
    return best * z, bound
