# SPDX-License-Identifier: Apache-2.0
"""Whether a throughput is reached: a question that is often settled long before the throughput is known."""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.hosts import host_bound
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.problem import Problem
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

GAPS = (0.1, 0.01)
"""Gaps asked for one after the other, before the tolerance itself, while the interval leaves the question open."""


@dataclass(frozen=True)
class Reach:
    """Whether theta is at least ``theta`` (1 - tolerance), the certified interval that says so, and the method."""

    reached: bool
    lower: float
    upper: float
    method: str


def reaches(topology: Topology, traffic: Traffic, theta: float, tolerance: float) -> Reach:
    """Whether a demand can be carried ``theta`` times, by any routing, but for a relative ``tolerance``.

    Solved only as closely as it takes: a flow of at least theta (1 - tolerance) says yes, lengths that forbid theta
    say no. Should a solver end before either, the answer is no.
    Raises :class:`~flitlab.fluid.problem.FluidError` if the demand is zero or joins switches that no path joins.
    """
    problem = Problem.of(topology, traffic)
    enough = theta * (1 - tolerance)
    at_hosts = host_bound(topology, traffic)
    if at_hosts < enough or problem.compact_demand.size == 0:
        return Reach(at_hosts >= enough, at_hosts, at_hosts, "host channels")
    lower, upper, method = 0.0, np.inf, ""
    for gap in (*(gap for gap in GAPS if gap > tolerance), tolerance):
        solution = solve(problem, gap, enough=enough)
        lower, upper, method = max(lower, solution.lower), min(upper, solution.upper), solution.method
        if lower >= enough or upper < theta:
            break
    return Reach(lower >= enough, min(lower, at_hosts), min(upper, at_hosts), method)
