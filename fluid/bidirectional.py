# SPDX-License-Identifier: Apache-2.0
"""Compiled shortest path between two nodes: bidirectional Dijkstra search with an upper bound.

Sources: Pohl, Machine Intelligence 6 (1971) (bidirectional search); Goldberg and Werneck, ALENEX 2005 (pruning: a node
that the opposite search cannot reach within the bound is not kept).
"""

from typing import NamedTuple

import numpy as np

from flitlab.fluid.graph import Graph
from flitlab.models.arrays import Floats, Int, Integers, Ints, Ints32
from flitlab.models.jit import kernel, njit

ARC = np.dtype([("length", np.float64), ("end", np.int32), ("channel", np.int32)])
"""Record of a channel: its length, the node at its other end, and its number."""


class Star(NamedTuple):
    """Forward (or reverse) star: the channels out of (into) node v, shortest first, are arc[start[v]:start[v + 1]].

    start: int64 [nodes + 1]. arc: records of :data:`ARC` [channels], so that one cache line holds all data of a
    channel.
    """

    start: Ints
    arc: np.ndarray


class DijkstraSearch(NamedTuple):
    """State of a Dijkstra search: labels of the nodes, and a binary heap with lazy deletion.

    distance: float64 [nodes], inf where not reached. touched: int32 [nodes], the list of reached nodes. channel: int32
    [nodes], the channel by which a node was reached. key: float64, node: int32 [channels + 1], the heap; outdated
    entries stay in it.
    """

    distance: Floats
    touched: Ints32
    channel: Ints32
    key: Floats
    node: Ints32


@njit
def new_search(nodes: int, channels: int) -> DijkstraSearch:
    """A search that has reached no node."""
    heap = channels + 1
    return DijkstraSearch(
        np.full(nodes, np.inf), np.empty(nodes, np.int32), np.empty(nodes, np.int32),
        np.empty(heap), np.empty(heap, np.int32),
    )  # fmt: skip


@njit
def star(start: Ints, channel: Ints, end: Integers, length: Floats) -> Star:
    """The :class:`Star` of channels grouped by node, each group sorted by length.

    Parameters
    ----------
    start : int64 [nodes + 1]
        Group of node v: channel[start[v]:start[v + 1]].
    channel : int64 [channels]
        Channel numbers.
    end : int [channels]
        Node at the other end of a channel.
    length : float64 [channels or 0]
        Lengths; if empty, the star is empty.
    """
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
def push(search: DijkstraSearch, size: int, key: float, node: int) -> int:
    """Insert a node into the heap.

    Parameters
    ----------
    search : DijkstraSearch
        Its heap has ``size`` entries.
    size : int
        Entries of the heap.
    key : float
        Distance of the node.
    node : int
        The node.

    Returns
    -------
    int
        The new size.
    """
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
def pop(search: DijkstraSearch, size: int) -> int:
    """Remove the first of ``size`` entries of the heap; returns the new size."""
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
def start_search(search: DijkstraSearch, v: int) -> None:
    """Start at node v: a heap of one entry, and one reached node."""
    search.distance[v] = 0.0
    search.touched[0] = v
    search.key[0], search.node[0] = 0.0, v


@kernel
def reset_search(search: DijkstraSearch, touched: int) -> None:
    """Clear the labels of the first ``touched`` reached nodes."""
    for i in range(touched):
        search.distance[search.touched[i]] = np.inf


@kernel
def _advance(
    channels: Star,
    search: DijkstraSearch,
    size: int,
    touched: int,
    other: DijkstraSearch,
    other_radius: float,
    best: float,
    middle: Int,
) -> tuple[int, int, float, Int]:
    """Settle the next node of ``search``; the opposite search ``other`` has settled all nodes within ``other_radius``.

    Returns (heap size, touched nodes, length of the best path, node at which both searches meet on it).
    """
    v, key = search.node[0], search.key[0]
    size = pop(search, size)
    if key > search.distance[v] or other.distance[v] <= other_radius:
        return size, touched, best, middle  # outdated, or the rest of the path from v is known
    for i in range(channels.start[v], channels.start[v + 1]):
        reach = key + channels.arc[i].length
        if reach + other_radius >= best:
            break  # channels are sorted by length
        u = channels.arc[i].end
        if reach < search.distance[u]:
            if search.distance[u] == np.inf:
                search.touched[touched] = u
                touched += 1
            search.distance[u] = reach
            search.channel[u] = channels.arc[i].channel
            if reach + other.distance[u] < best:
                best, middle = reach + other.distance[u], u
            # prune u if even its shortest channel exceeds the bound
            shortest = channels.start[u]
            if shortest < channels.start[u + 1] and reach + channels.arc[shortest].length + other_radius < best:
                size = push(search, size, reach, u)
    return size, touched, best, middle


@kernel
def shortest_path(
    out: Star, into: Star, s: int, t: int, limit: float, forward: DijkstraSearch, backward: DijkstraSearch
) -> tuple[float, Int]:
    """Length of the shortest path from s to t if it is less than ``limit``, else ``limit``.

    Parameters
    ----------
    out, into : Star
        Channels out of, and into, every node.
    s, t : int
        Source and destination node.
    limit : float
        Upper bound on the length.
    forward, backward : DijkstraSearch
        Searches from s and from t, both fresh. Their labels are reset at the end, but ``channel`` is kept.

    Returns
    -------
    float
        Length, at most ``limit``.
    int
        Node in the middle of the path, -1 if there is none: ``backward.channel`` leads from there to t,
        ``forward.channel`` back to s. :func:`write_path` lists the channels.
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
    graph: Graph, s: int, t: int, middle: Int, forward: DijkstraSearch, backward: DijkstraSearch, channel: Ints32,
    size: int,
) -> int:  # fmt: skip
    """Write the channels of the path of :func:`shortest_path` to channel[size:]; returns the new size.

    Parameters
    ----------
    graph : Graph
        The graph.
    s, t : int
        Source and destination node.
    middle : int
        Node in the middle of the path.
    forward, backward : DijkstraSearch
        Searches from s and from t.
    channel : int32
        Output array.
    size : int
        Entries that are in use.
    """
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
