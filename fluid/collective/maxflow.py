# SPDX-License-Identifier: Apache-2.0
"""Compiled integer maximum flow, for thousands of flows on one graph.

Dinic's algorithm: blocking flows along shortest paths, found by breadth-first search from the sink.

Source: Dinic, Soviet Mathematics Doklady 11 (1970).
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Ints, Ints32
from flitlab.models.jit import device_function, kernel


class Residual(NamedTuple):
    """Residual graph and work arrays, reused for any number of flows.

    A *slot* is one end of an arc: every arc has a slot at its tail and one, for the opposite direction, at its head.
    Slots of a vertex are contiguous.

    first: int64 [vertices + 1], the slots of v are first[v]:first[v + 1]. head: int32 [slots], the other end of a slot.
    mate: int32 [slots], the slot of the opposite direction. slot: int32 [arcs], slot of each arc at its tail.
    remaining: int64 [slots], residual capacity. distance: int32 [vertices], hops to the sink, -1 where there is no
    path. cursor: int64 [vertices], queue: int32 [vertices], path: int32 [vertices], work arrays of the search.
    """

    first: Ints
    head: Ints32
    mate: Ints32
    slot: Ints32
    remaining: Ints
    distance: Ints32
    cursor: Ints
    queue: Ints32
    path: Ints32

    @classmethod
    def of(cls, vertices: int, tail: Ints, head: Ints) -> "Residual":
        """The residual graph of a directed graph.

        Parameters
        ----------
        vertices : int
            Number of vertices.
        tail, head : int64 [arcs]
            Ends of the arcs, in any order.
        """
        residual = cls.allocate(vertices, len(tail))
        lay_out(residual, tail, head, len(tail))
        return residual

    @classmethod
    def allocate(cls, vertices: int, arcs: int) -> "Residual":
        """Uninitialised arrays for a graph with ``vertices`` vertices and at most ``arcs`` arcs; :func:`lay_out` fills
        them.
        """
        slots, nodes = np.zeros(2 * arcs, np.int32), np.zeros(vertices, np.int32)
        return cls(
            np.zeros(vertices + 1, np.int64), slots, slots.copy(), np.zeros(arcs, np.int32),
            np.zeros(2 * arcs, np.int64), nodes, np.zeros(vertices, np.int64), nodes.copy(), nodes.copy(),
        )  # fmt: skip


@device_function
def lay_out(residual: Residual, tail: Ints, head: Ints, arcs: int) -> None:
    """Build the slots of a graph; there is no flow yet.

    Parameters
    ----------
    residual : Residual
        Arrays that are large enough; overwritten.
    tail, head : int64
        Ends of the arcs.
    arcs : int
        How many of them belong to the graph.
    """
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
        forward, backward = cursor[u], cursor[v]
        cursor[u] += 1
        cursor[v] += 1
        residual.slot[a] = forward
        residual.head[forward], residual.mate[forward] = v, backward
        residual.head[backward], residual.mate[backward] = u, forward


@kernel
def set_capacities(residual: Residual, capacity: Ints, arcs: int) -> None:
    """Remove all flow, and set the capacities of the first ``arcs`` arcs.

    Parameters
    ----------
    residual : Residual
        The graph.
    capacity : int64 [arcs]
        Capacities.
    arcs : int
        Number of arcs.
    """
    residual.remaining[:] = 0
    for a in range(arcs):
        residual.remaining[residual.slot[a]] = capacity[a]


@kernel
def _find_distances(residual: Residual, source: int, sink: int) -> bool:
    """Compute the distances to the sink up to that of the source; returns whether there is a path."""
    first, head, distance, queue = residual.first, residual.head, residual.distance, residual.queue
    distance[:] = -1
    distance[sink], queue[0] = 0, sink
    done, queued = 0, 1
    while done < queued:
        v = queue[done]
        done += 1
        for i in range(first[v], first[v + 1]):
            u = head[i]
            if distance[u] < 0 and residual.remaining[residual.mate[i]] > 0:
                distance[u] = distance[v] + 1
                if u == source:
                    return True
                queue[queued] = u
                queued += 1
    return False


@kernel
def _send(residual: Residual, path: Ints32, length: int, amount: int) -> int:
    """Send an amount along the first ``length`` slots of a path; returns the index of the first slot that is
    saturated.
    """
    remaining, full = residual.remaining, length
    for k in range(length - 1, -1, -1):
        i = path[k]
        remaining[i] -= amount
        remaining[residual.mate[i]] += amount
        if remaining[i] == 0:
            full = k
    return full


@kernel
def _blocking_flow(residual: Residual, source: int, sink: int, limit: int) -> int:
    """Send a blocking flow along shortest paths, at most ``limit``; returns the amount."""
    first, head, remaining, distance = residual.first, residual.head, residual.remaining, residual.distance
    cursor, path = residual.cursor, residual.path
    for v in range(len(cursor)):
        cursor[v] = first[v]
    sent, length, v = 0, 0, source
    while sent < limit:
        if v == sink:
            amount = limit - sent
            for k in range(length):
                amount = min(amount, remaining[path[k]])
            sent += amount
            length = _send(residual, path, length, amount)
            if length < distance[source]:
                v = head[residual.mate[path[length]]]
            continue
        while cursor[v] < first[v + 1]:
            i = cursor[v]
            if remaining[i] > 0 and distance[head[i]] == distance[v] - 1:
                break
            cursor[v] += 1
        if cursor[v] < first[v + 1]:
            path[length] = cursor[v]
            v = head[path[length]]
            length += 1
        elif v == source:
            break
        else:  # dead end: remove it and the slot to it
            distance[v] = -1
            length -= 1
            v = head[residual.mate[path[length]]]
            cursor[v] += 1
    return sent


@device_function
def send_up_to(residual: Residual, source: int, sink: int, limit: int) -> int:
    """Add a maximum flow to the current flow, at most ``limit``.

    Parameters
    ----------
    residual : Residual
        The graph.
    source, sink : int
        Vertices.
    limit : int
        Largest amount.

    Returns
    -------
    int
        The amount.
    """
    sent = 0
    while sent < limit and _find_distances(residual, source, sink):
        sent += _blocking_flow(residual, source, sink, limit - sent)
    return sent


@device_function
def first_unreached(residual: Residual, capacity: Ints, source: int, sinks: Ints, begin: int, required: int) -> int:
    """The index of the first sink whose maximum flow is less than ``required``; len(sinks) if there is none.

    The residual graph keeps the last flow.

    Parameters
    ----------
    residual : Residual
        The graph.
    capacity : int64 [arcs]
        Capacities of every flow.
    source : int
        Vertex.
    sinks : int64
        Vertices that are tried in order.
    begin : int
        Index of the first one.
    required : int
        Amount of flow.
    """
    for k in range(begin, len(sinks)):
        set_capacities(residual, capacity, len(capacity))
        if send_up_to(residual, source, sinks[k], required) < required:
            return k
    return len(sinks)


@device_function
def mark_reachable(residual: Residual, source: int, reached: Bools) -> None:
    """Mark the vertices that the source reaches in the residual graph: after a maximum flow, a minimum cut.

    Parameters
    ----------
    residual : Residual
        The graph.
    source : int
        Vertex.
    reached : bool [vertices]
        Output.
    """
    queue = residual.queue
    reached[:] = False
    reached[source], queue[0] = True, source
    done, queued = 0, 1
    while done < queued:
        v = queue[done]
        done += 1
        for i in range(residual.first[v], residual.first[v + 1]):
            u = residual.head[i]
            if residual.remaining[i] > 0 and not reached[u]:
                reached[u] = True
                queue[queued] = u
                queued += 1
