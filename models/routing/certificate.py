# SPDX-License-Identifier: Apache-2.0
"""Deadlock certificates: the channel dependency graph of (routing, VC policy) has no cycle.

A vertex is a (channel, VC). An edge says that a packet may hold the first while it requests the second (Dally and Seitz
1987, doi:10.1109/TC.1987.1676939). Injection channels are never requested and ejection channels always drain, so
neither is part of the graph.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Bytes, Int, Integers, Ints, Masks
from flitlab.models.jit import kernel, njit
from flitlab.models.registry import SpecError
from flitlab.models.routing.bit_parallel import has_dependency_cycle
from flitlab.models.routing.layers import assign_layers
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.route_set import Routes
from flitlab.models.routing.validation import validate_routes
from flitlab.models.routing.walk import hop_dependencies, path_dependencies
from flitlab.models.rules.bits import contains, is_empty, lowest, without_lowest
from flitlab.models.rules.port_sets import allow, pack_ports, ports_at, ports_towards
from flitlab.models.rules.tables import RouteForm, Selection, Tables, VcPolicy
from flitlab.models.rules.vc import NOT_HELD, Rings, allowed_vcs, make_rings
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

POLICY_NAMES = {
    code: {"DATELINE_ENTRY": "dateline on_entry", "DATELINE_CROSSING": "dateline at_crossing"}.get(name, name.lower())
    for name, code in VcPolicy._asdict().items()
}

_GROWING = {
    VcPolicy.HOP: "the class of VCs grows with every hop", VcPolicy.RISING: "the VC grows with every hop",
    VcPolicy.RESERVE: "the VC kept for each hop, which every head may take, grows with every hop",
}  # fmt: skip
"""Why there is no cycle of dependencies, given as many VCs as the longest route has channels."""

SAMPLE_TARGETS = 32
"""Destination switches that are checked first. If their packets close a cycle, the others need no check."""

MOST_COUNTED = 64
"""Switches up to which a message counts the sufficient layers."""

_WHY = {
    VcPolicy.LAYERED: "the channel dependency graph of every layer is acyclic",
    VcPolicy.LEGS: "the channel dependency graph of each leg is acyclic",
    VcPolicy.GROUPS: "within a leg, local channels lead to a global one and that to local ones on other VCs",
    VcPolicy.ESCAPE: (
        "the dependency graph of the escape channels is acyclic, and every packet may take one at any time"
    ),
}


@dataclass(frozen=True)
class Certified:
    """The VC policy in force, and why it excludes deadlock or not."""

    policy: int
    note: str
    acyclic: bool = True


@kernel
def _add(table: Ints, known: int, a: Int, b: Int) -> int:
    """Insert the edge a -> b into an open-addressing hash set; returns the number of edges, -1 if it is too full."""
    size = len(table)
    key = (a << 32) | b
    slot = ((key * 0x9E3779B97F4A7C15) >> 20) & (size - 1)
    while table[slot] != -1:
        if table[slot] == key:
            return known
        slot = (slot + 1) & (size - 1)
    table[slot] = key
    return known + 1 if 2 * (known + 1) <= size else -1


class _Graph(NamedTuple):
    """Channels as of a topology, and the largest degree."""

    out_start: Integers
    dst: Integers
    src: Integers
    degree: int


class _Vcs(NamedTuple):
    """The virtual channels of a channel: their number, and which of them packets may take."""

    number: int
    policy: int
    rings: Rings


@kernel
def _vcs_of(r: Tables, graph: _Graph, vcs: _Vcs, s: Int, t: Int, c: Int) -> tuple[int, int]:
    """First vertex of channel c whose VC packets from s to t may take, and the one after the last."""
    v, unused = graph.src[c], np.int64(0)
    port = c - graph.out_start[v]
    low, high = allowed_vcs(r, unused, vcs.policy, vcs.number, unused, vcs.rings, s, t, c, v, port, NOT_HELD)
    return c * vcs.number + low, c * vcs.number + high


@kernel
def _add_all(table: Ints, known: int, held: tuple[int, int], requested: tuple[int, int]) -> int:
    """Insert the edges from all vertices of one range to all of another; returns the number as :func:`_add`."""
    for a in range(held[0], held[1]):
        for b in range(requested[0], requested[1]):
            known = _add(table, known, a, b)
            if known < 0:
                return known
    return known


@njit
def _table_dependencies(
    r: Tables, graph: _Graph, ends: Ints, targets: Ints, vcs: _Vcs, per_source: bool, table: Ints
) -> int:  # fmt: skip
    """Fill ``table`` with the edges (from << 32 | to), -1 elsewhere; returns their number, -1 when it is full.

    ends: where packets start. targets: where they end. With ``per_source`` False the VC depends neither on the source
    nor on the hop count, so one walk serves every source.
    """
    out_start, dst, known = graph.out_start, graph.dst, 0
    seen, stack = np.zeros(r.switches, np.bool_), np.empty(r.switches, np.int64)
    edges = np.empty((graph.degree * len(dst), 2), np.int64)
    for t in targets:
        for i in range(len(ends) if per_source else 1):
            s, starts = ends[i], ends[i : i + 1] if per_source else ends
            for j in range(hop_dependencies(r, out_start, dst, starts, t, seen, stack, edges)):
                c, e = edges[j, 0], edges[j, 1]
                known = _add_all(table, known, _vcs_of(r, graph, vcs, s, t, c), _vcs_of(r, graph, vcs, s, t, e))
                if known < 0:
                    return known
    return known


@njit
def _path_dependencies(
    r: Tables, out_start: Integers, dst: Integers, targets: Ints, width: int, layered: bool, table: Ints
) -> int:
    """Fill ``table`` with the dependencies of paths to ``targets``, as :func:`_table_dependencies` does; their number.

    width: the number of layers if ``layered``, else 1.
    """
    known, count = 0, len(targets)
    edges = np.empty((r.switches, 2), np.int64)
    for k in range(r.switches * count):
        s = k // count
        pair = s * r.switches + targets[k % count]
        for p in range(r.pair_start[pair], r.pair_start[pair + 1]):
            layer = np.int64(r.layer[p]) if layered else 0
            for i in range(path_dependencies(r, out_start, dst, p, s, edges)):
                known = _add(table, known, edges[i, 0] * width + layer, edges[i, 1] * width + layer)
                if known < 0:
                    return known
    return known


@njit
def _leg_ends(
    r: Tables, out_start: Integers, dst: Integers, degree: int, ends: Ints, first: Bools, last: Bools
) -> None:
    """Mark the first and the last channels (bool [channels]) of the routes between ``ends``."""
    seen, stack = np.zeros(r.switches, np.bool_), np.empty(r.switches, np.int64)
    edges = np.empty((degree * len(dst), 2), np.int64)
    for t in ends:
        for s in ends:
            for c in range(out_start[s], out_start[s + 1]):
                if contains(ports_towards(r.ports, t, s), c - out_start[s]):
                    first[c] = True
                    last[c] |= dst[c] == t
        for j in range(hop_dependencies(r, out_start, dst, ends, t, seen, stack, edges)):
            last[edges[j, 1]] |= dst[edges[j, 1]] == t


def _junctions(topology: Topology, one_leg: Tables) -> Ints:
    """Dependencies from the last channel before an intermediate switch to the first one after it, int64 [k, 2]."""
    first, last = np.zeros(topology.channels, bool), np.zeros(topology.channels, bool)
    degree = int(topology.out_degree.max(initial=0))
    ends = topology.src_switches
    _leg_ends(one_leg, topology.out_start, topology.dst, degree, ends, first, last)
    pairs = [
        np.stack(np.meshgrid(into[last[into]], out[first[out]], indexing="ij"), -1).reshape(-1, 2)
        for into, out in (
            (topology.in_channels[topology.in_start[v] : topology.in_start[v + 1]],
             np.arange(topology.out_start[v], topology.out_start[v + 1]))
            for v in ends.tolist()
        )
    ]  # fmt: skip
    return np.concatenate([np.zeros((0, 2), np.int64), *pairs])


def width_of(routes: Routes, vcs: int, policy: int) -> int:
    """Vertices of the dependency graph per channel: one stands for all VCs with equal dependencies.

    Parameters
    ----------
    routes: routes on it.
    vcs: virtual channels per channel.
    policy: VC policy, ANY, HOP, ...
    """
    if policy == VcPolicy.LAYERED:
        return routes.layers
    if policy == VcPolicy.GROUPS:
        return 2
    return vcs if policy in (VcPolicy.DATELINE_ENTRY, VcPolicy.DATELINE_CROSSING) else 1


def dependencies(topology: Topology, routes: Routes, vcs: int, policy: int, dst_switches: Ints | None = None) -> Ints:
    """Edges of the channel dependency graph, int64 [k, 2]; vertex = channel * width + class.

    The width is that of :func:`width_of`; a class is a VC or a layer. HOP, RISING and RESERVE are not built: the VC
    grows with every hop, so there is no cycle by construction. LEGS, GROUPS: the graph of one leg; no edge leads from
    the VCs of the second leg back to the first, nor from either to a first channel (PROGRESSIVE). ESCAPE: the graph of
    the escape channels, which a packet never leaves, so there are no indirect dependencies.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    vcs: virtual channels per channel.
    policy: VC policy, ANY, HOP, ...
    dst_switches: int64, destinations of the packets considered; None: all.

    Returns
    -------
    The edges.

    Source: Dally and Seitz 1987, doi:10.1109/TC.1987.1676939; Duato 1993, doi:10.1109/71.250114 (escape).
    """
    width = width_of(routes, vcs, policy)
    tables = routes.tables(topology)
    if routes.form == RouteForm.VIA:
        tables = tables._replace(form=RouteForm.TABLE)  # one leg
    if policy == VcPolicy.ESCAPE:
        tables = tables._replace(ports=pack_ports(_escape_sets(topology, routes)))
    per_source = policy in (VcPolicy.DATELINE_ENTRY, VcPolicy.DATELINE_CROSSING, VcPolicy.LAYERED, VcPolicy.GROUPS)
    classes = policy if per_source else VcPolicy.ANY
    ends = _starts(topology, policy)
    dst_switches = topology.dst_switches if dst_switches is None else dst_switches
    graph = _Graph(topology.out_start, topology.dst, topology.src, int(topology.out_degree.max(initial=0)))
    size = 1 << 16
    while True:
        table = np.full(size, -1, np.int64)
        if routes.form == RouteForm.PATHS:
            known = _path_dependencies(
                tables, topology.out_start, topology.dst, dst_switches, width, policy == VcPolicy.LAYERED, table
            )  # fmt: skip
        else:
            vcs_in_use = _Vcs(width, classes, make_rings(topology))
            known = _table_dependencies(tables, graph, ends, dst_switches, vcs_in_use, per_source, table)
        if known >= 0:
            break
        size *= 4
    known_edges = table[table >= 0]
    edges = np.column_stack([known_edges >> 32, known_edges & 0xFFFFFFFF])
    if routes.form == RouteForm.VIA and policy == VcPolicy.ANY:
        edges = np.concatenate([edges, _junctions(topology, tables)])
    return edges


def _escape_sets(topology: Topology, routes: Routes) -> Masks:
    """The escape channels that packets may take, as sets of next hops, a table of port sets.

    Sets are empty at switches where no packet for the destination can be.
    """
    assert routes.escape is not None
    sets, ends = empty_table(topology), topology.dst_switches
    may_escape = _escapes(routes.ports, routes.escape, topology.out_start, topology.dst, topology.src_switches, ends)
    for t in ends:
        at = np.flatnonzero(may_escape[t])
        allow(sets, t, at, routes.escape[t, at])
    return sets


@njit
def _escapes(ports: Masks, escape: Bytes, out_start: Integers, dst: Integers, starts: Ints, targets: Ints) -> Bools:
    """Whether a packet for t may take the escape channel of v, bool [t, v].

    It may leave the adaptive channels at every switch that these lead to, with hosts or without. None starts where no
    channel leads to t: in another subnet.
    """
    n = len(escape)
    may_escape, stack = np.zeros((n, n), np.bool_), np.empty(n, np.int64)
    for t in targets:
        here, top = may_escape[t], 0
        for s in starts:
            if s != t and not is_empty(ports_at(ports[t], s)):
                here[s] = True
                stack[top] = s
                top += 1
        while top > 0:
            top -= 1
            v = stack[top]
            left = ports_at(ports[t], v)
            while not is_empty(left):
                w = dst[out_start[v] + lowest(left)]
                left = without_lowest(left)
                if w != t and not here[w]:
                    here[w] = True
                    stack[top] = w
                    top += 1
        for s in range(n):
            v = np.int64(s if here[s] else t)
            while v != t:
                v = np.int64(dst[out_start[v] + np.int64(escape[t, v])])
                if here[v]:
                    break
                here[v] = v != t
    return may_escape


def _uniform_next_hops(topology: Topology, routes: Routes, policy: int) -> Masks | None:
    """The next hops, if dependencies are the same for all VCs and all sources; else None."""
    if policy == VcPolicy.ESCAPE:
        return _escape_sets(topology, routes)
    return (
        routes.ports
        if (routes.form, policy) in ((RouteForm.TABLE, VcPolicy.ANY), (RouteForm.VIA, VcPolicy.LEGS))
        else None
    )


def _starts(topology: Topology, policy: int) -> Ints:
    """The switches from which dependencies are followed.

    Those with hosts. ESCAPE: all, as :func:`_escape_sets` are empty where no packet can be.
    """
    return np.arange(topology.switches) if policy == VcPolicy.ESCAPE else topology.src_switches


def find_cycle(vertices: int, edges: Ints) -> list[int] | None:
    """The vertices of one directed cycle in order, or None.

    Parameters
    ----------
    vertices: number of vertices.
    edges: int64 [k, 2].
    """
    order = np.argsort(edges[:, 0], kind="stable")
    head = edges[order, 1]
    start = np.searchsorted(edges[order, 0], np.arange(vertices + 1))
    cycle = _cycle(start, head)
    return [int(v) for v in cycle] if len(cycle) else None


@njit
def _cycle(start: Ints, head: Ints) -> Ints:
    """Depth-first search with an explicit stack; the cycle closed by the first back edge, or empty."""
    vertices = len(start) - 1
    state = np.zeros(vertices, np.int8)  # 0 new, 1 on the stack, 2 done
    cursor = start[:-1].copy()
    stack = np.empty(vertices, np.int64)
    for root in range(vertices):
        if state[root]:
            continue
        stack[0] = root
        state[root] = 1
        top = 0
        while top >= 0:
            v = stack[top]
            if cursor[v] == start[v + 1]:
                state[v] = 2
                top -= 1
                continue
            w = head[cursor[v]]
            cursor[v] += 1
            if state[w] == 1:
                first = top
                while stack[first] != w:
                    first -= 1
                return stack[first : top + 1].copy()
            if state[w] == 0:
                state[w] = 1
                top += 1
                stack[top] = w
    return stack[:0].copy()


def describe_cycle(topology: Topology, channels: list[int]) -> str:
    """A cycle of channels, each of which waits for the next, as text.

    Parameters
    ----------
    topology: the network.
    channels: in the order of the cycle.
    """
    return _describe(topology, channels, 1, VcPolicy.ANY)


def _describe(topology: Topology, cycle: list[int], width: int, policy: int) -> str:
    names, steps = switch_names(topology), []
    for vertex in [*cycle[:6], cycle[0]]:
        channel, vc_class = divmod(vertex, width)
        vc = {VcPolicy.LAYERED: f"layer {vc_class}", VcPolicy.ESCAPE: "VC 0"}.get(
            policy, f"VC {'*' if width == 1 else vc_class}"
        )
        u, v = map(names.label, (topology.src[channel], topology.dst[channel]))
        steps.append(f"({u}->{v}, {vc})")
    if len(cycle) > 6:
        steps.insert(6, f"... {len(cycle) - 6} more")
    return " waits for ".join(steps)


def _find_dependency_cycle(
    topology: Topology, routes: Routes, vcs: int, policy: int, targets: Ints | None = None
) -> list[int] | None:
    """A cycle of dependencies of packets to some switches, or to all; None if there is none."""
    ports = _uniform_next_hops(topology, routes, policy) if targets is None else None
    starts, ends = _starts(topology, policy), topology.dst_switches
    if ports is not None and not has_dependency_cycle(topology, ports, starts, ends):
        return None
    edges = dependencies(topology, routes, vcs, policy, targets)
    return find_cycle(topology.channels * width_of(routes, vcs, policy), edges)


def _is_safe(topology: Topology, routes: Routes, vcs: int, policy: int) -> bool:
    """Whether there is no cycle. Most cycles involve only a few destinations, which are checked first."""
    ends, ports = topology.dst_switches, _uniform_next_hops(topology, routes, policy)
    if ports is not None:
        return not has_dependency_cycle(topology, ports, _starts(topology, policy), ends)
    target_sets = [ends[:SAMPLE_TARGETS], ends] if len(ends) > 2 * SAMPLE_TARGETS else [ends]
    return all(_find_dependency_cycle(topology, routes, vcs, policy, targets) is None for targets in target_sets)


def _has_datelines(topology: Topology, routes: Routes) -> bool:
    return topology.grid is not None and routes.kind == "dor"


def _least_vcs(routes: Routes, policy: int) -> int:
    """The fewest VCs that a policy needs."""
    legs, longest = 2 if routes.form == RouteForm.VIA else 1, routes.hops_max
    each = {
        VcPolicy.ANY: 1,
        VcPolicy.HOP: longest,
        VcPolicy.RISING: longest,
        VcPolicy.RESERVE: longest + 1,
        VcPolicy.LAYERED: legs * routes.layers,
        VcPolicy.GROUPS: 2 * legs + (routes.select == Selection.PROGRESSIVE),
    }
    return each.get(policy, 2)


def _applicable_policies(topology: Topology, routes: Routes) -> list[int]:
    """The policies that need few VCs and can apply to the routes, the best first."""
    revised = routes.select == Selection.PROGRESSIVE
    suit = {
        VcPolicy.ANY: routes.form != RouteForm.POLARIZED and not revised,
        VcPolicy.DATELINE_ENTRY: _has_datelines(topology, routes),
        VcPolicy.LEGS: routes.form == RouteForm.VIA and not revised,
        VcPolicy.GROUPS: routes.group is not None,
    }
    return [policy for policy, suits in suit.items() if suits]


def _default(topology: Topology, routes: Routes, vcs: int) -> int:
    """The first policy with a certificate and enough VCs: ANY, RISING, DATELINE_ENTRY, LEGS, GROUPS.

    RISING if none has. With enough VCs RISING saturates last on most networks (figures in docs/routing.md).
    """
    enough = vcs >= _least_vcs(routes, VcPolicy.RISING)
    for policy in _applicable_policies(topology, routes):
        if policy != VcPolicy.ANY and enough:
            break
        if vcs >= _least_vcs(routes, policy) and _is_safe(topology, routes, vcs, policy):
            return policy
    return VcPolicy.RISING


def _policies_with_fewer_vcs(topology: Topology, routes: Routes, vcs: int, limit: int) -> str:
    """The certified policies that need fewer than ``limit`` VCs, for an error message."""
    fewest_vcs: dict[str, int] = {}
    for policy in _applicable_policies(topology, routes):
        least = _least_vcs(routes, policy)
        if least < limit and _is_safe(topology, routes, max(vcs, least), policy):
            fewest_vcs[POLICY_NAMES[policy].split()[0]] = least
    if limit > 2 and routes.kind == "minimal" and routes.select == Selection.ADAPTIVE and not topology.directed:
        fewest_vcs["escape"] = 2
    if (
        topology.switches <= MOST_COUNTED
        and topology.subnets == 1  # orders paths by their length, which none between subnets has
        and routes.form != RouteForm.POLARIZED
        and routes.select != Selection.PROGRESSIVE
    ):
        with suppress(SpecError):
            layers = assign_layers(topology, routes)[1] * (2 if routes.form == RouteForm.VIA else 1)
            if layers < limit:
                fewest_vcs["layered"] = layers
    fewest_vcs = {f"vc_policy {name}": least for name, least in fewest_vcs.items()}
    if not topology.directed and routes.kind != "updown":
        fewest_vcs["routing updown"] = 1
    if topology.grid is not None and routes.kind != "dor":
        fewest_vcs["routing dor"] = 2 if topology.grid.wrap else 1
    fewer = [f"{name} needs {least}" for name, least in fewest_vcs.items() if least < limit]
    return "; " + ", ".join(fewer) if fewer else ""


def _vc_shortage(topology: Topology, routes: Routes, vcs: int, policy: int) -> str | None:
    """The error if a policy needs more VCs than there are, else None."""
    least = _least_vcs(routes, policy)
    if vcs >= least:
        return None
    if policy == VcPolicy.HOP:
        wrong = f"hop-indexed VCs need one for each channel of the longest route, which has {least}"
    elif policy == VcPolicy.RISING:
        wrong = f"rising needs a VC for each channel of the longest route, which has {least}, and there are {vcs}"
    elif policy == VcPolicy.RESERVE:
        wrong = f"reserve needs more VCs than the longest route has channels, {routes.hops_max}, and there are {vcs}"
    elif policy == VcPolicy.LAYERED:
        legs = f", {routes.layers} for each leg" if routes.form == RouteForm.VIA else ""
        wrong = f"the routes need {least} layers{legs}, and each a VC"
    else:
        wrong = f"{POLICY_NAMES[policy].split()[0]} needs {least} VCs or more"
    return wrong + _policies_with_fewer_vcs(topology, routes, vcs, least)


def certify(topology: Topology, routes: Routes, vcs: int, allow_deadlock: bool = False) -> Certified:
    """The VC policy to run with, certified free of deadlock.

    The default is the first of ANY, RISING, DATELINE_ENTRY (dor on a torus), LEGS (over an intermediate switch) and
    GROUPS (dragonfly) with a certificate and enough VCs; else RISING, which is rejected.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    vcs: virtual channels per channel.
    allow_deadlock: whether to accept routes without a certificate.

    Returns
    -------
    The policy and its certificate.

    Raises
    ------
    SpecError: no certificate, with the cycle or the number of VCs needed, unless ``allow_deadlock``; routes that do not
        deliver packets.

    Source: Dally and Seitz 1987, doi:10.1109/TC.1987.1676939.
    """
    routes = validate_routes(topology, routes)  # which counts the longest route
    if routes.deflection:
        return Certified(VcPolicy.ANY, "deflection waits for no buffer: no certificate is needed")
    policy = routes.vc_policy
    if policy is None:
        policy = _default(topology, routes, vcs)
    if policy in (VcPolicy.DATELINE_ENTRY, VcPolicy.DATELINE_CROSSING) and not _has_datelines(topology, routes):
        raise SpecError(
            "dateline needs routing dor on a mesh, torus or hypercube (hop and layered serve every routing)",
            key="vc_policy",
        )
    shortage = _vc_shortage(topology, routes, vcs, policy)
    if shortage is not None:
        if policy not in (VcPolicy.HOP, VcPolicy.RISING, VcPolicy.LAYERED):
            raise SpecError(shortage, key="vcs")
        if not allow_deadlock:
            raise SpecError(f"{shortage} (or switching.allow_deadlock: true)", key="vcs")
        return Certified(policy, f"{shortage}; some share a VC: may deadlock", acyclic=False)
    name = POLICY_NAMES[policy]
    if policy in _GROWING:
        return Certified(policy, f"{name}: {_GROWING[policy]}; longest route {routes.hops_max}, VCs {vcs}")
    cycle = _find_dependency_cycle(topology, routes, vcs, policy)
    if cycle is None:
        if policy == VcPolicy.LAYERED:
            name = f"layered in {routes.layers}{' for each leg' if routes.form == RouteForm.VIA else ''}"
        return Certified(policy, f"{name}: {_WHY.get(policy, 'the channel dependency graph is acyclic')}")
    text = _describe(topology, cycle, width_of(routes, vcs, policy), policy)
    if allow_deadlock:
        return Certified(policy, f"{name}: may deadlock: {text}", acyclic=False)
    raise SpecError(
        f"{name} may deadlock: {text}; use vc_policy rising, or switching.allow_deadlock: true", key="vc_policy"
    )
