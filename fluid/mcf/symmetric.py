# SPDX-License-Identifier: Apache-2.0
"""Symmetric problems: a few destinations, or one, represent all.

All channels of a class share their capacity, so flows for one destination of each class are enough: see
:class:`~flitlab.fluid.problem.Orbit`. The reduced problem has one capacity per class; :mod:`flitlab.fluid.mcf.columns`
solves it exactly.
"""

import numpy as np

from flitlab.fluid.mcf.columns import SharedCapacity, generate
from flitlab.fluid.mcf.paths import Paths, extend
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats

ROUNDS = 4
"""Initial paths of every commodity, at most."""


def solve_orbit(problem: Problem, gap: float) -> tuple[np.ndarray, Paths]:
    """Prices float64 [channels], and path flows of the commodities of ``problem.orbit``."""
    orbit = problem.orbit
    assert orbit is not None
    shared, one = SharedCapacity(orbit.row, orbit.capacity), Problem(problem.graph, orbit.demand)
    prices, paths = generate(one, _first_paths(one, shared), 1 / orbit.capacity, gap, shared)
    return prices[orbit.row], paths


def translated_flow(problem: Problem, paths: Paths) -> Floats:
    """float64 [switches, channels]: the flow toward switch 0, translated to every destination."""
    assert problem.orbit is not None and problem.orbit.translations is not None
    group, graph = problem.orbit.translations, problem.graph
    flow = np.empty((graph.nodes, graph.channels))
    toward = np.empty((graph.nodes, group.generators))
    toward[graph.src, group.generator] = paths.load(graph.channels) / graph.nodes
    for t in range(graph.nodes):
        flow[t] = toward[group.step(np.full(graph.channels, t), graph.src), group.generator]
    return flow


def _first_paths(problem: Problem, shared: SharedCapacity) -> Paths:
    """Equal shares of every demand on shortest paths that avoid fuller classes, with random ties."""
    graph, demand = problem.graph, problem.demand
    rng = np.random.default_rng(1)
    paths, no_limit = Paths.none(demand.size), np.full(demand.size, np.inf)
    use = np.ones(len(shared.capacity))
    for _ in range(ROUNDS):
        z = (use / use.mean() / shared.capacity)[shared.row] * rng.uniform(0.99, 1.01, graph.channels)
        priced = price(graph, demand, problem.dags, z, no_limit)[1]
        paths = Paths(*extend(paths, priced, False, demand.amount / ROUNDS))
        use = shared.load(paths) / shared.capacity + 0.1 * use
    return paths
