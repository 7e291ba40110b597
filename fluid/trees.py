# SPDX-License-Identifier: Apache-2.0
"""Compiled shortest-path trees toward a destination, over all channels or over the next hops of a routing."""

import numpy as np
import numpy.typing as npt

from flitlab.fluid.bidirectional import DijkstraSearch, pop, push, start_search
from flitlab.fluid.graph import Dags, Graph
from flitlab.models.arrays import Floats, Ints32
from flitlab.models.jit import kernel, njit
from flitlab.models.rules.bits import contains, is_empty, lowest, popcount, without_lowest
from flitlab.models.rules.port_sets import ports_at


@kernel
def dijkstra(graph: Graph, t: int, length: Floats, search: DijkstraSearch, order: Ints32) -> int:
    """Shortest-path tree toward node t, by Dijkstra's algorithm.

    Parameters
    ----------
    graph : Graph
        The graph.
    t : int
        Destination.
    length : float64 [channels]
        Lengths >= 0.
    search : DijkstraSearch
        Fresh; ``distance`` (inf: cannot reach t) and ``channel`` (the next one toward t) are written.
    order : int32 [nodes]
        Output: nodes by distance, every node after its next hop.

    Returns
    -------
    int
        Number of reached nodes.
    """
    start_search(search, t)
    size, touched, settled = 1, 1, 0
    while size > 0:
        v, key = search.node[0], search.key[0]
        size = pop(search, size)
        if key > search.distance[v]:
            continue
        order[settled] = v
        settled += 1
        for i in range(graph.in_start[v], graph.in_start[v + 1]):
            a = graph.in_channel[i]
            u = graph.in_node[i]
            reach = key + length[a]
            if reach < search.distance[u]:
                if search.distance[u] == np.inf:
                    search.touched[touched] = u
                    touched += 1
                search.distance[u] = reach
                search.channel[u] = a
                size = push(search, size, reach, u)
    return settled


@kernel
def dag_tree(graph: Graph, dags: Dags, t: int, length: Floats, search: DijkstraSearch, order: Ints32) -> int:
    """Shortest-path tree toward node t over the next hops of a routing; parameters as of :func:`dijkstra`.

    dags: next hops, with the topological order of the nodes.
    """
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
        ports = ports_at(dags.ports[t], v)
        while not is_empty(ports):
            a = graph.out_start[v] + lowest(ports)
            ports = without_lowest(ports)
            reach = search.distance[graph.dst[a]] + length[a]
            if reach < search.distance[v]:
                search.distance[v] = reach
                search.channel[v] = a
    return reached


@kernel
def alike(length: Floats) -> bool:
    """Whether all channels have the same positive length, and all path lengths are finite. length: float64
    [channels].
    """
    for a in range(len(length)):
        if length[a] != length[0]:
            return False
    return len(length) > 0 and 0.0 < length[0] * len(length) < np.inf


@kernel
def level_tree(graph: Graph, t: int, length: Floats, search: DijkstraSearch, order: Ints32) -> int:
    """Shortest-path tree toward node t by breadth-first search, for lengths that are :func:`alike`; as
    :func:`dijkstra`.
    """
    search.distance[t] = 0.0
    search.touched[0], order[0] = t, t
    reached, done = 1, 0
    while done < reached:
        v = order[done]
        done += 1
        reach = search.distance[v] + length[0]
        for i in range(graph.in_start[v], graph.in_start[v + 1]):
            u = graph.in_node[i]
            if search.distance[u] == np.inf:
                search.distance[u], search.channel[u] = reach, graph.in_channel[i]
                search.touched[reached], order[reached] = u, u
                reached += 1
    return reached


@kernel
def tree(graph: Graph, dags: Dags, t: int, length: Floats, level: bool, search: DijkstraSearch, order: Ints32) -> int:
    """Shortest-path tree toward t: over the routing's DAG if there is one, else over all channels.

    Parameters
    ----------
    graph, t, length, search, order
        As of :func:`dijkstra`.
    dags : Dags
        Next hops; with empty arrays, every channel is allowed.
    level : bool
        Whether all lengths are :func:`alike`.

    Returns
    -------
    int
        Number of reached nodes.
    """
    if len(dags.ports) > 0:
        return dag_tree(graph, dags, t, length, search, order)
    if level:
        return level_tree(graph, t, length, search, order)
    return dijkstra(graph, t, length, search, order)


@kernel
def allows(graph: Graph, dags: Dags, t: int, v: int, a: int) -> bool:
    """Whether a path toward t may leave node v by its channel a.

    Parameters
    ----------
    graph : Graph
        The graph.
    dags : Dags
        Next hops.
    t, v, a : int
        Destination, node, and channel.
    """
    if len(dags.ports) == 0:
        return True
    return contains(ports_at(dags.ports[t], v), a - graph.out_start[v])


@njit
def dag_order(graph: Graph, ports: npt.NDArray[np.uint64]) -> Ints32:
    """Topological order, int32 [nodes, nodes], of :class:`~flitlab.fluid.graph.Dags`; -1 first: cycle or dead end.

    Nodes without a route to t are not in row t. ports: table of port sets.
    """
    nodes = len(ports)
    order = np.full((nodes, nodes), -1, np.int32)
    waiting = np.empty(nodes, np.int64)
    for t in range(nodes):
        routed = 1
        for v in range(nodes):
            waiting[v] = popcount(ports_at(ports[t], v))
            routed += waiting[v] != 0
        order[t, 0] = t
        done, placed = 0, 1
        while done < placed:
            v = order[t, done]
            done += 1
            for i in range(graph.in_start[v], graph.in_start[v + 1]):
                a = graph.in_channel[i]
                u = graph.src[a]
                if not contains(ports_at(ports[t], u), a - graph.out_start[u]):
                    continue
                waiting[u] -= 1
                if waiting[u] == 0:
                    order[t, placed] = u
                    placed += 1
        if placed < routed:
            order[t, 0] = -1
    return order
