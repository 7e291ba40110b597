# SPDX-License-Identifier: Apache-2.0
"""The k shortest loopless paths between switches, including the equal-cost paths."""

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
    """Draw the next number of a pair of switches, in (0, 1].

    draws: int64 [4], the seed, the source switch, the destination switch, and the number of draws so far.
    """
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
    """Count the shortest paths from ``start`` to the destination that avoid marked switches and channels.

    Breadth-first search among the switches that can lie on a path of some length, which grows until a path exists. Then
    ``number[dst_switch]`` is the number of paths.

    Parameters
    ----------
    start: first switch.
    dst_switch, outward, hops: as in :func:`_yen`.
    limit: most hops.
    marks: bool [switches], excluded switches, and bool [channels], excluded channels.
    search: ``reached``, int64 [switches], the reached switches; ``level``, int64 [switches], hops from the start, -1
        for all others; ``number``, float64 [switches], number of shortest paths to each.

    Returns
    -------
    (hops, number of reached switches); more than ``limit`` and 0 without a path.
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
    """Reset ``search`` after a search that reached ``reached_count`` switches."""
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
    """Draw one of the paths that :func:`_count_detours` counted, uniformly.

    last: end of the path in ``path``; its channels are written before this index. The other parameters are those of
    :func:`_yen`.
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
    """into[first:last] = source[first:last]; a loop compiles much faster."""
    for i in range(first, last):
        into[i] = source[i]


@njit
def _ban(
    channels_of: Ints32, length: Ints, accepted_count: int, i: int, prefix: Ints32, banned: Bools, value: bool
) -> None:
    """Mark the channel after the first i of every accepted path that begins with the same i channels as ``prefix``.

    Parameters
    ----------
    channels_of: int32 [k, switches], the accepted paths.
    length: int64 [k], their hops.
    accepted_count: number of accepted paths.
    i: length of the prefix.
    prefix: int32 [i or more], its channels.
    banned: bool [channels], changed in place.
    value: True to ban, False to allow again.
    """
    for p in range(accepted_count):
        same = length[p] > i
        for j in range(i):
            same = same and channels_of[p, j] == prefix[j]
        if same:
            banned[channels_of[p, i]] = value


@njit
def _precedes(length: int, key: float, other_length: int, other_key: float) -> bool:
    """Whether one candidate precedes another: it is shorter, or equally long with a smaller key."""
    return length < other_length or (length == other_length and key < other_key)


@njit
def _first_candidate(length: Ints, key: Floats) -> int:
    """Return the slot of the first candidate; -1 without candidates."""
    slot = -1
    for i in range(len(length)):
        if key[i] >= 0 and (slot < 0 or _precedes(length[i], key[i], length[slot], key[slot])):
            slot = i
    return slot


@njit
def _last_candidate(length: Ints, key: Floats) -> int:
    """Return the slot of the last candidate; -1 without candidates."""
    slot = -1
    for i in range(len(length)):
        if key[i] >= 0 and (slot < 0 or _precedes(length[slot], key[slot], length[i], key[i])):
            slot = i
    return slot


@njit
def _count_candidates(key: Floats) -> int:
    """Count the candidates."""
    count = 0
    for value in key:
        count += value >= 0
    return count


@njit
def _free_slot(key: Floats) -> int:
    """Return the first slot without a candidate; at least one is free."""
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
    """Add the candidate of all paths that begin with ``prefix``, up to switch v, and continue over no banned channel.

    Parameters
    ----------
    v: last switch of the prefix.
    prefix: int32 [hops], its channels.
    max_candidates: number of candidates to keep.
    parent: length and key of the last accepted path.
    dst_switch, limit, outward, inward, hops, marks, search, draws, candidates: as in :func:`_yen`.
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
    """Find the k shortest loopless paths of one pair, none longer than ``limit`` hops; return how many exist.

    Yen's algorithm with Lawler's partition: a candidate represents all paths that share its prefix up to the deviation
    from its parent and avoid the channels that accepted paths take there; it is a shortest of them. At most as many
    candidates are kept as paths are missing.

    Among equally long paths those with the smallest keys are accepted. Keys of paths are independent exponential
    variables of mean 1. The minimum of n of them has mean 1 / n and belongs to each of the n with equal probability; by
    memorylessness the others keep their distribution. So a candidate's key is drawn from the number of the shortest
    paths that it represents.

    Parameters
    ----------
    src_switch, dst_switch: ends of the paths.
    limit: most hops, below the number of switches.
    outward: ``out_start`` and ``dst`` of the topology.
    inward: in_start, in_tail, in_channel: the channels to switch v are in_channel[in_start[v]:in_start[v + 1]], from
        the switches in_tail.
    hops: int64 [switches], distances to ``dst_switch``.
    marks: bool [switches] and bool [channels], all False before and after.
    search: see :func:`_count_detours`.
    draws: see :func:`_uniform`.
    accepted: int32 [k, switches] and int64 [k], the paths and their lengths.
    candidates: int32 [k, switches], int64 [k], int64 [k], float64 [k]: the candidates, their lengths, the indices where
        they deviate, and their keys, -1 for a free slot.

    Source: Yen, Management Science 17, 1971, doi:10.1287/mnsc.17.11.712; Lawler, Management Science 18, 1972,
    doi:10.1287/mnsc.18.7.401.
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
    """Return (number of paths of each source, length of each path, channels of all paths).

    outward, inward: as in :func:`_yen`. The other parameters are those of :func:`k_shortest_to`.
    """
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
    """Find the k shortest loopless paths from switches to one switch.

    Which of several equally long paths are among the k is drawn uniformly from the seed, for each pair independently of
    the other pairs. A pair has fewer than k paths where no more exist, and none if its ends are the same.

    Parameters
    ----------
    topology: the network.
    dst_switch: end of all paths.
    src_switches: int64 [pairs], their beginnings.
    k: most paths per pair.
    extra: most hops beyond the shortest path; 0: equal-cost paths; None: no limit.
    seed: seed of the draws.

    Raises
    ------
    ValueError: k is below 1.

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
    """Find the k shortest loopless paths of each pair.

    Parameters
    ----------
    topology, k, extra, seed: as in :func:`k_shortest_to`.
    pairs: int64 [pairs, 2], source and destination switch.
    """
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
    """Yield the paths of :func:`k_shortest_to` to each switch 0, 1, … from all other switches, in order.

    Parameters
    ----------
    topology, k, extra, seed: as in :func:`k_shortest_to`.
    """
    switches = np.arange(topology.switches)
    for dst_switch in range(topology.switches):
        yield k_shortest_to(topology, dst_switch, np.delete(switches, dst_switch), k, extra=extra, seed=seed)
