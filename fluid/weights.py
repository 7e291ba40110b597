# SPDX-License-Identifier: Apache-2.0
"""Weights of paths that carry almost as much of a demand as any routing: the basis of a planned routing.

The maximum concurrent flow over the paths of a plan gives the flow of each. The paths of most flow of every pair are
kept, and the flow is solved again over them: without a second solve, up to a third of the throughput is lost.
"""

import math
from dataclasses import replace

import numpy as np

from flitlab.fluid.concurrent import fixed_split
from flitlab.fluid.graph import UNRESTRICTED, Dags, Demand, Graph
from flitlab.fluid.hosts import host_bound
from flitlab.fluid.mcf.choose import DENSE, MAX_PATH_PAIRS, Solution, solve
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.mcf.shortest import PathSplit, flow_thresholds, nearest_weights, port_thresholds
from flitlab.fluid.problem import Problem, check_numbers
from flitlab.fluid.split import split_load, split_theta
from flitlab.fluid.trees import dag_order
from flitlab.models.arrays import Bools, Bytes, Floats, Ints, Masks
from flitlab.models.instance import Instance
from flitlab.models.jit import kernel, njit
from flitlab.models.mappings import Notes
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.registry import SpecError, make
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.planned import (
    NextHopPlan,
    NextHopWeights,
    PathPlan,
    PathWeights,
    PlannedSpec,
    equal_thresholds,
    needs_solver,
)
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.rules.tables import MaxPorts, RouteForm
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

LEAST = 1e-3
"""Weight below which a path is dropped where weights are exact: it would cost every packet a VC."""
RARE = 0.01
"""Share of all flow up to which the longest paths may be dropped."""
NEAR_OPTIMAL = 0.02
"""Relative loss of shortest paths against the hop bound up to which longer paths are not tried."""
MAX_LP_PAIRS = 300_000
"""Pairs of switches up to which an LP is solved for weights of given next hops that are not near-optimal."""
FINEST = 256
"""Table entries of a next hop at most: thresholds of 8 bits."""
PASSES = 3
"""Rounds in which remaining table entries are assigned."""
REPORTED_PATTERNS = {"uniform": 2048, "longest_matching": 1500}
"""Patterns for which the split of a planned routing is reported, too -> switches up to which it is."""


def routes_for(spec: RoutingSpec, topology: Topology, traffic: Traffic | None) -> Routes:
    """The routes of any routing on a topology.

    Parameters
    ----------
    spec : RoutingSpec
        The routing.
    topology : Topology
        The network.
    traffic : Traffic or None
        Demand of planned routings.

    Raises
    ------
    SpecError
        The routing cannot serve it.
    """
    if not needs_solver(spec):
        return spec.build(topology)
    return planned_routes(spec, topology, spec.validated_demand(topology, traffic))


def planned_routes(spec: PlannedSpec, topology: Topology, demand: Traffic) -> Routes:
    """The routes of a planned routing, with its guarantees in their notes.

    Parameters
    ----------
    spec : PlannedSpec
        The routing.
    topology : Topology
        The network.
    demand : Traffic
        The demand that it is planned for.

    Raises
    ------
    SpecError
        The routing cannot serve it.
    """
    routes = spec.validated(spec.planned, topology, demand, weigh)
    promises = (
        _leg_promises(topology, demand, routes) if routes.form == RouteForm.VIA else _promises(topology, demand, routes)
    )
    return replace(routes, notes=routes.notes | promises)


def weigh(topology: Topology, plan: PathPlan | NextHopPlan) -> PathWeights | NextHopWeights:
    """The weights of the paths, or next hops, that are used.

    The notes hold ``theta_upper``, which no weights of paths of at most as many channels exceed; of given next hops, no
    paths at all.
    """
    if isinstance(plan, NextHopPlan):
        return _of_next_hops(topology, plan)
    check_numbers(topology, plan.demand)
    graph, demand = Graph.of(topology), Demand.of_traffic(plan.demand)
    if demand.size == 0:
        return PathWeights(PathSet(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32)), np.zeros(0))
    if plan.listed is None and (hops := _by_hops(topology, Problem(graph, demand), plan)) is not None:
        return hops
    whole, every = _solved(_problem(graph, demand, plan), plan.gap)
    used = _of_most_flow(every, plan.keep)
    selected = select_paths(every, used)
    if len(selected.flow) < int((every.flow > 0).sum()):
        selected = _solved(Problem(graph, demand, paths=selected), plan.gap, (1 - plan.gap) * whole.lower)[1]
    selected = _shortened(graph, demand, every, used, selected, plan.gap)
    worth = selected.flow >= _least(plan.entries) * demand.amount[selected.commodity]
    selected = select_paths(selected, worth & _of_most_flow(selected, plan.keep))
    weight = selected.flow / np.bincount(selected.commodity, selected.flow, demand.size)[selected.commodity]
    if plan.entries is not None:
        weight = quantised(graph, demand, selected, weight, plan.entries)
        selected = select_paths(selected._replace(flow=weight), weight > 0)
        weight = selected.flow
    upper = float(min(whole.upper, host_bound(topology, plan.demand)))
    return PathWeights(
        PathSet(selected.first, selected.start, selected.channel),
        weight,
        {"theta_upper": upper, "method": whole.method},
    )


def _by_hops(topology: Topology, problem: Problem, plan: PathPlan) -> NextHopWeights | None:
    """Next hops on shortest paths whose split is near the hop bound, for a dense demand; else None.

    Channels must have equal capacities, so that shortest paths have the fewest channels.
    """
    capacity, degree = topology.capacity, int(topology.out_degree.max())
    if problem.demand.size <= DENSE * topology.switches or degree > MaxPorts.TABLE or (capacity != capacity[0]).any():
        return None
    split = PathSplit(problem)
    scaled = nearest_weights(split, plan.gap, math.inf)
    if scaled.excess > max(plan.gap, NEAR_OPTIMAL) and problem.demand.size <= MAX_PATH_PAIRS:
        return None
    ports = minimal_ports(topology)[0]
    threshold = equal_thresholds(ports, degree)
    port_thresholds(split, scaled.weight, min(plan.entries or FINEST, FINEST), ports, threshold)
    upper = float(min(scaled.theta * (1 + scaled.excess), host_bound(topology, plan.demand)))
    return NextHopWeights(ports, threshold, {"theta_upper": upper, "method": "scaled shortest paths"})


def _of_next_hops(topology: Topology, plan: NextHopPlan) -> NextHopWeights:
    """Weights of given next hops: by channel weights if these are near-optimal, else by an LP; or equal shares."""
    check_numbers(topology, plan.demand)
    graph, demand, ports = Graph.of(topology), Demand.of_traffic(plan.demand), plan.ports.copy()
    if demand.size == 0:
        return NextHopWeights(ports, None, {"theta_upper": None, "method": "nothing to weigh"})
    dags = Dags(plan.ports, dag_order(graph, plan.ports), UNRESTRICTED.via)
    problem = Problem(graph, demand, dags)
    threshold = equal_thresholds(ports, int(topology.out_degree.max()))
    upper, method = _weights_into(topology, plan, problem, ports, threshold)
    weighed = dags._replace(ports=ports, threshold=threshold)
    alike, by_weight = ((split_load(graph, demand, one) / graph.capacity).max() for one in (dags, weighed))
    if alike <= by_weight:
        return NextHopWeights(plan.ports, None, {"theta_upper": upper, "method": "equal shares"})
    return NextHopWeights(ports, threshold, {"theta_upper": upper, "method": method})


def _weights_into(
    topology: Topology, plan: NextHopPlan, problem: Problem, ports: Masks, threshold: Bytes
) -> tuple[float, str]:
    """Write the weights of next hops; returns an upper bound on theta of any flow, and the method."""
    graph, demand, split = problem.graph, problem.demand, PathSplit(problem)
    scaled = nearest_weights(split, plan.gap, math.inf)
    upper = graph.channels / float((demand.amount * Problem(graph, demand).distances(1 / graph.capacity)).sum())
    if upper > (1 + plan.gap) * scaled.theta and demand.size <= MAX_LP_PAIRS:
        upper = min(upper, solve(Problem.of(topology, plan.demand), plan.gap).upper)
        solution = solve(problem, plan.gap)
        if solution.flow is not None and solution.lower > scaled.theta:
            flow_thresholds(graph, demand.target, _by_target(problem, solution.flow), FINEST, ports, threshold)
            return upper, solution.method
    port_thresholds(split, scaled.weight, FINEST, ports, threshold)
    return upper, "scaled shortest paths"


def _by_target(problem: Problem, flow: Floats | Paths) -> Floats:
    """float64 [targets, channels]: a flow by destination."""
    if not isinstance(flow, Paths):
        return flow
    channels, targets = problem.graph.channels, len(problem.demand.target)
    index = np.repeat(problem.demand.row[flow.commodity], flow.hops) * channels + flow.channel
    whole = np.zeros(targets * channels)
    np.add.at(whole, index, np.repeat(flow.flow, flow.hops))
    return whole.reshape((targets, channels))


def _problem(graph: Graph, demand: Demand, plan: PathPlan) -> Problem:
    """The flow problem over the listed paths, initially with equal shares, or over all paths of limited length."""
    listed = plan.listed
    if listed is None:
        return Problem(graph, demand, UNRESTRICTED._replace(hops=plan.hops))
    flow = np.repeat(demand.amount / listed.counts, listed.counts)
    return Problem(graph, demand, paths=Paths(listed.pair_start, listed.path_start, listed.channel, flow))


def _solved(problem: Problem, gap: float, enough: float = math.inf) -> tuple[Solution, Paths]:
    """The solution, and its flow over paths, scaled to the demand of every pair: solvers return any scale."""
    solution, amount = solve(problem, gap, enough=enough), problem.demand.amount
    paths = solution.flow
    assert isinstance(paths, Paths)
    scale = amount / np.bincount(paths.commodity, paths.flow, len(amount))
    return solution, paths._replace(flow=paths.flow * scale[paths.commodity])


def _shortened(graph: Graph, demand: Demand, every: Paths, used: Bools, selected: Paths, gap: float) -> Paths:
    """The paths ``selected`` without the longest ones, repeatedly, while these carry little and theta stays within the
    gap.

    Every channel of the longest path needs VCs. A pair without another path gets all its shorter paths among ``every``.
    used: bool, which of these are selected.
    """
    enough = (1 - gap) * _theta(graph, selected)
    while True:
        longest = selected.hops.max()
        short = every.hops < longest
        bare = np.bincount(every.commodity[used & short], minlength=demand.size) == 0
        used = short & (used | bare[every.commodity])
        disconnected = (np.bincount(every.commodity[used], minlength=demand.size) == 0).any()
        if disconnected or selected.flow[selected.hops == longest].sum() > RARE * selected.flow.sum():
            return selected
        shorter = _solved(Problem(graph, demand, paths=select_paths(every, used)), gap, enough)[1]
        if _theta(graph, shorter) < enough:
            return selected
        selected = shorter


def _theta(graph: Graph, paths: Paths) -> float:
    return float(1 / (paths.load(graph.channels) / graph.capacity).max())


def _least(entries: int | None) -> float:
    """The least weight of a path that is used: half a table entry."""
    return LEAST if entries is None else 1 / (2 * entries)


def _of_most_flow(paths: Paths, most: int) -> Bools:
    """bool [paths]: the ``most`` paths of each commodity with the largest positive flow."""
    order = np.lexsort((-paths.flow, paths.commodity))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    chosen: Bools = (rank - paths.first[paths.commodity] < most) & (paths.flow > 0)
    return chosen


def select_paths(paths: Paths, selected: Bools) -> Paths:
    """A subset of the paths, with at least the one of most flow of each commodity; flows are scaled to the same total.

    Parameters
    ----------
    paths : Paths
        The paths.
    selected : bool [paths]
        The subset.
    """
    commodities = len(paths.first) - 1
    bare = np.bincount(paths.commodity[selected], minlength=commodities) == 0
    selected = selected | (bare[paths.commodity] & _of_most_flow(paths, 1))
    commodity, lengths, flow = paths.commodity[selected], paths.hops[selected], paths.flow[selected]
    flow = np.where(
        np.bincount(commodity, flow, commodities)[commodity] > 0, flow, 1.0
    )  # equal weights where no flow is left
    whole = np.bincount(paths.commodity, paths.flow, commodities) / np.bincount(commodity, flow, commodities)
    first = np.searchsorted(commodity, np.arange(commodities + 1))
    return Paths(first, starts(lengths), paths.channel[np.repeat(selected, paths.hops)], flow * whole[commodity])


def quantised(graph: Graph, demand: Demand, paths: Paths, weight: Floats, entries: int) -> Floats:
    """Weights as multiples of 1 / entries: rounded down, and remaining entries assigned by load.

    Pair by pair, by decreasing demand, each remaining entry goes to the path whose fullest channel is least loaded.

    Parameters
    ----------
    graph : Graph
        The graph.
    demand : Demand
        Commodities.
    paths : Paths
        Their paths.
    weight : float64 [paths]
        Weights that sum to 1 for each commodity.
    entries : int
        Table entries.

    Returns
    -------
    float64 [paths]
        Weights.
    """
    exact = weight * entries
    whole = np.floor(exact + 1e-9).astype(np.int64)
    order = np.lexsort((np.arange(demand.size), -demand.amount))
    counts = _entry_counts(paths, order, whole, exact, demand.amount / entries, graph.capacity, entries)
    return counts / entries


@njit
def _entry_counts(
    paths: Paths, order: Ints, whole: Ints, exact: Floats, unit: Floats, capacity: Floats, entries: int
) -> Ints:
    """int64 [paths]: table entries of every path. order: of the commodities; unit: float64 [commodities], demand per
    entry.
    """
    use, counts = np.zeros(len(capacity)), exact.copy()
    _add_all(paths, counts, unit, capacity, use)
    for _ in range(PASSES):
        for k in order:
            low, high = paths.first[k], paths.first[k + 1]
            remaining = entries
            for p in range(low, high):
                _add(paths, p, (whole[p] - counts[p]) * unit[k], capacity, use)
                counts[p] = whole[p]
                remaining -= whole[p]
            for _ in range(remaining):
                best = _least_loaded(paths, k, unit[k], capacity, use)
                _add(paths, best, unit[k], capacity, use)
                counts[best] += 1
    return counts.astype(np.int64)


@kernel
def _least_loaded(paths: Paths, k: int, amount: float, capacity: Floats, use: Floats) -> int:
    """The path of a commodity whose fullest channel is least full if ``amount`` is added; use: see :func:`_add`."""
    best: int = paths.first[k]
    least = np.inf
    for p in range(paths.first[k], paths.first[k + 1]):
        fullest = 0.0
        for i in range(paths.start[p], paths.start[p + 1]):
            a = paths.channel[i]
            fullest = max(fullest, use[a] + amount / capacity[a])
        if fullest < least:
            best, least = p, fullest
    return best


@njit
def _add_all(paths: Paths, counts: Floats, unit: Floats, capacity: Floats, use: Floats) -> None:
    for k in range(len(unit)):
        for p in range(paths.first[k], paths.first[k + 1]):
            _add(paths, p, counts[p] * unit[k], capacity, use)


@njit
def _add(paths: Paths, p: int, amount: float, capacity: Floats, use: Floats) -> None:
    """Add a flow along a path to the loads ``use`` [channels], each divided by its capacity."""
    for i in range(paths.start[p], paths.start[p + 1]):
        a = paths.channel[i]
        use[a] += amount / capacity[a]


def _promises(topology: Topology, demand: Traffic, routes: Routes) -> Notes:
    """``theta`` of the demand that the finished tables are planned for, and of other patterns."""
    promises: Notes = {"theta": float(fixed_split(Instance(topology, demand, routes)).lower)}
    for kind, most in REPORTED_PATTERNS.items():
        if topology.switches <= most:
            try:
                other = make("traffic", kind=kind).build(topology)
            except SpecError:  # the pattern is not defined for these hosts
                continue
            theta = float(fixed_split(Instance(topology, other, routes)).lower)
            promises[f"split_{kind}"] = theta if math.isfinite(theta) else None
    return promises


def _leg_promises(topology: Topology, demand: Traffic, routes: Routes) -> Notes:
    """``theta`` of all-to-all traffic by one leg, and ``worst_case`` of any demand by two, for finished tables of legs.

    demand: all-to-all. No demand loads a channel more by two legs, see :func:`~flitlab.fluid.worst.worst_case`.
    """
    half = split_theta(Problem.of(topology, demand, routes), topology, demand)
    guaranteed = float(min(half, topology.host_capacity))
    return {name: x if math.isfinite(x) else None for name, x in (("theta", 2 * half), ("worst_case", guaranteed))}
