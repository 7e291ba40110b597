# SPDX-License-Identifier: Apache-2.0
"""Path-based LP with one column per allowed path, in HiGHS: exact, for small problems."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import FluidError, Problem


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
