"""Minimal routing: every next hop that lies on a shortest path."""

from dataclasses import replace
from typing import Literal

import numpy as np

from flitlab.models.arrays import Int, Integers, Masks
from flitlab.models.jit import njit
from flitlab.models.paths.search import search_to
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.escape import escape_ports
from flitlab.models.routing.routes import SELECT, Routes, RoutingSpec
from flitlab.models.rules.tables import ESCAPE, MAX_PORTS
from flitlab.models.topology.graph import Topology


@njit
def _minimal_ports(
    switches: int, out_start: Integers, dst: Integers, in_start: Integers, in_tail: Integers
) -> tuple[Masks, Int]:
    """uint64 [t, v] masks of the shortest-path channels, and the diameter (-1: some pair has no path)."""
    ports = np.zeros((switches, switches), np.uint64)
    distance = np.empty(switches, np.int64)
    order = np.empty(switches, np.int64)
    diameter = 0
    for t in range(switches):
        if search_to(t, in_start, in_tail, distance, order) < switches:
            return ports, -1
        diameter = max(diameter, distance[order[switches - 1]])
        for v in range(switches):
            mask = np.uint64(0)
            for c in range(out_start[v], out_start[v + 1]):
                if distance[dst[c]] == distance[v] - 1:
                    mask |= np.uint64(1) << np.uint64(c - out_start[v])
            ports[t, v] = mask
    return ports, diameter


def minimal_ports(topology: Topology) -> tuple[Masks, int]:
    """Masks uint64 [t, v] of the channels of v on a shortest path to t, and the diameter in channels.

    8 bytes a pair of switches: 128 MiB at 4,096. Raises ``SpecError`` above 64 channels a switch or
    if the graph is not strongly connected.
    """
    degree = int(topology.out_degree.max(initial=0))
    if degree > MAX_PORTS:
        raise SpecError(f"serves at most {MAX_PORTS} channels out of a switch; the topology has {degree}")
    ports, diameter = _minimal_ports(
        topology.switches, topology.out_start, topology.dst, topology.in_start,
        topology.src[topology.in_channels],
    )  # fmt: skip
    if diameter < 0:
        raise SpecError("the topology is not strongly connected")
    return ports, int(diameter)


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
