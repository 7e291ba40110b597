# SPDX-License-Identifier: Apache-2.0
"""The k shortest loopless paths between switches, and the equal-cost ones among them."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Bools, Floats, Integers, Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.paths.pathset import PathSet, concatenate, starts
from flitlab.models.paths.search import search_to
from flitlab.models.rules.draw import PATH_TIES, draw
from flitlab.models.topology.graph import Topology

_UNLIMITED = 1 << 40


@njit
def _uniform(draws: Ints) -> float:
    """The next draw of a pair of switches, in (0, 1]; draws: int64 [4], seed, source, target, and draws made so far."""
    word = draw(draws[0], PATH_TIES, draws[1], draws[2] << 32 | draws[3])
    draws[3] += 1
    return (word + 1) * 2.0**-63


@njit
def _count_detours(
    start: int,
    dst_switch: int,
    limit: int,
    outward: tuple[Integers, Integers],
    hops: Integers,
    marks: tuple[Bools, Bools],
    search: tuple[Ints, Ints, Floats],
) -> tuple[int, int]:
    """Count the shortest paths from ``start`` to the target; (their length, or more than ``limit``, switches reached).

    Breadth-first, among the switches that can lie on a path of some length, which is raised until there is one. Then
    ``number[target]`` is the number of paths.

    marks: switches that may not be visited and channels that may not be taken. search: ``reached``, int64 [switches],
    the switches reached; ``level``, int64 [switches], channels from the start to each, -1 for all others;
    ``number``, float64 [switches], of the shortest paths to each. The other parameters are those of :func:`_yen`.
    """
    (out_start, dst), (forbidden, banned) = outward, marks
    reached, level, number = search
    length = hops[start]
    while length <= limit:
        reached[0], level[start], number[start] = start, 0, 1.0
        done, reached_count, next_length = 0, 1, len(hops)
        while done < reached_count:
            v = reached[done]
            done += 1
            step = level[v] + 1
            for c in range(out_start[v], out_start[v + 1]):
                u = dst[c]
                if step + hops[u] > length:
                    if step + hops[u] < next_length and not forbidden[u] and not banned[c]:
                        next_length = step + hops[u]
                    continue
                if forbidden[u] or banned[c]:
                    continue
                if level[u] < 0:
                    level[u], number[u] = step, 0.0
                    reached[reached_count] = u
                    reached_count += 1
                if level[u] == step:
                    number[u] += number[v]
        if level[dst_switch] >= 0:
            return length, reached_count
        _reset_search(reached_count, search)
        length = next_length
    return limit + 1, 0


@njit
def _reset_search(reached_count: int, search: tuple[Ints, Ints, Floats]) -> None:
    """Make ``search`` ready for another search after one that has reached ``reached_count`` switches."""
    for i in range(reached_count):
        search[1][search[0][i]] = -1


@njit
def _draw_detour(
    dst_switch: int,
    last: int,
    inward: tuple[Integers, Integers, Integers],
    banned: Bools,
    search: tuple[Ints, Ints, Floats],
    draws: Ints,
    path: Ints32,
) -> None:
    """Draw one of the paths that :func:`_count_detours` has counted, with equal probability.

    last: its channels become those of ``path`` before this place. The other parameters are those of :func:`_yen`.
    """
    in_start, in_tail, in_channel = inward
    _, level, number = search
    u = dst_switch
    while level[u] > 0:
        remaining, previous = _uniform(draws) * number[u], u
        for i in range(in_start[u], in_start[u + 1]):
            v = in_tail[i]
            if level[v] == level[u] - 1 and not banned[in_channel[i]]:
                previous, path[last - 1] = v, in_channel[i]
                remaining -= number[v]
                if remaining <= 0:
                    break
        u = previous
        last -= 1


@njit
def _copy(source: Integers, into: Integers, first: int, last: int) -> None:
    """into[first:last] = origin[first:last], and much quicker to compile."""
    for i in range(first, last):
        into[i] = source[i]


@njit
def _ban(
    channels_of: Ints32, length: Ints, accepted_count: int, i: int, prefix: Ints32, banned: Bools, value: bool
) -> None:
    """Marks the channel after the first i of every accepted path that begins like ``prefix``."""
    for p in range(accepted_count):
        same = length[p] > i
        for j in range(i):
            same = same and channels_of[p, j] == prefix[j]
        if same:
            banned[channels_of[p, i]] = value


@njit
def _precedes(length: int, key: float, other_length: int, other_key: float) -> bool:
    """Whether one candidate comes before another: it is shorter, or as long and has the smaller key."""
    return length < other_length or (length == other_length and key < other_key)


@njit
def _first_candidate(length: Ints, key: Floats) -> int:
    """Slot of the candidate that comes first; -1 without any."""
    slot = -1
    for i in range(len(length)):
        if key[i] >= 0 and (slot < 0 or _precedes(length[i], key[i], length[slot], key[slot])):
            slot = i
    return slot


@njit
def _last_candidate(length: Ints, key: Floats) -> int:
    """Slot of the candidate that comes last; -1 without any."""
    slot = -1
    for i in range(len(length)):
        if key[i] >= 0 and (slot < 0 or _precedes(length[slot], key[slot], length[i], key[i])):
            slot = i
    return slot


@njit
def _count_candidates(key: Floats) -> int:
    """How many candidates there are."""
    count = 0
    for value in key:
        count += value >= 0
    return count


@njit
def _free_slot(key: Floats) -> int:
    """The first slot without a candidate, of some."""
    slot = 0
    while key[slot] >= 0:
        slot += 1
    return slot


@njit
def _add_candidate(
    v: int,
    dst_switch: int,
    prefix: Ints32,
    max_candidates: int,
    limit: int,
    parent: tuple[int, float],
    outward: tuple[Integers, Integers],
    inward: tuple[Integers, Integers, Integers],
    hops: Integers,
    marks: tuple[Bools, Bools],
    search: tuple[Ints, Ints, Floats],
    draws: Ints,
    candidates: tuple[Ints32, Ints, Ints, Floats],
) -> None:
    """Add the candidate of all paths that begin with ``prefix``, up to switch v, and go on by no banned channel.

    needed: how many candidates may be kept. parent: length and key of the path that has been accepted last.
    The other parameters are those of :func:`_yen`.
    """
    candidate, length, deviation, key = candidates
    done = len(prefix)
    full = _count_candidates(key) == max_candidates
    last = _last_candidate(length, key)
    max_length = min(limit, length[last]) if full and last >= 0 else limit
    if max_candidates == 0 or done + hops[v] > max_length:
        return
    detour_length, reached_count = _count_detours(v, dst_switch, max_length - done, outward, hops, marks, search)
    total = done + detour_length
    if total > max_length:
        return
    candidate_key = (parent[1] if total == parent[0] else 0.0) - math.log(_uniform(draws)) / search[2][dst_switch]
    if not full or _precedes(total, candidate_key, length[last], key[last]):
        slot = last if full else _free_slot(key)
        _copy(prefix, candidate[slot], 0, done)
        _draw_detour(dst_switch, total, inward, marks[1], search, draws, candidate[slot])
        length[slot], deviation[slot], key[slot] = total, done, candidate_key
    _reset_search(reached_count, search)


@njit
def _yen(
    src_switch: int,
    dst_switch: int,
    limit: int,
    outward: tuple[Integers, Integers],
    inward: tuple[Integers, Integers, Integers],
    hops: Integers,
    marks: tuple[Bools, Bools],
    search: tuple[Ints, Ints, Floats],
    draws: Ints,
    accepted: tuple[Ints32, Ints],
    candidates: tuple[Ints32, Ints, Ints, Floats],
) -> int:
    """Yen's algorithm for one pair; the number of paths found, no longer than ``limit``.

    A candidate stands for all paths that begin like it up to where it deviates from its parent, and go on by none of
    the channels that accepted paths take there: it is one of the shortest of them (Lawler). No more candidates are kept
    than may still be needed.

    Of equally long paths those with the smallest keys are accepted. The keys of all paths are independent times of
    exponential distribution and mean 1. The first of n of these comes after a time of mean 1 / n, at each of the n
    with equal probability, and from then on the others have the same distribution as at the beginning. So the key of
    a candidate is drawn from the number of the shortest paths that it stands for.

    limit: below the number of switches. outward: ``out_start`` and ``dst`` of the topology. inward: the channels to
    switch v are in_channel[in_start[v]:in_start[v + 1]], from the switches in_tail: in_start, in_tail, in_channel.
    hops: int64 [switches], distances to the target. marks: bool [switches] and bool [channels], all False before and
    after. search: see :func:`_count_detours`. draws: see :func:`_uniform`. accepted: int32 [k, switches] and int64 [k],
    the paths and their lengths. waiting: the same of candidates, int64 [k] the place of deviation and float64 [k] the
    key of each, -1 for a free slot.
    """
    forbidden, banned = marks
    path, path_length = accepted
    candidate, length, deviation, key = candidates
    k = len(path_length)
    key[:] = -1
    parent = 0, 0.0
    _add_candidate(
        src_switch, dst_switch, path[0, :0], k, limit, parent, outward, inward, hops, marks, search, draws, candidates
    )
    for accepted_count in range(k):
        slot = _first_candidate(length, key)
        if slot < 0:
            return accepted_count
        new, deviation_index, parent = path[accepted_count], deviation[slot], (length[slot], key[slot])
        path_length[accepted_count] = length[slot]
        _copy(candidate[slot], new, 0, length[slot])
        key[slot] = -1
        max_candidates = k - accepted_count - 1
        if _count_candidates(key) > max_candidates:
            key[_last_candidate(length, key)] = -1
        v = src_switch
        for i in range(path_length[accepted_count]):
            if i >= deviation_index:
                _ban(path, path_length, accepted_count + 1, i, new, banned, True)
                _add_candidate(
                    v,
                    dst_switch,
                    new[:i],
                    max_candidates,
                    limit,
                    parent,
                    outward,
                    inward,
                    hops,
                    marks,
                    search,
                    draws,
                    candidates,
                )
                _ban(path, path_length, accepted_count + 1, i, new, banned, False)
            forbidden[v] = True
            v = outward[1][new[i]]
        v = src_switch
        for i in range(path_length[accepted_count]):
            forbidden[v] = False
            v = outward[1][new[i]]
    return k


@njit
def _k_shortest_to(
    dst_switch: int,
    src_switches: Integers,
    k: int,
    extra: int,
    seed: int,
    outward: tuple[Integers, Integers],
    inward: tuple[Integers, Integers, Integers],
) -> tuple[Ints, Ints, Ints32]:
    """(number of paths of each source, length of each path, channels of all paths)."""
    n = len(outward[0]) - 1
    hops = np.empty(n, np.int64)
    search_to(dst_switch, inward[0], inward[1], hops, np.empty(n, np.int64))
    hops[hops < 0] = n
    marks = np.zeros(n, np.bool_), np.zeros(len(outward[1]), np.bool_)
    search = np.empty(n, np.int64), np.full(n, -1, np.int64), np.empty(n)
    accepted = np.empty((k, n), np.int32), np.empty(k, np.int64)
    candidates = np.empty((k, n), np.int32), np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k)
    counts, lengths = np.zeros(len(src_switches), np.int64), np.empty(len(src_switches) * k, np.int64)
    flat = np.empty(1024, np.int32)
    paths = filled = 0
    for index in range(len(src_switches)):
        src_switch = src_switches[index]
        if src_switch == dst_switch or hops[src_switch] == n:
            continue
        limit, draws = min(hops[src_switch] + extra, n - 1), np.array([seed, src_switch, dst_switch, 0])
        counts[index] = _yen(
            src_switch, dst_switch, limit, outward, inward, hops, marks, search, draws, accepted, candidates
        )
        for p in range(counts[index]):
            lengths[paths] = accepted[1][p]
            if filled + lengths[paths] > len(flat):
                longer = np.empty(2 * len(flat) + n, np.int32)
                _copy(flat, longer, 0, filled)
                flat = longer
            for i in range(lengths[paths]):
                flat[filled + i] = accepted[0][p, i]
            filled += lengths[paths]
            paths += 1
    return counts, lengths[:paths].copy(), flat[:filled].copy()


def k_shortest_to(
    topology: Topology, dst_switch: int, src_switches: npt.ArrayLike, k: int, *, extra: int | None = None, seed: int = 0
) -> PathSet:
    """The k shortest loopless paths from each of ``src_switches`` (int64 [pairs]) to one switch.

    extra: only paths at most so many hops longer than the shortest; 0 gives the equal-cost paths. A pair has
    fewer than k paths where no more exist, none if source and target are the same. Which of several paths of
    equal length are among the k is drawn from the seed for each pair, every choice of them with equal probability;
    other pairs asked for along with it play no part.

    Source: Yen, Management Science 17, 1971, doi:10.1287/mnsc.17.11.712; Lawler, Management Science 18, 1972,
    doi:10.1287/mnsc.18.7.401.
    """
    if k < 1:
        raise ValueError("k must be at least 1")
    counts, lengths, channel = _k_shortest_to(
        dst_switch, np.asarray(src_switches, np.int64), k, _UNLIMITED if extra is None else extra, seed,
        (topology.out_start, topology.dst),
        (topology.in_start, topology.src[topology.in_channels], topology.in_channels),
    )  # fmt: skip
    return PathSet(starts(counts), starts(lengths), channel)


def k_shortest_paths(
    topology: Topology, pairs: npt.ArrayLike, k: int, *, extra: int | None = None, seed: int = 0
) -> PathSet:
    """The k shortest loopless paths of each pair (source, target); see :func:`k_shortest_to`."""
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    order = np.argsort(pairs[:, 1], kind="stable")
    dst_switches, first = np.unique(pairs[order, 1], return_index=True)
    groups = np.split(pairs[order, 0], first[1:])
    sets = [
        k_shortest_to(topology, dst_switch, src_switches, k, extra=extra, seed=seed)
        for dst_switch, src_switches in zip(
            dst_switches.tolist(), groups, strict=False
        )  # one empty group if there are no pairs
    ]
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return concatenate(sets, position)


def all_k_shortest(topology: Topology, k: int, *, extra: int | None = None, seed: int = 0) -> Iterator[PathSet]:
    """One set for each target 0, 1, …, with all other switches as sources, in order."""
    switches = np.arange(topology.switches)
    for dst_switch in range(topology.switches):
        yield k_shortest_to(topology, dst_switch, np.delete(switches, dst_switch), k, extra=extra, seed=seed)
