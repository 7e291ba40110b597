# SPDX-License-Identifier: Apache-2.0
"""The base class of routings, and all that a routing is written with: routes and their parts."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from flitlab.models.registry import Spec, SpecError, is_third_party
from flitlab.models.routing.layers import assign_layers
from flitlab.models.routing.route_set import NO_PORTS, PER, SELECT, PathTable, Routes
from flitlab.models.routing.validation import mark_validated, validate_routes
from flitlab.models.rules.tables import MaxPorts, RouteForm, Selection, VcPolicy
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import unchanged

__all__ = [
    "NO_PORTS", "PER", "SELECT", "MaxPorts", "PathTable", "RouteForm", "Routes", "RoutingSpec", "Selection",
    "VcPolicy",
]  # fmt: skip

VcPolicyKind = Literal["any", "hop", "rising", "reserve", "dateline", "layered", "legs", "escape", "groups"]


class VcPolicySpec(Spec):
    """``vc_policy`` of a routing; a plain string in a configuration is its kind.

    ``any``: any VC. ``hop``: as many classes of VCs as the longest route has channels; the h-th channel of a packet
    uses class h. ``rising``: any VC above the held one that leaves one VC above for every channel that may follow.
    ``reserve``: under ``vct``, any VC beyond as many as the longest route has channels or, if none has space, VC h on
    the h-th channel from 0 on. ``dateline``: under dor on a torus, half of the VCs on either side of the wrap-around,
    chosen ``on_entry`` of a ring or ``at_crossing``. ``legs``: under valiant and ugal, half of the VCs before and half
    after the intermediate switch. ``groups``: under the routing dragonfly and by its legs, half of the VCs up to the
    global channel and half after it; each of two legs has its own halves. ``layered``: every path has its layer and
    every layer its VCs; the paths are taken in ``order`` (by length, or drawn) and each put into the first layer in
    which it closes no cycle; with ``layers`` the fullest are split until that number is reached. ``escape``: under
    minimal with ``select: adaptive``, VC 0 follows dor (mesh, hypercube) or updown and a packet on it stays on it.
    Classes, halves and layers have equal numbers of VCs; the first ones have the remainder.

    Sources: Kim, Dally, Scott, Abts, ISCA 2008, doi:10.1109/ISCA.2008.19 (groups); Skeie, Lysne, Theiss, LASH, IPDPS
    2002, doi:10.1109/IPDPS.2002.1016580; Domke, Hoefler, Nagel, DFSSSP, IPDPS 2011, doi:10.1109/IPDPS.2011.65; Duato
    1993, doi:10.1109/71.250114.
    """

    kind: VcPolicyKind
    choose: Literal["on_entry", "at_crossing"] = "on_entry"
    order: Literal["short_first", "long_first", "random"] = "short_first"
    layers: int | None = Field(default=None, ge=1, le=255)

    def code(self) -> int:
        """The constant of :mod:`flitlab.models.rules.tables` that names the policy."""
        if self.kind == "dateline":
            return VcPolicy.DATELINE_ENTRY if self.choose == "on_entry" else VcPolicy.DATELINE_CROSSING
        code: int = getattr(VcPolicy, self.kind.upper())
        return code


def with_vc_policy(topology: Topology, routes: Routes, spec: VcPolicySpec | None) -> Routes:
    """The routes under a VC policy, with layers if it is ``layered``.

    Deflected packets wait for no buffer, so they may take any VC.

    Parameters
    ----------
    topology: the network.
    routes: valid routes.
    spec: the policy; None: the routes are returned unchanged.

    Returns
    -------
    The routes.

    Raises
    ------
    SpecError: the policy cannot serve the routes.
    """
    if spec is None or routes.deflection:
        return routes
    policy = spec.code()
    if routes.form == RouteForm.POLARIZED and policy not in (VcPolicy.HOP, VcPolicy.RISING):
        raise SpecError("must be rising or hop: packets may come by any channel after any other", key="vc_policy")
    if routes.select == Selection.PROGRESSIVE and policy not in (VcPolicy.GROUPS, VcPolicy.HOP, VcPolicy.RISING):
        raise SpecError("must be groups, rising or hop: two legs may follow a first channel", key="vc_policy")
    if policy == VcPolicy.LEGS and routes.form != RouteForm.VIA:
        raise SpecError(
            "legs needs a routing over an intermediate switch: valiant or ugal (hop and layered serve every routing)",
            key="vc_policy",
        )
    if policy == VcPolicy.ESCAPE and routes.escape is None:
        raise SpecError(
            "escape needs routing minimal with select: adaptive (hop and layered serve every routing)", key="vc_policy"
        )
    if policy == VcPolicy.GROUPS and routes.group is None:
        raise SpecError(
            "groups needs the routing dragonfly, or valiant or ugal with legs: dragonfly (hop and layered serve every "
            "routing)",
            key="vc_policy",
        )
    if policy != VcPolicy.ESCAPE and routes.escape is not None:
        raise SpecError("must be escape: the routing has escape channels of its own", key="vc_policy")
    if policy != VcPolicy.LAYERED:
        return replace(routes, vc_policy=policy)
    layer, layers = assign_layers(topology, routes, spec.order, spec.layers)
    return replace(routes, vc_policy=policy, layer=layer, layers=layers, notes={**routes.notes, "layers": layers})


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
