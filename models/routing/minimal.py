# SPDX-License-Identifier: Apache-2.0
"""Minimal routing: every next hop that lies on a shortest path."""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from flitlab.models.arrays import Bytes, Masks
from flitlab.models.jit import njit
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.bit_parallel import shortest_ports
from flitlab.models.routing.dor import dimension_order_ports, line_grid
from flitlab.models.routing.dragonfly import warn_of_two_global_channels
from flitlab.models.routing.imase import digits_of
from flitlab.models.routing.routes import NO_PORTS, SELECT, Routes
from flitlab.models.routing.updown import updown_ports
from flitlab.models.routing.weights import Hops, WeightedSpec
from flitlab.models.rules.bits import popcount, select
from flitlab.models.rules.port_sets import ports_at
from flitlab.models.rules.tables import MaxPorts, RouteForm, VcPolicy
from flitlab.models.table_cache import TableCache
from flitlab.models.topology.distances import diameter
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names


def minimal_ports(topology: Topology, most: int = MaxPorts.TABLE) -> tuple[Masks, int]:
    """The next hops on shortest paths, a table of port sets, and the diameter in channels.

    8 bytes per pair of switches: 128 MiB at 4,096; twice that above 64 channels out of a switch. Raises ``SpecError``
    above ``most`` channels, or if the graph is not strongly connected.

    Parameters
    ----------
    topology: the network.
    most: channels out of a switch, at most 128.
    """
    degree = int(topology.out_degree.max(initial=0))
    if degree > most:
        raise SpecError(f"serves at most {most} channels out of a switch; the topology has {degree}")
    ports, farthest = shortest_ports(topology)
    if farthest < 0:
        raise SpecError("the topology is not strongly connected")
    return ports, farthest


MOST_IN_TABLE = 1 << 14
"""Switches up to which next hops are in a table, of 2 GiB then, even if they can be computed.

A look-up is faster than the computation wherever the table fits. Nanoseconds per grant of virtual cut-through on an
imase graph at load 0.4, by table and by arithmetic, on a busy machine: 144 and 240 for 256 switches of degree 6, 414
and 508 for 1,024, 750 and 921 for 4,096, 743 and 1,030 for 8,192 of degree 8.
"""


_shortest: TableCache[Hops] = TableCache()
"""Next hops of topologies with live routes, shared by all selections."""


@register("routing", "minimal", aliases=("min", "shortest_path"))
class Minimal(WeightedSpec):
    """Shortest paths; every switch chooses one of the next hops on a shortest path.

    ``weight``: length of a channel: ``hops``: 1; ``delay``, the latency in a file, which is the delay of a channel + 1;
    ``latency``, the ticks of a hop, header, switch, link and delay (``hop_ticks``: those before the delay, by default
    of ``switching:``); or a column of the topology's file, whole numbers from 1. By default ``hops``, and ``delay``
    where an anynet file gives latencies. ``ties: first`` keeps of equally short paths the one that Dijkstra's algorithm
    finds first, as BookSim2 does: from each switch, switches are settled by distance, then number.

    ``select: random`` draws once per hop, ``hash`` fixes the choice for each (source, destination) pair and switch,
    ``adaptive`` evaluates it every tick: a packet takes its drawn channel unless another has a packet less, and less
    than half, committed to it (ties are drawn). On a fat tree paths go up to a nearest common ancestor and down; on a
    dragonfly some cross two global channels, and what papers call minimal there is the routing ``dragonfly``. Above
    16,384 switches, the next hops of imase (a = 1) and gdbg graphs are computed from the numbers of the switches, and
    those of others are in a table of gigabytes.

    ``vc_policy: escape`` (with adaptive) reserves VC 0 for a routing with acyclic dependencies. A packet enters it
    where no other VC is available, and stays on it; the others are entered with space for the whole packet.

    Example: ``routing: {kind: minimal, select: random, vc_policy: hop}``

    Example: ``routing: {kind: minimal, select: adaptive, vc_policy: hop}``

    Example: ``routing: {kind: minimal, weight: delay, ties: first}``

    Source: UNI section III-B; Duato 1993, doi:10.1109/71.250114 (escape); Kim, Dally, Abts, SC 2006,
    doi:10.1145/1188455.1188552 (adaptive: random sampling and imprecise queue lengths); Dijkstra 1959,
    doi:10.1007/BF01386390, and src/networks/anynet.cpp of BookSim 2, github.com/booksim/booksim2 (weight, ties).
    """

    supports_multistage: ClassVar[bool] = True

    select: Literal["random", "hash", "adaptive"] = "random"
    """How one of the channels that serve is chosen."""

    def routes(self, topology: Topology) -> Routes:
        escapes = self.policy_code() == VcPolicy.ESCAPE and self.select == "adaptive"
        by_hops = self.ties == "all" and self.weights(topology) is None
        large = topology.switches > MOST_IN_TABLE and by_hops and not escapes
        digits = digits_of(topology) if large else None
        if digits is not None and digits[0] <= MaxPorts.MASK:
            return Routes(
                self.kind, NO_PORTS, SELECT[self.select], diameter(topology), form=RouteForm.DIGITS, digits=digits
            )
        key = topology.content_hash, self.weight, self.ties, self.hop_ticks
        known = _shortest.get(key)
        hops = self.next_hops(topology) if known is None else known[1]._replace(ports=known[0])
        if known is None:
            _shortest.put(key, hops.ports, hops._replace(ports=NO_PORTS))
        warn_of_two_global_channels(topology, hops.ports, "kind")
        routes = Routes(self.kind, hops.ports, SELECT[self.select], hops.longest, notes=hops.notes)
        if not escapes:
            return routes
        escape, name, longest = escape_ports(topology)
        most = hops.longest - 1 + longest if hops.longest else 0
        return replace(
            routes, vc_policy=VcPolicy.ESCAPE, escape=escape, hops_max=most, notes={**hops.notes, "escape": name}
        )


def escape_ports(topology: Topology) -> tuple[Bytes, str, int]:
    """The port uint8 [t, v] of a routing with one path per pair and acyclic dependencies, its name, its longest route.

    Dimension order on meshes, hypercubes and HyperX, up*/down* elsewhere. Raises ``SpecError`` on a uni-directional
    topology.

    Parameters
    ----------
    topology: the network.
    """
    grid = line_grid(topology)
    if grid is not None and not grid.wrap:
        ports, longest = dimension_order_ports(topology, grid)
        return _one_each(ports), "dor", longest
    if topology.directed:
        raise SpecError(
            "escape channels follow dor or updown, and this uni-directional topology has neither; hop serves it",
            key="vc_policy",
        )
    ports, longest, roots = updown_ports(topology)
    return _one_each(ports), f"updown from {switch_names(topology).values(roots)}", longest


@njit
def _one_each(ports: Masks) -> Bytes:
    """One port of each set, uint8, chosen by destination and switch to share the load; 0 of empty sets."""
    port = np.zeros(ports.shape[:2], np.uint8)
    for t in range(len(ports)):
        for v in range(len(ports)):
            here = ports_at(ports[t], v)
            count = popcount(here)
            if count > 0:
                port[t, v] = select(here, (t + v) % count)
    return port
