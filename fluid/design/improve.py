# SPDX-License-Identifier: Apache-2.0
"""Local search on a network for a demand, by the dual prices of its channels: ends of two links are exchanged."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from flitlab.fluid.design.bounds import Network
from flitlab.fluid.mcf.choose import Solution, solve
from flitlab.models.arrays import Floats, Ints
from flitlab.models.topology.graph import Topology

PRICED = 60
"""Exchanges that are priced for each that is solved."""

CHEAP = 0.5
"""Share of the links, those of the lowest prices, whose ends are exchanged."""


@dataclass(frozen=True, eq=False)
class Improved:
    """A network and the certified interval of its demand. solves: demands that were solved. kept: exchanges."""

    topology: Topology
    lower: float
    upper: float
    solves: int
    kept: int


def improve_by_prices(
    topology: Topology, demand_on: Callable[[Network], Floats], gap: float, solves: int, seed: int = 1
) -> Improved:
    """Exchange ends of links as long as the certified lower end of a demand grows.

    The prices z of the present upper end say what a link is worth: links of low price go, and of 60 random exchanges
    (a - b, c - d become a - c, b - d) the one that shortens sum demand x distance(z) most is solved. It is kept if its
    certified lower end is larger. Degrees and hosts stay; every network that is kept has a certificate of its own.

    Parameters
    ----------
    topology : Topology
        Bi-directional links of equal capacity, at most one between two switches.
    demand_on : callable
        Demand between switches on a network, float64 [switches, switches].
    gap : float
        Of the intervals.
    solves : int
        Exchanges that are solved at most.
    seed : int
        Of the draws.
    """
    rng = np.random.default_rng(seed)
    network, demand = Network.of(topology), demand_on(Network.of(topology))
    best, kept = solve(network.problem(demand), gap, "approx"), 0
    for _ in range(solves):
        links = _best_exchange(network, demand, best, rng)
        if links is None:
            continue
        changed = _with_links(network.topology, links)
        if changed.unreachable_pair() is not None:
            continue
        other = Network.of(changed)
        solution = solve(other.problem(demand), gap, "approx", refuted=best.lower)
        if solution.lower > best.lower:
            network, best, kept = other, solution, kept + 1
    return Improved(network.topology, best.lower, best.upper, solves, kept)


def _best_exchange(network: Network, demand: Floats, solution: Solution, rng: np.random.Generator) -> Ints | None:
    """The links after the exchange that shortens the demand's distances most, int64 [links, 2]; None if none does."""
    graph, n = network.graph, len(network.hosts)
    price = np.full((n, n), np.inf)
    price[graph.src, graph.dst] = solution.prices
    far = dijkstra(csr_array((np.maximum(solution.prices, 1e-12), (graph.src, graph.dst)), shape=(n, n)))
    ends = np.column_stack([graph.src, graph.dst])[graph.src < graph.dst]
    worth = price[ends[:, 0], ends[:, 1]] + price[ends[:, 1], ends[:, 0]]
    cheap = np.argsort(worth, kind="stable")[: max(2, int(CHEAP * len(ends)))]
    typical = float(np.median(worth)) / 2
    best, least = None, 0.0
    for _ in range(PRICED):
        i, j = rng.choice(cheap, 2, replace=False)
        (a, b), (c, d) = ends[i], ends[j][:: rng.choice((-1, 1))]
        if len({a, b, c, d}) < 4 or np.isfinite(price[a, c]) or np.isfinite(price[b, d]):
            continue
        gain = sum(_shorter(far, demand, u, v, typical) for u, v in ((a, c), (b, d))) - float(worth[i] + worth[j])
        if best is None or gain > least:
            best, least = (i, j, (a, c), (b, d)), gain
    if best is None:
        return None
    i, j, *new = best
    return np.concatenate([np.delete(ends, [i, j], axis=0), np.array(new)])


def _shorter(far: Floats, demand: Floats, u: int, v: int, price: float) -> float:
    """By how much a link of a price shortens sum demand x distance."""
    through = np.minimum(far[:, [u]] + price + far[[v], :], far[:, [v]] + price + far[[u], :])
    return float((demand * np.maximum(far - through, 0)).sum())


def _with_links(topology: Topology, links: Ints) -> Topology:
    changed = Topology.from_links(
        "improved", topology.switches, links, capacity=topology.capacity[0], delay=topology.delay[0],
        default_weight=topology.default_weight,
    )  # fmt: skip
    return replace(changed, kind="improved").with_hosts(topology.host_count, topology.host_capacity)
