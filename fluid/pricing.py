# SPDX-License-Identifier: Apache-2.0
"""Pricing of a demand: the shortest allowed path of every commodity under channel lengths."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from flitlab.fluid.bidirectional import Star, new_search, reset_search, shortest_path, star, write_path
from flitlab.fluid.graph import Dags, Demand, Graph
from flitlab.fluid.trees import alike, dag_tree, tree
from flitlab.models.arrays import Floats, Int, Ints, Ints32
from flitlab.models.jit import kernel, njit
from flitlab.models.threads import parallel_map

BLOCKS = 8
"""Blocks of destinations that are priced in parallel; results do not depend on their number."""
SINGLE_THREAD_WORK = 100_000
"""Commodities times nodes up to which one thread is faster than several."""


T = TypeVar("T")


class PricedPaths(NamedTuple):
    """One path per commodity k, channel[start[k]:start[k + 1]], from source to target; it may be empty.

    start: int64 [commodities + 1]. channel: int32.
    """

    start: Ints
    channel: Ints32


class _Block(NamedTuple):
    """The commodities of targets low:high. limit: as of :func:`price`; empty: only distances are computed."""

    demand: Demand
    limit: Floats
    low: int
    high: int


def price(
    graph: Graph, demand: Demand, dags: Dags, length: Floats, limit: Floats | None = None
) -> tuple[Floats, PricedPaths]:
    """Shortest allowed paths of all commodities that are shorter than a limit.

    Parameters
    ----------
    graph : Graph
        The graph.
    demand : Demand
        Commodities.
    dags : Dags
        Next hops that are allowed.
    length : float64 [channels]
        Lengths >= 0; > 0 if paths are returned.
    limit : float64 [commodities], optional
        Without it, only distances are computed.

    Returns
    -------
    float64 [commodities]
        Distances, at most the limit; without a limit, inf where there is no path.
    PricedPaths
        Paths of the commodities whose distance is less than the limit.
    """
    limit = np.zeros(0) if limit is None else limit
    single_threaded = len(demand.source) * (len(graph.in_start) - 1) <= SINGLE_THREAD_WORK
    if len(dags.via) > 0:
        legs = _legs(graph, dags, length, single_threaded)

        def block(low: int, high: int) -> tuple[Floats, Ints, Ints32]:
            return _via_switches(graph, dags.via, legs, _Block(demand, limit, low, high))
    elif dags.hops > 0:

        def block(low: int, high: int) -> tuple[Floats, Ints, Ints32]:
            return _within_hops(graph, dags.hops, length, _Block(demand, limit, low, high))
    else:
        # only bidirectional searches use the stars
        least = (demand.start[1:] - demand.start[:-1]).min(initial=len(graph.in_start))
        ends = length if _from_both_ends(graph, dags, least) else length[:0]
        out = star(graph.out_start, np.arange(len(ends)), graph.dst, ends)
        into = star(graph.in_start, graph.in_channel[: len(ends)], graph.src, ends)

        def block(low: int, high: int) -> tuple[Floats, Ints, Ints32]:
            return _direct(graph, dags, length, out, into, _Block(demand, limit, low, high))

    parts = _in_blocks(block, len(demand.target), single_threaded)
    distance = np.concatenate([part[0] for part in parts])
    start: Ints = np.concatenate([np.zeros(1, np.int64), *(np.diff(part[1]) for part in parts)]).cumsum()
    return distance, PricedPaths(start, np.concatenate([part[2] for part in parts]))


def floored(length: np.ndarray, capacity: Floats, least: float) -> np.ndarray:
    """Lengths with a lower bound on capacity * length.

    Parameters
    ----------
    length, capacity : float64 [channels]
        Lengths and capacities.
    least : float
        Lower bound, relative to the mean of capacity * length.

    Returns
    -------
    float64 [channels]
        Lengths.
    """
    worth = capacity * length
    raised: np.ndarray = np.maximum(worth, least * worth.mean()) / capacity
    return raised


def _in_blocks(block: Callable[[int, int], T], size: int, single_threaded: bool) -> list[T]:
    """Results of block(low, high) for parts of range(size), in order; in several threads unless ``single_threaded``."""
    if single_threaded:
        return [block(0, size)]
    cut = [size * i // BLOCKS for i in range(BLOCKS + 1)]
    return list(parallel_map(lambda ends: block(*ends), pairwise(cut)))


@njit
def _from_both_ends(graph: Graph, dags: Dags, sources: int) -> bool:
    """Whether bidirectional searches are used for the sources of a target, one by one.

    Such a search settles about 100 times fewer nodes than a tree.
    """
    return len(dags.ports) == 0 and 100 * sources <= len(graph.in_start) + 99


@njit
def _direct(
    graph: Graph, dags: Dags, length: Floats, out: Star, into: Star, block: _Block
) -> tuple[Floats, Ints, Ints32]:  # fmt: skip
    """:func:`price` of a block: distance, start and channel."""
    middle: Int
    demand, limit, low, high = block
    nodes, first = len(graph.in_start) - 1, demand.start[low]
    keep = len(limit) > 0
    distance = np.empty(demand.start[high] - first)
    start = np.zeros(len(distance) + 1 if keep else 1, np.int64)
    channel = np.empty(8 * len(distance) + nodes if keep else 0, np.int32)
    forward, backward = new_search(nodes, len(length)), new_search(nodes, len(length))
    order = np.empty(nodes, np.int32)
    level = alike(length)
    size = 0
    for i in range(low, high):
        t, sources = demand.target[i], demand.start[i + 1] - demand.start[i]
        single = _from_both_ends(graph, dags, sources)
        if not single:
            reached = tree(graph, dags, t, length, level, backward, order)
        for k in range(demand.start[i], demand.start[i + 1]):
            s, j, middle = demand.source[k], k - first, -1
            bound = limit[k] if keep else np.inf
            if single:
                distance[j], middle = shortest_path(out, into, s, t, bound, forward, backward)
            elif backward.distance[s] < bound:
                distance[j], middle = backward.distance[s], s
            else:
                distance[j] = bound
            if not keep:
                continue
            if middle >= 0:
                if size + nodes > len(channel):
                    channel = np.concatenate((channel, np.empty_like(channel)))
                size = write_path(graph, s, t, middle, forward, backward, channel, size)
            start[j + 1] = size
        if not single:
            reset_search(backward, reached)
    return distance, start, channel[:size].copy()


@kernel
def _shorten(graph: Graph, length: Floats, before: Floats, distance: Floats, toward: Ints32) -> None:
    """One round of Bellman and Ford: distances over one more channel, and the first of it, -1 where it is no shorter.

    before: float64 [nodes], distances of the last round.
    """
    for v in range(len(before)):
        best, by = before[v], np.int32(-1)
        for a in range(graph.out_start[v], graph.out_start[v + 1]):
            if length[a] + before[graph.dst[a]] < best:
                best, by = length[a] + before[graph.dst[a]], np.int32(a)
        distance[v], toward[v] = best, by


@njit
def _within_hops(graph: Graph, hops: int, length: Floats, block: _Block) -> tuple[Floats, Ints, Ints32]:
    """:func:`price` over at most ``hops`` channels, by Bellman and Ford's rounds; otherwise like :func:`_direct`."""
    demand, limit, low, high = block
    nodes, first = len(graph.in_start) - 1, demand.start[low]
    keep = len(limit) > 0
    distance = np.empty(demand.start[high] - first)
    start = np.zeros(len(distance) + 1 if keep else 1, np.int64)
    channel = np.empty(hops * len(distance) if keep else 0, np.int32)
    distances, toward = np.empty((hops + 1, nodes)), np.empty((hops + 1, nodes), np.int32)
    size = 0
    for i in range(low, high):
        distances[0] = np.inf
        distances[0, demand.target[i]] = 0.0
        for h in range(1, hops + 1):
            _shorten(graph, length, distances[h - 1], distances[h], toward[h])
        for k in range(demand.start[i], demand.start[i + 1]):
            v, j = demand.source[k], k - first
            distance[j] = distances[hops, v]
            if not keep:
                continue
            start[j + 1] = size
            if distance[j] >= limit[k]:
                distance[j] = limit[k]
                continue
            for h in range(hops, 0, -1):
                a = toward[h, v]
                if a >= 0:
                    channel[size] = a
                    size += 1
                    v = graph.dst[a]
            start[j + 1] = size
    return distance, start, channel[:size].copy()


class Legs(NamedTuple):
    """Shortest legs to the intermediate switches, numbered i.

    row: int64 [nodes], the number i of a switch. near: float64 [nodes, i], distance to each. far: float64 [i, i'], from
    i' to i. channel: int32 [i, nodes], the next channel toward i.
    """

    row: Ints
    near: Floats
    far: Floats
    channel: Ints32


def _legs(graph: Graph, dags: Dags, length: Floats, single_threaded: bool) -> Legs:
    nodes, count = len(graph.in_start) - 1, len(dags.via)
    distance, channel = np.full((count, nodes), np.inf), np.full((count, nodes), -1, np.int32)
    _in_blocks(lambda low, high: _trees(graph, dags, length, low, high, distance, channel), count, single_threaded)
    row = np.full(nodes, -1)
    row[dags.via] = np.arange(count)
    return Legs(row, np.ascontiguousarray(distance.T), np.ascontiguousarray(distance[:, dags.via]), channel)


@njit
def _trees(graph: Graph, dags: Dags, length: Floats, low: int, high: int, distance: Floats, channel: Ints32) -> None:
    """Fill rows low:high of distance and channel with the trees toward these intermediate switches."""
    nodes = len(graph.in_start) - 1
    search, order = new_search(nodes, len(length)), np.empty(nodes, np.int32)
    for i in range(low, high):
        reached = dag_tree(graph, dags, dags.via[i], length, search, order)
        for j in range(reached):
            v = order[j]
            distance[i, v], channel[i, v] = search.distance[v], search.channel[v]
        reset_search(search, reached)


@njit
def _via_switches(graph: Graph, via: Ints, legs: Legs, block: _Block) -> tuple[Floats, Ints, Ints32]:
    """:func:`price` over the intermediate switch with the shortest legs; otherwise like :func:`_direct`."""
    demand, limit, low, high = block
    nodes, first = len(graph.in_start) - 1, demand.start[low]
    keep = len(limit) > 0
    distance = np.empty(demand.start[high] - first)
    start = np.zeros(len(distance) + 1 if keep else 1, np.int64)
    channel = np.empty(8 * len(distance) + 2 * nodes if keep else 0, np.int32)
    size = 0
    for i in range(low, high):
        t = demand.target[i]
        last = legs.row[t]
        far = legs.far[last]
        for k in range(demand.start[i], demand.start[i + 1]):
            s, j, middle = demand.source[k], k - first, -1
            near, best = legs.near[s], limit[k] if keep else np.inf
            for m in range(len(via)):
                if near[m] + far[m] < best:
                    best, middle = near[m] + far[m], m
            distance[j] = best
            if not keep:
                continue
            if middle >= 0:
                if size + 2 * nodes > len(channel):
                    channel = np.concatenate((channel, np.empty_like(channel)))
                size = _follow(graph, legs.channel[middle], s, via[middle], channel, size)
                size = _follow(graph, legs.channel[last], via[middle], t, channel, size)
            start[j + 1] = size
    return distance, start, channel[:size].copy()


@kernel
def _follow(graph: Graph, toward: Ints32, s: int, t: int, channel: Ints32, size: int) -> int:
    """Append the path from s to t by next channels ``toward`` t to channel[:size]; returns the new size."""
    while s != t:
        channel[size] = toward[s]
        s = graph.dst[toward[s]]
        size += 1
    return size
