"""Weights of paths that carry a demand nearly as far as any routing could: what a planned routing is made of.

The maximum concurrent flow over the paths of a plan says how much goes along each. The paths of most flow of every
pair are kept, and the flow is solved again over these: to cut without solving again loses up to a third.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from flitlab.fluid.concurrent import fixed_split
from flitlab.fluid.graph import UNRESTRICTED, Demand, Graph
from flitlab.fluid.hosts import host_bound
from flitlab.fluid.mcf.choose import Solution, solve
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import Problem, check_numbers
from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.instance import Instance
from flitlab.models.jit import njit
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.registry import SpecError, make
from flitlab.models.routing.planned import Plan, PlannedSpec, Weighed
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

LEAST = 1e-3
"""Weight below which a path is dropped where weights are exact: it would cost every packet a VC."""
PASSES = 3
"""Rounds in which left-over table entries are dealt out."""
OTHERS = {"uniform": 2048, "longest_matching": 1500}
"""Patterns under which the split of a planned routing is told too -> switches up to which it is."""


def routes_for(spec: RoutingSpec, topology: Topology, traffic: Traffic | None) -> Routes:
    """The routes of any routing on a topology; traffic: what those are made for that are made for a demand.

    Raises :class:`~flitlab.models.registry.SpecError` where the routing cannot serve it.
    """
    if not isinstance(spec, PlannedSpec):
        return spec.build(topology)
    return planned_routes(spec, topology, spec.demand(topology, traffic))


def planned_routes(spec: PlannedSpec, topology: Topology, demand: Traffic) -> Routes:
    """The routes of a routing that is made for a demand; their notes say what they promise. Raises ``SpecError``."""
    routes = spec.looked_at(spec.planned, topology, demand, weigh)
    return replace(routes, notes=routes.notes | _promises(topology, demand, routes))


def weigh(topology: Topology, plan: Plan) -> Weighed:
    """The weights of the paths that are used.

    The notes hold ``theta_upper``: no weights of paths of at most as many channels carry more.
    """
    check_numbers(topology, plan.demand)
    graph, demand = Graph.of(topology), Demand.of_traffic(plan.demand)
    if demand.size == 0:
        return Weighed(PathSet(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32)), np.zeros(0))
    whole, every = _solved(_problem(graph, demand, plan), plan.gap)
    few = kept(every, _of_most_flow(every, plan.keep))
    if len(few.flow) < int((every.flow > 0).sum()):
        few = _solved(Problem(graph, demand, paths=few), plan.gap, (1 - plan.gap) * whole.lower)[1]
    few = kept(few, few.flow >= _least(plan.entries) * demand.amount[few.commodity])
    weight = few.flow / np.bincount(few.commodity, few.flow, demand.size)[few.commodity]
    if plan.entries is not None:
        weight = quantised(graph, demand, few, weight, plan.entries)
        few = kept(few._replace(flow=weight), weight > 0)
        weight = few.flow
    upper = float(min(whole.upper, host_bound(topology, plan.demand)))
    return Weighed(PathSet(few.first, few.start, few.channel), weight, {"theta_upper": upper, "method": whole.method})


def _problem(graph: Graph, demand: Demand, plan: Plan) -> Problem:
    """Over the paths listed, each with an equal share at first, or over all ways of so many channels."""
    listed = plan.listed
    if listed is None:
        return Problem(graph, demand, UNRESTRICTED._replace(hops=plan.hops))
    flow = np.repeat(demand.amount / listed.counts, listed.counts)
    return Problem(graph, demand, paths=Paths(listed.pair_start, listed.path_start, listed.channel, flow))


def _solved(problem: Problem, gap: float, enough: float = math.inf) -> tuple[Solution, Paths]:
    solution = solve(problem, gap, enough=enough)
    assert isinstance(solution.flow, Paths)
    return solution, solution.flow


def _least(entries: int | None) -> float:
    """The least weight of a path that is used: what a table entry can stand for."""
    return LEAST if entries is None else 1 / (2 * entries)


def _of_most_flow(paths: Paths, most: int) -> Bools:
    """bool [paths]: the ``most`` of each commodity that carry most, of those that carry anything."""
    order = np.lexsort((-paths.flow, paths.commodity))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    found: Bools = (rank - paths.first[paths.commodity] < most) & (paths.flow > 0)
    return found


def kept(paths: Paths, which: Bools) -> Paths:
    """Some of the paths, and the one of most flow of each commodity; their flows scaled to what all together had."""
    which = which | _of_most_flow(paths, 1)
    commodities = len(paths.first) - 1
    commodity, lengths, flow = paths.commodity[which], paths.lengths[which], paths.flow[which]
    part = np.bincount(commodity, flow, commodities) / np.bincount(paths.commodity, paths.flow, commodities)
    first = np.searchsorted(commodity, np.arange(commodities + 1))
    return Paths(first, starts(lengths), paths.channel[np.repeat(which, paths.lengths)], flow / part[commodity])


def quantised(graph: Graph, demand: Demand, paths: Paths, weight: Floats, entries: int) -> Floats:
    """Weights [paths] as multiples of 1 / entries: rounded down, and what is left dealt out by load.

    Pair by pair, that of the largest demand first, each entry that is left goes to the path whose fullest channel is
    least loaded.
    """
    exact = weight * entries
    whole = np.floor(exact + 1e-9).astype(np.int64)
    order = np.lexsort((np.arange(demand.size), -demand.amount))
    given = _dealt(paths, order, whole, exact, demand.amount / entries, graph.capacity, entries)
    return given / entries


@njit
def _dealt(paths: Paths, order: Ints, whole: Ints, exact: Floats, unit: Floats, capacity: Floats, entries: int) -> Ints:
    """int64 [paths]: table entries of every path. order: of the commodities; unit [commodities]: of their entries."""
    use, given = np.zeros(len(capacity)), exact.copy()
    _add_all(paths, given, unit, capacity, use)
    for _ in range(PASSES):
        for k in order:
            low, high = paths.first[k], paths.first[k + 1]
            left = entries
            for p in range(low, high):
                _add(paths, p, (whole[p] - given[p]) * unit[k], capacity, use)
                given[p] = whole[p]
                left -= whole[p]
            for _ in range(left):
                best, least = low, np.inf
                for p in range(low, high):
                    fullest = 0.0
                    for i in range(paths.start[p], paths.start[p + 1]):
                        a = paths.channel[i]
                        fullest = max(fullest, use[a] + unit[k] / capacity[a])
                    if fullest < least:
                        best, least = p, fullest
                _add(paths, best, unit[k], capacity, use)
                given[best] += 1
    return given.astype(np.int64)


@njit
def _add_all(paths: Paths, given: Floats, unit: Floats, capacity: Floats, use: Floats) -> None:
    for k in range(len(unit)):
        for p in range(paths.first[k], paths.first[k + 1]):
            _add(paths, p, given[p] * unit[k], capacity, use)


@njit
def _add(paths: Paths, p: int, amount: float, capacity: Floats, use: Floats) -> None:
    """Add a flow along a path to the loads ``use`` [channels], each over its capacity."""
    for i in range(paths.start[p], paths.start[p + 1]):
        a = paths.channel[i]
        use[a] += amount / capacity[a]


def _promises(topology: Topology, demand: Traffic, routes: Routes) -> dict[str, Any]:
    """What the finished tables carry: ``theta`` of the demand that they are made for, and that of other patterns."""
    found: dict[str, Any] = {"theta": float(fixed_split(Instance(topology, demand, routes)).lower)}
    for kind, most in OTHERS.items():
        if topology.switches <= most:
            try:
                other = make("traffic", kind=kind).build(topology)
            except SpecError:  # a pattern that these hosts cannot have
                continue
            theta = float(fixed_split(Instance(topology, other, routes)).lower)
            found[f"split_{kind}"] = theta if math.isfinite(theta) else None
    return found
