# SPDX-License-Identifier: Apache-2.0
"""Max-min fair rates over several fixed paths a flow, level by level, by linear programs that stay small.

One level rises for all flows that are not fixed. A link that every path of its flows crosses (a host channel) limits
rates whatever the split is: progressive filling says at which level it stops its flows. All other links are limited
by an LP. Flows of positive dual have the same rate in every optimum (complementary slackness) and are fixed, paths of
positive reduced cost carry nothing in any and are dropped.

The interior-point method solves a large LP: of all optima, an interior solution shows the most saturated flows, and
drops the most paths. Where it saturates less than half of the flows that rise, one LP serves all further levels: it
holds the flows that rise or have several paths left, and the primal simplex method starts each level from the basis
of the last.

Source: Nace, Doan, Klopfenstein, Bashllari, Computers & Operations Research 35 (2008), doi:10.1016/j.cor.2006.03.020.
"""

import logging
import time
from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np
from scipy import sparse

from flitlab.fluid.problem import FluidError
from flitlab.fluid.sharing.flows import CompetingFlows, check_spread
from flitlab.models.arrays import Bools, Floats, Ints, sums

_LOG = logging.getLogger(__name__)
REPORT_SECONDS = 60.0
"""Seconds between two reports of progress to the log."""
INTERIOR_LEAST = 2_000
"""Paths from which the interior-point method solves an LP, or finds its first basis, where simplex is slower."""
INTERIOR_SHARE = 0.5
"""Part of the rising flows that a level has to saturate for the interior-point method to solve the next."""
BINDING = 1e-7
"""A flow is saturated if its dual, times its weight, is above this; they add up to 1."""
GAP = 1e-7
"""Relative distance of the level to the bound that the duals prove, up to which an LP counts as solved."""
DUAL_SCALE = 16.0
"""What duals are multiplied by in the solver, whose least tolerance, 1e-10, is absolute: paths by the ten thousand add
up to more than GAP."""
SLACK = (1e-9, 1e-9, 1e-8, 1e-7, 1e-6)
"""What capacities are enlarged by, relatively, so that rounding of earlier levels cannot make an LP infeasible.

The second try is from scratch: the simplex method may be stuck at its basis."""
SAME = 1e-12
"""Relative difference up to which levels are equal."""


class Level(NamedTuple):
    """An optimum of a level LP. level: per unit of weight. flow: float64 [paths]. price: float64 [links], its duals."""

    level: float
    flow: Floats
    price: Floats


@dataclass(frozen=True, eq=False)
class Groups:
    """Flows that have the same paths over the links of the LP, as one commodity each.

    of_flow: int64 [flows], -1 for flows that have a path without such a link, and take it. use: sparse [links, paths],
    1 where a path crosses a link. of_path: int64 [paths], in order. capacity: float64 [links], flits per tick.
    length: int64 [paths of all flows], such links on each.
    """

    of_flow: Ints
    use: sparse.csc_array
    of_path: Ints
    capacity: Floats
    length: Ints

    @property
    def count(self) -> int:
        return int(self.of_path[-1]) + 1 if len(self.of_path) else 0

    def total(self, value: Floats, flows: Bools) -> Floats:
        """float64 [groups]: the sum of a value of flows, over the flows of a mask."""
        chosen = flows & (self.of_flow >= 0)
        return sums(self.of_flow[chosen], value[chosen], self.count)


def max_min_levels(flows: CompetingFlows) -> Floats:
    """Max-min fair rates over several paths a flow.

    Parameters
    ----------
    flows
        Weights, and paths over links of finite capacity in flits per tick.

    Returns
    -------
    float64 [paths], flits per tick. The rates of flows are unique, their split is any that fits the links.

    Raises
    ------
    FluidError
        For capacities or weights too far apart for the tolerances of the solver, and if an LP is not solved.
    """
    check_spread(flows)
    reported = time.monotonic()
    filling, groups = _split(flows)
    weight = flows.weight / flows.weight.mean()
    levels = _Levels(groups)
    rate, rising = np.zeros(len(weight)), np.ones(len(weight), bool)
    while rising.any():
        stop = filling.stops(weight, rate, rising)
        level, dual = levels.rise(weight, rate, rising, stop)
        saturated = rising & ((dual * weight > BINDING) | (stop <= level * (1 + SAME)))
        rate[saturated] = (weight * np.minimum(stop, level))[saturated]
        levels.interior &= saturated.sum() >= INTERIOR_SHARE * rising.sum()
        rising &= ~saturated
        if time.monotonic() - reported >= REPORT_SECONDS:
            reported = time.monotonic()
            _LOG.info("max-min fairness: %d of %d flows have their rate", len(weight) - rising.sum(), len(weight))
    return rate[flows.paths.commodity] * _shares(flows, groups, levels.flow)


def _shares(flows: CompetingFlows, groups: Groups, flow: Floats) -> Floats:
    """float64 [paths of flows]: the part of its flow that each carries, by the flow on the paths of its group."""
    count = np.diff(flows.paths.first)
    share = np.zeros(len(groups.length))
    unlimited = np.flatnonzero(groups.of_flow[flows.paths.commodity] < 0)
    empty = unlimited[groups.length[unlimited] == 0]
    share[empty[np.unique(flows.paths.commodity[empty], return_index=True)[1]]] = 1.0
    total = sums(groups.of_path, flow, groups.count)
    grouped = (groups.of_flow >= 0)[flows.paths.commodity]
    within = np.arange(len(share)) - np.repeat(flows.paths.first[:-1], count)
    first = np.searchsorted(groups.of_path, np.arange(groups.count))
    path = (first[groups.of_flow[flows.paths.commodity[grouped]]] + within[grouped]).astype(np.int64)
    share[grouped] = flow[path] / total[groups.of_path[path]]
    return share


class _Filling:
    """Links that all paths of their flows cross. crossed: sparse [flows, links]. capacity: float64 [links]."""

    def __init__(self, crossed: sparse.csr_array, capacity: Floats) -> None:
        self.crossed, self.capacity = crossed, capacity

    def stops(self, weight: Floats, rate: Floats, rising: Bools) -> Floats:
        """float64 [flows]: the level at which a link stops each rising flow, inf where none does; of others 0."""
        stop, rising = np.where(rising, np.inf, 0.0), rising.copy()
        left = self.capacity - self.crossed.T @ np.where(rising, 0, rate)
        while rising.any():
            growth = self.crossed.T @ (weight * rising)
            level = np.divide(left, growth, out=np.full(len(left), np.inf), where=growth > 0)
            least = max(level.min(initial=np.inf), 0.0)
            if np.isinf(least):
                break
            stopped = rising & (self.crossed @ (level <= least * (1 + SAME)).astype(float) > 0)
            stop[stopped] = least
            left = left - self.crossed.T @ (stopped * weight * least)
            rising &= ~stopped
        return stop


def _split(flows: CompetingFlows) -> tuple[_Filling, Groups]:
    """The links whose load follows from the rates, and what is left for an LP."""
    paths, count, links = flows.paths, len(flows.weight), len(flows.capacity)
    flow = np.repeat(paths.commodity, paths.hops)
    crossing = sparse.csr_array((np.ones(len(flow)), (flow, paths.channel)), (count, links))
    crossing.sum_duplicates()
    always = crossing.data == np.repeat(np.diff(paths.first), np.diff(crossing.indptr))
    free = np.zeros(links, bool)
    free[crossing.indices[~always]] = True
    confined = crossing[:, ~free]
    confined.data[:] = 1
    number = np.cumsum(free) - 1
    kept = free[paths.channel]
    lengths = np.add.reduceat(kept.astype(np.int64), paths.start[:-1])
    channel = number[paths.channel[kept]]
    of_flow, first_of = _same(paths.first, np.concatenate([[0], np.cumsum(lengths)]), channel)
    own = np.zeros(count, bool)
    own[first_of] = True
    chosen = own[paths.commodity]
    column = np.repeat(np.cumsum(chosen) - 1, lengths)[np.repeat(chosen, lengths)]
    shape = (int(free.sum()), int(chosen.sum()))
    use = sparse.csc_array((np.ones(len(column)), (channel[np.repeat(chosen, lengths)], column)), shape)
    return _Filling(confined, flows.capacity[~free]), Groups(
        of_flow, use, of_flow[paths.commodity[chosen]], flows.capacity[free], lengths
    )


def _same(first: Ints, start: Ints, channel: Ints) -> tuple[Ints, Ints]:
    """Numbers of flows by their paths, equal ones have the same, those with an empty path -1; the first flow of each.

    first: int64 [flows + 1], paths. start: int64 [paths + 1], channels.
    """
    number: dict[tuple[bytes, bytes], int] = {}
    of_flow, first_of = np.full(len(first) - 1, -1), list[int]()
    for flow in range(len(first) - 1):
        bounds = start[first[flow] : first[flow + 1] + 1]
        if (np.diff(bounds) > 0).all():
            key = ((bounds - bounds[0]).tobytes(), channel[bounds[0] : bounds[-1]].tobytes())
            if key not in number:
                number[key] = len(first_of)
                first_of.append(flow)
            of_flow[flow] = number[key]
    return of_flow, np.array(first_of, np.int64)


class _Levels:
    """The LPs of consecutive levels.

    flow: float64 [paths], the split of the last level. kept: bool [paths], which are not dropped. interior: whether the
    interior-point method solves large LPs. lp: that of the next level, None if it is to be built.
    """

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.first = np.searchsorted(groups.of_path, np.arange(groups.count))
        self.flow = np.zeros(len(groups.of_path))
        self.kept = np.ones(len(groups.of_path), bool)
        self.interior = True
        self.lp: _LevelLp | None = None

    def rise(self, weight: Floats, rate: Floats, rising: Bools, stop: Floats) -> tuple[float, Floats]:
        """The level at which a flow is saturated, and the duals float64 [flows]; all as described above.

        ``stop``: float64 [flows], the level beyond which each does not rise.
        """
        groups = self.groups
        inner = rising & (groups.of_flow >= 0)
        stopped, dual = np.zeros(len(rate), bool), np.zeros(len(rate))
        while (inner & ~stopped).any():
            gain = groups.total(weight, inner & ~stopped)
            base = groups.total(np.where(stopped, weight * np.minimum(stop, 1e300), rate), ~inner | stopped)
            at = self._optimum(gain, base)
            beyond = inner & ~stopped & (stop < at.level * (1 - SAME))
            if beyond.any():
                stopped |= beyond
                continue
            length = groups.use.T @ at.price
            shortest = np.minimum.reduceat(np.where(self.kept, length, np.inf), self.first)
            if self.lp is not None and self.lp.interior:  # an LP with a basis stays as it is
                self.kept &= length - shortest[groups.of_path] <= BINDING
                self.lp = None
            dual[inner] = shortest[groups.of_flow[inner]]
            return at.level, dual
        return float(stop[rising].max()), dual

    def _optimum(self, gain: Floats, base: Floats) -> Level:
        """The largest level at which groups get ``base`` + ``gain`` x level, float64 [groups] each.

        Raises :class:`~flitlab.fluid.problem.FluidError` if it is not reached.
        """
        for attempt, slack in enumerate(SLACK):
            if self.lp is None or attempt:
                self.lp = self._lp(gain, base, slack)
            solved = self.lp.optimum(gain[self.lp.group], base[self.lp.group])
            if solved is not None:
                self.flow = np.where(self.kept, base[self.groups.of_path], 0.0)
                self.flow[self.lp.column] = solved.flow
                price = np.zeros(len(self.groups.capacity))
                price[self.lp.row] = solved.price
                return Level(solved.level, self.flow, price)
        raise FluidError("HiGHS does not solve the LP of a level of max-min fairness")

    def _lp(self, gain: Floats, base: Floats, slack: float) -> "_LevelLp":
        """The LP of the groups that rise or have several paths; the others take ``base`` of their path's capacity."""
        groups = self.groups
        inside = (gain > 0) | (np.add.reduceat(self.kept.astype(np.int64), self.first) > 1)
        column = np.flatnonzero(inside[groups.of_path] & self.kept)
        left = groups.capacity - groups.use @ (np.where(inside, 0, base)[groups.of_path] * self.kept)
        use = groups.use[:, column].tocsr()
        row = np.flatnonzero(np.diff(use.indptr))
        limit = np.maximum(left, 0)[row] + slack * groups.capacity[row]
        large = len(column) >= INTERIOR_LEAST
        return _LevelLp(
            np.flatnonzero(inside), row, column, use[row].tocsc(), groups.of_path[column], limit, large,
            large and self.interior,
        )  # fmt: skip


def level_model(use: sparse.csc_array, of_path: Ints, gain: Floats, capacity: Floats) -> highspy.Highs:
    """The LP of a level in HiGHS: maximise the level; paths fit the links, groups get gain x level or more.

    Column 0 is the level and column 1 + p path p; the first rows are the links, the others the groups.

    Parameters
    ----------
    use: sparse [links, paths], 1 where a path crosses a link. of_path: int64 [paths], groups. gain: float64 [groups].
    capacity: float64 [links]; mean about 1, since the tolerances of the solver are absolute.
    """
    links, paths = use.shape
    serve = sparse.csc_array((np.ones(paths), (of_path, np.arange(paths))), (len(gain), paths))
    level = sparse.csc_array(np.concatenate([np.zeros(links), -gain])[:, None])
    matrix = sparse.hstack([level, sparse.vstack([use, serve])]).tocsc()
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.append(1.0, np.zeros(paths))
    lp.col_lower_ = np.zeros(paths + 1)
    lp.col_upper_ = np.full(paths + 1, highspy.kHighsInf)
    lp.row_lower_ = np.concatenate([np.full(links, -highspy.kHighsInf), np.zeros(len(gain))])
    lp.row_upper_ = np.concatenate([capacity, np.full(len(gain), highspy.kHighsInf)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    for tolerance in ("primal_feasibility", "dual_feasibility", "ipm_optimality"):
        highs.setOptionValue(f"{tolerance}_tolerance", 1e-10)
    highs.passModel(lp)
    return highs


class _LevelLp:
    """The LP of a level; the next level starts from the basis of the last.

    group, row, column: the groups, links and paths of it. use: sparse [links, paths]. of_path: int64 [paths], groups.
    capacity: float64 [links]. large: whether the interior-point method finds the first basis. interior: whether it
    solves all, without a basis.
    """

    def __init__(
        self,
        group: Ints,
        row: Ints,
        column: Ints,
        use: sparse.csc_array,
        of_path: Ints,
        capacity: Floats,
        large: bool,
        interior: bool,
    ) -> None:
        self.group, self.row, self.column, self.use, self.capacity = group, row, column, use, capacity
        self.first = np.searchsorted(of_path, group)
        self.gain, self.base = np.zeros(len(group)), np.zeros(len(group))
        self.solver, self.interior = "ipm" if large else "simplex", interior
        self.unit = 2.0 ** round(np.log2(capacity.mean()))  # 1 to the solver, whose tolerances are absolute
        self.highs = level_model(use, np.searchsorted(group, of_path), self.gain, capacity / self.unit)
        self.highs.changeColCost(0, DUAL_SCALE)
        if interior:
            self.highs.setOptionValue("run_crossover", "off")

    def optimum(self, gain: Floats, base: Floats) -> Level | None:
        """The largest level at which groups get ``base`` + ``gain`` x level; None where HiGHS does not reach it.

        What the prices prove decides that, not what HiGHS says.
        """
        links = len(self.row)
        for group in np.flatnonzero(gain != self.gain).tolist():
            self.highs.changeCoeff(links + group, 0, -float(gain[group]))
        for group in np.flatnonzero(base != self.base).tolist():
            self.highs.changeRowBounds(links + group, float(base[group]) / self.unit, highspy.kHighsInf)
        self.gain, self.base = gain, base
        if self.interior:
            if (solved := self._run("ipm")) is not None:
                return solved
            self.interior, self.solver = False, "simplex"
            self.highs.clearSolver()
        solved = self._run(self.solver)
        self.solver = "simplex"
        # after a flow is fixed the last solution still fits
        self.highs.setOptionValue("simplex_strategy", int(highspy.simplex_constants.kSimplexStrategyPrimal))
        return solved

    def _run(self, solver: str) -> Level | None:
        self.highs.setOptionValue("solver", solver)
        self.highs.run()
        solution = self.highs.getSolution()
        value, price = np.array(solution.col_value), np.abs(np.array(solution.row_dual))[: len(self.row)]
        if len(value) == 0 or len(price) == 0:
            return None
        dual = np.minimum.reduceat(self.use.T @ price, self.first)
        total = float(self.gain @ dual)
        level, flow = float(value[0]) * self.unit, np.maximum(value[1:], 0) * self.unit
        fits = (self.use @ flow <= self.capacity * (1 + GAP)).all()
        if not fits or total <= 0 or not abs((self.capacity @ price - self.base @ dual) / total - level) <= GAP * level:
            return None
        return Level(level, flow, price / total)
