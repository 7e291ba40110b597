# SPDX-License-Identifier: Apache-2.0
"""Choice of the method for a concurrent flow problem, by size, density and requested gap."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from flitlab.fluid.attempts import Attempts, best_of, both_methods
from flitlab.fluid.ceiling import Method
from flitlab.fluid.certificate import orbit_cost
from flitlab.fluid.delivered import verify_flow, verify_orbit, verify_paths
from flitlab.fluid.mcf import arcs, columns
from flitlab.fluid.mcf.columns import solve_orbit, translated_flow
from flitlab.fluid.mcf.dense import garg_koenemann
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.mcf.shortest import PathSplit, scaled_weights
from flitlab.fluid.mcf.sparse import effort, multipliers
from flitlab.fluid.problem import MAX_DENSE_FLOW, MAX_LISTED_PAIRS, MAX_MEMORY, FluidError, Problem, require_memory
from flitlab.models.arrays import Floats

MAX_PATH_PAIRS = MAX_LISTED_PAIRS
"""Commodities up to which paths are stored (about 1 kB each at three paths of four channels)."""
DENSE = 8
"""Commodities per switch above which shortest paths may suffice to balance the load."""
MAX_LP_PATHS = 4000
"""Given paths up to which the path LP is as fast as any method."""
EXACT_GAP = 1e-5
"""Gaps below this need an exact method; it is about what the multipliers reach."""
CLOSE = 5e-7
"""The gap at which an exact method stops."""
START_GAP = 1e-3
"""The gap to which the multipliers go before the exact method takes over."""
MAX_FINISH_MEMORY = 1 << 30
"""Bytes up to which interior points finish where the multipliers do not reach the requested gap (minutes)."""
TRANSLATED, ALIKE = "column generation (translations)", "column generation (symmetries)"
MAX_CLASSES = 3000
"""Classes of channels up to which an exact method is fast; it factorises a matrix of them."""
PROMISED = 1e-6
"""The gap that ``exact`` promises."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Bounds on theta of the network channels, their proofs, and the method.

    prices: float64 [channels], proof of the upper bound. load: float64 [channels], of the flow that proves the lower
    one, scaled until the fullest channel is full. flow: that flow, in any scale: float64 [targets, channels] by
    destination, or over paths; None where only its load was kept. note: methods that failed before, and why.
    """

    lower: float
    upper: float
    prices: Floats
    method: str
    load: Floats
    flow: np.ndarray | Paths | None
    note: str = ""

    def tightened(self, other: "Solution") -> "Solution":
        """The larger lower bound and the smaller upper one, each with its proof."""
        below, above = max(self, other, key=lambda one: one.lower), min(self, other, key=lambda one: one.upper)
        lower, method = min(below.lower, above.upper), both_methods(below.method, above.method)
        return replace(below, lower=lower, upper=above.upper, prices=above.prices, method=method)


def solve(
    problem: Problem, gap: float, method: Method = "auto", enough: float = np.inf, refuted: float = 0.0
) -> Solution:
    """Bounds on the largest theta with theta * demand feasible.

    A method that fails, or whose certificate is rejected, is followed by the next one; ``note`` gives the reason.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    gap : float
        Relative gap of the two bounds at which first-order methods may end.
    method : Method
        ``exact``: to a gap of 1e-6, with symmetries if there are any, else by the arc LP if that is small, else by
        interior points over generated paths. ``approx``: a first-order method, over paths or, for the densest demands,
        by destination. ``auto``: exact where that is as fast, or where the gap needs it and it fits.
    enough : float
        Lower bound at which the search ends.
    refuted : float
        Upper bound at which the multipliers end: theta is not larger, and that is all that is asked.

    Raises
    ------
    TooLargeError
        A requested method does not fit into memory.
    FluidError
        No method gives a bound; the message has all reasons.
    """
    preferred, others = _Methods(problem, gap, enough, refuted).in_turn(method)
    solution: Solution = best_of(preferred, others, PROMISED if method == "exact" else gap, enough, refuted)
    return solution


class _Methods:
    """The methods; each returns a certified solution, or None if it does not apply.

    gap, enough, refuted: where first-order methods may end.
    """

    def __init__(self, problem: Problem, gap: float, enough: float, refuted: float = 0.0):
        self.problem, self.gap, self.enough, self.refuted = problem, gap, enough, refuted
        self.start: tuple[np.ndarray, Paths] | None = None
        """What the multipliers came to."""

    def in_turn(self, method: Method) -> tuple[Attempts, Attempts]:
        """The methods in the order in which they are tried, and those for when none of these gives a bound."""
        problem, memory = self.problem, columns.memory(self.problem)
        by_path = problem.by_path
        listed = by_path or problem.compact_demand.size <= MAX_PATH_PAIRS
        first_order: Attempts = {}
        if not by_path and problem.compact_demand.size > DENSE * problem.graph.nodes:
            first_order["scaled shortest paths"] = self.shortest_paths
        if listed:
            first_order["multipliers"] = self.multipliers
        exact: Attempts = {"column generation": self.column_generation}
        if method == "approx":
            preferred = first_order
        elif method == "exact" or (self.gap < EXACT_GAP and memory <= MAX_MEMORY):
            preferred = self._where_small() | exact
        else:
            preferred = self._where_small() | first_order | (exact if listed and memory <= MAX_FINISH_MEMORY else {})
        others = first_order | (exact if listed and memory <= MAX_MEMORY else {})
        others |= {} if by_path else {"Garg-Koenemann": self.garg_koenemann}
        return preferred, {name: attempt for name, attempt in others.items() if name not in preferred}

    def _where_small(self) -> Attempts:
        """Exact methods for small problems, and for those that symmetries make small."""
        problem, attempts = self.problem, {}
        if problem.orbit is not None and len(problem.orbit.capacity) <= MAX_CLASSES:
            attempts[ALIKE if problem.orbit.translations is None else TRANSLATED] = self.symmetric
        if problem.paths is not None:
            if len(problem.paths.flow) <= MAX_LP_PATHS:
                attempts["path LP"] = self.path_lp
        elif not (problem.via_intermediate or problem.by_path) and arcs.columns(problem) <= arcs.SIMPLEX_COLUMNS:
            attempts["arc LP"] = self.arc_lp
        return attempts

    def symmetric(self) -> Solution:
        """Solve for one destination of each class; the flow of the others is stored if it is small."""
        problem, orbit = self.problem, self.problem.orbit
        assert orbit is not None
        prices, paths = solve_orbit(problem, CLOSE)
        moved = orbit.translations is not None
        if moved and problem.graph.nodes * problem.graph.channels <= MAX_DENSE_FLOW:
            flow = translated_flow(problem, paths)
            return _certified(problem, self._part(verify_flow(problem, flow)), prices, TRANSLATED, flow)
        lower, load = verify_orbit(problem, paths)
        upper = float(problem.graph.capacity @ prices / orbit_cost(problem.graph, orbit, prices))
        return Solution(min(lower, upper), upper, prices, TRANSLATED if moved else ALIKE, load, None)

    def arc_lp(self) -> Solution:
        solution = arcs.concurrent_flow(self.problem)
        part = self._part(verify_flow(self.problem, solution.flow))
        return _certified(self.problem, part, solution.prices, f"arc LP ({solution.solver})", solution.flow)

    def path_lp(self) -> Solution:
        assert self.problem.paths is not None
        prices, paths, solver = path_flow(self.problem, self.problem.paths)
        return self._over_paths(prices, paths, f"path LP ({solver})")

    def multipliers(self) -> Solution:
        self.start = prices, paths = multipliers(
            self.problem, self.gap, self.enough, effort(self.problem), self.refuted
        )
        return self._over_paths(prices, paths, "multipliers")

    def column_generation(self) -> Solution:
        """Interior points over generated, or given paths, starting from the multipliers."""
        require_memory(columns.memory(self.problem), "an exact solution", "; method: approx needs less")
        if self.start is None:
            self.start = multipliers(self.problem, START_GAP, self.enough, effort(self.problem))
        prices, paths = self.start
        prices, paths = columns.generate(self.problem, paths, prices, CLOSE)
        return self._over_paths(prices, paths, "column generation")

    def _over_paths(self, prices: np.ndarray, paths: Paths, method: str) -> Solution:
        return _certified(self.problem, self._part(verify_paths(self.problem, paths)), prices, method, paths)

    def _part(self, served: Floats) -> float:
        """The least share of its demand that a commodity gets. served: float64 [commodities], flits/tick."""
        return float((served / self.problem.demand.amount).min())

    def shortest_paths(self) -> Solution | None:
        """A flow on shortest paths within the gap of the hop bound; None if none is found."""
        graph, targets = self.problem.graph, len(self.problem.compact_demand.target)
        split = PathSplit(self.problem)
        weight = scaled_weights(split, self.gap, self.enough)
        if weight is None:
            return None
        load = split.carried(weight)
        keep = targets * graph.channels <= MAX_DENSE_FLOW
        flow = np.concatenate([rows.dense(graph.channels) for rows in split.flow(weight)]) if keep else None
        part = float(1 / (load / graph.capacity).max())
        return _certified(self.problem, part, 1 / graph.capacity, "scaled shortest paths", flow, load)

    def garg_koenemann(self) -> Solution:
        problem = self.problem
        keep = len(problem.compact_demand.target) * problem.graph.channels <= MAX_DENSE_FLOW
        prices, load, flow = garg_koenemann(problem, self.gap, self.enough, keep)
        if keep:
            part = self._part(verify_flow(problem, flow))
        else:  # only the load is known, so the flow cannot be verified
            part = float(1 / (load / problem.graph.capacity).max())
        return _certified(problem, part, prices, "Garg-Koenemann", flow if keep else None, load)


def _certified(
    problem: Problem, lower: float, prices: np.ndarray, method: str,
    flow: np.ndarray | Paths | None, load: Floats | None = None,
) -> Solution:  # fmt: skip
    """Both bounds: the share of every demand that the flow serves, and the bound by prices.

    load: float64 [channels], where there is no flow.
    """
    graph = problem.graph
    if flow is not None:
        load = flow.load(graph.channels) if isinstance(flow, Paths) else flow.sum(axis=0)
    assert load is not None
    needed = problem.volume(prices)
    upper = float(graph.capacity @ prices) / needed if needed > 0 else np.inf
    if not (0 < lower < np.inf and 0 < upper < np.inf):
        raise ValueError(f"{method} ended with bounds of {lower:g} and {upper:g}")
    return Solution(min(lower, upper), upper, prices, method, load / (load / graph.capacity).max(), flow)


def path_flow(problem: Problem, paths: Paths) -> tuple[np.ndarray, Paths, str]:
    """Prices float64 [channels] (duals of the capacities), path flows of largest theta, and the name of the solver.

    Raises :class:`~flitlab.fluid.problem.FluidError` if HiGHS finds no optimum.
    """
    graph, demand = problem.graph, problem.demand
    count = len(paths.flow)
    column = np.repeat(np.arange(count), paths.hops)
    # shares of the demand rather than flows: all columns are of the same size
    share = sparse.csr_array((np.ones(count), (paths.commodity, np.arange(count))), (demand.size, count))
    use = demand.amount[paths.commodity[column]] / graph.capacity[paths.channel]
    load = sparse.csr_array((use, (paths.channel, column)), (graph.channels, count))
    scale = 1 / (paths.load(graph.channels) / graph.capacity).max()  # theta of equal shares
    serve = sparse.hstack([share, sparse.csr_array(np.full((demand.size, 1), -1.0))])
    fit = sparse.hstack([load * scale, sparse.csr_array((graph.channels, 1))])
    gain = np.zeros(count + 1)
    gain[-1] = -1
    zeros, ones = np.zeros(demand.size), np.ones(graph.channels)
    optimum = linprog(gain, A_eq=serve, b_eq=zeros, A_ub=fit, b_ub=ones, method="highs")
    if optimum.status != 0:
        raise FluidError(f"HiGHS ended with: {optimum.message}")
    flow = np.maximum(optimum.x[:-1], 0) * demand.amount[paths.commodity] * scale
    return np.abs(optimum.ineqlin.marginals) / graph.capacity, paths._replace(flow=flow), "HiGHS"
