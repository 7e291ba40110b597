# SPDX-License-Identifier: Apache-2.0
"""Deadlock certificates of classes of traffic that keep to ranges of virtual channels.

A vertex of the channel dependency graph is a (channel, VC). Classes with disjoint ranges share no vertex, so each range
has a graph of its own, as of a network with as many VCs; classes of one range share it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from flitlab.models.registry import SpecError
from flitlab.models.routing.certificate import POLICY_NAMES, Certified
from flitlab.models.routing.route_set import Routes
from flitlab.models.rules.tables import VcPolicy
from flitlab.models.topology.graph import Topology

_RESERVING = (VcPolicy.ESCAPE, VcPolicy.RESERVE)

Certify = Callable[[Topology, Routes, int, bool], Certified]


def certify_ranges(
    topology: Topology, routes: Routes, ranges: Sequence[tuple[int, int]], allow_deadlock: bool, certify: Certify
) -> Certified:
    """The VC policy to run with, certified free of deadlock within every range.

    The smallest range chooses the policy, if the routes do not.

    Parameters
    ----------
    topology: the network.
    routes: its routes.
    ranges: first VC and one past the last, distinct.
    allow_deadlock: whether to accept routes without a certificate.
    certify: the function that certifies routes for a number of VCs.

    Raises
    ------
    SpecError: no certificate for a range; ranges that overlap under a policy that assigns VCs; a policy that reserves
        VCs of a channel.
    """
    sizes = sorted({end - first for first, end in ranges})
    certificates = []
    for size in sizes:
        first, end = next(one for one in ranges if one[1] - one[0] == size)
        try:
            certificates.append(certify(topology, routes, size, allow_deadlock))
        except SpecError as error:
            where = f"classes on VCs {first} to {end - 1}: " if end - first > 1 else f"classes on VC {first}: "
            raise SpecError(where + str(error), key=error.key, choices=error.choices) from None
        if routes.vc_policy is None:
            routes = replace(routes, vc_policy=certificates[0].policy)
    policy = certificates[0].policy
    name = POLICY_NAMES[policy]
    if policy in _RESERVING:
        raise SpecError(f"{name} reserves VCs of every channel and needs classes without vcs", key="vc_policy")
    ordered = sorted(ranges)
    overlapping = [(a, b) for a, b in pairwise(ordered) if b[0] < a[1]]
    if overlapping and policy != VcPolicy.ANY:
        (a, b), (c, d) = overlapping[0]
        problem = (
            f"{name} assigns VCs within the range of a class: ranges must be equal or disjoint, and VCs {a} to {b - 1} "
            f"and {c} to {d - 1} overlap"
        )
        raise SpecError(problem, key="vc_policy")
    text = f"{certificates[0].note}; so for each of {len(ranges)} ranges of VCs of classes"
    return Certified(policy, text, all(one.acyclic for one in certificates))
