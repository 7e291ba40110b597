"""Which method solves a concurrent flow problem, by size, density and the gap asked for."""

from dataclasses import dataclass, replace

import numpy as np

from fluid.ceiling import Method
from fluid.certificate import delivering_load, network_length, orbit_length, verify_flow, verify_orbit, verify_paths
from fluid.mcf import arcs, columns
from fluid.mcf.dense import garg_koenemann
from fluid.mcf.path_lp import path_flow
from fluid.mcf.paths import Paths
from fluid.mcf.shortest import Split, scaled_weights
from fluid.mcf.sparse import effort, multipliers
from fluid.mcf.symmetric import everywhere, one_for_all
from fluid.problem import MEMORY_MOST, Problem, refuse_if_large

PATHS_MOST = 1_500_000
"""Commodities up to which paths are stored (about 1 kB each at three paths of four channels)."""
DENSE = 8
"""Commodities per switch above which shortest paths alone may balance the load."""
FLOW_MOST = 20_000_000
"""Entries up to which a flow by destination and channel is written out (160 MB)."""
FEW_PATHS = 4000
"""Given paths up to which the LP is as quick as any."""
EXACT_GAP = 1e-5
"""Gaps below this are asked of an exact method; it is about what the multipliers reach."""
CLOSE = 5e-7
"""The gap at which an exact method stops; what is promised is 1e-6."""
START_GAP = 1e-3
"""The gap to which the multipliers go before the exact method takes over."""
FINISH_MOST = 1 << 30
"""Bytes up to which interior points finish what the multipliers leave farther apart than was asked (minutes)."""
TRANSLATED = "column generation (translations)"


@dataclass(frozen=True, eq=False)
class Solution:
    """Bounds on theta of the network channels, what proves them, and the method used.

    lengths: float64 [channels], behind the upper bound. load: float64 [channels], of the flow behind the lower one,
    scaled until the fullest channel is full. flow: that flow, of any scale: float64 [targets, channels] by
    destination, or over paths; None where only its load was kept.
    """

    lower: float
    upper: float
    lengths: np.ndarray
    method: str
    load: np.ndarray
    flow: np.ndarray | Paths | None


def solve(problem: Problem, gap: float, method: Method = "auto", enough: float = np.inf) -> Solution:
    """Bounds on the largest theta with theta * demand routable; a lower one of ``enough`` ends the search.

    method ``exact``: to a gap of 1e-6, with one destination for all if translations leave the problem as it is, by the
    arc LP if that is small, else by interior points over generated paths. ``approx``: a first-order method, over paths
    or, for the densest demands, by destination. ``auto``: exact where that is as quick, or where the gap asks for it
    and it fits.
    Raises :class:`~fluid.problem.FluidError` if a method that was asked for would not fit into memory.
    """
    if method != "approx" and problem.orbit is not None:
        return _symmetric(problem)
    by_arcs = problem.paths is None and not problem.over_others
    if method != "approx" and by_arcs and arcs.columns(problem) <= arcs.SIMPLEX_COLUMNS:
        solution = arcs.concurrent_flow(problem)
        served = verify_flow(problem, solution.flow)
        return _certified(problem, served, solution.lengths, f"arc LP ({solution.solver})", solution.flow)
    if method != "approx" and problem.paths is not None and len(problem.paths.flow) <= FEW_PATHS:
        lengths, paths, solver = path_flow(problem, problem.paths)
        return _certified(problem, verify_paths(problem, paths), lengths, f"path LP ({solver})", paths)
    needed = columns.memory(problem)
    if method == "exact":
        refuse_if_large(needed, "an exact solution", "; method: approx needs less")
    if method == "exact" or (method == "auto" and gap < EXACT_GAP and needed <= MEMORY_MOST):
        lengths, paths = multipliers(problem, START_GAP, enough, effort(problem))
        return _by_columns(problem, paths, lengths)
    dense = problem.paths is None and problem.demand.size > DENSE * problem.graph.nodes
    if dense and (found := _on_shortest_paths(problem, gap, enough)) is not None:
        return found
    if problem.paths is not None or problem.demand.size <= PATHS_MOST:
        lengths, paths = multipliers(problem, gap, enough, effort(problem))
        found = _certified(problem, verify_paths(problem, paths), lengths, "multipliers", paths)
        missed = found.upper > (1 + gap) * found.lower and found.lower < enough
        if missed and method == "auto" and needed <= FINISH_MOST:
            return _by_columns(problem, paths, lengths)
        return found
    keep = len(problem.demand.target) * problem.graph.channels <= FLOW_MOST
    lengths, load, flow = garg_koenemann(problem, gap, enough, keep)
    if keep:
        served = verify_flow(problem, flow)
    else:  # only the sum over destinations is known: the load is taken on trust
        served = problem.demand.amount / (load / problem.graph.capacity).max()
    return _certified(problem, served, lengths, "Garg-Koenemann", flow if keep else None, load)


def _by_columns(problem: Problem, paths: Paths, lengths: np.ndarray) -> Solution:
    """Interior points over generated paths, or over those there are, from where the multipliers ended."""
    lengths, paths = columns.generate(problem, paths, lengths, CLOSE)
    return _certified(problem, verify_paths(problem, paths), lengths, "column generation", paths)


def _on_shortest_paths(problem: Problem, gap: float, enough: float) -> Solution | None:
    """A flow on shortest paths that comes as near to the bound by hops as was asked; None if none is found."""
    graph, demand = problem.graph, problem.demand
    split = Split(problem)
    weight = scaled_weights(split, gap, enough)
    if weight is None:
        return None
    keep = len(demand.target) * graph.channels <= FLOW_MOST
    load, flows = np.zeros(graph.channels), []
    for part, flow in split.flow(weight):
        load += delivering_load(replace(problem, demand=part, orbit=None), flow, part.amount)
        if keep:
            flows.append(flow)
    served = demand.amount / (load / graph.capacity).max()
    whole = np.concatenate(flows) if keep else None
    return _certified(problem, served, 1 / graph.capacity, "scaled shortest paths", whole, load)


def _symmetric(problem: Problem) -> Solution:
    """One destination for all; the flow for the others is written out unless that is too much."""
    assert problem.orbit is not None
    lengths, paths = one_for_all(problem, CLOSE)
    if problem.graph.nodes * problem.graph.channels <= FLOW_MOST:
        flow = everywhere(problem, paths)
        return _certified(problem, verify_flow(problem, flow), lengths, TRANSLATED, flow)
    lower, load = verify_orbit(problem, paths)
    upper = float(problem.graph.capacity @ lengths / orbit_length(problem.graph, problem.orbit, lengths))
    return Solution(min(lower, upper), upper, lengths, TRANSLATED, load, None)


def _certified(
    problem: Problem, served: np.ndarray, lengths: np.ndarray, method: str,
    flow: np.ndarray | Paths | None, load: np.ndarray | None = None,
) -> Solution:  # fmt: skip
    """Both bounds, from what the flow serves and from the lengths alone; ``load`` where there is no flow."""
    graph, demand = problem.graph, problem.demand
    if flow is not None:
        load = flow.load(graph.channels) if isinstance(flow, Paths) else flow.sum(axis=0)
    assert load is not None
    upper = float(graph.capacity @ lengths / network_length(graph, demand, lengths, problem.ways))
    lower = float((served / demand.amount).min())
    return Solution(min(lower, upper), upper, lengths, method, load / (load / graph.capacity).max(), flow)
