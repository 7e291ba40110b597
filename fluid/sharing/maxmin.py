# SPDX-License-Identifier: Apache-2.0
"""Max-min fairness (MMF), weighted by demand: no rate can grow without reducing a smaller one.

Sources: Bertsekas, Gallager, Data Networks, 1992, section 6.5 (one path a flow); Nace, Doan, Klopfenstein, Bashllari,
Computers & Operations Research 35 (2008), doi:10.1016/j.cor.2006.03.020 (several, or all there are), as stated by
Faizian et al., "Throughput Models of Interconnection Networks", section II-A.
"""

from collections.abc import Callable
from dataclasses import dataclass

import highspy
import numpy as np
from scipy import sparse

from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.mcf.sparse import effort, multipliers
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.sharing.filling import filled
from flitlab.fluid.sharing.flows import CompetingFlows, Rates, check_spread, flows_most, flows_over
from flitlab.fluid.sharing.levels import BINDING, level_model, max_min_levels
from flitlab.models.arrays import Floats, Ints
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

PATHS_MOST = 60_000
"""Paths, hence columns, up to which the LP of a concurrent flow is tried (about a minute)."""
LEVEL_PATHS_MOST = 250_000
"""Paths up to which max-min fair rates are computed."""
FULL = 1e-9
"""A link with less than this part of its capacity left is full."""
SLACK = (1e-8, 1e-8, 1e-7, 1e-6)
"""What fixed rates are reduced by, relatively, so that rounding cannot make the next LP infeasible; more if it does.

The second try is from scratch."""

SIZE_MOST = 2_000_000
"""Flows times channels up to which the LPs are tried (about a minute)."""
START_GAP = 0.02
"""The gap to which the concurrent flow goes whose paths are the first ones."""
CHEAPER = 1e-9
"""A path joins if it is cheaper by this; the prices of all flows, times their weights, add up to 1."""
LEAST = 1e-12
"""Least price of a channel: paths do not wander over those without one."""


def max_min(flows: CompetingFlows) -> Floats:
    """float64 [paths]: max-min fair rates; by progressive filling if every flow has one path, else by LPs.

    Raises :class:`~flitlab.fluid.problem.FluidError` if the LPs would be too large or fail.
    """
    if (np.diff(flows.paths.first) == 1).all():
        return filled(flows, lambda left, paths: np.full(len(paths.flow), left.min()))
    if len(flows.paths.flow) > LEVEL_PATHS_MOST:
        raise FluidError(f"the LPs would have {len(flows.paths.flow)} paths, more than {LEVEL_PATHS_MOST}")
    return max_min_levels(flows)


def max_concurrent(flows: CompetingFlows) -> float:
    """The largest theta such that every flow gets theta times its weight.

    Raises :class:`~flitlab.fluid.problem.FluidError` if the LP would be too large or fails.
    """
    if len(flows.paths.flow) > PATHS_MOST:
        raise FluidError(f"the LP would have {len(flows.paths.flow)} paths, more than {PATHS_MOST}")
    lp = LevelLp(flows)
    # solved once, with no solution to start from
    lp.highs.setOptionValue("solver", "ipm")
    lp.highs.setOptionValue("presolve", "on")
    return lp.optimum(np.zeros(len(flows.weight))).level / float(flows.weight.mean())


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal basis of a :class:`LevelLp`: the level and the paths' rates, and the duals of links and flows."""

    level: float
    path_rate: np.ndarray
    link_price: np.ndarray
    flow_price: np.ndarray


class LevelLp:
    """Maximise the level: rates fit the links, every flow has weight * level or more, or at least what is fixed.

    Columns and rows are those of :func:`~flitlab.fluid.sharing.levels.level_model`, with a group for each flow.
    ``unit``: the rate, a power of two, that is 1 to the solver, whose tolerances are absolute.
    Raises :class:`~flitlab.fluid.problem.FluidError` for capacities or weights too far apart for these.
    """

    def __init__(self, flows: CompetingFlows) -> None:
        check_spread(flows)
        self.unit = 2.0 ** round(np.log2(flows.capacity.mean()))
        paths, self.links = flows.paths, len(flows.capacity)
        count = len(paths.flow)
        column = np.repeat(np.arange(count), paths.hops)
        fit = sparse.csc_array((np.ones(len(column)), (paths.channel, column)), (self.links, count))
        # weights of mean 1: all columns are of about the same size
        self.weight = flows.weight / flows.weight.mean()
        self.highs = level_model(fit, paths.commodity, self.weight, flows.capacity / self.unit)
        self.highs.setOptionValue("presolve", "off")
        # after a flow is fixed, or a path joins, the last solution still fits
        self.highs.setOptionValue("simplex_strategy", int(highspy.simplex_constants.kSimplexStrategyPrimal))

    def optimum(self, fixed: np.ndarray) -> Optimum:
        """The solution in which flows get at least their ``fixed`` rates [flows]."""
        for slack in SLACK:
            for flow in np.flatnonzero(fixed).tolist():
                least = fixed[flow] / self.unit * (1 - slack)
                self.highs.changeRowBounds(self.links + flow, least, highspy.kHighsInf)
            self.highs.run()
            if self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                solution = self.highs.getSolution()
                value, dual = np.array(solution.col_value) * self.unit, np.abs(np.array(solution.row_dual))
                return Optimum(value[0], np.maximum(value[1:], 0), dual[: self.links], dual[self.links :])
            self.highs.clearSolver()  # the basis at hand may be what it got stuck at
        raise FluidError(f"HiGHS ended with {self.highs.modelStatusToString(self.highs.getModelStatus())}")

    def fix(self, flow: int) -> None:
        """Take a flow off the level."""
        self.highs.changeCoeff(self.links + flow, 0, 0.0)

    def add(self, flow: int, links: np.ndarray) -> None:
        """One more path of a flow."""
        rows = np.append(links, self.links + flow).astype(np.int32)
        self.highs.addCol(0.0, 0.0, highspy.kHighsInf, len(rows), rows, np.ones(len(rows)))


def raised(
    lp: LevelLp, capacity: Floats, confined: sparse.csr_array, more: Callable[[Optimum], bool]
) -> tuple[Floats, Floats]:
    """Max-min fair rates [flows], and the rates of the paths in the last solution.

    Raise the common level as far as it goes, fix the flows that cannot follow, and again with the others. A flow
    whose constraint (rate >= weight * level) has a positive dual has that rate in every optimum, by
    complementary slackness. A saturated flow may have the dual 0 in the optimum found. Many of those are seen at once:
    flows without a path around a link (``confined`` [flows, links]) that such flows alone fill. For any other the level
    does not rise in the next LP; some dual is positive in each, since they add up to 1.
    more: whether some path would raise the level further; it adds them.
    """
    count = len(lp.weight)
    rate, rising = np.zeros(count), np.ones(count, bool)
    while rising.any():
        optimum = lp.optimum(np.where(rising, 0, rate))
        while more(optimum):
            optimum = lp.optimum(np.where(rising, 0, rate))
        rate[rising] = lp.weight[rising] * optimum.level
        full = confined.T @ rate >= capacity * (1 - FULL)
        saturated = rising & ((optimum.flow_price * lp.weight > BINDING) | (confined @ full > 0))
        for flow in np.flatnonzero(saturated).tolist():
            lp.fix(flow)
        rising &= ~saturated
    return rate, optimum.path_rate


def free_max_min(topology: Topology, traffic: Traffic) -> tuple[CompetingFlows, Rates]:
    """The flows of a demand, over the first paths only, and their max-min fair rates by any routing.

    The duals of the LPs price new paths: an optimum over some paths is one over all if none is cheaper, under the
    prices of the links, than the price of its flow. Source: Nace et al., as above.

    Raises :class:`~flitlab.fluid.problem.FluidError` if the LPs would be too large or fail.
    """
    count = flows_most(traffic)
    if count * topology.channels > SIZE_MOST:
        size = f"{count} flows over {topology.channels} channels"
        raise FluidError(f"over all paths there are, {size} are too many (their product is at most {SIZE_MOST})")
    problem = Problem.of(topology, traffic)
    first = Paths.none(0)
    if problem.demand.size:
        first = multipliers(problem, START_GAP, np.inf, effort(problem))[1]
    flows = flows_over(topology, traffic, problem, first)
    if len(flows.weight) == 0:
        return flows, Rates(flows.weight, flows.weight)
    ends, lp = _host_channels(flows, topology), LevelLp(flows)
    commodity = _commodities(problem, flows, topology)
    apart = np.flatnonzero(commodity >= 0)

    def more(optimum: Optimum) -> bool:
        """Adds a path to every flow for which there is a cheaper one than it has; whether there was any."""
        worth = optimum.flow_price - ends @ optimum.link_price - CHEAPER
        limit = np.zeros(problem.demand.size)
        np.maximum.at(limit, commodity[apart], worth[apart])
        length = np.maximum(optimum.link_price[: topology.channels], LEAST)
        distance, new = price(problem.graph, problem.demand, problem.dags, length, limit)
        gaining = apart[worth[apart] > distance[commodity[apart]]]
        for flow in gaining.tolist():
            own = slice(*new.start[commodity[flow] : commodity[flow] + 2])
            lp.add(flow, np.append(new.channel[own], ends.indices[slice(*ends.indptr[flow : flow + 2])]))
        return len(gaining) > 0

    # no path leads around the host channels; of other links nothing is certain
    rate, _ = raised(lp, flows.capacity, ends, more)
    return flows, Rates(rate, flows.weight)


def _host_channels(flows: CompetingFlows, topology: Topology) -> sparse.csr_array:
    """float64 [flows, links]: 1 for the host channels of every flow, unless they are infinite."""
    shape = (len(flows.weight), len(flows.capacity))
    if shape[1] == topology.channels:
        return sparse.csr_array(shape)
    links = topology.channels + np.column_stack([flows.source, topology.hosts + flows.target]).ravel()
    return sparse.csr_array((np.ones(len(links)), links, np.arange(0, len(links) + 1, 2)), shape)


def _commodities(problem: Problem, flows: CompetingFlows, topology: Topology) -> Ints:
    """int64 [flows]: the commodity that each is a part of, -1 within a switch."""
    s, t = topology.host_switch[flows.source], topology.ejection_switch[flows.target]
    commodity = np.full(len(s), -1)
    commodity[s != t] = problem.demand.find(topology.switches, s[s != t], t[s != t])
    return commodity
