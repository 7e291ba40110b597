# SPDX-License-Identifier: Apache-2.0
"""The loopless paths of single pairs: all of at most so many channels, or some of the shortest."""

import numpy as np

from flitlab.models.arrays import Int, Integers, Ints, Ints32
from flitlab.models.jit import kernel, njit
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.rules.draw import PATH_TIES, draw
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


def paths_bounded(
    topology: Topology, source: Ints, target: Ints, hops: int, most: int, room: int
) -> PathSet | None:  # fmt: skip
    """All loopless paths of at most ``hops`` channels of each pair, int64 [pairs] different switches.

    None where some pair has more than ``most`` of them, or all together more than ``room``. Takes time proportional to
    the number of paths: the search goes nowhere from where the target is too far.
    """
    toward = np.ascontiguousarray(distances(topology).T)
    counts = np.zeros(len(source), np.int64)
    lengths, channel = np.zeros(0, np.int64), np.zeros(0, np.int32)
    ends = (source, target, hops, most, room, topology.out_start, topology.dst, toward)
    size = _list(*ends, counts, lengths, channel)
    if size < 0:
        return None
    lengths, channel = np.empty(counts.sum(), np.int64), np.empty(size, np.int32)
    _list(*ends, counts, lengths, channel)
    return PathSet(starts(counts), starts(lengths), channel)


@njit
def _list(
    source: Ints,
    target: Ints,
    hops: int,
    most: int,
    room: int,
    out_start: Integers,
    dst: Integers,
    toward: Integers,
    counts: Ints,
    lengths: Ints,
    channel: Ints32,
) -> int:
    """Fill counts [pairs] and, if they have elements, lengths [paths] and channel; channels in all, -1: too many."""
    n = len(out_start) - 1
    visited = np.zeros(n, np.bool_)
    path, after, at = np.empty(hops, np.int64), np.empty(hops + 1, np.int64), np.empty(hops + 1, np.int64)
    total, size = 0, 0
    for i in range(len(source)):
        s, t, found = source[i], target[i], 0
        far = toward[t]
        for length in range(far[s], hops + 1):
            depth = 0
            at[0], after[0], visited[s] = s, out_start[s], True
            while depth >= 0:
                v = at[depth]
                if after[depth] == out_start[v + 1] or found > most:
                    visited[v] = False
                    depth -= 1
                    continue
                c = after[depth]
                after[depth] += 1
                w = dst[c]
                if visited[w] or far[w] > length - depth - 1:
                    continue
                path[depth] = c
                if w != t:
                    depth += 1
                    at[depth], after[depth], visited[w] = w, out_start[w], True
                elif depth + 1 == length:
                    if len(lengths) > 0:
                        lengths[total + found] = length
                        for h in range(length):
                            channel[size + h] = path[h]
                    size += length
                    found += 1
        counts[i] = found
        total += found
        if found > most or total > room:
            return -1
    return size


def some_shortest(topology: Topology, source: Ints, target: Ints, most: int, seed: int) -> PathSet:
    """Shortest paths of each pair, int64 [pairs] different switches: those met in ``most`` random descents."""
    toward = np.ascontiguousarray(distances(topology).T)
    pair = source * topology.switches + target
    length = toward[target, source].astype(np.int64)
    channel = np.empty(most * int(length.sum()), np.int32)
    counts = np.zeros(len(source), np.int64)
    size = _descend(pair, topology.out_start, topology.dst, toward, most, seed, counts, channel)
    return PathSet(starts(counts), starts(np.repeat(length, counts)), channel[:size].copy())


@njit
def _descend(
    pair: Ints,
    out_start: Integers,
    dst: Integers,
    toward: Integers,
    most: int,
    seed: int,
    counts: Ints,
    channel: Ints32,
) -> int:
    """Fill counts [pairs] and channel with the different paths of ``most`` descents each; channels in all."""
    n, size = len(out_start) - 1, 0
    for i in range(len(pair)):
        v: Int
        s, t = pair[i] // n, pair[i] % n
        far, length, first = toward[t], int(toward[t, s]), size
        for k in range(most):
            word = draw(seed, PATH_TIES, pair[i], k)
            v = s
            for h in range(length):
                ways = 0
                for c in range(out_start[v], out_start[v + 1]):
                    ways += far[dst[c]] < far[v]
                skip = word % ways
                word //= ways
                for c in range(out_start[v], out_start[v + 1]):
                    if far[dst[c]] < far[v]:
                        if skip == 0:
                            channel[size + h] = c
                            v = dst[c]
                            break
                        skip -= 1
            if not _known(channel, first, size, length):
                size += length
                counts[i] += 1
    return size


@kernel
def _known(channel: Ints32, first: int, size: int, length: int) -> bool:
    """Whether the path channel[size:size + length] is one of those from ``first`` on."""
    for begin in range(first, size, length):
        same = True
        for h in range(length):
            same &= channel[begin + h] == channel[size + h]
        if same:
            return True
    return False
