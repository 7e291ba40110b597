# SPDX-License-Identifier: Apache-2.0
"""Up*/down* routing along the levels of a tree of switches."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Int, Integers, Ints, Masks
from flitlab.models.jit import njit
from flitlab.models.paths.search import UNREACHED
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.bit_parallel import most_channels
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.routes import SELECT, Routes
from flitlab.models.routing.weights import ChannelWeightSpec, distances_from
from flitlab.models.rules.bits import empty_set, with_port
from flitlab.models.rules.port_sets import ports_at, set_ports
from flitlab.models.rules.tables import MaxPorts
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Name, switch_names

_FAR = 1 << 62


@njit
def _fill_lengths(
    t: Int, order: Ints, rank: Ints, out_start: Integers, dst: Integers, weight: Ints, down: Ints, hops: Ints
) -> None:
    """Fill the lengths of paths to t: down by down channels only, hops with up channels before where there are none.

    down, hops: int64 [switches]. Other arguments are those of :func:`_updown_ports`.
    """
    down[:] = _FAR
    down[t] = 0
    for i in range(len(order) - 1, -1, -1):  # from below: down channels lead to finished switches
        v = order[i]
        for c in range(out_start[v], out_start[v + 1]):
            if rank[dst[c]] > i:
                down[v] = min(down[v], down[dst[c]] + weight[c])
    hops[:] = down
    for i in range(len(order)):  # from above: up channels lead to finished switches
        v = order[i]
        if down[v] < _FAR:
            continue
        for c in range(out_start[v], out_start[v + 1]):
            if rank[dst[c]] < i:
                hops[v] = min(hops[v], hops[dst[c]] + weight[c])


@njit
def _updown_ports(
    order: Ints, rank: Ints, targets: Ints, out_start: Integers, dst: Integers, weight: Ints, ports: Masks
) -> tuple[int, Int]:
    """Fill a table of port sets; returns the longest distance, and the first target that some switch cannot reach, or
    -1.

    order: switches from the top down; rank: their indices in it. A channel to a higher rank leads down. weight: length
    of channels.
    """
    n = len(order)
    down, hops = np.empty(n, np.int64), np.empty(n, np.int64)
    longest = 0
    for t in targets:
        _fill_lengths(t, order, rank, out_start, dst, weight, down, hops)
        for i in range(n):
            v = order[i]
            if v == t or hops[v] >= _FAR:
                continue
            longest = max(longest, hops[v])
            goes_down = down[v] < _FAR
            here = empty_set(ports_at(ports[t], v))
            for c in range(out_start[v], out_start[v + 1]):
                w = dst[c]
                further = down[w] if goes_down else hops[w]
                if (rank[w] > i) == goes_down and further + weight[c] == hops[v]:
                    here = with_port(here, c - out_start[v])
            set_ports(ports[t], v, here)
        for s in targets:
            if hops[s] >= _FAR:
                return longest, t
    return longest, -1


def levels(topology: Topology, roots: list[int], weight: Ints | None = None) -> Ints:
    """Distance from the nearest root: int64 [switches]; -1 without a path. weight: length of channels; None: 1 each."""
    if weight is not None:
        distance: Ints = np.min([distances_from(topology, root, weight) for root in roots], axis=0)
        return np.where(distance == UNREACHED, -1, distance)
    level = np.full(topology.switches, -1, np.int64)
    frontier = np.array(sorted(set(roots)), np.int64)
    level[frontier] = 0
    depth = 0
    while len(frontier):
        depth += 1
        neighbours = topology.dst[np.isin(topology.src, frontier)]
        frontier = np.unique(neighbours[level[neighbours] < 0])
        level[frontier] = depth
    return level


def centre(topology: Topology) -> int:
    """The switch with the fewest total hops to the switches with hosts; ties: most channels.

    Parameters
    ----------
    topology: the network.
    """
    total = np.zeros(topology.switches, np.int64)
    for end in topology.dst_switches.tolist():
        total += levels(topology, [end])
    return int(np.lexsort((np.arange(topology.switches), -topology.out_degree, total))[0])


def top_tier(topology: Topology) -> list[int]:
    """The switches of the last tier of a topology with tiers; none of others.

    Parameters
    ----------
    topology: the network.
    """
    tiers = topology.notes.get("tiers")
    if not tiers:
        return []
    _, first, count = tiers[-1]
    return list(range(first, first + count))


def updown_ports(
    topology: Topology, roots: list[int] | None = None, weight: Ints | None = None
) -> tuple[Masks, int, list[int]]:
    """Next hops as in :class:`~flitlab.models.routing.routes.Routes`, the longest route and the roots.

    ``weight``: int64 [channels], length of channels for levels and routes; None: 1 each. Raises ``SpecError`` if some
    channel has no reverse, the topology is disconnected, a switch has over 128 channels, or the roots leave two
    switches with hosts without a common ancestor.
    """
    if topology.directed:
        raise SpecError(
            "needs bi-directional links, of which one direction is up and the other down; this topology has "
            "uni-directional channels (minimal, ecmp, ksp, llskr, allpath, valiant and ugal serve it)",
            key="kind",
        )
    if topology.out_degree.max(initial=0) > MaxPorts.TABLE:
        raise SpecError(f"serves at most {MaxPorts.TABLE} channels out of a switch")
    if topology.unreachable_pair() is not None:
        raise SpecError("the topology has several components")
    each = np.ones(topology.channels, np.int64) if weight is None else weight
    choices = [roots] if roots is not None else [r for r in (top_tier(topology), [centre(topology)]) if r]
    for chosen in choices:
        order = np.lexsort((np.arange(topology.switches), levels(topology, chosen, weight)))
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        ports = empty_table(topology)
        longest, unreachable = _updown_ports(
            order, rank, topology.dst_switches, topology.out_start, topology.dst, each, ports
        )
        if unreachable < 0:
            return ports, int(longest) if weight is None else most_channels(topology, ports), chosen
    name = switch_names(topology).label(int(unreachable))
    raise SpecError(
        f"with these roots some switch has no up*/down* path to switch {name}; a single root serves all", "roots"
    )


@register("routing", "updown")
class UpDown(ChannelWeightSpec):
    """Up*/down*: from the source up, then down to the destination, never up again.

    Levels are distances from the nearest root; the end of a link on the lower level, or of the same level and lower
    number, is up. A packet goes down as soon as down channels lead to its destination, on a shortest such path, and
    until then up where that is nearest; so the next hops depend on the destination only. Distances are in hops, or in
    the ``weight`` of channels as for ``minimal`` (by default hops). Any VC serves: dependencies are acyclic. Routes are
    not all shortest paths, and the roots carry much.

    roots: numbers or labels of switches; default the last tier where the topology has tiers (the core of a fat tree),
    else the switch nearest to all hosts. ``select: hash`` fixes the choice for each (source, destination) pair and
    switch.

    Example: ``routing: {kind: updown}``

    Example: ``routing: {kind: updown, weight: delay}``

    Source: Schroeder et al., Autonet, IEEE J. Selected Areas in Communications 9, 1991, doi:10.1109/49.105178.
    """

    roots: Annotated[list[Name], Field(min_length=1)] | None = None
    """Switches at the top. null: the last tier, or the switch nearest to all hosts."""
    select: Literal["random", "hash"] = "random"
    """How one of the channels that serve is chosen."""

    def routes(self, topology: Topology) -> Routes:
        names = switch_names(topology)
        listed = (
            None if self.roots is None else [names.number(name, f"roots[{i}]") for i, name in enumerate(self.roots)]
        )
        ports, longest, roots = updown_ports(topology, listed, self.weights(topology))
        notes = {"roots": names.values(roots), **self.weight_notes(topology)}
        return Routes(
            self.kind, ports, SELECT[self.select], longest, notes=notes
        )  # fmt: skip
