# SPDX-License-Identifier: Apache-2.0
"""Exact maximum concurrent flow over paths: an interior-point method with column generation at every iterate.

minimise lambda  subject to  sum of f_p over the paths p of k = demand_k,  load_a(f) + s_a = lambda c_a maximise sum of
demand_k u_k  subject to  r_p = sum of z_a over p - u_k,  sum of c_a z_a = 1

with f, s, r, z >= 0 and theta = 1 / lambda. Every path set is complete only for its own prices, so each dual step is
halved until no path is cheaper than u_k; paths that rejected steps reveal join the path sets. From a first-order
solution, 5 to 25 steps reach 1e-6. A step costs one dense factorisation of channels x channels, whatever the number of
commodities.

Sources: Mehrotra, SIAM J. Optim. 2 (1992), doi:10.1137/0802028 (predictor and corrector); Gondzio, Gonzalez-Brevis and
Munari, EJOR 224 (2013), doi:10.1016/j.ejor.2012.07.024 (columns priced at well-centred duals).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve

from flitlab.fluid.graph import Graph
from flitlab.fluid.mcf.paths import Paths, cheapest, extend
from flitlab.fluid.pricing import PricedPaths, floored, price
from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats, sums

MAX_STEPS = 100
"""Limit of the interior-point steps."""
FLOOR = 1e-6
"""Least value of capacity * price of a channel at the start, relative to the mean."""
HALVINGS = 30
"""Limit of the halvings of a dual step."""

ORBIT_PATHS = 4
"""Initial paths of every commodity of a symmetric problem, at most."""


class SharedCapacity(NamedTuple):
    """Shared capacities: channel a counts in row[a], int64 [channels]; capacity: float64 [rows]."""

    row: np.ndarray
    capacity: Floats

    @classmethod
    def separate(cls, graph: Graph) -> "SharedCapacity":
        """Separate capacities of all channels."""
        return cls(np.arange(graph.channels), graph.capacity)

    def load(self, paths: Paths) -> Floats:
        """float64 [rows]: the flow in every row."""
        return sums(self.row[paths.channel], np.repeat(paths.flow, paths.hops), len(self.capacity))


def memory(problem: Problem) -> int:
    """Approximate bytes: a factorised matrix of channels x channels, once dense and once as triplets; and paths."""
    paths = 12 * problem.compact_demand.size if problem.paths is None else len(problem.paths.flow)
    return 20 * problem.graph.channels**2 + 400 * paths


@dataclass(eq=False)
class _Point:
    """A primal-dual iterate: slack, lambda (scale), prices z, and the duals u of the commodities; flow is that of
    ``paths``.
    """

    paths: Paths
    slack: np.ndarray
    scale: float  # lambda
    z: np.ndarray
    u: np.ndarray


class _Best:
    """The best bounds so far: prices, and path flows that serve the whole demand."""

    def __init__(self, problem: Problem, shared: SharedCapacity) -> None:
        self.problem, self.shared = problem, shared
        self.lower, self.upper = 0.0, np.inf

    def update_lower(self, paths: Paths) -> None:
        demand = self.problem.demand
        served = np.bincount(paths.commodity, paths.flow, demand.size)
        whole = paths._replace(flow=paths.flow * (demand.amount / served)[paths.commodity])
        lower = 1 / (self.shared.load(whole) / self.shared.capacity).max()
        if lower > self.lower:
            self.lower, self.paths = lower, whole

    def update_upper(self, z: Floats, distance: np.ndarray) -> None:
        upper = self.shared.capacity @ z / (self.problem.demand.amount @ distance)
        if upper < self.upper:
            self.upper, self.hops = upper, z

    def within(self, gap: float) -> bool:
        return self.upper <= (1 + gap) * self.lower


def generate(
    problem: Problem, paths: Paths, prices: np.ndarray, gap: float, shared: SharedCapacity | None = None
) -> tuple[np.ndarray, Paths]:
    """Prices and path flows whose bounds differ by ``gap``, starting from approximate ones.

    It ends after MAX_STEPS steps with the best bounds so far.

    Parameters
    ----------
    problem : Problem
        The flow problem; if it has paths of its own, no others are generated.
    paths : Paths
        Flows that route the whole demand.
    prices : float64 [rows]
        Approximate prices.
    gap : float
        Relative gap.
    shared : Shared or None
        Capacities that channels share; None: each channel has its own.

    Returns
    -------
    float64 [rows]
        Prices.
    Paths
        Flows of the whole demand.
    """
    shared = shared or SharedCapacity.separate(problem.graph)
    capacity, amount = shared.capacity, problem.demand.amount
    z = floored(prices, capacity, FLOOR)
    z = z / (capacity @ z)
    distance, paths = _priced(problem, paths, z[shared.row])
    best = _Best(problem, shared)
    best.update_lower(paths)
    best.update_upper(z, distance)
    scale = (1 + max(best.upper / best.lower - 1, gap)) / best.lower
    slack = scale * capacity - shared.load(paths)
    centre = 0.1 * (slack @ z) / len(z)
    point = _Point(paths, slack, scale, z, distance - centre * np.diff(paths.first) / amount)
    for _ in range(MAX_STEPS):
        if best.within(gap):
            break
        centre = _advance(problem, point, best, gap)
    return best.hops, best.paths


def _priced(problem: Problem, paths: Paths, z: Floats) -> tuple[np.ndarray, Paths]:
    """Distances float64 [commodities] under prices z, and ``paths`` with shortest ones that are cheaper than all of
    them.
    """
    stored = cheapest(paths, z)
    if problem.paths is not None:
        return stored, paths
    distance, priced = price(problem.graph, problem.demand, problem.dags, z, (1 - 1e-9) * stored)
    return distance, with_paths(paths, priced)


def with_paths(paths: Paths, priced: PricedPaths) -> Paths:
    """The paths, and the priced paths without flow as the last ones of their commodities."""
    new = np.flatnonzero(np.diff(priced.start))
    if len(new) == 0:
        return paths
    commodity = np.concatenate([paths.commodity, new])
    order = np.argsort(commodity, kind="stable")
    begin = np.concatenate([paths.start[:-1], len(paths.channel) + priced.start[new]])[order]
    lengths = np.concatenate([paths.hops, np.diff(priced.start)[new]])[order]
    start = np.concatenate([[0], np.cumsum(lengths)])
    index = np.repeat(begin - start[:-1], lengths) + np.arange(start[-1])
    flow = np.concatenate([paths.flow, np.zeros(len(new))])[order]
    first = np.searchsorted(commodity[order], np.arange(len(paths.first)))
    return Paths(first, start, np.concatenate([paths.channel, priced.channel])[index], flow)


def _advance(problem: Problem, point: _Point, best: _Best, gap: float) -> float:
    """One predictor-corrector step of the point, and its bounds; returns the mean complementarity."""
    newton = _Newton(problem, best.shared, point)
    mean: float = newton.mean
    move = newton.step(0.0)
    predicted = newton.complementarity(move, *newton.longest(move, 1.0)) / mean
    # stay as far from the boundary as the gap allows: near it the system is ill-conditioned
    least = 0.2 * gap * point.scale / newton.size / mean
    move = newton.step(max(predicted**3, min(1.0, least)) * mean, move)
    primal, dual = newton.longest(move, 0.99)
    point.paths = point.paths._replace(flow=newton.flow + primal * move.flow)
    point.slack = newton.slack + primal * move.slack
    point.scale += primal * move.scale
    best.update_lower(point.paths)
    for _ in range(HALVINGS):
        z, u = point.z + dual * move.z, point.u + dual * move.u
        distance, point.paths = _priced(problem, point.paths, z[best.shared.row])
        best.update_upper(z, distance)
        margin = 0.01 * mean * np.diff(point.paths.first) / problem.demand.amount
        if (distance - u >= margin).all():
            break
        dual /= 2
    point.z, point.u = z, np.minimum(u, distance - margin)
    return mean


@dataclass(frozen=True, eq=False)
class _Move:
    """A direction of every part of a point; r: of the reduced costs."""

    flow: np.ndarray
    slack: np.ndarray
    scale: float
    z: np.ndarray
    u: np.ndarray
    r: np.ndarray


class _Residuals(NamedTuple):
    """The residuals of the equations of a point, without those of its products.

    demand: minus the flow, by commodity. capacity: times the scale, minus the flow and the slack, by row. prices: 1
    minus the price of all capacity.
    """

    demand: Floats
    capacity: Floats
    prices: float


class _Newton:
    """The Newton system at a point, reduced to the prices of the channels and factorised.

    flow, slack: those of the point, raised where they are far too small for its complementarity (new paths). mean: the
    mean of f r and s z, over ``size`` products.
    """

    def __init__(self, problem: Problem, shared: SharedCapacity, point: _Point) -> None:
        self.capacity = shared.capacity
        paths, rows, commodities = point.paths, len(shared.capacity), problem.demand.size
        self.commodity, self.commodities, self.z = paths.commodity, commodities, point.z
        count = len(paths.flow)
        row = shared.row[paths.channel]
        self.use = sparse.csc_array((np.ones(len(row)), row, paths.start), (rows, count))
        self.reduced = self.use.T @ point.z - point.u[self.commodity]
        self.size = count + rows
        mean = (paths.flow @ self.reduced + point.slack @ point.z) / self.size
        self.flow = np.maximum(paths.flow, 0.01 * mean / self.reduced)
        self.slack = np.maximum(point.slack, 0.01 * mean / point.z)
        self.mean = (self.flow @ self.reduced + self.slack @ point.z) / self.size

        ratio = self.flow / self.reduced
        self.total = self._by_commodity(ratio)
        weighted = sparse.csc_array(self.use)
        weighted.data = np.repeat(ratio, paths.hops)
        member = sparse.csr_array((np.ones(count), (self.commodity, np.arange(count))), (commodities, count))
        self.joint = sparse.csc_array(weighted @ member.T)
        share = self.joint.copy()
        share.data = share.data / np.repeat(self.total, np.diff(share.indptr))
        matrix = (weighted @ self.use.T - share @ self.joint.T).toarray()
        self.factor = _factor(matrix, self.slack / point.z)
        self.by_capacity = cho_solve(self.factor, self.capacity)

        self.residuals = _Residuals(
            demand=problem.demand.amount - self._by_commodity(self.flow),
            capacity=point.scale * self.capacity - self.use @ self.flow - self.slack,
            prices=1 - self.capacity @ point.z,
        )

    def _by_commodity(self, value: np.ndarray) -> np.ndarray:
        return np.bincount(self.commodity, value, self.commodities)

    def step(self, centre: float, before: _Move | None = None) -> _Move:
        """The direction in which all products become ``centre``, minus the second-order terms of ``before``."""
        flow_gap = centre - self.flow * self.reduced
        slack_gap = centre - self.slack * self.z
        if before is not None:
            flow_gap = flow_gap - before.flow * before.r
            slack_gap = slack_gap - before.slack * before.z
        residuals, at_paths = self.residuals, flow_gap / self.reduced
        shortfall = residuals.demand - self._by_commodity(at_paths)
        right = self.use @ at_paths + slack_gap / self.z - residuals.capacity + self.joint @ (shortfall / self.total)
        solved = cho_solve(self.factor, right)
        scale = (self.capacity @ solved - residuals.prices) / (self.capacity @ self.by_capacity)
        z = solved - scale * self.by_capacity
        u = (shortfall + self.joint.T @ z) / self.total
        r = self.use.T @ z - u[self.commodity]
        flow, slack = (flow_gap - self.flow * r) / self.reduced, (slack_gap - self.slack * z) / self.z
        return _Move(flow, slack, scale, z, u, r)

    def longest(self, move: _Move, part: float) -> tuple[float, float]:
        """Primal and dual step lengths, at most 1: a share ``part`` of the distance to the boundary."""
        primal = min(_longest_step(self.flow, move.flow), _longest_step(self.slack, move.slack))
        dual = min(_longest_step(self.reduced, move.r), _longest_step(self.z, move.z))
        return min(1.0, part * primal), min(1.0, part * dual)

    def complementarity(self, move: _Move, primal: float, dual: float) -> float:
        """The mean product after steps of these lengths."""
        flows = (self.flow + primal * move.flow) @ (self.reduced + dual * move.r)
        slacks = (self.slack + primal * move.slack) @ (self.z + dual * move.z)
        return float(flows + slacks) / self.size


def _longest_step(value: np.ndarray, change: np.ndarray) -> float:
    """The step length at which some value becomes 0."""
    falling = change < 0
    return float((-value[falling] / change[falling]).min()) if falling.any() else np.inf


def _factor(matrix: np.ndarray, diagonal: np.ndarray) -> tuple[Floats, bool]:
    """Cholesky factor of matrix + diagonal, regularised where rounding makes it indefinite.

    As ``scipy.linalg.cho_factor``, but NumPy releases the GIL: with 11,000 channels this takes 20 s, in which a signal
    could not end the process.
    """
    whole = matrix.diagonal() + diagonal
    step = np.arange(len(matrix))
    for extra in (1e-12, 1e-10, 1e-8, 1e-6):
        matrix[step, step] = whole * (1 + extra)
        try:
            return np.linalg.cholesky(matrix).T, False  # in the order of LAPACK
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(whole)), False


def solve_orbit(problem: Problem, gap: float) -> tuple[np.ndarray, Paths]:
    """Prices float64 [channels], and path flows of the commodities of ``problem.orbit``.

    All channels of a class share their capacity, so flows for one destination of each class are enough: see
    :class:`~flitlab.fluid.problem.Orbit`.
    """
    orbit = problem.orbit
    assert orbit is not None
    shared, one = SharedCapacity(orbit.row, orbit.capacity), Problem(problem.graph, orbit.demand)
    prices, paths = generate(one, _orbit_paths(one, shared), 1 / orbit.capacity, gap, shared)
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


def _orbit_paths(problem: Problem, shared: SharedCapacity) -> Paths:
    """Equal shares of every demand on shortest paths that avoid fuller classes, with random ties."""
    graph, demand = problem.graph, problem.demand
    rng = np.random.default_rng(1)
    paths, no_limit = Paths.none(demand.size), np.full(demand.size, np.inf)
    use = np.ones(len(shared.capacity))
    for _ in range(ORBIT_PATHS):
        z = (use / use.mean() / shared.capacity)[shared.row] * rng.uniform(0.99, 1.01, graph.channels)
        priced = price(graph, demand, problem.dags, z, no_limit)[1]
        paths = Paths(*extend(paths, priced, False, demand.amount / ORBIT_PATHS))
        use = shared.load(paths) / shared.capacity + 0.1 * use
    return paths
