# SPDX-License-Identifier: Apache-2.0
"""Minimal routing of a dragonfly: local, global, local."""

from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from flitlab.models.arrays import Bools, Ints32, Masks
from flitlab.models.registry import SpecError, register, warn
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.routes import SELECT, Routes, RoutingSpec
from flitlab.models.rules.port_sets import allow, allows
from flitlab.models.rules.tables import MaxPorts
from flitlab.models.topology.graph import Topology

_FAR = 9


def router_groups(topology: Topology) -> Ints32:
    """The group of every router: int32 [switches].

    Raises ``SpecError`` unless the topology is a dragonfly whose groups are fully linked.

    Parameters
    ----------
    topology: the network.
    """
    size = topology.notes.get("group_size", 0) if topology.kind == "dragonfly" else 0
    if size and topology.switches % size == 0:
        group = np.arange(topology.switches, dtype=np.int32) // size
        local = group[topology.src] == group[topology.dst]
        if len(np.unique(topology.src[local] * topology.switches + topology.dst[local])) == len(group) * (size - 1):
            return group
    problem = "local links of this one are missing" if size else f"this {topology.kind} has none"
    raise SpecError(f"needs the complete groups of a dragonfly, and {problem} (minimal, ecmp and ksp serve it)", "kind")


def dragonfly_ports(topology: Topology) -> tuple[Masks, int]:
    """The next hops of minimal dragonfly routing, a table of port sets, and the longest route.

    Routes take one global channel, or none within a group. Raises ``SpecError`` as :func:`router_groups`, if two groups
    are not linked, or above 128 channels per router.

    Parameters
    ----------
    topology: the network.
    """
    group, n = router_groups(topology), topology.switches
    if topology.out_degree.max(initial=0) > MaxPorts.TABLE:
        raise SpecError(f"serves at most {MaxPorts.TABLE} channels out of a switch", key="kind")
    local = group[topology.src] == group[topology.dst]

    def joined(mask: Bools) -> csr_array:
        return csr_array((np.ones(int(mask.sum()), np.int8), (topology.src[mask], topology.dst[mask])), (n, n))

    across, inside = joined(~local), joined(local)
    crossing = np.full((n, n), _FAR, np.uint8)  # hops of the best route whose first channel is global
    crossing[(across @ inside).nonzero()] = 2
    crossing[across.nonzero()] = 1
    hops = crossing.copy()
    for v, w in zip(topology.src[local], topology.dst[local], strict=True):
        np.minimum(hops[v], crossing[w] + np.uint8(1), out=hops[v])
    hops[inside.nonzero()] = 1
    np.fill_diagonal(hops, 0)
    if (hops == _FAR).any():
        s, t = group[np.argwhere(hops == _FAR)[0]].tolist()
        raise SpecError(f"groups {s} and {t} of this dragonfly are not linked (minimal, ecmp and ksp serve it)", "kind")
    ports, port = empty_table(topology), np.arange(topology.channels) - topology.out_start[topology.src]
    for c in range(topology.channels):
        v, w = topology.src[c], topology.dst[c]
        rest = crossing[w].copy() if local[c] else np.where(group == group[w], 1, _FAR).astype(np.uint8)
        rest[w] = 0
        allow(ports, np.flatnonzero(rest + 1 == hops[v]), v, port[c])
    return ports, int(hops.max(initial=0))


def two_global_channels(topology: Topology, ports: Masks) -> bool:
    """Whether shortest paths of a dragonfly cross more than one global channel; False without complete groups.

    Parameters
    ----------
    topology: the network.
    ports: table of port sets, channels of v on a shortest path to t.
    """
    try:
        group = router_groups(topology)
    except SpecError:
        return False
    port, every = np.arange(topology.channels) - topology.out_start[topology.src], np.arange(topology.switches)
    for c in np.flatnonzero(group[topology.src] != group[topology.dst]):
        takes_channel = allows(ports, every, topology.src[c], port[c])
        if (takes_channel & (group != group[topology.dst[c]])).any():  # to another group, by another global channel
            return True
    return False


def warn_of_two_global_channels(topology: Topology, ports: Masks, key: str) -> None:
    """Issue a warning where shortest paths are not the minimal routing of a dragonfly.

    Parameters
    ----------
    topology: the network.
    ports: as of :func:`two_global_channels`.
    key: ``kind`` of a routing that takes them, or its ``legs``.
    """
    if two_global_channels(topology, ports):
        hint = "" if key == "kind" else f", and {key}: dragonfly here"
        warn(
            "takes shortest paths by hops, some of which cross two global channels of this dragonfly; what papers on "
            f"dragonflies call minimal (local, global, local: Kim et al., ISCA 2008) is routing: dragonfly{hint}",
            key=key,
        )


@register("routing", "dragonfly")
class DragonflyMinimal(RoutingSpec):
    """Minimal routing of a dragonfly: at most a local channel, one global channel and a local channel.

    Within a group it is the local channel between the routers. Between groups with several global links, ``select``
    draws (random) or hashes one of the shortest such routes. ``minimal`` takes shortest paths in the graph instead,
    many of which cross two global channels via a third group: they are shorter or as long.

    With two VCs the default ``vc_policy`` is ``groups``, with three or more ``rising``.

    Example: ``routing: {kind: dragonfly}``

    Source: Kim, Dally, Scott and Abts, ISCA 2008, doi:10.1109/ISCA.2008.19, section on minimal routing.
    """

    select: Literal["random", "hash"] = "random"
    """How one of the channels that serve is chosen."""

    def routes(self, topology: Topology) -> Routes:
        ports, longest = dragonfly_ports(topology)
        group = router_groups(topology)
        return Routes(self.kind, ports, SELECT[self.select], longest, group=group)
