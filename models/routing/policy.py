"""What a VC policy asks of routes, and the layers that ``layered`` adds to them."""

from dataclasses import replace

from flitlab.models.registry import SpecError
from flitlab.models.routing.layers import assign_layers
from flitlab.models.routing.routes import ESCAPE, GROUPS, LAYERED, LEGS, VIA, Routes, VcPolicySpec
from flitlab.models.topology.graph import Topology


def with_vc_policy(topology: Topology, routes: Routes, spec: VcPolicySpec | None) -> Routes:
    """The routes, with their layers if that is their VC policy. Raises ``SpecError`` if it cannot serve them."""
    policy = None if spec is None else spec.code()
    if policy == LEGS and routes.form != VIA:
        raise SpecError(
            "legs needs a routing over an intermediate switch: valiant or ugal (hop and layered serve every routing)",
            key="vc_policy",
        )
    if policy == ESCAPE and routes.escape is None:
        raise SpecError(
            "escape needs routing minimal with select: adaptive (hop and layered serve every routing)", key="vc_policy"
        )
    if policy == GROUPS and routes.group is None:
        raise SpecError(
            "groups needs the routing dragonfly, or valiant or ugal with legs: dragonfly (hop and layered serve every "
            "routing)",
            key="vc_policy",
        )
    if spec is None or policy != LAYERED:
        return routes
    layer, layers = assign_layers(topology, routes, spec)
    return replace(routes, layer=layer, layers=layers, notes={**routes.notes, "layers": layers})
