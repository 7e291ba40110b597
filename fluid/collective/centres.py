# SPDX-License-Identifier: Apache-2.0
"""Plans of rooted trees that are not deep, among all plans of the least time.

A linear program ends in any solution of the least time, and what that uses of a network may wind through all of it.
Around a centre a solution is looked for whose roots are near to it and whose arcs lead straight to it and away from it.
The mean of several such plans is one of the least time, too; it uses more of the network, and trees are less deep.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from flitlab.fluid.collective.network import Network
from flitlab.fluid.collective.plan import INTO, OUT, Flows, Plan, Program, solved
from flitlab.fluid.problem import FluidError

CENTRES = 4
"""Centres around which there are plans, at most."""
FEW = 256
"""Parts up to which a plan may have more of them than the least time needs."""

TIES = 0.1
"""Hops by which arcs are preferred at random where they lead as straight, so that plans differ from each other."""


def plan_around_centres(network: Network) -> Plan:
    """The plan of the least time for an all-reduce, as the mean of plans around the most central vertices.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is no plan.
    """
    program, flows = Program(network, (INTO, OUT), None), Flows(network, (INTO, OUT))
    anywhere, found = solved(program, flows, None), list[Plan]()
    most = max(FEW, anywhere.parts)
    for plan in _around_centres(network, program, flows):
        if (len(found) + 1) * lcm(plan.parts, *(other.parts for other in found)) > most:
            break
        found.append(plan)
    plan = _mean(found or [anywhere])
    return _filled(network, plan) if network.is_rank.all() else plan


def _around_centres(network: Network, program: Program, flows: Flows) -> Iterator[Plan]:
    """Plans around one centre after another, the most central one first."""
    arcs = csr_array((np.ones(len(network.tail)), (network.tail, network.head)), shape=2 * (network.vertices,))
    hops = np.minimum(shortest_path(arcs, unweighted=True), network.vertices)  # some switch may lead nowhere
    there = hops + hops.T
    order = np.lexsort((there[network.is_rank].sum(axis=0), there[network.is_rank].max(axis=0)))
    for centre in order[:CENTRES].tolist():
        out, into = hops[centre], hops[:, centre]
        draw = np.random.default_rng(centre).uniform(0, TIES, (2, len(network.tail)))
        off = 1 + into[network.head] - into[network.tail], 1 + out[network.tail] - out[network.head]
        program.prefer(there[centre], off + draw)
        try:
            yield solved(program, flows, None)
        except FluidError:  # the least time, given as a double, leaves nothing to choose from
            return


def _mean(plans: Sequence[Plan]) -> Plan:
    """The plan by which every part goes as plans have it in equal shares."""
    common = lcm(*(plan.parts for plan in plans))
    scaled = [np.concatenate([plan.roots, *plan.uses]) * (common // plan.parts) for plan in plans]
    total = np.sum(scaled, axis=0)
    factor = gcd(common * len(plans), *total.tolist())
    roots, *uses = np.split(total // factor, np.cumsum([len(plans[0].roots), *map(len, plans[0].uses)])[:-1])
    return Plan(common * len(plans) // factor, roots, tuple(uses))


def _filled(network: Network, plan: Plan) -> Plan:
    """A plan that gives to either way half of what arcs have left."""
    used = np.sum(plan.uses, axis=0)
    time = max(map(Fraction, used.tolist(), network.capacity.tolist()))
    room = [int(time * c) for c in network.capacity.tolist()]
    left = np.array(room) - used
    return Plan(plan.parts, plan.roots, (plan.uses[0] + left // 2, plan.uses[1] + left - left // 2))
