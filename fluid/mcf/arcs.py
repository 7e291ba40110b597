# SPDX-License-Identifier: Apache-2.0
"""Arc-based LP with one commodity per destination, in HiGHS: exact, for small problems."""

from dataclasses import dataclass

import highspy
import numpy as np
from scipy import sparse

from flitlab.fluid.ceiling import Method
from flitlab.fluid.delivered import completed_flow
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import FluidError, Problem
from flitlab.models.arrays import Bools, Floats
from flitlab.models.rules.port_sets import allows

SIMPLEX_COLUMNS = 4000
"""Columns up to which the simplex method is faster than an interior-point method, and ends at a vertex."""
MAX_COLUMNS = 200_000
"""Columns up to which the LP is tried (about half a minute and 300 MB)."""


@dataclass(frozen=True)
class ArcSolution:
    """Solution of the arc LP. prices: float64 [channels], duals of the capacities. flow: float64 [targets, channels].

    amount: float64 [commodities], what the flow delivers. solver: the algorithm of HiGHS.
    """

    prices: Floats
    flow: Floats
    amount: Floats
    solver: str


def usable(problem: Problem) -> Bools:
    """bool [targets, channels]: whether flow toward a target may use a channel."""
    graph, target = problem.graph, problem.demand.target
    if not problem.restricted:
        elsewhere: Bools = graph.src != target[:, None]
        return elsewhere
    port = np.arange(graph.channels) - graph.out_start[graph.src]
    return allows(problem.dags.ports, target[:, None], graph.src, port)


def columns(problem: Problem) -> int:
    """The number of columns of the LP."""
    if problem.restricted:
        return int(usable(problem).sum())
    return len(problem.compact_demand.target) * problem.graph.channels


def is_suitable(count: int, method: Method, closely: bool) -> bool:
    """Whether the arc LP is the method of choice.

    Parameters
    ----------
    count : int
        Columns of the LP.
    method : Method
        Requested method.
    closely : bool
        Whether the requested gap needs an exact method.
    """
    if method == "auto" and not closely:
        return count <= SIMPLEX_COLUMNS
    return method != "approx" and count <= MAX_COLUMNS


def concurrent_flow(problem: Problem) -> ArcSolution:
    """The largest theta with theta * demand feasible; ``flow`` is scaled to deliver the demand once.

    Raises :class:`~flitlab.fluid.problem.FluidError` if HiGHS finds no optimum.
    """
    graph, demand = problem.graph, problem.demand
    scale = _hop_bound(problem) / graph.capacity.mean()
    balance = sparse.csc_array((-demand.amount * scale, (_rows(problem), np.zeros(demand.size, int))),
                               shape=(len(demand.target) * graph.nodes, 1))  # fmt: skip
    flow, extra, prices, solver = _solve(problem, balance, np.array([1.0]), np.array([np.inf]))
    if not extra[0] > 0:
        raise FluidError("the arc LP found no flow")
    return ArcSolution(prices, completed_flow(problem, flow / (extra[0] * scale), demand.amount), demand.amount, solver)


def total_flow(problem: Problem) -> ArcSolution:
    """The flow of largest total that gives no commodity more than its demand, which is its offer.

    Raises :class:`~flitlab.fluid.problem.FluidError` if HiGHS finds no optimum.
    """
    graph, demand = problem.graph, problem.demand
    balance = sparse.csc_array((-np.ones(demand.size), (_rows(problem), np.arange(demand.size))),
                               shape=(len(demand.target) * graph.nodes, demand.size))  # fmt: skip
    flow, amount, prices, solver = _solve(problem, balance, np.ones(demand.size), demand.amount)
    amount = np.clip(amount, 0, demand.amount)
    return ArcSolution(prices, completed_flow(problem, flow, amount), amount, solver)


def _hop_bound(problem: Problem) -> float:
    graph, demand = problem.graph, problem.demand
    distance, _ = price(graph, demand, problem.dags, np.ones(graph.channels))
    return float(graph.capacity.sum() / (demand.amount @ distance))


def _rows(problem: Problem) -> np.ndarray:
    """The conservation row of every commodity's source."""
    demand = problem.demand
    return demand.row * problem.graph.nodes + demand.source


def _solve(
    problem: Problem, balance: sparse.sparray, gain: np.ndarray, most: np.ndarray
) -> tuple[Floats, Floats, Floats, str]:
    """Maximise gain . extra, 0 <= extra <= most, net outflow + balance . extra = 0 at (target, node)."""
    graph, demand = problem.graph, problem.demand
    targets, nodes = len(demand.target), graph.nodes
    i, a = np.nonzero(usable(problem))
    count = len(a)
    column = np.arange(count)
    out = sparse.csc_array((np.ones(count), (i * nodes + graph.src[a], column)), (targets * nodes, count))
    into = sparse.csc_array((np.ones(count), (i * nodes + graph.dst[a], column)), (targets * nodes, count))
    keep = np.ones(targets * nodes, bool)
    keep[np.arange(targets) * nodes + demand.target] = False
    conserve = sparse.hstack([out - into, balance]).tocsr()[np.flatnonzero(keep)]
    unit = graph.capacity.mean()
    use = sparse.csc_array((unit / graph.capacity[a], (a, column)), (graph.channels, count + len(gain)))
    matrix = sparse.vstack([conserve, use]).tocsc()

    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.concatenate([np.zeros(count), gain])
    lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.concatenate([np.full(count, highspy.kHighsInf), most / unit])
    zero = np.zeros(conserve.shape[0])
    lp.row_lower_ = np.concatenate([zero, np.full(graph.channels, -highspy.kHighsInf)])
    lp.row_upper_ = np.concatenate([zero, np.ones(graph.channels)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data

    highs = highspy.Highs()
    solver = "simplex" if lp.num_col_ <= SIMPLEX_COLUMNS else "ipm"
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("solver", solver)
    highs.setOptionValue("run_crossover", "off")
    for tolerance in ("primal_feasibility", "dual_feasibility", "ipm_optimality"):
        highs.setOptionValue(f"{tolerance}_tolerance", 1e-9)
    highs.passModel(lp)
    highs.run()
    status = highs.getModelStatus()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown):
        raise FluidError(f"HiGHS ended with {highs.modelStatusToString(status)}")
    solution = highs.getSolution()
    value = np.maximum(np.array(solution.col_value), 0) * unit
    flow = np.zeros((targets, graph.channels))
    flow[i, a] = value[:count]
    prices = np.abs(np.array(solution.row_dual)[conserve.shape[0] :]) * unit / graph.capacity
    return flow, value[count:], prices, solver
