# SPDX-License-Identifier: Apache-2.0
"""Plans of rooted trees of small depth, among all plans of the least time.

A linear program returns some solution of the least time, which may wind through the whole network. Around a centre, a
solution is preferred whose roots are near it and whose arcs lead straight to it and away from it. The mean of several
such plans has the least time, too, uses more of the network, and has less deep trees.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.plan import INTO, OUT, ArcPlan, PlanProgram, SeparationFlows, solve_plan
from flitlab.fluid.problem import FluidError

CENTRES = 4
"""Largest number of centres."""
MAX_PARTS = 256
"""Parts up to which the mean of plans may have more than the least time needs."""

TIE_BREAK = 0.1
"""Random cost in hops that breaks ties between equally straight arcs, so that plans differ."""


def plan_around_centres(network: CollectiveNetwork) -> ArcPlan:
    """A plan of the least time for an all-reduce: the mean of plans around the most central vertices.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is no plan.
    """
    program, flows = PlanProgram(network, (INTO, OUT), None), SeparationFlows(network, (INTO, OUT))
    anywhere, plans = solve_plan(program, flows, None), list[ArcPlan]()
    most = max(MAX_PARTS, anywhere.parts)
    for plan in _around_centres(network, program, flows):
        if (len(plans) + 1) * lcm(plan.parts, *(other.parts for other in plans)) > most:
            break
        plans.append(plan)
    plan = _mean(plans or [anywhere])
    return _filled(network, plan) if network.is_rank.all() else plan


def _around_centres(network: CollectiveNetwork, program: PlanProgram, flows: SeparationFlows) -> Iterator[ArcPlan]:
    """Plans around the centres, the most central one first."""
    arcs = csr_array((np.ones(len(network.tail)), (network.tail, network.head)), shape=2 * (network.vertices,))
    hops = np.minimum(shortest_path(arcs, unweighted=True), network.vertices)  # distances may be infinite
    round_trip = hops + hops.T
    order = np.lexsort((round_trip[network.is_rank].sum(axis=0), round_trip[network.is_rank].max(axis=0)))
    for centre in order[:CENTRES].tolist():
        out, into = hops[centre], hops[:, centre]
        draw = np.random.default_rng(centre).uniform(0, TIE_BREAK, (2, len(network.tail)))
        detour = 1 + into[network.head] - into[network.tail], 1 + out[network.tail] - out[network.head]
        program.prefer(round_trip[centre], detour + draw)
        try:
            yield solve_plan(program, flows, None)
        except FluidError:  # infeasible because of the rounding of the least time
            return


def _mean(plans: Sequence[ArcPlan]) -> ArcPlan:
    """The mean of plans, each with an equal share of the parts."""
    common = lcm(*(plan.parts for plan in plans))
    scaled = [np.concatenate([plan.roots, *plan.uses]) * (common // plan.parts) for plan in plans]
    total = np.sum(scaled, axis=0)
    factor = gcd(common * len(plans), *total.tolist())
    roots, *uses = np.split(total // factor, np.cumsum([len(plans[0].roots), *map(len, plans[0].uses)])[:-1])
    return ArcPlan(common * len(plans) // factor, roots, tuple(uses))


def _filled(network: CollectiveNetwork, plan: ArcPlan) -> ArcPlan:
    """A plan that gives each direction half of the unused capacity of the arcs."""
    used = np.sum(plan.uses, axis=0)
    time = max(map(Fraction, used.tolist(), network.capacity.tolist()))
    arc_parts = [int(time * c) for c in network.capacity.tolist()]
    unused = np.array(arc_parts) - used
    return ArcPlan(plan.parts, plan.roots, (plan.uses[0] + unused // 2, plan.uses[1] + unused - unused // 2))
