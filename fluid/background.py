# SPDX-License-Identifier: Apache-2.0
"""The largest concurrent flow of a growing demand beside a fixed background, between certified bounds.

Let B be the background and H the growing demand. The largest x is sought for which B + x H is feasible. At any x, the
concurrent flow of B + x H gives channel prices z and a theta.

*Upper bound*: no flow costs more than the capacity is worth, so x H d(z) <= c z - B d(z), where d are the distances
under z. This is Newton's step for the x at which theta is 1.

*Lower bound*: if theta >= 1, theta x H is feasible beside B. Otherwise, if B by itself has b >= 1, the convex
combination of the two flows that carries all of B is feasible.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flitlab.fluid.ceiling import Method
from flitlab.fluid.mcf.choose import Solution, solve
from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

MAX_STEPS = 30
"""Concurrent flows that are solved at most; Newton's method takes a few."""

MIN_IMPROVEMENT = 1e-9
"""Relative improvement of the upper bound below which the iteration ends."""


@dataclass(frozen=True)
class GrowthBounds:
    """Bounds on the load of the growing demand that network channels carry beside the background.

    lower, upper: loads. prices: float64 [channels], proof of the upper bound; None if it is the limit of the search.
    method: that of the last concurrent flow.
    """

    lower: float
    upper: float
    prices: Floats | None
    method: str


@dataclass(frozen=True)
class GrowthProblem:
    """A growing demand beside its background. routes: restrict both, if given. gap: relative, at which the search
    ends.
    """

    topology: Topology
    traffic: Traffic
    routes: Routes | None
    gap: float
    method: Method

    def bounds(self, limit: float) -> GrowthBounds:
        """Bounds on the largest feasible load, at most ``limit`` (may be inf). Raises as :meth:`Problem.of`."""
        lower, upper, prices, method = 0.0, limit, None, "closed form"
        load = limit if math.isfinite(limit) else 1.0
        for _ in range(MAX_STEPS):
            solution = self.solve(self.traffic.at(load)[0])
            if solution is None:  # nothing crosses the network
                return GrowthBounds(upper, upper, prices, method)
            method = solution.method
            lower = min(max(lower, self.reachable_load(load, solution.lower)), upper)
            step = self.permitted_load(solution.prices)
            improved = step < upper * (1 - MIN_IMPROVEMENT)
            if step < upper:
                upper, prices = step, solution.prices
            lower = min(lower, upper)
            if upper <= lower * (1 + self.gap) or not improved or not math.isfinite(upper):
                break
            load = upper
        return GrowthBounds(lower, upper, prices, method)

    def reachable_load(self, load: float, theta: float) -> float:
        """A feasible load of the growing demand, where all demand at ``load`` has the throughput ``theta``."""
        if theta >= 1:
            return load * theta if self.problems[1].compact_demand.size else math.inf
        background_theta = self.background_theta
        if background_theta < 1:
            return 0.0
        share = 1.0 if math.isinf(background_theta) else (background_theta - 1) / (background_theta - theta)
        return share * theta * load

    def permitted_load(self, prices: np.ndarray) -> float:
        """Upper bound on the load that channel prices prove.

        Parameters
        ----------
        prices : float64 [channels]
            Any prices >= 0.

        Returns
        -------
        float
            At least 0; inf if the growing demand has a distance of 0.
        """
        fixed, growing = self.problems
        growing_cost = _cost(growing, prices)
        spare = float(self.topology.capacity @ prices) - _cost(fixed, prices)
        return max(spare, 0.0) / growing_cost if growing_cost > 0 else 0.0 if spare < 0 else math.inf

    @cached_property
    def problems(self) -> tuple[Problem, Problem]:
        """The flow problems of the background and of the growing demand."""
        assert self.traffic.background is not None
        return self._problem(self.traffic.background), self._problem(replace(self.traffic, background=None))

    @cached_property
    def background_theta(self) -> float:
        """A theta that is feasible for the background by itself; inf if none of it crosses the network."""
        assert self.traffic.background is not None
        solution = self.solve(self.traffic.background)
        return math.inf if solution is None else solution.lower

    def solve(self, traffic: Traffic) -> Solution | None:
        """The concurrent flow of a demand; None if none of it crosses the network."""
        problem = self._problem(traffic)
        return None if problem.compact_demand.size == 0 else solve(problem, self.gap / 2, self.method)

    def _problem(self, traffic: Traffic) -> Problem:
        return Problem.of(self.topology, traffic, self.routes)


def _cost(problem: Problem, prices: np.ndarray) -> float:
    return problem.volume(prices) if problem.compact_demand.size else 0.0
