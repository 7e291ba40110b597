"""Max-min fairness (MMF), weighted by demand: nobody can get more without somebody poorer getting less.

Sources: Bertsekas, Gallager, Data Networks, 1992, section 6.5 (one path a flow); Nace, Doan, Klopfenstein, Bashllari,
Computers & Operations Research 35 (2008), doi:10.1016/j.cor.2006.03.020 (several), as stated by Faizian et al.,
"Throughput Models of Interconnection Networks", section II-A.
"""

import highspy
import numpy as np
from scipy import sparse

from fluid.problem import FluidError
from fluid.sharing.filling import filled
from fluid.sharing.flows import Flows

PATHS_MOST = 60_000
"""Paths, hence columns, up to which the LPs are tried (about a minute for the first)."""
BINDING = 1e-7
"""A flow is saturated if its dual, times its weight, is above this; they add up to 1."""
FULL = 1e-9
"""A link with less than this part of its capacity left is full."""
SLACK = (1e-8, 1e-7, 1e-6)
"""What fixed rates are reduced by, relatively, so that rounding cannot make the next LP infeasible; more if it does."""


def max_min(flows: Flows) -> np.ndarray:
    """float64 [paths]: max-min fair rates; by progressive filling if every flow has one path, else by LPs.

    Raises :class:`~fluid.problem.FluidError` if the LPs would be too large or fail.
    """
    if (np.diff(flows.paths.first) == 1).all():
        return filled(flows, lambda left, paths: np.full(len(paths.flow), left.min()))
    if len(flows.paths.flow) > PATHS_MOST:
        raise FluidError(f"the LP would have {len(flows.paths.flow)} paths, more than {PATHS_MOST}")
    return _by_lps(flows)


def max_concurrent(flows: Flows) -> float:
    """The largest theta such that every flow gets theta times its weight.

    Raises :class:`~fluid.problem.FluidError` if the LP would be too large or fails.
    """
    if len(flows.paths.flow) > PATHS_MOST:
        raise FluidError(f"the LP would have {len(flows.paths.flow)} paths, more than {PATHS_MOST}")
    highs, level = _level_lp(flows)
    # solved once, with no solution to start from
    highs.setOptionValue("solver", "ipm")
    highs.setOptionValue("presolve", "on")
    solution = _optimum(highs, len(flows.capacity), np.zeros(len(flows.weight)))
    return solution.col_value[level] / float(flows.weight.mean())


def _by_lps(flows: Flows) -> np.ndarray:
    """Raise the common level as far as it goes, fix the flows that cannot follow, and again with the others.

    A flow whose constraint (rate >= weight * level) has a positive dual has that rate in every optimum, by
    complementary slackness. A saturated flow may have the dual 0 in the optimum found. Many of those are seen at once:
    flows with no way around a link that such flows alone fill. For any other the level does not rise in
    the next LP; some dual is positive in each, since they add up to 1.
    """
    highs, level = _level_lp(flows)
    links, count = len(flows.capacity), len(flows.weight)
    confined = _confined(flows)
    weight = flows.weight / flows.weight.mean()
    rate, rising = np.zeros(count), np.ones(count, bool)
    while rising.any():
        solution = _optimum(highs, links, np.where(rising, 0, rate))
        rate[rising] = weight[rising] * solution.col_value[level]
        dual = np.abs(np.array(solution.row_dual)[links:]) * weight
        full = confined.T @ rate >= flows.capacity * (1 - FULL)
        saturated = rising & ((dual > BINDING) | (confined @ full > 0))
        for flow in np.flatnonzero(saturated).tolist():
            highs.changeCoeff(links + flow, level, 0.0)
        rising &= ~saturated
    return _scaled(flows, np.maximum(np.array(solution.col_value)[:level], 0), rate)


def _optimum(highs: highspy.Highs, links: int, fixed: np.ndarray) -> highspy.HighsSolution:
    """The solution in which flows get at least their ``fixed`` rates [flows]."""
    for slack in SLACK:
        for flow in np.flatnonzero(fixed).tolist():
            highs.changeRowBounds(links + flow, fixed[flow] * (1 - slack), highspy.kHighsInf)
        highs.run()
        if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return highs.getSolution()
    raise FluidError(f"HiGHS ended with {highs.modelStatusToString(highs.getModelStatus())}")


def _confined(flows: Flows) -> sparse.csr_array:
    """float64 [flows, links]: 1 where all paths of the flow cross the link."""
    paths, count = flows.paths, len(flows.weight)
    flow = np.repeat(paths.commodity, paths.lengths)
    shape = (count, len(flows.capacity))
    crossing = sparse.csr_array((np.ones(len(flow)), (flow, paths.channel)), shape)
    crossing.sum_duplicates()
    crossing.data = (crossing.data == np.repeat(np.diff(paths.first), np.diff(crossing.indptr))) * 1.0
    crossing.eliminate_zeros()
    return crossing


def _scaled(flows: Flows, path_rate: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Rates of the paths that give every flow its rate, where the solver gives it a little less or more."""
    given = np.add.reduceat(path_rate, flows.paths.first[:-1])
    return path_rate * (rate / given)[flows.paths.commodity]


def _level_lp(flows: Flows) -> tuple[highspy.Highs, int]:
    """Maximise the level: rates fit the links (first rows), rate - weight * level >= 0 for every flow; its column."""
    paths, links, count = flows.paths, len(flows.capacity), len(flows.paths.flow)
    column = np.repeat(np.arange(count), paths.lengths)
    fit = sparse.csc_array((np.ones(len(column)), (paths.channel, column)), (links, count))
    serve = sparse.csc_array((np.ones(count), (paths.commodity, np.arange(count))), (len(flows.weight), count))
    # weights of mean 1: all columns are of about the same size
    last = sparse.csc_array(np.concatenate([np.zeros(links), -flows.weight / flows.weight.mean()])[:, None])
    matrix = sparse.hstack([sparse.vstack([fit, serve]), last]).tocsc()
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.append(np.zeros(count), 1.0)
    lp.col_lower_ = np.zeros(count + 1)
    lp.col_upper_ = np.full(count + 1, highspy.kHighsInf)
    lp.row_lower_ = np.concatenate([np.full(links, -highspy.kHighsInf), np.zeros(len(flows.weight))])
    lp.row_upper_ = np.concatenate([flows.capacity, np.full(len(flows.weight), highspy.kHighsInf)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("presolve", "off")
    # after a flow is fixed the last solution still fits
    highs.setOptionValue("simplex_strategy", int(highspy.simplex_constants.kSimplexStrategyPrimal))
    for tolerance in ("primal_feasibility", "dual_feasibility"):
        highs.setOptionValue(f"{tolerance}_tolerance", 1e-10)
    highs.passModel(lp)
    return highs, count
