# SPDX-License-Identifier: Apache-2.0
"""Cayley graphs under a demand that translations leave as it is: one destination stands for all.

The average of an optimal flow over all translations is optimal too. So flows for switch 0 are enough; for the other
destinations they are translated, and a channel carries what all channels of its generator carry for switch 0. That
leaves a problem with a single capacity per generator, which :mod:`flitlab.fluid.mcf.columns` solves exactly.
"""

import numpy as np

from flitlab.fluid.mcf.columns import Shared, generate
from flitlab.fluid.mcf.paths import Paths, extend
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats

ROUNDS = 4
"""Paths that every commodity starts with, at most."""


def one_for_all(problem: Problem, gap: float) -> tuple[np.ndarray, Paths]:
    """Lengths float64 [channels] and the paths and flows of the commodities of ``problem.orbit``."""
    assert problem.orbit is not None
    graph, generator = problem.graph, problem.orbit.translations.generator
    capacity = np.empty(problem.orbit.translations.generators)
    capacity[generator] = graph.capacity
    shared = Shared(generator, capacity)
    one = Problem(graph, problem.orbit.demand)
    lengths, paths = generate(one, _first_paths(one, shared), 1 / capacity, gap, shared)
    return lengths[generator], paths


def everywhere(problem: Problem, paths: Paths) -> Floats:
    """float64 [switches, channels]: the flow for switch 0 translated to every destination."""
    assert problem.orbit is not None
    group, graph = problem.orbit.translations, problem.graph
    flow = np.empty((graph.nodes, graph.channels))
    toward = np.empty((graph.nodes, group.generators))
    toward[graph.src, group.generator] = paths.load(graph.channels)
    for t in range(graph.nodes):
        flow[t] = toward[group.step(np.full(graph.channels, t), graph.src), group.generator]
    return flow


def _first_paths(problem: Problem, shared: Shared) -> Paths:
    """Equal shares of every demand on shortest paths that avoid the fuller generators, ties broken at random."""
    graph, demand = problem.graph, problem.demand
    rng = np.random.default_rng(1)
    paths, anything = Paths.none(demand.size), np.full(demand.size, np.inf)
    use = np.ones(len(shared.capacity))
    for _ in range(ROUNDS):
        z = (use / use.mean() / shared.capacity)[shared.row] * rng.uniform(0.99, 1.01, graph.channels)
        found = price(graph, demand, problem.dags, z, anything)[1]
        paths = Paths(*extend(paths, found, False, demand.amount / ROUNDS))
        use = shared.load(paths) / shared.capacity + 0.1 * use
    return paths
