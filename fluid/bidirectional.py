# SPDX-License-Identifier: Apache-2.0
"""Compiled shortest path between two nodes: Dijkstra's algorithm from both ends, cut off by a known bound.

Sources: Pohl, Machine Intelligence 6 (1971) (search from both ends); Goldberg and Werneck, ALENEX 2005
(a node that the other search cannot reach within the bound is not kept).
"""

from typing import NamedTuple

import numpy as np

from flitlab.fluid.graph import Graph
from flitlab.models.arrays import Floats, Int, Integers, Ints, Ints32
from flitlab.models.jit import kernel, njit

ARC = np.dtype([("length", np.float64), ("end", np.int32), ("channel", np.int32)])
"""A channel, its length, and the node at its other end."""


class Star(NamedTuple):
    """The channels out of (or into) every node v, shortest first: arc[start[v]:start[v + 1]].

    arc: records of :data:`ARC`, so that one read from memory brings all that is asked of a channel.
    """

    start: Ints
    arc: np.ndarray


class Search(NamedTuple):
    """State of a search from one node, over a heap of (key, node) in which outdated entries are left behind.

    distance: float64 [nodes], inf where not reached; of those that are, touched: int32 [nodes] is a list.
    channel: int32 [nodes], the one over which a node was reached. key: float64, node: int32 [channels + 1].
    """

    distance: Floats
    touched: Ints32
    channel: Ints32
    key: Floats
    node: Ints32


@njit
def new_search(nodes: int, channels: int) -> Search:
    """A search that has not reached anything."""
    heap = channels + 1
    return Search(
        np.full(nodes, np.inf), np.empty(nodes, np.int32), np.empty(nodes, np.int32),
        np.empty(heap), np.empty(heap, np.int32),
    )  # fmt: skip


@njit
def star(start: Ints, channel: Ints, end: Integers, length: Floats) -> Star:
    """The :class:`Star` of channels grouped by node, with the other end and the length of every channel, if any."""
    order = channel.copy()
    for v in range(len(start) - 1 if len(length) > 0 else 0):
        for i in range(start[v] + 1, start[v + 1]):
            a, j = order[i], i
            while j > start[v] and length[order[j - 1]] > length[a]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = a
    arc = np.empty(len(order), ARC)
    for i in range(len(order)):
        a = order[i]
        arc[i].length, arc[i].end, arc[i].channel = length[a], end[a], a
    return Star(start, arc)


@kernel
def push(search: Search, size: int, key: float, node: int) -> int:
    """Add a node to a heap of ``size`` entries; the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if search.key[parent] <= key:
            break
        search.key[i], search.node[i] = search.key[parent], search.node[parent]
        i = parent
    search.key[i], search.node[i] = key, node
    return size + 1


@kernel
def pop(search: Search, size: int) -> int:
    """Remove the first of ``size`` entries; the new size."""
    size -= 1
    key, node = search.key[size], search.node[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and search.key[child + 1] < search.key[child]:
            child += 1
        if search.key[child] >= key:
            break
        search.key[i], search.node[i] = search.key[child], search.node[child]
        i = child
    search.key[i], search.node[i] = key, node
    return size


@kernel
def start_search(search: Search, v: int) -> None:
    """Start at node v: a heap of one, and one node reached."""
    search.distance[v] = 0.0
    search.touched[0] = v
    search.key[0], search.node[0] = 0.0, v


@kernel
def reset_search(search: Search, touched: int) -> None:
    """Undo a search that reached so many nodes."""
    for i in range(touched):
        search.distance[search.touched[i]] = np.inf


@kernel
def _advance(
    channels: Star,
    search: Search,
    size: int,
    touched: int,
    other: Search,
    other_radius: float,
    best: float,
    middle: Int,
) -> tuple[int, int, float, Int]:
    """Settle the nearest node of ``search``; the ``other`` one has settled everything nearer than ``other_radius``.

    Returns (size of the heap, nodes touched, least length found and the node where both searches met on it).
    """
    v, key = search.node[0], search.key[0]
    size = pop(search, size)
    if key > search.distance[v] or other.distance[v] <= other_radius:
        return size, touched, best, middle  # outdated, or the way on from v is known
    for i in range(channels.start[v], channels.start[v + 1]):
        reach = key + channels.arc[i].length
        if reach + other_radius >= best:
            break  # the other channels are longer still
        u = channels.arc[i].end
        if reach < search.distance[u]:
            if search.distance[u] == np.inf:
                search.touched[touched] = u
                touched += 1
            search.distance[u] = reach
            search.channel[u] = channels.arc[i].channel
            if reach + other.distance[u] < best:
                best, middle = reach + other.distance[u], u
            # no use in settling u if even its shortest channel would lead too far
            shortest = channels.start[u]
            if shortest < channels.start[u + 1] and reach + channels.arc[shortest].length + other_radius < best:
                size = push(search, size, reach, u)
    return size, touched, best, middle


@kernel
def shortest_path(
    out: Star, into: Star, s: int, t: int, limit: float, forward: Search, backward: Search
) -> tuple[float, Int]:
    """Length of the shortest path from s to t if that is less than ``limit``, else ``limit``.

    out, into: :class:`Star`. ahead, behind: searches from s and from t, left as new but for their channels.
    Returns also the node in the middle of the path, -1 if there is none: behind.channel leads from there
    to t, ahead.channel back to s.
    """
    start_search(forward, s)
    start_search(backward, t)
    forward_size, backward_size, forward_touched, backward_touched = 1, 1, 1, 1  # sizes of the heaps, nodes touched
    middle: Int
    best, middle = limit, np.int32(-1)
    if s == t and limit > 0.0:
        best, middle = 0.0, np.int32(s)
    while forward_size > 0 and backward_size > 0 and forward.key[0] + backward.key[0] < best:
        if forward_size <= backward_size:
            forward_size, forward_touched, best, middle = _advance(
                out, forward, forward_size, forward_touched, backward, backward.key[0], best, middle
            )
        else:
            backward_size, backward_touched, best, middle = _advance(
                into, backward, backward_size, backward_touched, forward, forward.key[0], best, middle
            )
    reset_search(forward, forward_touched)
    reset_search(backward, backward_touched)
    return best, middle


@kernel
def write_path(
    graph: Graph, s: int, t: int, middle: Int, forward: Search, backward: Search, channel: Ints32, size: int
) -> int:
    """Write the channels of the path that :func:`meet` found from ``channel[size]`` on; the new size."""
    hops, v = 0, middle
    while v != s:
        hops += 1
        v = graph.src[forward.channel[v]]
    v = middle
    for i in range(hops):
        a = forward.channel[v]
        channel[size + hops - 1 - i] = a
        v = graph.src[a]
    size += hops
    v = middle
    while v != t:
        channel[size] = backward.channel[v]
        v = graph.dst[channel[size]]
        size += 1
    return size
