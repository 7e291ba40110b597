# SPDX-License-Identifier: Apache-2.0
"""The k shortest loopless paths between switches by hops or weight, including the equal-cost paths."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Bools, Floats, Int, Integers, Ints, Ints32
from flitlab.models.heap import sift_down, sift_up
from flitlab.models.jit import device_function, njit
from flitlab.models.paths.pathset import PathSet, concatenate, starts
from flitlab.models.paths.search import UNREACHED, Star, Tree, search_to, settle
from flitlab.models.rules.draw import Stream, draw
from flitlab.models.topology.graph import Topology

_UNLIMITED = 1 << 40


class _Network(NamedTuple):
    """The channels of a topology, and distances.

    out_start, dst: as in the topology. in_start, in_tail, in_channel: the channels to switch v are
    in_channel[in_start[v]:in_start[v + 1]], from the switches in_tail. weight: int64 [channels], 1 or more; None: 1
    each, which compiles no Dijkstra. distance: int64 [switches], to the destination; without a path UNREACHED, by hops
    the number of switches.
    """

    out_start: Integers
    dst: Integers
    in_start: Integers
    in_tail: Integers
    in_channel: Integers
    weight: Ints | None
    distance: Ints


class _Prefix(NamedTuple):
    """The begin of paths. switch: where it ends. channels: int32 [hops]. length: its hops or weight."""

    switch: int
    channels: Ints32
    length: int


class _Pair(NamedTuple):
    """A pair of switches. limit: longest path. draws: see :func:`_uniform`."""

    src_switch: int
    dst_switch: int
    limit: int
    draws: Ints


class _DetourSearch(NamedTuple):
    """Scratch of a search for shortest paths that avoid switches and channels.

    forbidden, banned: bool [switches], excluded switches, and bool [channels], excluded channels; all False before and
    after a pair. reached: int64 [switches], the reached switches. level: int64 [switches], distance from the start, -1
    for all others. number: float64 [switches], number of shortest paths to each. heap: int64 [switches + channels].
    """

    forbidden: Bools
    banned: Bools
    reached: Ints
    level: Ints
    number: Floats
    heap: Ints


class _Candidates(NamedTuple):
    """Candidates of one pair, by slot.

    channels: int32 [k, switches]. hops: int64 [k]. length: int64 [k], hops or weight. deviation: int64 [k], index of
    the channel in which a candidate deviates from its parent. key: float64 [k], -1 for a free slot.
    """

    channels: Ints32
    hops: Ints
    length: Ints
    deviation: Ints
    key: Floats


@device_function
def _length_of(weight: Ints | None, channel: int) -> int:
    """The length of a channel. weight: ``_Network.weight``, as an argument: Numba then omits the branches on None."""
    if weight is None:
        return 1
    length: int = weight[channel]
    return length


@device_function
def _uniform(draws: Ints) -> float:
    """Draw the next number of a pair of switches, in (0, 1].

    draws: int64 [4], the seed, the source switch, the destination switch, and the number of draws so far.
    """
    word = draw(draws[0], Stream.PATH_TIES, draws[1], draws[2] << 32 | draws[3])
    draws[3] += 1
    return (word + 1) * 2.0**-63


@device_function
def _count_detours(
    weight: Ints | None, start: int, limit: int, pair: _Pair, network: _Network, search: _DetourSearch
) -> tuple[int, int]:
    """Count the shortest paths from ``start`` to the destination that avoid marked switches and channels.

    Breadth-first search among the switches that can lie on a path of some length, which grows until a path exists. Then
    ``search.number`` of the destination is the number of paths. weight: ``network.weight``; limit: longest path.

    Returns
    -------
    (distance, number of reached switches); more than ``limit`` and 0 without a path.
    """
    if weight is not None:
        return _count_weighted_detours(weight, start, limit, pair, network, search)
    out_start, dst, hops = network.out_start, network.dst, network.distance
    forbidden, banned, reached, level, number, _ = search
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
                if step + hops[u] >= next_length or forbidden[u] or banned[c]:
                    continue
                if step + hops[u] > length:
                    next_length = step + hops[u]
                    continue
                if level[u] < 0:
                    level[u], number[u] = step, 0.0
                    reached[reached_count] = u
                    reached_count += 1
                if level[u] == step:
                    number[u] += number[v]
        if level[pair.dst_switch] >= 0:
            return length, reached_count
        _reset_search(reached_count, search)
        length = next_length
    return limit + 1, 0


@device_function
def _count_weighted_detours(
    weight: Ints, start: int, limit: int, pair: _Pair, network: _Network, search: _DetourSearch
) -> tuple[int, int]:
    """:func:`_count_detours` by weight: A*, then the number of paths, which it adds up by distance from the start.

    A switch on a shortest path is nearer to the start than the bound less its own distance to the destination, so its
    distance is final when the search ends. Source: Hart, Nilsson, Raphael 1968, doi:10.1109/TSSC.1968.300136.
    """
    out_start, dst, distance = network.out_start, network.dst, network.distance
    forbidden, banned, reached, level, number, heap = search
    n = len(distance)
    level[start], reached[0], heap[0] = 0, start, distance[start] * n + start
    reached_count = size = 1
    while size > 0 and heap[0] // n <= limit:
        estimate, v = heap[0] // n, heap[0] % n
        size -= 1
        heap[0] = heap[size]
        if size > 0:
            sift_down(heap, size)
        if estimate > level[v] + distance[v]:
            continue  # a shorter path was found since
        for c in range(out_start[v], out_start[v + 1]):
            u, step = dst[c], level[v] + weight[c]
            if step + distance[u] > limit or forbidden[u] or banned[c] or 0 <= level[u] <= step:
                continue
            if level[u] < 0:
                reached[reached_count] = u
                reached_count += 1
            level[u] = step
            if u == pair.dst_switch:
                limit = step
            heap[size] = (step + distance[u]) * n + u
            sift_up(heap, size)
            size += 1
    if level[pair.dst_switch] < 0:
        _reset_search(reached_count, search)
        return limit + 1, 0
    for i in range(reached_count):
        number[reached[i]] = 0.0
        heap[i] = level[reached[i]] * n + reached[i]
        sift_up(heap, i)
    number[start], size = 1.0, reached_count
    while size > 0:
        v = heap[0] % n
        size -= 1
        heap[0] = heap[size]
        if size > 0:
            sift_down(heap, size)
        for c in range(out_start[v], out_start[v + 1]):
            u = dst[c]
            if level[u] == level[v] + weight[c] and not forbidden[u] and not banned[c]:
                number[u] += number[v]
    return limit, reached_count


@device_function
def _reset_search(reached_count: int, search: _DetourSearch) -> None:
    """Reset ``search`` after a search that reached ``reached_count`` switches."""
    for i in range(reached_count):
        search.level[search.reached[i]] = -1


@device_function
def _draw_detour(first: int, pair: _Pair, network: _Network, search: _DetourSearch, path: Ints32) -> int:
    """Draw one of the paths that :func:`_count_detours` counted, uniformly.

    first: index in ``path`` of its first channel. Returns the index after its last.
    """
    level, number = search.level, search.number
    u, last = pair.dst_switch, len(path)
    while level[u] > 0:
        remaining, previous = _uniform(pair.draws) * number[u], u
        for i in range(network.in_start[u], network.in_start[u + 1]):
            v, c = network.in_tail[i], network.in_channel[i]
            if 0 <= level[v] == level[u] - _length_of(network.weight, c) and not search.banned[c]:
                previous, path[last - 1] = v, c
                remaining -= number[v]
                if remaining <= 0:
                    break
        u = previous
        last -= 1
    for i in range(last, len(path)):
        path[first + i - last] = path[i]
    return first + len(path) - last


@device_function
def _copy(source: Integers, into: Integers, first: int, last: int) -> None:
    """into[first:last] = source[first:last]; a loop compiles much faster."""
    for i in range(first, last):
        into[i] = source[i]


@device_function
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


@device_function
def _precedes(length: int, key: float, other_length: int, other_key: float) -> bool:
    """Whether one candidate precedes another: it is shorter, or equally long with a smaller key."""
    return length < other_length or (length == other_length and key < other_key)


@device_function
def _first_candidate(length: Ints, key: Floats) -> int:
    """Return the slot of the first candidate; -1 without candidates."""
    slot = -1
    for i in range(len(length)):
        if key[i] >= 0 and (slot < 0 or _precedes(length[i], key[i], length[slot], key[slot])):
            slot = i
    return slot


@device_function
def _last_candidate(length: Ints, key: Floats) -> int:
    """Return the slot of the last candidate; -1 without candidates."""
    slot = -1
    for i in range(len(length)):
        if key[i] >= 0 and (slot < 0 or _precedes(length[slot], key[slot], length[i], key[i])):
            slot = i
    return slot


@device_function
def _count_candidates(key: Floats) -> int:
    """Count the candidates."""
    count = 0
    for value in key:
        count += value >= 0
    return count


@device_function
def _free_slot(key: Floats) -> int:
    """Return the first slot without a candidate; at least one is free."""
    slot = 0
    while key[slot] >= 0:
        slot += 1
    return slot


@device_function
def _add_candidate(
    prefix: _Prefix,
    max_candidates: int,
    parent: tuple[int, float],
    pair: _Pair,
    network: _Network,
    search: _DetourSearch,
    candidates: _Candidates,
) -> None:
    """Add the candidate of all paths that begin with ``prefix`` and continue over no banned channel.

    Parameters
    ----------
    prefix: the first channels of the paths.
    max_candidates: number of candidates to keep.
    parent: length and key of the last accepted path.
    pair, network, search, candidates: as in :func:`_yen`.
    """
    v, channels, prefix_length = prefix
    length, key = candidates.length, candidates.key
    full = _count_candidates(key) == max_candidates
    last = _last_candidate(length, key)
    max_length = min(pair.limit, length[last]) if full and last >= 0 else pair.limit
    if max_candidates == 0 or prefix_length + network.distance[v] > max_length:
        return
    detour_length, reached_count = _count_detours(network.weight, v, max_length - prefix_length, pair, network, search)
    total = prefix_length + detour_length
    if total > max_length:
        return
    spread = -math.log(_uniform(pair.draws)) / search.number[pair.dst_switch]
    candidate_key = (parent[1] if total == parent[0] else 0.0) + spread
    if not full or _precedes(total, candidate_key, length[last], key[last]):
        slot = last if full else _free_slot(key)
        _copy(channels, candidates.channels[slot], 0, len(channels))
        candidates.hops[slot] = _draw_detour(len(channels), pair, network, search, candidates.channels[slot])
        length[slot], candidates.deviation[slot], key[slot] = total, len(channels), candidate_key
    _reset_search(reached_count, search)


@device_function
def _yen(
    pair: _Pair, network: _Network, search: _DetourSearch, path: Ints32, path_length: Ints, candidates: _Candidates
) -> int:
    """Find the k shortest loopless paths of one pair, none longer than its limit; return how many exist.

    Yen's algorithm with Lawler's partition: a candidate represents all paths that share its prefix up to the deviation
    from its parent and avoid the channels that accepted paths take there; it is a shortest of them. At most as many
    candidates are kept as paths are missing.

    Among equally long paths those with the smallest keys are accepted. Keys of paths are independent exponential
    variables of mean 1. The minimum of n of them has mean 1 / n and belongs to each of the n with equal probability; by
    memorylessness the others keep their distribution. So a candidate's key is drawn from the number of the shortest
    paths that it represents.

    Parameters
    ----------
    pair, network, search, candidates: see the classes.
    path: int32 [k, switches], becomes the accepted paths.
    path_length: int64 [k], becomes their hops.

    Source: Yen, Management Science 17, 1971, doi:10.1287/mnsc.17.11.712; Lawler, Management Science 18, 1972,
    doi:10.1287/mnsc.18.7.401.
    """
    forbidden, banned, dst = search.forbidden, search.banned, network.dst
    candidate, hops, length, deviation, key = candidates
    k = len(path_length)
    key[:] = -1
    parent = 0, 0.0
    _add_candidate(_Prefix(pair.src_switch, path[0, :0], 0), k, parent, pair, network, search, candidates)
    for accepted_count in range(k):
        slot = _first_candidate(length, key)
        if slot < 0:
            return accepted_count
        new, deviation_index, parent = path[accepted_count], deviation[slot], (length[slot], key[slot])
        path_length[accepted_count] = hops[slot]
        _copy(candidate[slot], new, 0, hops[slot])
        key[slot] = -1
        max_candidates = k - accepted_count - 1
        if _count_candidates(key) > max_candidates:
            key[_last_candidate(length, key)] = -1
        v, prefix_length = pair.src_switch, 0
        for i in range(path_length[accepted_count]):
            if i >= deviation_index:
                _ban(path, path_length, accepted_count + 1, i, new, banned, True)
                prefix = _Prefix(v, new[:i], prefix_length)
                _add_candidate(prefix, max_candidates, parent, pair, network, search, candidates)
                _ban(path, path_length, accepted_count + 1, i, new, banned, False)
            forbidden[v] = True
            v = dst[new[i]]
            prefix_length += _length_of(network.weight, new[i])
        v = pair.src_switch
        for i in range(path_length[accepted_count]):
            forbidden[v] = False
            v = dst[new[i]]
    return k


@njit
def _find_distances(weight: Ints | None, dst_switch: int, network: _Network, heap: Ints) -> tuple[Int, Int]:
    """Compute ``network.distance``; returns its value without a path, and the greatest length of a loopless path.

    weight: ``network.weight``. heap: int64 [more than channels], scratch.
    """
    n = len(network.distance)
    order = np.empty(n, np.int64)
    if weight is None:
        search_to(dst_switch, network.in_start, network.in_tail, network.distance, order)
        network.distance[network.distance < 0] = n
        return n, n - 1
    into = Star(network.in_start, network.in_tail, weight[network.in_channel])
    settle(dst_switch, into, Tree(network.distance, np.empty(n, np.int64), np.empty(n, np.int64), order, heap))
    return UNREACHED, UNREACHED // n - 1


@njit
def _k_shortest_to(
    dst_switch: int, src_switches: Integers, k: int, extra: int, seed: int, network: _Network
) -> tuple[Ints, Ints, Ints32]:
    """Return (number of paths of each source, length of each path, channels of all paths).

    network: its ``distance`` is computed. The other parameters are those of :func:`k_shortest_to`.
    """
    distance = network.distance
    n = len(distance)
    heap = np.empty(n + len(network.dst) + 2, np.int64)
    unreached, most = _find_distances(network.weight, dst_switch, network, heap)
    search = _DetourSearch(
        np.zeros(n, np.bool_), np.zeros(len(network.dst), np.bool_), np.empty(n, np.int64), np.full(n, -1, np.int64),
        np.empty(n), heap,
    )  # fmt: skip
    path, path_length = np.empty((k, n), np.int32), np.empty(k, np.int64)
    hops, length, deviation = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    candidates = _Candidates(np.empty((k, n), np.int32), hops, length, deviation, np.empty(k))
    counts, lengths = np.zeros(len(src_switches), np.int64), np.empty(len(src_switches) * k, np.int64)
    flat = np.empty(1024, np.int32)
    paths = filled = 0
    for index in range(len(src_switches)):
        src_switch = src_switches[index]
        if src_switch == dst_switch or distance[src_switch] == unreached:
            continue
        limit, draws = min(distance[src_switch] + extra, most), np.array([seed, src_switch, dst_switch, 0])
        pair = _Pair(src_switch, dst_switch, limit, draws)
        counts[index] = _yen(pair, network, search, path, path_length, candidates)
        for p in range(counts[index]):
            lengths[paths] = path_length[p]
            if filled + lengths[paths] > len(flat):
                longer = np.empty(2 * len(flat) + n, np.int32)
                _copy(flat, longer, 0, filled)
                flat = longer
            for i in range(lengths[paths]):
                flat[filled + i] = path[p, i]
            filled += lengths[paths]
            paths += 1
    return counts, lengths[:paths].copy(), flat[:filled].copy()


def k_shortest_to(
    topology: Topology,
    dst_switch: int,
    src_switches: npt.ArrayLike,
    k: int,
    *,
    extra: int | None = None,
    seed: int = 0,
    weight: Ints | None = None,
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
    extra: most hops, or weight, beyond the shortest path; 0: equal-cost paths; None: no limit.
    seed: seed of the draws.
    weight: int64 [channels], length of channels, 1 or more; None: 1 each. The weight of a path times the number of
        switches is below 2**62 (not checked).

    Raises
    ------
    ValueError: k is below 1.

    Source: Yen, Management Science 17, 1971, doi:10.1287/mnsc.17.11.712; Lawler, Management Science 18, 1972,
    doi:10.1287/mnsc.18.7.401.
    """
    if k < 1:
        raise ValueError("k must be at least 1")
    network = _Network(
        topology.out_start, topology.dst, topology.in_start, topology.src[topology.in_channels], topology.in_channels,
        weight, np.empty(topology.switches, np.int64),
    )  # fmt: skip
    limit = _UNLIMITED if extra is None else extra
    counts, lengths, channel = _k_shortest_to(dst_switch, np.asarray(src_switches, np.int64), k, limit, seed, network)
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
