# SPDX-License-Identifier: Apache-2.0
"""Whether a throughput is feasible, which is often decided long before the throughput is known."""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.hosts import host_bound
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.problem import Problem
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

GAPS = (0.1, 0.01)
"""Gaps that are requested in turn, before the tolerance, while the interval does not decide."""


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
