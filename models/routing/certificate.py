"""Deadlock certificates: the channel dependency graph of (routing, VC policy) has no cycle.

A vertex is a (channel, VC); an edge says that a packet may hold the first while it waits for the
second (Dally and Seitz 1987, doi:10.1109/TC.1987.1676939). Injection channels wait for nobody that
waits for them and ejection channels always drain, so neither is part of it.
"""

from dataclasses import dataclass

import numpy as np

from models.jit import njit
from models.registry import SpecError
from models.routing.routes import ANY, DATELINE_CROSSING, DATELINE_ENTRY, HOP, Routes
from models.rules.vc import Rings, make_rings, vc_range
from models.topology.graph import Topology

POLICY_NAMES = {ANY: "any", HOP: "hop", DATELINE_ENTRY: "dateline on_entry", DATELINE_CROSSING: "dateline at_crossing"}


@dataclass(frozen=True)
class Certified:
    """The VC policy in force and why it cannot deadlock (or that it may)."""

    policy: int
    note: str
    acyclic: bool = True


@njit
def _add(table, known, a, b):
    """Insert the edge a -> b into an open-addressing hash set; the number of edges known."""
    size = len(table)
    key = (a << 32) | b
    place = ((key * 0x9E3779B97F4A7C15) >> 20) & (size - 1)
    while table[place] != -1:
        if table[place] == key:
            return known
        place = (place + 1) & (size - 1)
    table[place] = key
    return known + 1


@njit
def _dependencies(ports, out_start, dst, vcs, policy, rings, per_source, table):
    """Fill ``table`` with the edges (from << 32 | to), -1 elsewhere; returns how many, -1 when it is full.

    With ``per_source`` False the VC does not depend on where a packet came from nor on its hop count,
    so one walk over all channels serves every source.
    """
    switches = len(out_start) - 1
    known = 0
    reached = np.zeros(switches, np.bool_)
    stack = np.empty(switches, np.int64)
    for t in range(switches):
        for s in range(switches if per_source else 1):
            if s == t and per_source:
                continue
            if per_source:
                reached[:] = False
                reached[s] = True
                stack[0] = s
                top = 1
            else:
                top = 0
                for v in range(switches):
                    if v != t:
                        stack[top] = v
                        top += 1
            while top > 0:
                top -= 1
                v = stack[top]
                for c in range(out_start[v], out_start[v + 1]):
                    if not (ports[t, v] >> np.uint64(c - out_start[v])) & np.uint64(1):
                        continue
                    w = dst[c]
                    if per_source and not reached[w] and w != t:
                        reached[w] = True
                        stack[top] = w
                        top += 1
                    low, high = vc_range(policy, vcs, np.int64(0), rings, s, t, c, v)
                    for e in range(out_start[w], out_start[w + 1]):
                        if not (ports[t, w] >> np.uint64(e - out_start[w])) & np.uint64(1):
                            continue
                        low2, high2 = vc_range(policy, vcs, np.int64(0), rings, s, t, e, w)
                        for a in range(low, high):
                            for b in range(low2, high2):
                                known = _add(table, known, c * vcs + a, e * vcs + b)
                                if 2 * known > len(table):
                                    return -1
    return known


def dependencies(topology: Topology, routes: Routes, vcs: int, policy: int) -> np.ndarray:
    """Edges int64 [k, 2] of the channel dependency graph; vertex = channel * vcs + VC.

    HOP is not built: its VC grows with every hop, so its graph has no cycle by construction.
    """
    per_source = policy in (DATELINE_ENTRY, DATELINE_CROSSING)
    width = vcs
    if policy == ANY:
        width = 1  # all VCs of a channel depend alike: one vertex stands for them
    rings: Rings = make_rings(topology)
    size = 1 << 16
    while True:
        table = np.full(size, -1, np.int64)
        known = _dependencies(
            routes.ports, topology.out_start, topology.dst, width, policy, rings, per_source, table
        )
        if known >= 0:
            edges = table[table >= 0]
            return np.column_stack([edges >> 32, edges & 0xFFFFFFFF])
        size *= 4


def find_cycle(vertices: int, edges: np.ndarray) -> list[int] | None:
    """Vertices of one directed cycle in order, or None. edges: int64 [k, 2]."""
    order = np.argsort(edges[:, 0], kind="stable")
    head = edges[order, 1]
    start = np.searchsorted(edges[order, 0], np.arange(vertices + 1))
    cycle = _cycle(start, head)
    return [int(v) for v in cycle] if len(cycle) else None


@njit
def _cycle(start, head):
    """Depth-first search with an explicit stack; the cycle that the first back edge closes, or empty."""
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


def _describe(topology: Topology, cycle: list[int], width: int) -> str:
    steps = []
    for vertex in [*cycle[:6], cycle[0]]:
        channel, vc = divmod(vertex, width)
        steps.append(f"({topology.src[channel]}->{topology.dst[channel]}, VC {'*' if width == 1 else vc})")
    if len(cycle) > 6:
        steps.insert(6, f"... {len(cycle) - 6} more")
    return " waits for ".join(steps)


def _check(topology: Topology, routes: Routes, vcs: int, policy: int) -> list[int] | None:
    edges = dependencies(topology, routes, vcs, policy)
    width = 1 if policy == ANY else vcs
    return find_cycle(topology.channels * width, edges)


def certify(topology: Topology, routes: Routes, vcs: int, allow_deadlock: bool = False) -> Certified:
    """The VC policy to run with, certified free of deadlock.

    Raises ``SpecError`` that shows the cycle (or the number of VCs needed) unless ``allow_deadlock``.
    """
    if routes.deflection:
        return Certified(ANY, "deflection waits for no buffer: no certificate is needed")
    policy = routes.vc_policy
    if policy is None:
        policy = ANY if _check(topology, routes, vcs, ANY) is None else HOP
    if policy == HOP:
        if vcs >= routes.hops_max:
            return Certified(HOP, f"hop: the VC grows with every hop; longest route {routes.hops_max}, VCs {vcs}")
        need = f"hop-indexed VCs need one for each channel of the longest route, which has {routes.hops_max}"
        if allow_deadlock:
            return Certified(HOP, f"{need}; later hops share the last VC: may deadlock", acyclic=False)
        raise SpecError(f"{need} (or switching.allow_deadlock: true)", key="vcs")
    name = POLICY_NAMES[policy]
    if policy in (DATELINE_ENTRY, DATELINE_CROSSING):
        if topology.grid is None or routes.kind != "dor":
            raise SpecError("dateline needs routing dor on a mesh, torus or hypercube", key="vc_policy")
        if vcs < 2:
            raise SpecError("dateline needs two VCs or more", key="vcs")
    cycle = _check(topology, routes, vcs, policy)
    if cycle is None:
        return Certified(policy, f"{name}: the channel dependency graph is acyclic")
    text = _describe(topology, cycle, 1 if policy == ANY else vcs)
    if allow_deadlock:
        return Certified(policy, f"{name}: may deadlock: {text}", acyclic=False)
    raise SpecError(
        f"{name} may deadlock: {text}; use vc_policy hop, or switching.allow_deadlock: true", key="vc_policy"
    )
