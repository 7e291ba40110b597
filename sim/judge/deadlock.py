# SPDX-License-Identifier: Apache-2.0
"""Deadlock freedom of a claim, by its routing and its virtual channels."""

from dataclasses import dataclass, replace

from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import VcPolicy


@dataclass(frozen=True)
class DeadlockRisk:
    """Result of the deadlock analysis. prone: no proof of deadlock freedom. note: the cycle, or the proof."""

    prone: bool
    note: str


def deadlock(instance: Instance, vcs: int | None) -> DeadlockRisk | None:
    """Whether the routes may deadlock with ``vcs`` virtual channels; None where either is unknown.

    Without a ``vc_policy`` of the routing, a policy with a certificate is searched; if there is none, packets may use
    all virtual channels freely.
    """
    topology, routes = instance.topology, instance.routes
    if routes is None or vcs is None:
        return None
    try:
        certificate = certify(topology, routes, vcs)
    except SpecError as error:
        reason = str(error)
    else:
        free = routes.vc_policy is None and not certificate.note.startswith("any") and not routes.deflection
        return DeadlockRisk(False, f"safe if VCs are used as {certificate.note}" if free else certificate.note)
    try:
        policy = VcPolicy.ANY if routes.vc_policy is None else routes.vc_policy
        certificate = certify(topology, replace(routes, vc_policy=policy), vcs, allow_deadlock=True)
    except SpecError:
        return DeadlockRisk(True, reason)
    return DeadlockRisk(True, certificate.note if not certificate.acyclic else reason)
