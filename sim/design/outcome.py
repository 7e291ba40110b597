# SPDX-License-Identifier: Apache-2.0
"""The answer to a design: the front, what is proven of all other networks, and what each candidate came to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from flitlab.fluid.design.bounds import Network
from flitlab.fluid.design.demands import Flow, Memo
from flitlab.fluid.design.improve import improve_by_prices
from flitlab.fluid.design.options import Option, built, options, priced
from flitlab.fluid.design.search import STAGES, Result, Search
from flitlab.fluid.problem import Problem
from flitlab.fluid.split import split_theta
from flitlab.models.arrays import Floats
from flitlab.models.cputime import CpuTime
from flitlab.models.mappings import Row
from flitlab.models.registry import SpecError, make, recorded_warnings
from flitlab.models.topology.equipment import equipment_bound, least_switches
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.design.measures import Measures
from flitlab.sim.design.request import DesignRequest

FULL = 0.99
"""Certified throughput from which a point carries a demand at full rate."""

RANDOM = "rrg"
"""The family of random graphs."""


@dataclass(frozen=True, eq=False)
class FrontPoint:
    """A point of the front.

    number: from 1, by cost. bound: theta of uniform traffic that no network of as many switches exceeds. least:
    switches that its certified uniform throughput needs at least, with any wiring; None without uniform demand. ecmp:
    uniform theta of equal splits over shortest paths. values: column -> what was measured, see
    :mod:`~flitlab.sim.design.measures`.
    """

    number: int
    result: Result
    bound: float
    least: int | None
    ecmp: float | None
    values: Row = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Improvement:
    """A network of one plane that was improved. point: the number of that which it began with. demand: its name.

    before, lower, upper: certified throughput of the point, and the interval of the improved network.
    """

    point: int
    demand: str
    topology: Topology
    before: float
    lower: float
    upper: float

    @property
    def sentence(self) -> str:
        """What was reached."""
        return (
            f"Point {self.point} improved for {self.demand}: certainly {self.lower:.3f} instead of {self.before:.3f} "
            f"({100 * (self.lower / self.before - 1):+.1f} %), at most {self.upper:.3f}."
        )


@dataclass(frozen=True, eq=False)
class Design:
    """The answer. seconds: of CPU. orders: sentences on the order of points under other prices of optics. improved: a
    random graph of the front after a local search.
    """

    request: DesignRequest
    search: Search
    front: list[FrontPoint]
    seconds: float
    orders: list[str]
    improved: Improvement | None = None

    @property
    def uniform(self) -> int | None:
        """Index of the demand of uniform traffic."""
        return next((d for d, demand in enumerate(self.request.demands) if demand.closed == "uniform"), None)

    def families(self) -> list[Row]:
        """Why not: a row of each family, with the most by which any of its candidates could exceed the front."""
        rows = []
        results = self.search.results
        for kind in dict.fromkeys(result.option.kind for result in results):
            members = [i for i, result in enumerate(results) if result.option.kind == kind]
            able = [i for i in members if results[i].stage not in ("limit", "floor", "error", "open")]
            rows.append(
                {"family": kind, "candidates": len(members)}
                | {stage: sum(results[i].stage == stage for i in members) for stage in STAGES}
                | {"front": sum(i in self.search.front for i in members), "could_exceed": self._excess(able)}
            )
        return rows

    def _excess(self, members: list[int]) -> float | None:
        """The largest share of theta that a member could have beyond a point that costs no more, in its best demand."""
        search, worst = self.search, None
        for i in members:
            rivals = [k for k in search.front if search.cost[k] <= search.cost[i] * (1 + search.tolerance.cost)]
            if i in search.front or not rivals:
                continue
            upper = np.minimum(search.results[i].upper, 1e9)[search.counted]
            least = min(float((upper / search.results[k].lower[search.counted] - 1).max()) for k in rivals)
            worst = max(least, worst or 0.0)
        return worst

    def sentences(self) -> list[str]:
        """What is proven of networks that are not on the front."""
        tolerance, counts = self.search.tolerance, self.search.counts()
        dominated = sum(counts[stage] for stage in ("closed form", "built", "one solve"))
        lines = [
            f"{len(self.search.results)} candidates: {counts['limit']} exceed a limit, {counts['floor']} are below a "
            f"floor, {counts['closed form']} are dominated by closed forms, {counts['built']} by bounds of the built "
            f"network, {counts['one solve']} by a solve that ended early; {counts['solved']} were solved to the end, "
            f"{len(self.front)} are on the front.",
            f"Of each of the {dominated} dominated ones, a point that costs at most {100 * tolerance.cost:g} % more "
            f"certainly carries {100 - 100 * tolerance.throughput:g} % of the upper ends, in every demand.",
        ]
        if counts["open"]:
            lines.append(
                f"{counts['open']} candidates were not examined: budget_s was spent, and better ones may exist."
            )
        if counts["error"]:
            lines.append(f"{counts['error']} candidates could not be built; candidates.csv says why.")
        full = next((one for one in self.front if one.least and one.result.lower[self.uniform] >= FULL), None)
        below = [one for one in self.front if self.uniform is not None and one.bound < 1]
        near = min(below, key=self.excess, default=None)
        if near is not None:
            lines.append(
                f"Point {near.number} is within {100 * self.excess(near):.1f} % of any network of "
                f"{near.result.option.switches} such switches under uniform traffic."
            )
        if full is not None:
            lines.append(
                f"Point {full.number} certainly carries {full.result.lower[self.uniform]:.3f} of uniform traffic with "
                f"{full.result.option.switches} switches; fewer than {full.least} cannot, however they are wired."
            )
        if self.improved is not None:
            lines.append(self.improved.sentence)
        elif self.request.config.improve is not None:
            lines.append("No random graph on the front could be improved.")
        return lines

    def excess(self, point: FrontPoint) -> float:
        """The share by which another network of as many switches could exceed a point under uniform traffic."""
        assert self.uniform is not None
        return min(point.bound, 1.0) / float(point.result.lower[self.uniform]) - 1

    def score(self, point: FrontPoint) -> float:
        """The weighted mean of the certified throughputs of a point."""
        weight = np.array([demand.weight for demand in self.request.demands])
        return float(weight @ point.result.lower / weight.sum()) if weight.sum() else 0.0


def design(
    request: DesignRequest, progress: Callable[[str], None] = lambda text: None, memo: Memo | None = None
) -> Design:
    """Search for the networks of a design.

    Parameters
    ----------
    request : DesignRequest
        What is asked for.
    progress : callable
        Gets a line for every solved point.
    memo : mapping or None
        What was solved before; grows.

    Raises
    ------
    ConfigError
        No family has a candidate.
    """
    spent = CpuTime()
    measures = Measures(request, memo)
    search = search_of(request, progress, measures)
    search.run()
    points = [_point(measures, search.results[i], number) for number, i in enumerate(search.front, 1)]
    improved = improvement(request, [point.result for point in points])
    return Design(request, search, points, spent.seconds, _orders(request, points), improved)


def search_of(
    request: DesignRequest, progress: Callable[[str], None] = lambda text: None, measures: Measures | None = None
) -> Search:
    """The search of a design over all its candidates, not run. measures: for limits of what is measured.

    Other parameters and errors are those of :func:`design`.
    """
    every = list(
        options(request.hosts, request.skus, request.config.planes, request.splits, request.families, request.prices)
    )
    if not every:
        request.page.reject("families", "none has a network of these hosts and switches")
        raise ConfigError(request.page.diagnostics.errors)
    measured = measures or Measures(request)
    return Search(
        every, request.demands, request.limits, request.tolerance, progress, request.config.budget_s or np.inf,
        measured.violated, measured.memo,
    )  # fmt: skip


def _point(measures: Measures, result: Result, number: int) -> FrontPoint:
    request, option, uniform = measures.request, result.option, None
    for d, demand in enumerate(request.demands):
        if demand.closed == "uniform":
            uniform = d
    equipment, planes = option.equipment, option.planes
    bound = equipment_bound(option.candidate.switches, equipment.ports, equipment.hosts, equipment.split).throughput
    least = ecmp = None
    if uniform is not None:
        least = planes * least_switches(
            equipment.hosts, equipment.ports, float(result.lower[uniform]), equipment.split
        )  # fmt: skip
        ecmp = _ecmp(option)
    return FrontPoint(number, result, bound, least, ecmp, measures.every(result))


def _ecmp(option: Option) -> float | None:
    """Theta of uniform traffic that is split equally over the next hops of shortest paths; None without tables."""
    topology = make("topology", **option.plane()).build()
    traffic = make("traffic", kind="uniform").build(topology)
    try:
        with recorded_warnings():
            routes = make("routing", kind="minimal").build(topology)
    except SpecError:  # too many channels out of a switch for tables of next hops
        return None
    return float(min(split_theta(Problem.of(topology, traffic, routes), topology, traffic), 1.0))


def improvement(request: DesignRequest, front: Sequence[Result]) -> Improvement | None:
    """Improve a random graph of the front by the keys of ``improve``; None without them, or without such a graph.

    Parameters
    ----------
    request : DesignRequest
        The design.
    front : sequence of Result
        Its points, by cost.
    """
    keys = request.config.improve
    if keys is None:
        return None
    d = next((k for k, demand in enumerate(request.demands) if demand.name == keys.demand), 0)
    demand = request.demands[d]
    random = [k for k, result in enumerate(front) if result.option.kind == RANDOM and keys.point in (None, k + 1)]
    if not random:
        return None
    below = [k for k in random if front[k].lower[d] < 1 - request.tolerance.gap] or random
    k = max(below, key=lambda number: float(front[number].lower[d]))
    option = front[k].option
    topology = built(option)
    if keys.by != "prices":
        power = 1 if keys.by == "hops" else 2
        spec = {"kind": "improved", "of": option.plane(), "demand": demand.traffic, "steps": keys.steps}
        topology = make("topology", **spec, power=power, seed=keys.seed).build()

    def matrix(network: Network) -> Floats:
        flow = demand.on(network)
        assert isinstance(flow, Flow)
        return flow.demand

    solves = keys.solves if keys.by in ("prices", "both") else 0
    best = improve_by_prices(topology, matrix, request.tolerance.gap / 2, solves, keys.seed)
    at_hosts = demand.on(Network.of(best.topology)).upper().value
    upper = min(best.upper, at_hosts)
    return Improvement(k + 1, demand.name, best.topology, float(front[k].lower[d]), min(best.lower, upper), upper)


def _orders(request: DesignRequest, points: list[FrontPoint]) -> list[str]:
    """Pairs of neighbours on the front whose order of cost changes with the price of optics."""
    lines = []
    for factor in (0.5, 2.0):
        prices = request.prices.scaled_optics(factor)
        bought = [point.result.option for point in points]
        costs = [priced(one.candidate, one.equipment, one.sku, one.planes, prices).cost for one in bought]
        swapped = [f"{k + 1} and {k + 2}" for k in range(len(costs) - 1) if costs[k] > costs[k + 1] * (1 + 1e-9)]
        if swapped:
            word = "half" if factor < 1 else "double"
            lines.append(f"With optics at {word} the price the order of these points changes: {', '.join(swapped)}.")
    return lines
