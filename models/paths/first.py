# SPDX-License-Identifier: Apache-2.0
"""The first of the shortest loopless paths in the order of switch numbers."""

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Bools, Integers, Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.paths.search import search_to
from flitlab.models.topology.graph import Topology

STEPS_MOST = 10**8
"""Channels that may be tried for one pair of switches."""


@njit
def _along(at: Ints, length: int, path: Ints32, out_start: Integers, dst: Integers, found: Ints32, number: int) -> int:
    """Add the ways along the first of parallel channels, ``path``, and along the others, to the rows of ``found``."""
    way = path[:length].copy()
    while number < len(found):
        for i in range(length):
            found[number, i] = way[i]
        number += 1
        i = length - 1
        while i >= 0:
            c = way[i] + 1
            if c < out_start[at[i] + 1] and dst[c] == dst[way[i]]:
                way[i] = c
                break
            way[i] = path[i]
            i -= 1
        if i < 0:
            break
    return number


@njit
def _first(
    source: int,
    target: int,
    length: int,
    steps: int,
    out_start: Integers,
    dst: Integers,
    hops: Integers,
    visited: Bools,
    at: Ints,
    following: Ints,
    path: Ints32,
    found: Ints32,
) -> tuple[int, int]:
    """(number of loopless paths of so many channels, the first ones, put into rows of ``found``; steps left).

    A depth-first search that takes channels in their order, and only those from which the target is near enough.
    hops: distances to the target. visited: bool [switches], all False before and after.
    """
    number = depth = 0
    at[0], following[0] = source, out_start[source]
    visited[source] = True
    while depth >= 0 and number < len(found) and steps > 0:
        v, c = at[depth], following[depth]
        if c == out_start[v + 1]:
            visited[v] = False
            depth -= 1
            continue
        following[depth] += 1
        steps -= 1
        u, left = dst[c], length - depth - 1
        parallel = c > out_start[v] and dst[c - 1] == u
        if parallel or visited[u] or hops[u] < 0 or hops[u] > left or (u == target and left > 0):
            continue
        path[depth] = c
        if left > 0:
            depth += 1
            at[depth], following[depth] = u, out_start[u]
            visited[u] = True
        else:
            number = _along(at, length, path, out_start, dst, found, number)
    for i in range(depth + 1):
        visited[at[i]] = False
    return number, steps


@njit
def _first_to(
    target: int,
    sources: Integers,
    k: int,
    most: int,
    out_start: Integers,
    dst: Integers,
    in_start: Integers,
    in_tail: Integers,
) -> tuple[Ints, Ints, Ints32]:
    """(paths of each source, -1 for too many steps; length of each path; channels of all paths)."""
    n = len(out_start) - 1
    hops = np.empty(n, np.int64)
    search_to(target, in_start, in_tail, hops, np.empty(n, np.int64))
    visited, at, following = np.zeros(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64)
    path, found = np.empty(n, np.int32), np.empty((k, n), np.int32)
    counts, lengths = np.zeros(len(sources), np.int64), np.empty(len(sources) * k, np.int64)
    flat = np.empty(1024, np.int32)
    paths = filled = 0
    for index in range(len(sources)):
        source = sources[index]
        if source == target or hops[source] < 0:
            continue
        steps, length = most, hops[source]
        while counts[index] < k and length < n:
            rows = found[counts[index] :]
            number, steps = _first(
                source, target, length, steps, out_start, dst, hops, visited, at, following, path, rows
            )
            if steps <= 0:
                counts[index] = -1
                return counts, lengths[:paths].copy(), flat[:filled].copy()
            while filled + number * length > len(flat):
                longer = np.empty(2 * len(flat), np.int32)
                for i in range(filled):
                    longer[i] = flat[i]
                flat = longer
            for p in range(number):
                for i in range(length):
                    flat[filled + i] = found[counts[index] + p, i]
                filled += length
                lengths[paths] = length
                paths += 1
            counts[index] += number
            length += 1
    return counts, lengths[:paths].copy(), flat[:filled].copy()


def first_shortest_to(topology: Topology, target: int, sources: npt.ArrayLike, k: int) -> PathSet:
    """The k shortest loopless paths from each of ``sources`` (int64 [pairs]) to one switch, as a listing has them.

    Of equally long paths the first by the numbers of the switches they visit. A pair has fewer than k where no more
    exist, none if source and target are the same. Raises ``ValueError`` if that would take too many steps, as it does
    where a pair has few paths and the graph many.
    """
    sources = np.asarray(sources, np.int64)
    counts, lengths, channel = _first_to(
        target, sources, k, STEPS_MOST,
        topology.out_start, topology.dst, topology.in_start, topology.src[topology.in_channels],
    )  # fmt: skip
    if (counts < 0).any():
        source = int(sources[int(np.argmax(counts < 0))])
        raise ValueError(f"more than {STEPS_MOST:.0e} steps in search of {k} paths from {source} to {target}")
    return PathSet(starts(counts), starts(lengths), channel)
