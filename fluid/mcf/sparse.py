# SPDX-License-Identifier: Apache-2.0
"""Path flows by an exponential method of multipliers: for sparse demands, and for dense ones that fit.

Weights w = exp(b + alpha * load) of the channels price the paths. Passes of Newton shifts
(:func:`flitlab.fluid.mcf.paths.balance`) equalise the prices within every commodity, shortest paths under the weights
join the path sets, and b takes over log w: so alpha stays moderate, and steps never become short. It grows only while
the weighted mean load is far nearer to the bound than to the maximum.

Sources: Tseng and Bertsekas, Math. Program. 60 (1993), doi:10.1007/BF01580598 (exponential multipliers); Jayakrishnan
et al., Transp. Res. Rec. 1443 (1994) (shifts between paths).
"""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.mcf.paths import Paths, balance, cheapest, extend
from flitlab.fluid.pricing import floored, price
from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats

FLOOR = 1e-5
"""Least value of capacity * price of a channel, relative to the mean: keeps shortest paths short where weights
vanish."""
BALANCED = 0.1
"""Costs of a commodity's paths are equal if they differ by less than this share of the remaining gap."""


@dataclass(frozen=True)
class Effort:
    """Limits of the work: initial paths per commodity (rounds), passes per sweep, sweeps."""

    rounds: int
    passes: int
    sweeps: int


def effort(problem: Problem) -> Effort:
    """Few commodities allow many passes; many balance each other within a few.

    Limits are counts, not times: results do not depend on the machine.
    """
    demand, nodes = problem.demand, problem.graph.nodes
    if demand.size <= 8 * nodes:
        return Effort(rounds=8, passes=20, sweeps=400)
    few = demand.size < 500_000
    return Effort(rounds=3 if few else 2, passes=4 if few else 2, sweeps=max(60, 20_000_000 // demand.size))


def first_paths(problem: Problem, paths: Paths, rounds: int, rng: np.random.Generator) -> Paths:
    """Add equal shares of every demand on shortest paths, where each round avoids loaded channels.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    paths : Paths
        Present paths.
    rounds : int
        Paths per commodity.
    rng : numpy.random.Generator
        Breaks ties.
    """
    graph, demand = problem.graph, problem.demand
    share = demand.amount / rounds
    no_limit = np.full(demand.size, np.inf)
    excess = np.zeros(graph.channels)
    for _ in range(rounds):
        z = rng.uniform(0.9, 1.1, graph.channels) * np.exp(1.5 * excess) / graph.capacity
        _, priced = price(graph, demand, problem.dags, z, no_limit)
        paths = Paths(*extend(paths, priced, False, share))
        use = paths.load(graph.channels) / graph.capacity
        excess = np.minimum(use / use.mean() - 1, 2)
    return paths


def bound_by(problem: Problem, z: Floats, distance: np.ndarray) -> float:
    """Upper bound on theta by prices.

    Sums do not use BLAS, whose threads would be slower and change the last digits.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    z : float64 [channels]
        Prices.
    distance : float64 [commodities]
        Distances under the prices.
    """
    return float((problem.graph.capacity * z).sum() / (problem.demand.amount * distance).sum())


def multipliers(
    problem: Problem, gap: float, enough: float, work: Effort, refuted: float = 0.0
) -> tuple[Floats, Paths]:
    """Prices and path flows whose bounds differ by ``gap``, by the exponential method of multipliers.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    gap : float
        Relative gap at which it ends.
    enough : float
        Theta of the flow at which it ends.
    work : Effort
        Limits of the work.
    refuted : float
        Bound by the prices at which it ends.

    Returns
    -------
    float64 [channels]
        Prices.
    Paths
        Flows of the whole demand.

    Source: Tseng and Bertsekas, doi:10.1007/BF01580598.
    """
    graph, demand, capacity = problem.graph, problem.demand, problem.graph.capacity
    rng = np.random.default_rng(1)
    fixed_paths = problem.paths
    if fixed_paths is None:
        paths = first_paths(problem, Paths.none(demand.size), work.rounds, rng)
    else:
        paths = fixed_paths._replace(flow=fixed_paths.flow.copy())  # updated in place
    bias = np.zeros(graph.channels)
    best = 1 / capacity
    upper = bound_by(problem, best, problem.distances(best))
    best_paths, lower, sharpness = paths, 0.0, 1.0
    for sweep in range(work.sweeps):
        use = paths.load(graph.channels) / capacity
        alpha = sharpness * np.log(graph.channels + 1) / 2 * (lower or 1 / use.max())
        z = np.exp(bias + alpha * (use - use.max())) / capacity
        tolerance = BALANCED * min(upper / lower - 1, 1.0) if lower else BALANCED
        order = rng.permutation(demand.size)
        balance(graph, paths, order, alpha, work.passes, tolerance, use * capacity, z)
        use = paths.load(graph.channels) / capacity
        if 1 / use.max() > lower:
            lower, best_paths = 1 / use.max(), paths._replace(flow=paths.flow.copy())

        log_weight = bias + alpha * (use - use.max())
        weight = np.exp(log_weight)
        z = floored(weight / capacity, capacity, FLOOR)
        if fixed_paths is None:
            distance, priced = price(graph, demand, problem.dags, z, (1 - 1e-9) * cheapest(paths, z))
        else:
            distance = cheapest(fixed_paths, z)
        bound = bound_by(problem, z, distance)
        if bound < upper:
            upper, best = bound, z
        if upper <= (1 + gap) * lower or lower >= enough or upper <= refuted:
            break

        mean = (weight * use).sum() / weight.sum()
        unbalanced, excess = mean - 1 / bound, use.max() - mean
        if unbalanced < 0.5 * excess:
            bias = np.maximum(log_weight - log_weight.max(), -30)
        sharpness = min(2 * sharpness, 16.0) if unbalanced < 0.03 * excess else max(sharpness / 2, 1.0)
        if fixed_paths is None:
            paths = Paths(*extend(paths, priced, sweep % 3 == 2, np.zeros(demand.size)))
    return best, best_paths
