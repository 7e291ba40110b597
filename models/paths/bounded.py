# SPDX-License-Identifier: Apache-2.0
"""Loopless paths of single pairs: all up to a length, or a sample of the shortest."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Int, Integers, Ints, Ints32
from flitlab.models.jit import device_function, kernel, njit
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.rules.draw import Stream, draw
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


class _LooplessSearch(NamedTuple):
    """A topology, and the scratch of a depth-first search in it.

    out_start, dst: as in the topology. visited: bool [switches], all False before and after. switch_at, next_channel:
    int64 [hops + 1], the switch, and the channel to try next, at each depth. path: int64 [hops], the channels taken.
    """

    out_start: Integers
    dst: Integers
    visited: Bools
    switch_at: Ints
    next_channel: Ints
    path: Ints


class _PathLists(NamedTuple):
    """Paths. counts: int64 [pairs]. lengths: int64 [paths]. channel: int32 [sum of the lengths]."""

    counts: Ints
    lengths: Ints
    channel: Ints32


def all_paths_within(
    topology: Topology, src_switch: Ints, dst_switch: Ints, max_hops: int, max_per_pair: int, max_total: int
) -> PathSet | None:  # fmt: skip
    """List all loopless paths of at most ``max_hops`` channels of each pair.

    The time is proportional to the number of paths: the search skips switches from which the destination is too far.

    Parameters
    ----------
    topology: the network.
    src_switch, dst_switch: int64 [pairs], different switches.
    max_hops: most channels of a path.
    max_per_pair, max_total: limits of the number of paths, of one pair and of all together.

    Returns
    -------
    The paths; None where a limit is exceeded.
    """
    toward = np.ascontiguousarray(distances(topology).T)
    visited, depths = np.zeros(topology.switches, np.bool_), (np.empty(max_hops + 1, np.int64) for _ in range(3))
    walk = _LooplessSearch(topology.out_start, topology.dst, visited, *depths)
    counted = _PathLists(np.zeros(len(src_switch), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))
    ends = (src_switch, dst_switch, max_hops, max_per_pair, max_total, toward, walk)
    size = _enumerate_paths(*ends, counted)
    if size < 0:
        return None
    listed = _PathLists(counted.counts, np.empty(counted.counts.sum(), np.int64), np.empty(size, np.int32))
    _enumerate_paths(*ends, listed)
    return PathSet(starts(listed.counts), starts(listed.lengths), listed.channel)


@njit
def _enumerate_paths(
    src_switch: Ints,
    dst_switch: Ints,
    max_hops: int,
    max_per_pair: int,
    max_total: int,
    toward: Integers,
    walk: _LooplessSearch,
    listed: _PathLists,
) -> int:
    """Fill ``listed``; return the number of channels, or -1 if a limit is exceeded.

    The parameters are those of :func:`all_paths_within`. toward: [switches, switches], toward[t, v] are the hops from v
    to t. If ``lengths`` and ``channel`` are empty, the paths are only counted.
    """
    total, size = 0, 0
    for i in range(len(src_switch)):
        s, t, count = src_switch[i], dst_switch[i], 0
        for length in range(toward[t, s], max_hops + 1):
            same_length = _paths_of_length(
                s, t, length, max_per_pair - count, toward[t], walk, listed.channel[min(size, len(listed.channel)) :]
            )
            for path in range(min(same_length, len(listed.lengths))):
                listed.lengths[total + count + path] = length
            count += same_length
            size += same_length * length
        listed.counts[i] = count
        total += count
        if count > max_per_pair or total > max_total:
            return -1
    return size


@device_function
def _paths_of_length(
    s: Int, t: Int, length: int, most: int, hops_left: Integers, walk: _LooplessSearch, channel: Ints32
) -> int:  # fmt: skip
    """Count the loopless paths from s to t of exactly ``length`` channels, and write them unless ``channel`` is empty.

    The search ends where there are more than ``most``. hops_left: [switches], hops to t.
    """
    out_start, dst, visited, switch_at, next_channel, path = walk
    count = depth = 0
    switch_at[0], next_channel[0], visited[s] = s, out_start[s], True
    while depth >= 0:
        v = switch_at[depth]
        if next_channel[depth] == out_start[v + 1] or count > most:
            visited[v] = False
            depth -= 1
            continue
        c = next_channel[depth]
        next_channel[depth] += 1
        w = dst[c]
        if visited[w] or hops_left[w] > length - depth - 1:
            continue
        path[depth] = c
        if w != t:
            depth += 1
            switch_at[depth], next_channel[depth], visited[w] = w, out_start[w], True
            continue
        if depth + 1 == length:
            if len(channel) > 0:
                for h in range(length):
                    channel[count * length + h] = path[h]
            count += 1
    return count


def sampled_shortest(topology: Topology, src_switch: Ints, dst_switch: Ints, descents: int, seed: int) -> PathSet:
    """Sample shortest paths of each pair by random descents toward the destination.

    Parameters
    ----------
    topology: the network.
    src_switch, dst_switch: int64 [pairs], different switches.
    descents: random descents per pair; a path that several descents take is listed once.
    seed: seed of the draws.
    """
    toward = np.ascontiguousarray(distances(topology).T)
    pair = src_switch * topology.switches + dst_switch
    length = toward[dst_switch, src_switch].astype(np.int64)
    channel = np.empty(descents * int(length.sum()), np.int32)
    counts = np.zeros(len(src_switch), np.int64)
    size = _sample_paths(pair, topology.out_start, topology.dst, toward, descents, seed, counts, channel)
    return PathSet(starts(counts), starts(np.repeat(length, counts)), channel[:size].copy())


@njit
def _sample_paths(
    pair: Ints,
    out_start: Integers,
    dst: Integers,
    toward: Integers,
    descents: int,
    seed: int,
    counts: Ints,
    channel: Ints32,
) -> int:
    """Fill counts [pairs] and channel with the distinct paths of ``descents`` descents each; return the number of
    channels.

    pair: int64 [pairs], src_switch * switches + dst_switch. toward: as in :func:`_enumerate_paths`.
    """
    n, size = len(out_start) - 1, 0
    for i in range(len(pair)):
        v: Int
        s, t = pair[i] // n, pair[i] % n
        hops_left, length, first = toward[t], int(toward[t, s]), size
        for k in range(descents):
            word = draw(seed, Stream.PATH_TIES, pair[i], k)
            v = s
            for h in range(length):
                c, word = _draw_descent(v, word, hops_left, out_start, dst)
                channel[size + h] = c
                v = dst[c]
            if not _is_listed(channel, first, size, length):
                size += length
                counts[i] += 1
    return size


@device_function
def _draw_descent(v: Int, word: int, hops_left: Integers, out_start: Integers, dst: Integers) -> tuple[int, int]:
    """A channel out of v to a switch with fewer hops left, drawn by ``word``, and the word for the next draw."""
    candidates = 0
    for c in range(out_start[v], out_start[v + 1]):
        candidates += hops_left[dst[c]] < hops_left[v]
    skip = word % candidates
    for c in range(out_start[v], out_start[v + 1]):
        if hops_left[dst[c]] < hops_left[v]:
            if skip == 0:
                return c, word // candidates
            skip -= 1
    return -1, word


@kernel
def _is_listed(channel: Ints32, first: int, size: int, length: int) -> bool:
    """Whether the path channel[size:size + length] equals a path that begins at ``first`` or later."""
    for begin in range(first, size, length):
        same = True
        for h in range(length):
            same &= channel[begin + h] == channel[size + h]
        if same:
            return True
    return False
