# SPDX-License-Identifier: Apache-2.0
"""The k shortest loopless paths that come first in the order of switch numbers."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Bools, Integers, Ints, Ints32
from flitlab.models.jit import device_function, njit
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.paths.search import search_to
from flitlab.models.topology.graph import Topology

MAX_STEPS_PER_PAIR = 10**8
"""Channels that the search may try for one pair of switches."""


class _ShortestPathSearch(NamedTuple):
    """A topology, and the scratch of a depth-first search for paths in it.

    out_start, dst: as in the topology. hops: int64 [switches], distances to the destination, -1 without a path.
    visited: bool [switches], all False before and after. switch_at, next_channel: int64 [switches], the switch, and the
    channel to try next, at each depth. path: int32 [switches], the channels taken, the first of each parallel group.
    variant: int32 [switches], the same over others of the groups.
    """

    out_start: Integers
    dst: Integers
    hops: Ints
    visited: Bools
    switch_at: Ints
    next_channel: Ints
    path: Ints32
    variant: Ints32


@device_function
def _add_parallel_variants(length: int, search: _ShortestPathSearch, rows: Ints32, count: int) -> int:
    """Add to ``rows`` the path over the first of parallel channels and its variants over the others.

    Parameters
    ----------
    length: hops of the path.
    search: its switches and channels.
    rows: int32 [k, switches], the paths.
    count: number of filled rows.

    Returns
    -------
    The new count.
    """
    out_start, dst, switch_at = search.out_start, search.dst, search.switch_at
    path, variant = search.path, search.variant
    for i in range(length):
        variant[i] = path[i]
    while count < len(rows):
        for i in range(length):
            rows[count, i] = variant[i]
        count += 1
        i = length - 1
        while i >= 0:
            c = variant[i] + 1
            if c < out_start[switch_at[i] + 1] and dst[c] == dst[variant[i]]:
                variant[i] = c
                break
            variant[i] = path[i]
            i -= 1
        if i < 0:
            break
    return count


@device_function
def _first_of_length(
    src_switch: int, dst_switch: int, length: int, steps_left: int, search: _ShortestPathSearch, rows: Ints32
) -> tuple[int, int]:
    """Find loopless paths of exactly ``length`` channels; return (number of filled ``rows``, remaining steps).

    Depth-first search that takes channels in their order, and only channels from which the destination is near enough.

    Parameters
    ----------
    src_switch, dst_switch: ends of the paths.
    length: hops of the paths.
    steps_left: channels that may be tried.
    search: the topology and scratch.
    rows: int32 [k, switches], becomes the paths.
    """
    out_start, dst, hops, visited, switch_at, next_channel, path, _ = search
    count = depth = 0
    switch_at[0], next_channel[0] = src_switch, out_start[src_switch]
    visited[src_switch] = True
    while depth >= 0 and count < len(rows) and steps_left > 0:
        v, c = switch_at[depth], next_channel[depth]
        if c == out_start[v + 1]:
            visited[v] = False
            depth -= 1
            continue
        next_channel[depth] += 1
        steps_left -= 1
        u, hops_left = dst[c], length - depth - 1
        parallel = c > out_start[v] and dst[c - 1] == u
        if parallel or visited[u] or hops[u] < 0 or hops[u] > hops_left or (u == dst_switch and hops_left > 0):
            continue
        path[depth] = c
        if hops_left > 0:
            depth += 1
            switch_at[depth], next_channel[depth] = u, out_start[u]
            visited[u] = True
        else:
            count = _add_parallel_variants(length, search, rows, count)
    for i in range(depth + 1):
        visited[switch_at[i]] = False
    return count, steps_left


@njit
def _first_to(
    dst_switch: int,
    src_switches: Integers,
    k: int,
    max_steps: int,
    out_start: Integers,
    dst: Integers,
    in_start: Integers,
    in_tail: Integers,
) -> tuple[Ints, Ints, Ints32]:
    """Return (paths of each source, -1 if it takes too many steps; length of each path; channels of all paths).

    The parameters are those of :func:`first_shortest_to`. max_steps: channels that may be tried per source.
    """
    n = len(out_start) - 1
    hops = np.empty(n, np.int64)
    search_to(dst_switch, in_start, in_tail, hops, np.empty(n, np.int64))
    search = _ShortestPathSearch(
        out_start, dst, hops, np.zeros(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n, np.int32), np.empty(n, np.int32),
    )  # fmt: skip
    path_rows = np.empty((k, n), np.int32)
    counts, lengths = np.zeros(len(src_switches), np.int64), np.empty(len(src_switches) * k, np.int64)
    flat = np.empty(1024, np.int32)
    paths = filled = 0
    for index in range(len(src_switches)):
        src_switch = src_switches[index]
        if src_switch == dst_switch or hops[src_switch] < 0:
            continue
        steps_left, length = max_steps, hops[src_switch]
        while counts[index] < k and length < n:
            rows = path_rows[counts[index] :]
            count, steps_left = _first_of_length(src_switch, dst_switch, length, steps_left, search, rows)
            if steps_left <= 0:
                counts[index] = -1
                return counts, lengths[:paths].copy(), flat[:filled].copy()
            while filled + count * length > len(flat):
                longer = np.empty(2 * len(flat), np.int32)
                for i in range(filled):
                    longer[i] = flat[i]
                flat = longer
            for p in range(count):
                for i in range(length):
                    flat[filled + i] = path_rows[counts[index] + p, i]
                filled += length
                lengths[paths] = length
                paths += 1
            counts[index] += count
            length += 1
    return counts, lengths[:paths].copy(), flat[:filled].copy()


def first_shortest_to(topology: Topology, dst_switch: int, src_switches: npt.ArrayLike, k: int) -> PathSet:
    """List the k shortest loopless paths from switches to one switch, in order.

    Equally long paths are ordered by the numbers of the switches that they visit. A pair has fewer than k paths where
    no more exist, and none if its ends are the same.

    Parameters
    ----------
    topology: the network.
    dst_switch: end of all paths.
    src_switches: int64 [pairs], their beginnings.
    k: most paths per pair.

    Raises
    ------
    ValueError: a pair takes more than :data:`MAX_STEPS_PER_PAIR` steps, as where it has few paths in a graph with many.
    """
    src_switches = np.asarray(src_switches, np.int64)
    counts, lengths, channel = _first_to(
        dst_switch, src_switches, k, MAX_STEPS_PER_PAIR,
        topology.out_start, topology.dst, topology.in_start, topology.src[topology.in_channels],
    )  # fmt: skip
    if (counts < 0).any():
        src_switch = int(src_switches[int(np.argmax(counts < 0))])
        raise ValueError(
            f"more than {MAX_STEPS_PER_PAIR:.0e} steps in search of {k} paths from {src_switch} to {dst_switch}"
        )
    return PathSet(starts(counts), starts(lengths), channel)
