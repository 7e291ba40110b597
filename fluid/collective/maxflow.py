# SPDX-License-Identifier: Apache-2.0
"""Compiled maximum flow in whole numbers, for thousands of flows on one graph.

Dinic's method: flow goes along shortest ways, which are found from the sink, until none is left.

Source: Dinic, Soviet Mathematics Doklady 11 (1970).
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Ints, Ints32
from flitlab.models.jit import device_function, kernel


class Residual(NamedTuple):
    """What is left of the capacities of a graph, and room for a search in it; one serves any number of flows.

    A *slot* is an arc as one of its ends sees it: every arc has one at its tail and one, for the opposite direction, at
    its head. Slots of a vertex stand side by side.

    first: int64 [vertices + 1], the slots of v are first[v]:first[v + 1]. head: int32 [slots], where a slot leads to.
    mate: int32 [slots], the slot of the opposite direction. slot: int32 [arcs], that of each arc at its tail. left:
    int64 [slots], what may still be sent. distance: int32 [vertices], hops to the sink, -1 where there is no way.
    cursor: int64 [vertices], queue: int32 [vertices], path: int32 [vertices], for the search.
    """

    first: Ints
    head: Ints32
    mate: Ints32
    slot: Ints32
    left: Ints
    distance: Ints32
    cursor: Ints
    queue: Ints32
    path: Ints32

    @classmethod
    def of(cls, vertices: int, tail: Ints, head: Ints) -> "Residual":
        """Room for flows on a graph with arcs from tail to head, int64 [arcs] in any order."""
        found = cls.room(vertices, len(tail))
        lay_out(found, tail, head, len(tail))
        return found

    @classmethod
    def room(cls, vertices: int, arcs: int) -> "Residual":
        """Room for a graph of so many vertices with up to so many arcs, which :func:`lay_out` puts there."""
        slots, nodes = np.zeros(2 * arcs, np.int32), np.zeros(vertices, np.int32)
        return cls(
            np.zeros(vertices + 1, np.int64), slots, slots.copy(), np.zeros(arcs, np.int32),
            np.zeros(2 * arcs, np.int64), nodes, np.zeros(vertices, np.int64), nodes.copy(), nodes.copy(),
        )  # fmt: skip


@device_function
def lay_out(residual: Residual, tail: Ints, head: Ints, arcs: int) -> None:
    """Put the first ``arcs`` arcs from tail to head (int64) into a residual that has room for them; no flow yet."""
    first, cursor = residual.first, residual.cursor
    vertices = len(cursor)
    first[:] = 0
    for a in range(arcs):
        first[tail[a] + 1] += 1
        first[head[a] + 1] += 1
    for v in range(vertices):
        first[v + 1] += first[v]
        cursor[v] = first[v]
    for a in range(arcs):
        u, v = tail[a], head[a]
        there, back = cursor[u], cursor[v]
        cursor[u] += 1
        cursor[v] += 1
        residual.slot[a] = there
        residual.head[there], residual.mate[there] = v, back
        residual.head[back], residual.mate[back] = u, there


@kernel
def set_capacities(residual: Residual, capacity: Ints, arcs: int) -> None:
    """Take all flow back, and give the first ``arcs`` arcs their capacity (int64 [arcs])."""
    residual.left[:] = 0
    for a in range(arcs):
        residual.left[residual.slot[a]] = capacity[a]


@kernel
def _measure(residual: Residual, source: int, sink: int) -> bool:
    """Fill in the distances to the sink up to that of the source; whether there is a way at all."""
    first, head, distance, queue = residual.first, residual.head, residual.distance, residual.queue
    distance[:] = -1
    distance[sink], queue[0] = 0, sink
    done, found = 0, 1
    while done < found:
        v = queue[done]
        done += 1
        for i in range(first[v], first[v + 1]):
            u = head[i]
            if distance[u] < 0 and residual.left[residual.mate[i]] > 0:
                distance[u] = distance[v] + 1
                if u == source:
                    return True
                queue[found] = u
                found += 1
    return False


@kernel
def _send(residual: Residual, path: Ints32, length: int, amount: int) -> int:
    """Send an amount over the first ``length`` slots of a path; the place of the first one that is full by that."""
    left, full = residual.left, length
    for k in range(length - 1, -1, -1):
        i = path[k]
        left[i] -= amount
        left[residual.mate[i]] += amount
        if left[i] == 0:
            full = k
    return full


@kernel
def _block(residual: Residual, source: int, sink: int, wanted: int) -> int:
    """Send flow along shortest ways until each has a full arc, or until ``wanted`` has been sent; what was sent."""
    first, head, left, distance = residual.first, residual.head, residual.left, residual.distance
    cursor, path = residual.cursor, residual.path
    for v in range(len(cursor)):
        cursor[v] = first[v]
    sent, length, v = 0, 0, source
    while sent < wanted:
        if v == sink:
            amount = wanted - sent
            for k in range(length):
                amount = min(amount, left[path[k]])
            sent += amount
            length = _send(residual, path, length, amount)
            if length < distance[source]:
                v = head[residual.mate[path[length]]]
            continue
        while cursor[v] < first[v + 1]:
            i = cursor[v]
            if left[i] > 0 and distance[head[i]] == distance[v] - 1:
                break
            cursor[v] += 1
        if cursor[v] < first[v + 1]:
            path[length] = cursor[v]
            v = head[path[length]]
            length += 1
        elif v == source:
            break
        else:  # a dead end: leave it and its last slot out
            distance[v] = -1
            length -= 1
            v = head[residual.mate[path[length]]]
            cursor[v] += 1
    return sent


@device_function
def send_most(residual: Residual, source: int, sink: int, wanted: int) -> int:
    """Send as much as can be from source to sink, but no more than ``wanted``, in addition to what flows already."""
    sent = 0
    while sent < wanted and _measure(residual, source, sink):
        sent += _block(residual, source, sink, wanted - sent)
    return sent


@device_function
def first_short(residual: Residual, capacity: Ints, source: int, sinks: Ints, begin: int, wanted: int) -> int:
    """The place of the first sink, from ``begin`` on, to which ``wanted`` cannot flow; their number if there is none.

    The residual is left as the last flow made it. capacity: int64 [arcs], for each flow anew. sinks: int64.
    """
    for k in range(begin, len(sinks)):
        set_capacities(residual, capacity, len(capacity))
        if send_most(residual, source, sinks[k], wanted) < wanted:
            return k
    return len(sinks)


@device_function
def reach(residual: Residual, source: int, reached: Bools) -> None:
    """Mark in bool [vertices] what the source reaches where something is left: a least cut, if the flow is a most."""
    queue = residual.queue
    reached[:] = False
    reached[source], queue[0] = True, source
    done, found = 0, 1
    while done < found:
        v = queue[done]
        done += 1
        for i in range(residual.first[v], residual.first[v + 1]):
            u = residual.head[i]
            if residual.left[i] > 0 and not reached[u]:
                reached[u] = True
                queue[found] = u
                found += 1
