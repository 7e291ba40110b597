"""Compiled shortest paths: trees toward a destination, searches from both ends, a routing's DAG."""

from typing import NamedTuple

import numpy as np

from models.jit import kernel, njit


class Search(NamedTuple):
    """Arrays [nodes] of a search: float64 distance, int32 channel (taken to or from a node), int32 heap.

    place: int32, where in the heap a node stands; -1 before it is reached.
    """

    distance: np.ndarray
    channel: np.ndarray
    heap: np.ndarray
    place: np.ndarray


@kernel
def _sift_up(heap, place, key, i):
    node = heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        if key[heap[parent]] <= key[node]:
            break
        heap[i] = heap[parent]
        place[heap[i]] = i
        i = parent
    heap[i] = node
    place[node] = i


@kernel
def _pop(heap, place, key, size):
    """Remove and return the nearest node of a heap of ``size`` nodes."""
    top = heap[0]
    node = heap[size - 1]
    size -= 1
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[node]:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = node
    place[node] = i
    return top


@kernel
def _enter(v, a, reach, search, size):
    """Reach node v over channel a at distance ``reach``; the new size of the heap."""
    if search.place[v] < 0:
        search.place[v] = size
        search.heap[size] = v
        size += 1
    search.distance[v] = reach
    search.channel[v] = a
    _sift_up(search.heap, search.place, search.distance, search.place[v])
    return size


@kernel
def _begin(v, search):
    """Start a search at node v: a heap of one."""
    search.distance[:] = np.inf
    search.channel[:] = -1
    search.place[:] = -1
    search.distance[v] = 0.0
    search.heap[0] = v
    search.place[v] = 0


@kernel
def dijkstra(graph, t, length, search, order):
    """Shortest-path tree toward node t under lengths >= 0 (zeros allowed); returns the nodes reached.

    Fills search.distance (inf: cannot reach t), search.channel (the next one toward t, -1: none) and
    order [nodes] (nearest first, every node after its next hop).
    """
    _begin(t, search)
    size, settled = 1, 0
    while size > 0:
        v = _pop(search.heap, search.place, search.distance, size)
        size -= 1
        order[settled] = v
        settled += 1
        for i in range(graph.in_start[v], graph.in_start[v + 1]):
            a = graph.in_channel[i]
            u = graph.src[a]
            reach = search.distance[v] + length[a]
            if reach < search.distance[u]:
                size = _enter(u, a, reach, search, size)
    return settled


@kernel
def meet(graph, s, t, length, ahead, behind):
    """Distance from s to t by searches from both ends; ahead.channel then leads from s to t (only there)."""
    _begin(t, ahead)
    _begin(s, behind)
    waiting, known = 1, 1  # sizes of the heaps of ``ahead`` and ``behind``
    best, middle = np.inf, t
    while waiting > 0 and known > 0:
        to_t, from_s = ahead.distance[ahead.heap[0]], behind.distance[behind.heap[0]]
        if to_t + from_s >= best:
            break
        if waiting <= known:
            v = _pop(ahead.heap, ahead.place, ahead.distance, waiting)
            waiting -= 1
            for i in range(graph.in_start[v], graph.in_start[v + 1]):
                a = graph.in_channel[i]
                u = graph.src[a]
                reach = to_t + length[a]
                if reach < ahead.distance[u]:
                    waiting = _enter(u, a, reach, ahead, waiting)
                    if reach + behind.distance[u] < best:
                        best, middle = reach + behind.distance[u], u
        else:
            v = _pop(behind.heap, behind.place, behind.distance, known)
            known -= 1
            for a in range(graph.out_start[v], graph.out_start[v + 1]):
                u = graph.dst[a]
                reach = from_s + length[a]
                if reach < behind.distance[u]:
                    known = _enter(u, a, reach, behind, known)
                    if reach + ahead.distance[u] < best:
                        best, middle = reach + ahead.distance[u], u
    if best < np.inf:
        _join(graph, s, t, middle, ahead, behind)
    return best


@kernel
def _join(graph, s, t, middle, ahead, behind):
    """Make ahead.channel lead from s over ``middle`` to t.

    Where lengths vanish both halves may pass the same node: then the way back to s starts at the last of those.
    """
    v = middle
    ahead.place[v] = -2  # on the way from middle to t
    while v != t:
        v = graph.dst[ahead.channel[v]]
        ahead.place[v] = -2
    v = middle
    while v != s:
        v = graph.src[behind.channel[v]]
        if ahead.place[v] == -2:
            middle = v
    v = middle
    while v != s:
        a = behind.channel[v]
        v = graph.src[a]
        ahead.channel[v] = a


@kernel
def dag_tree(graph, dags, t, length, search, order):
    """As :func:`dijkstra`, over the channels that a routing allows toward t."""
    search.distance[:] = np.inf
    search.channel[:] = -1
    search.distance[t] = 0.0
    reached = 0
    for i in range(len(order)):
        v = dags.order[t, i]
        if v < 0:
            break
        order[i] = v
        reached += 1
        ports = dags.ports[t, v]
        a = graph.out_start[v]
        while ports != 0:
            if ports & np.uint64(1):
                reach = search.distance[graph.dst[a]] + length[a]
                if reach < search.distance[v]:
                    search.distance[v] = reach
                    search.channel[v] = a
            ports >>= np.uint64(1)
            a += 1
    return reached


@kernel
def tree(graph, dags, t, length, search, order):
    """Shortest-path tree toward t: over the routing's DAG if there is one, else over all channels."""
    if len(dags.ports) > 0:
        return dag_tree(graph, dags, t, length, search, order)
    return dijkstra(graph, t, length, search, order)


@njit
def new_search(nodes):
    """Arrays for a search over ``nodes`` nodes."""
    return Search(np.empty(nodes), np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32))


@njit
def price(graph, demand, dags, length):
    """Distance float64 [commodities] and next channel int32 [targets, nodes] under lengths [channels].

    The channels lead from every source to its target; elsewhere they mean nothing.
    """
    nodes = len(graph.in_start) - 1
    distances = np.empty(len(demand.source))
    trees = np.empty((len(demand.target), nodes), np.int32)
    order = np.empty(nodes, np.int32)
    search, behind = new_search(nodes), new_search(nodes)
    for i in range(len(demand.target)):
        t, begin, end = demand.target[i], demand.start[i], demand.start[i + 1]
        if end == begin + 1 and len(dags.ports) == 0:
            distances[begin] = meet(graph, demand.source[begin], t, length, search, behind)
        else:
            tree(graph, dags, t, length, search, order)
            for k in range(begin, end):
                distances[k] = search.distance[demand.source[k]]
        trees[i] = search.channel
    return distances, trees


@njit
def dag_order(graph, ports):
    """Order int32 [nodes, nodes] of :class:`~fluid.problem.Dags`; -1 first: the row has a cycle or dead end.

    Nodes without a route to t stand nowhere in row t.
    """
    nodes = len(ports)
    order = np.full((nodes, nodes), -1, np.int32)
    waiting = np.empty(nodes, np.int64)
    for t in range(nodes):
        routed = 1
        for v in range(nodes):
            mask = ports[t, v]
            routed += mask != 0
            waiting[v] = 0
            while mask != 0:
                waiting[v] += np.int64(mask & np.uint64(1))
                mask >>= np.uint64(1)
        order[t, 0] = t
        done, placed = 0, 1
        while done < placed:
            v = order[t, done]
            done += 1
            for i in range(graph.in_start[v], graph.in_start[v + 1]):
                a = graph.in_channel[i]
                u = graph.src[a]
                port = np.uint64(a - graph.out_start[u])
                if (ports[t, u] >> port) & np.uint64(1):
                    waiting[u] -= 1
                    if waiting[u] == 0:
                        order[t, placed] = u
                        placed += 1
        if placed < routed:
            order[t, 0] = -1
    return order
