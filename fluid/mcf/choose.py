"""Which method solves a concurrent flow problem, by size, density and the gap asked for."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fluid.certificate import network_length, verify_flow, verify_paths
from fluid.mcf import arcs
from fluid.mcf.dense import garg_koenemann
from fluid.mcf.path_lp import path_flow
from fluid.mcf.paths import Paths
from fluid.mcf.sparse import effort, multipliers
from fluid.problem import Problem

Method = Literal["auto", "exact", "approx"]

PATHS_MOST = 1_500_000
"""Commodities up to which paths are stored (about 1 kB each at three paths of four channels)."""
FLOW_MOST = 40_000_000
"""Entries up to which the dense method keeps the flow of every destination."""
EXACT_COLUMNS = 200_000
"""Columns up to which the LP is tried at all (about half a minute and 300 MB)."""
EXACT_GAP = 1e-5
"""Gaps below this are asked of the LP; it is about what the multipliers reach."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Bounds on theta of the network channels, the lengths that prove the upper one, and the method used."""

    lower: float
    upper: float
    lengths: np.ndarray
    method: str


def solve(problem: Problem, gap: float, method: Method = "auto", enough: float = np.inf) -> Solution:
    """Bounds on the largest theta with theta * demand routable; a lower one of ``enough`` ends the search.

    method ``exact`` is the arc LP (a gap of EXACT_GAP where that is too large), ``approx`` a first-order
    method, ``auto`` the quicker one for the gap.
    """
    if problem.paths is not None:
        return _over_paths(problem, problem.paths, gap, method, enough)
    if use_lp(arcs.columns(problem), method, gap):
        solution = arcs.concurrent_flow(problem)
        served = verify_flow(problem, solution.flow)
        return _certified(problem, served, solution.lengths, f"arc LP ({solution.solver})")
    gap = EXACT_GAP if method == "exact" else gap
    if problem.demand.size <= PATHS_MOST:
        lengths, paths = multipliers(problem, gap, enough, effort(problem))
        return _certified(problem, verify_paths(problem, paths), lengths, "multipliers")
    keep = len(problem.demand.target) * problem.graph.channels <= FLOW_MOST
    lengths, load, flow = garg_koenemann(problem, gap, enough, keep)
    if keep:
        served = verify_flow(problem, flow)
    else:  # only the sum over destinations is known: the load is taken on trust
        served = problem.demand.amount / (load / problem.graph.capacity).max()
    return _certified(problem, served, lengths, "Garg-Koenemann")


def _over_paths(problem: Problem, paths: Paths, gap: float, method: Method, enough: float) -> Solution:
    """Where the routing gives every commodity its paths: an LP with a column for each of them, or multipliers."""
    if use_lp(len(paths.flow), method, gap):
        lengths, served, solver = path_flow(problem, paths)
        return _certified(problem, verify_paths(problem, served), lengths, f"path LP ({solver})")
    gap = EXACT_GAP if method == "exact" else gap
    lengths, found = multipliers(problem, gap, enough, effort(problem))
    return _certified(problem, verify_paths(problem, found), lengths, "multipliers")


def use_lp(columns: int, method: Method, gap: float) -> bool:
    """Whether an LP of so many columns is the method for this gap."""
    if method == "auto" and gap >= EXACT_GAP:
        return columns <= arcs.SIMPLEX_COLUMNS
    return method != "approx" and columns <= EXACT_COLUMNS


def _certified(problem: Problem, served: np.ndarray, lengths: np.ndarray, method: str) -> Solution:
    """Both bounds, from what the flow serves and from the lengths alone."""
    graph, demand = problem.graph, problem.demand
    upper = float(graph.capacity @ lengths / network_length(graph, demand, lengths, problem.ways))
    lower = float((served / demand.amount).min())
    return Solution(min(lower, upper), upper, lengths, method)
