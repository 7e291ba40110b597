"""Minimal routing: every next hop that lies on a shortest path."""

from dataclasses import replace
from typing import Literal

from flitlab.models.arrays import Masks
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.escape import escape_ports
from flitlab.models.routing.routes import SELECT, Routes, RoutingSpec
from flitlab.models.routing.wide import shortest_ports
from flitlab.models.rules.tables import ESCAPE, MAX_PORTS
from flitlab.models.topology.graph import Topology


def minimal_ports(topology: Topology) -> tuple[Masks, int]:
    """Masks uint64 [t, v] of the channels of v on a shortest path to t, and the diameter in channels.

    8 bytes a pair of switches: 128 MiB at 4,096. Raises ``SpecError`` above 64 channels a switch or
    if the graph is not strongly connected.
    """
    degree = int(topology.out_degree.max(initial=0))
    if degree > MAX_PORTS:
        raise SpecError(f"serves at most {MAX_PORTS} channels out of a switch; the topology has {degree}")
    ports, diameter = shortest_ports(topology)
    if diameter < 0:
        raise SpecError("the topology is not strongly connected")
    return ports, diameter


@register("routing", "minimal")
class Minimal(RoutingSpec):
    """Shortest paths; at every switch one of the next hops on a shortest path is chosen.

    ``select: random`` draws it once a hop, ``hash`` fixes it for each (source, destination) pair and
    switch, ``adaptive`` takes, every tick anew, the free channel with most credits (ties: lowest). On a fat tree it is
    up to a nearest common ancestor and down.

    ``vc_policy: escape`` (with adaptive) keeps VC 0 for a routing without a cycle of dependencies, which a packet
    enters where it can have no other VC and then follows to its end; the others are taken with room for all of it.

    Example: ``routing: {kind: minimal, select: random, vc_policy: hop}``

    Example: ``routing: {kind: minimal, select: adaptive, vc_policy: hop}``

    Source: UNI section III-B; Duato 1993, doi:10.1109/71.250114 (escape).
    """

    select: Literal["random", "hash", "adaptive"] = "random"

    def routes(self, topology: Topology) -> Routes:
        ports, diameter = minimal_ports(topology)
        routes = Routes(self.kind, ports, SELECT[self.select], diameter)
        if self.policy_code() != ESCAPE or self.select != "adaptive":
            return routes
        escape, name, longest = escape_ports(topology)
        hops = diameter - 1 + longest if diameter else 0
        return replace(routes, vc_policy=ESCAPE, escape=escape, hops_max=hops, notes={"escape": name})
