# SPDX-License-Identifier: Apache-2.0
"""Loopless paths of single pairs: all up to a length, or a sample of the shortest."""

import numpy as np

from flitlab.models.arrays import Int, Integers, Ints, Ints32
from flitlab.models.jit import kernel, njit
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.rules.draw import PATH_TIES, draw
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


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
    counts = np.zeros(len(src_switch), np.int64)
    lengths, channel = np.zeros(0, np.int64), np.zeros(0, np.int32)
    ends = (src_switch, dst_switch, max_hops, max_per_pair, max_total, topology.out_start, topology.dst, toward)
    size = _enumerate_paths(*ends, counts, lengths, channel)
    if size < 0:
        return None
    lengths, channel = np.empty(counts.sum(), np.int64), np.empty(size, np.int32)
    _enumerate_paths(*ends, counts, lengths, channel)
    return PathSet(starts(counts), starts(lengths), channel)


@njit
def _enumerate_paths(
    src_switch: Ints,
    dst_switch: Ints,
    max_hops: int,
    max_per_pair: int,
    max_total: int,
    out_start: Integers,
    dst: Integers,
    toward: Integers,
    counts: Ints,
    lengths: Ints,
    channel: Ints32,
) -> int:
    """Fill counts [pairs] and, if they have elements, lengths [paths] and channel; return the number of channels, or -1
    if a limit is exceeded.

    The parameters are those of :func:`all_paths_within`. toward: [switches, switches], toward[t, v] are the hops from v
    to t.
    """
    n = len(out_start) - 1
    visited = np.zeros(n, np.bool_)
    path, next_channel, switch_at = (
        np.empty(max_hops, np.int64),
        np.empty(max_hops + 1, np.int64),
        np.empty(max_hops + 1, np.int64),
    )
    total, size = 0, 0
    for i in range(len(src_switch)):
        s, t, count = src_switch[i], dst_switch[i], 0
        hops_left = toward[t]
        for length in range(hops_left[s], max_hops + 1):
            depth = 0
            switch_at[0], next_channel[0], visited[s] = s, out_start[s], True
            while depth >= 0:
                v = switch_at[depth]
                if next_channel[depth] == out_start[v + 1] or count > max_per_pair:
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
                elif depth + 1 == length:
                    if len(lengths) > 0:
                        lengths[total + count] = length
                        for h in range(length):
                            channel[size + h] = path[h]
                    size += length
                    count += 1
        counts[i] = count
        total += count
        if count > max_per_pair or total > max_total:
            return -1
    return size


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
            word = draw(seed, PATH_TIES, pair[i], k)
            v = s
            for h in range(length):
                candidates = 0
                for c in range(out_start[v], out_start[v + 1]):
                    candidates += hops_left[dst[c]] < hops_left[v]
                skip = word % candidates
                word //= candidates
                for c in range(out_start[v], out_start[v + 1]):
                    if hops_left[dst[c]] < hops_left[v]:
                        if skip == 0:
                            channel[size + h] = c
                            v = dst[c]
                            break
                        skip -= 1
            if not _is_listed(channel, first, size, length):
                size += length
                counts[i] += 1
    return size


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
