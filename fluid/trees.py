"""Compiled shortest paths for many demands: trees toward a destination, a routing's DAG, prices of a demand."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from fluid.bidirectional import begin, forget, meet, new_search, pop, push, star, walk
from models.jit import kernel, njit

BLOCKS = 8
"""Blocks of destinations that are priced side by side; the results do not depend on their number."""
ALONE = 100_000
"""Demands times nodes below which one thread prices them all sooner than several."""


@kernel
def dijkstra(graph, t, length, search, order):
    """Shortest-path tree toward node t under lengths >= 0; returns the nodes reached.

    Fills search.distance (inf: cannot reach t), search.channel (the next one toward t) and order [nodes]
    (nearest first, every node after its next hop). The search must be a new one.
    """
    begin(search, t)
    size, touched, settled = 1, 1, 0
    while size > 0:
        v, at = search.node[0], search.key[0]
        size = pop(search, size)
        if at > search.distance[v]:
            continue
        order[settled] = v
        settled += 1
        for i in range(graph.in_start[v], graph.in_start[v + 1]):
            a = graph.in_channel[i]
            u = graph.src[a]
            reach = at + length[a]
            if reach < search.distance[u]:
                if search.distance[u] == np.inf:
                    search.touched[touched] = u
                    touched += 1
                search.distance[u] = reach
                search.channel[u] = a
                size = push(search, size, reach, u)
    return settled


@kernel
def dag_tree(graph, dags, t, length, search, order):
    """As :func:`dijkstra`, over the channels that a routing allows toward t."""
    search.distance[t] = 0.0
    search.touched[0] = t
    reached = 0
    for i in range(len(order)):
        v = dags.order[t, i]
        if v < 0:
            break
        order[i] = v
        search.touched[i] = v
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


class Found(NamedTuple):
    """One path per commodity k, channel[start[k]:start[k + 1]] (int32) from source to target; it may be empty."""

    start: np.ndarray
    channel: np.ndarray


@njit
def _price(graph, demand, dags, length, out, into, limit, low, high):
    """:func:`price` of the demands for target[low:high]: distance, start and channel of these alone."""
    nodes, first = len(graph.in_start) - 1, demand.start[low]
    keep = len(limit) > 0
    distance = np.empty(demand.start[high] - first)
    start = np.zeros(len(distance) + 1 if keep else 1, np.int64)
    channel = np.empty(8 * len(distance) + nodes if keep else 0, np.int32)
    ahead, behind = new_search(nodes, len(length)), new_search(nodes, len(length))
    order = np.empty(nodes, np.int32)
    size = 0
    for i in range(low, high):
        t, some = demand.target[i], demand.start[i + 1] - demand.start[i]
        # a search from both ends settles about 100 times fewer nodes than a tree
        single = len(dags.ports) == 0 and 100 * some <= nodes + 100
        if not single:
            reached = tree(graph, dags, t, length, behind, order)
        for k in range(demand.start[i], demand.start[i + 1]):
            s, j, middle = demand.source[k], k - first, -1
            most = limit[k] if keep else np.inf
            if single:
                distance[j], middle = meet(out, into, s, t, most, ahead, behind)
            elif behind.distance[s] < most:
                distance[j], middle = behind.distance[s], s
            else:
                distance[j] = most
            if keep:
                if middle >= 0:
                    if size + nodes > len(channel):
                        channel = np.concatenate((channel, np.empty_like(channel)))
                    size = walk(graph, s, t, middle, ahead, behind, channel, size)
                start[j + 1] = size
        if not single:
            forget(behind, reached)
    return distance, start, channel[:size].copy()


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def price(graph, demand, dags, length, limit=None):
    """Shortest paths under lengths [channels] >= 0, where shorter than ``limit`` [commodities].

    Returns (distance float64 [commodities], at most the limit, and the paths :class:`Found`);
    without a limit there are only the distances, inf where no path leads. Paths need lengths > 0.
    """
    limit = np.zeros(0) if limit is None else limit
    out = star(graph.out_start, np.arange(len(length)), graph.dst, length)
    into = star(graph.in_start, graph.in_channel, graph.src, length)
    targets = len(demand.target)
    blocks = BLOCKS if len(demand.source) * (len(graph.in_start) - 1) > ALONE else 1
    cut = [targets * i // blocks for i in range(blocks + 1)]

    def block(i):
        return _price(graph, demand, dags, length, out, into, limit, cut[i], cut[i + 1])

    if blocks == 1:
        parts = [block(0)]
    else:
        with ThreadPoolExecutor(min(blocks, cores())) as pool:
            parts = list(pool.map(block, range(blocks)))
    distance, start, channel = zip(*parts, strict=True)
    ends = np.concatenate([np.zeros(1, np.int64), *(part[1:] - part[:-1] for part in start)]).cumsum()
    return np.concatenate(distance), Found(ends, np.concatenate(channel))


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
