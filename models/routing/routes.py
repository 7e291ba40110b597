# SPDX-License-Identifier: Apache-2.0
"""The base class of routings, and all that a routing is written with: routes and their parts."""

from collections.abc import Callable
from typing import ClassVar

from pydantic import field_validator

from flitlab.models.registry import Spec, is_third_party
from flitlab.models.routing.policy import VcPolicyKind, VcPolicySpec, with_vc_policy
from flitlab.models.routing.route_set import NO_PORTS, PER, SELECT, PathTable, Routes
from flitlab.models.routing.validation import mark_validated, validate_routes
from flitlab.models.rules.tables import MAX_PORTS, RouteForm, Selection, VcPolicy
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import unchanged

__all__ = [
    "MAX_PORTS", "NO_PORTS", "PER", "SELECT", "PathTable", "RouteForm", "Routes", "RoutingSpec", "Selection",
    "VcPolicy",
]  # fmt: skip


class RoutingSpec(Spec):
    """Keys that every routing takes. A routing adds its own and defines :meth:`routes`.

    supports_multistage: whether it serves networks whose hosts inject at one switch and eject at another.
    """

    supports_multistage: ClassVar[bool] = False

    vc_policy: VcPolicySpec | None = None
    """VCs that a packet may take at each hop. null: by routing and network."""

    @field_validator("vc_policy", mode="before", json_schema_input_type=VcPolicyKind | VcPolicySpec | None)
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"kind": value} if isinstance(value, str) else value

    def routes(self, topology: Topology) -> Routes:
        """The routes on a topology. Their VC policy applies unless the user sets another.

        Raises :class:`~flitlab.models.registry.SpecError` where the routing cannot serve the topology.

        Parameters
        ----------
        topology: the network.
        """
        raise NotImplementedError

    def build(self, topology: Topology) -> Routes:
        """The validated routes on a topology, under the configured VC policy. Raises ``SpecError``.

        Parameters
        ----------
        topology: the network.
        """
        return self.validated(self.routes, topology)

    def validated(self, method: Callable[..., Routes], topology: Topology, *more: object) -> Routes:
        """The validated result of a method of the routing: every packet arrives.

        more: further arguments of the method.
        """
        if not self.supports_multistage:
            topology.require_one_switch(f"routing {self.kind} serves networks whose hosts have one switch", "kind")
        with unchanged(topology, method, *more):
            routes = method(topology, *more)
        valid_routes = validate_routes(topology, routes, copy=is_third_party(self), method=method.__name__)
        return mark_validated(topology, with_vc_policy(topology, valid_routes, self.vc_policy))

    def policy_code(self) -> int | None:
        """The configured VC policy, or None for the routing's own."""
        return None if self.vc_policy is None else self.vc_policy.code()
