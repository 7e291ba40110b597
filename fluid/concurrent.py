# SPDX-License-Identifier: Apache-2.0
"""The largest feasible multiple of a demand: by concurrent flows, also beside a background, and by a fixed split.

Whether a multiple is feasible is often decided long before the largest is known.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flitlab.fluid.ceiling import Ceiling, Method, theta_unit
from flitlab.fluid.certificate import Certificate, verify_upper
from flitlab.fluid.hosts import host_bound, host_certificate, hot_host_note
from flitlab.fluid.mcf.choose import Solution, solve
from flitlab.fluid.problem import Problem
from flitlab.fluid.split import growing_split, split_theta
from flitlab.models.arrays import Floats
from flitlab.models.instance import Instance
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

MAX_STEPS = 30
"""Concurrent flows that are solved at most; Newton's method takes a few."""

MIN_IMPROVEMENT = 1e-9
"""Relative improvement of the upper bound below which the iteration ends."""

BACKGROUND_NOTE = "the load is that of what grows beside the background"
"""Note of ceilings of traffic with a background."""
GAPS = (0.1, 0.01)
"""Gaps that are requested in turn, before the tolerance, while the interval does not decide."""


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
    """A growing demand beside its background.

    Let B be the background and H the growing demand. The largest x is sought for which B + x H is feasible. At any x,
    the concurrent flow of B + x H gives channel prices z and a theta.

    *Upper bound*: no flow costs more than the capacity is worth, so x H d(z) <= c z - B d(z), where d are the distances
    under z. This is Newton's step for the x at which theta is 1.

    *Lower bound*: if theta >= 1, theta x H is feasible beside B. Otherwise, if B by itself has b >= 1, the convex
    combination of the two flows that carries all of B is feasible.

    routes: restrict both, if given. gap: relative, at which the search ends.
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


def concurrent_flow(instance: Instance, kind: str, method: Method, gap: float) -> Ceiling:
    """Maximum concurrent flow of the network and host channels, over the routes for ``mcf_paths``.

    Parameters
    ----------
    instance : Instance
        Topology, traffic and routes.
    kind : str
        ``mcf`` or ``mcf_paths``.
    method : Method
        See :func:`~flitlab.fluid.mcf.choose.solve`.
    gap : float
        Relative gap between both ends at which the search may end.

    Raises
    ------
    FluidError
        The demand is zero, or no path joins two switches with demand.
    """
    topology, traffic = instance.topology, instance.traffic
    if traffic.background is not None:
        return _with_background(instance, kind, method, gap)
    problem = Problem.of(topology, traffic, instance.routes if kind == "mcf_paths" else None)
    at_hosts = host_bound(topology, traffic)
    if problem.compact_demand.size == 0:
        return _host_ceiling(instance, kind, at_hosts, "closed form", "no demand leaves its switch")
    solution = solve(problem, gap, method, at_hosts)
    # where host channels are the bottleneck, they scale the flow of the network
    load = solution.load * min(1.0, at_hosts / solution.lower)
    if solution.lower >= at_hosts:
        note = join_notes(_host_bottleneck_note(instance, at_hosts), solution.note)
        row = _host_ceiling(instance, kind, at_hosts, solution.method, note)
        return replace(row, channel_load=load, flow=solution.flow)
    certificate = Certificate.on_network(topology, solution.prices)
    note = ""
    if at_hosts < solution.upper:
        certificate, note = host_certificate(topology, traffic), "upper bound: host channels"
    upper = verify_upper(topology, traffic, certificate, problem.allowed)
    note = join_notes(note, solution.note, gap_note(solution.lower, upper, method, gap))
    lower, unit = min(solution.lower, upper), theta_unit(topology)
    return Ceiling(kind, None, lower, upper, unit, solution.method, 0.0, note, certificate, load, solution.flow)


def _with_background(instance: Instance, kind: str, method: Method, gap: float) -> Ceiling:
    """The largest load of the growing demand beside its background, of the network or of a host channel."""
    topology, traffic = instance.topology, instance.traffic
    at_hosts = host_bound(topology, traffic)
    routes = instance.routes if kind == "mcf_paths" else None
    growth = GrowthProblem(topology, traffic, routes, gap, method).bounds(at_hosts)
    if growth.lower >= at_hosts:
        return _host_ceiling(
            instance,
            kind,
            at_hosts,
            growth.method,
            join_notes(_host_bottleneck_note(instance, at_hosts), BACKGROUND_NOTE),
        )
    certificate = None if growth.prices is None else Certificate.on_network(topology, growth.prices)
    if certificate is None and math.isfinite(at_hosts):
        certificate = host_certificate(topology, traffic)
    overload_note = "the background alone cannot be carried" if growth.upper == 0 else ""
    note = join_notes(
        overload_note, BACKGROUND_NOTE, "" if overload_note else gap_note(growth.lower, growth.upper, method, gap)
    )
    unit = theta_unit(topology)
    return Ceiling(kind, None, growth.lower, growth.upper, unit, growth.method, 0.0, note, certificate)


def _host_bottleneck_note(instance: Instance, at_hosts: float) -> str:
    hot = hot_host_note(instance.topology, instance.traffic, at_hosts) if math.isfinite(at_hosts) else ""
    return hot or "host channels bind"


def _host_ceiling(instance: Instance, kind: str, at_hosts: float, method: str, note: str) -> Ceiling:
    if math.isinf(at_hosts):
        return Ceiling(kind, None, at_hosts, at_hosts, theta_unit(instance.topology), method, 0.0, note)
    certificate = host_certificate(instance.topology, instance.traffic)
    return Ceiling(kind, None, at_hosts, at_hosts, theta_unit(instance.topology), method, 0.0, note, certificate)


def join_notes(*notes: str) -> str:
    """Notes that are not empty, joined to one."""
    return "; ".join(note for note in notes if note)


def gap_note(lower: float, upper: float, method: Method, gap: float) -> str:
    """A note of the gap where it exceeds the requested one; '' otherwise.

    Parameters
    ----------
    lower, upper : float
        Ends of the interval.
    method : Method
        ``exact`` requests a gap of 1e-6.
    gap : float
        Requested relative gap of the other methods.
    """
    reached_gap, requested_gap = upper / lower - 1 if lower > 0 else math.inf, 1e-6 if method == "exact" else gap
    return (
        f"gap {reached_gap:.2g} where {requested_gap:g} was asked" if reached_gap > requested_gap * (1 + 1e-9) else ""
    )


def fixed_split(instance: Instance) -> Ceiling:
    """Theta of the routing's fixed split: a single value without certificate, since it bounds the split, not the
    network.
    """
    topology, traffic, routes = instance.topology, instance.traffic, instance.routes
    assert routes is not None  # the kind is omitted without
    if traffic.background is not None:
        network = growing_split(topology, traffic, routes)
    else:
        network = split_theta(Problem.of(topology, traffic, routes), topology, traffic)
    at_hosts = host_bound(topology, traffic)
    note = _host_bottleneck_note(instance, at_hosts) if at_hosts <= network else ""
    note = note if traffic.background is None else join_notes(note, BACKGROUND_NOTE)
    theta = min(network, at_hosts)
    method = "split by weight" if routes.weighed else "equal split"
    return Ceiling("split", None, theta, theta, theta_unit(instance.topology), method, 0.0, note)


@dataclass(frozen=True)
class Reach:
    """Whether theta is at least ``theta`` (1 - tolerance), the certified interval that decides it, and the method."""

    reached: bool
    lower: float
    upper: float
    method: str


def reaches(topology: Topology, traffic: Traffic, theta: float, tolerance: float) -> Reach:
    """Whether ``theta`` times a demand is feasible by any routing, up to a relative tolerance.

    The problem is solved only as closely as necessary: a flow of at least theta (1 - tolerance) decides yes, prices
    that prove less than theta decide no. If a solver ends before, the answer is no.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    theta : float
        Factor of the demand.
    tolerance : float
        Relative.

    Raises
    ------
    FluidError
        The demand is zero, or no path joins two switches with demand.
    """
    problem = Problem.of(topology, traffic)
    enough = theta * (1 - tolerance)
    at_hosts = float(host_bound(topology, traffic))
    if at_hosts < enough or problem.compact_demand.size == 0:
        return Reach(at_hosts >= enough, at_hosts, at_hosts, "host channels")
    lower, upper, method = 0.0, np.inf, ""
    for gap in (*(gap for gap in GAPS if gap > tolerance), tolerance):
        solution = solve(problem, gap, enough=enough)
        lower, upper, method = max(lower, solution.lower), min(upper, solution.upper), solution.method
        if lower >= enough or upper < theta:
            break
    return Reach(lower >= enough, min(lower, at_hosts), min(upper, at_hosts), method)
