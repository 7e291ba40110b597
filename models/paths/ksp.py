# SPDX-License-Identifier: Apache-2.0
"""The k shortest loopless paths between switches, and the equal-cost ones among them."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Bools, Int, Integers, Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.paths.pathset import PathSet, concatenate, starts
from flitlab.models.paths.search import search_to
from flitlab.models.rules.draw import PATH_TIES, draw
from flitlab.models.topology.graph import Topology

_UNLIMITED = 1 << 40


@njit
def _detour(
    start: int,
    done: int,
    target: int,
    limit: int,
    out_start: Integers,
    dst: Integers,
    hops: Integers,
    forbidden: Bools,
    banned: Bools,
    salt: Int,
    scratch: tuple[Integers, ...],
    path: Ints32,
) -> int:
    """A* search for a shortest path from ``start`` to the target; its length, or -1 if there is none up to ``limit``.

    hops: distances to the target, the lower bound of the search. forbidden: bool [switches], not to be visited.
    banned: bool [channels], not to be taken out of ``start``. Equally good next steps are tried in an order
    that ``salt`` decides. scratch: bucket [2 switches] and best [switches], both all -1 before and after;
    following, at, parent, taken, depth [channels + 1]. path: its elements from ``done`` on become the channels.
    """
    bucket, best, following, at, parent, taken, depth = scratch
    lowest = hops[start]
    if lowest < 0 or lowest > limit:
        return -1
    # an entry is a way from the start to the switch at[entry]; bucket[f] heads the list of those with
    # depth + hops == f, last come first served, so that the search runs straight to the target
    following[0], at[0], parent[0], depth[0] = -1, start, -1, 0
    bucket[lowest] = 0
    best[start] = 0
    entries, highest, length, f = 1, lowest, -1, lowest
    while f <= highest:
        entry = bucket[f]
        if entry < 0:
            f += 1
            continue
        bucket[f] = following[entry]
        v = at[entry]
        if depth[entry] > best[v]:
            continue  # reached on a shorter way since
        if v == target:
            length = depth[entry]
            break
        first, degree = out_start[v], out_start[v + 1] - out_start[v]
        mixed = (salt ^ np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        turn = np.int64((mixed >> np.uint64(33)) % np.uint64(degree))
        step = depth[entry] + 1
        for i in range(degree):
            c = first + (i + turn) % degree
            u = dst[c]
            if hops[u] < 0 or forbidden[u] or (v == start and banned[c]):
                continue
            bound = step + hops[u]
            if bound > limit or (best[u] >= 0 and best[u] <= step):
                continue
            best[u] = step
            following[entries], at[entries], parent[entries], taken[entries] = bucket[bound], u, entry, c
            depth[entries] = step
            bucket[bound] = entries
            entries += 1
            highest = max(highest, bound)
    for i in range(done + length - 1, done - 1, -1):
        path[i] = taken[entry]
        entry = parent[entry]
    for i in range(entries):
        best[at[i]] = -1
    for bound in range(lowest, highest + 1):
        bucket[bound] = -1
    return length


@njit
def _copy(origin: Integers, into: Integers, first: int, last: int) -> None:
    """into[first:last] = origin[first:last], and much quicker to compile."""
    for i in range(first, last):
        into[i] = origin[i]


@njit
def _ban(channels_of: Ints32, length: Ints, found: int, i: int, new: Ints32, banned: Bools, value: bool) -> None:
    """Marks the channel after the first i of every accepted path that begins like ``new``."""
    for p in range(found):
        same = length[p] > i
        for j in range(i):
            same = same and channels_of[p, j] == new[j]
        if same:
            banned[channels_of[p, i]] = value


@njit
def _shortest(length: Ints, birth: Ints) -> int:
    """Slot of the shortest candidate, of equals the oldest; -1 without any."""
    slot = -1
    for i in range(len(length)):
        if birth[i] >= 0 and (slot < 0 or (length[i], birth[i]) < (length[slot], birth[slot])):
            slot = i
    return slot


@njit
def _longest(length: Ints, birth: Ints) -> int:
    """Slot of the longest candidate; of equals the last."""
    slot = -1
    for i in range(len(length)):
        if birth[i] >= 0 and (slot < 0 or length[i] >= length[slot]):
            slot = i
    return slot


@njit
def _yen(
    source: int,
    target: int,
    limit: int,
    out_start: Integers,
    dst: Integers,
    hops: Integers,
    salt: Int,
    marks: tuple[Bools, Bools],
    scratch: tuple[Integers, ...],
    accepted: tuple[Ints32, Ints],
    waiting: tuple[Ints32, Ints, Ints, Ints],
    trial: Ints32,
) -> int:
    """Yen's algorithm for one pair; the number of paths found, no longer than ``limit``.

    A candidate stands for all paths that begin like it up to where it deviates from its parent, and go on
    by none of the channels that accepted paths take there: it is a shortest of them (Lawler). No more
    candidates are kept than may still be needed.

    marks: bool [switches] and bool [channels], all False before and after. accepted: int32 [k, switches] and
    int64 [k], the paths and their lengths. waiting: the same of candidates, and int64 [k] each the place of
    deviation and the birth number, -1 for a free slot.
    """
    forbidden, banned = marks
    path, path_length = accepted
    candidate, length, deviation, birth = waiting
    k = len(path_length)
    birth[:] = -1
    length[0] = _detour(source, 0, target, limit, out_start, dst, hops, forbidden, banned, salt, scratch, candidate[0])
    deviation[0], birth[0] = 0, 0
    candidates, found, births = 1, 0, 1
    while candidates > 0:
        slot = _shortest(length, birth)
        new, hops_of_new, since = path[found], length[slot], deviation[slot]
        _copy(candidate[slot], new, 0, hops_of_new)
        path_length[found] = hops_of_new
        birth[slot] = -1
        candidates -= 1
        found += 1
        if found == k:
            break
        if candidates > k - found:
            birth[_longest(length, birth)] = -1
            candidates -= 1
        v = source
        for i in range(hops_of_new):
            full = candidates == k - found
            most = min(limit, length[_longest(length, birth)] - 1) if full else limit
            if i >= since and i + hops[v] <= most:
                _ban(path, path_length, found, i, new, banned, True)
                salt = salt * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                rest = _detour(v, i, target, most - i, out_start, dst, hops, forbidden, banned, salt, scratch, trial)
                _ban(path, path_length, found, i, new, banned, False)
                if rest >= 0:
                    slot = _longest(length, birth) if full else 0
                    while not full and birth[slot] >= 0:
                        slot += 1
                    candidates += not full
                    _copy(new, candidate[slot], 0, i)
                    _copy(trial, candidate[slot], i, i + rest)
                    length[slot], deviation[slot], birth[slot] = i + rest, i, births
                    births += 1
            forbidden[v] = True
            v = dst[new[i]]
        v = source
        for i in range(hops_of_new):
            forbidden[v] = False
            v = dst[new[i]]
    return found


@njit
def _k_shortest_to(
    target: int,
    sources: Integers,
    k: int,
    extra: int,
    seed: int,
    out_start: Integers,
    dst: Integers,
    in_start: Integers,
    in_tail: Integers,
) -> tuple[Ints, Ints, Ints32]:
    """(number of paths of each source, length of each path, channels of all paths)."""
    n, channels = len(out_start) - 1, len(dst)
    hops = np.empty(n, np.int64)
    search_to(target, in_start, in_tail, hops, np.empty(n, np.int64))
    marks = np.zeros(n, np.bool_), np.zeros(channels, np.bool_)
    entries = np.empty((5, channels + 1), np.int64)
    scratch = (
        np.full(2 * n + 1, -1, np.int64), np.full(n, -1, np.int64),
        entries[0], entries[1], entries[2], entries[3], entries[4],
    )  # fmt: skip
    accepted = np.empty((k, n), np.int32), np.empty(k, np.int64)
    waiting = np.empty((k, n), np.int32), np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    trial = np.empty(n, np.int32)
    counts, lengths = np.zeros(len(sources), np.int64), np.empty(len(sources) * k, np.int64)
    flat = np.empty(1024, np.int32)
    paths = filled = 0
    for index in range(len(sources)):
        source = sources[index]
        if source == target or hops[source] < 0:
            continue
        salt = np.uint64(draw(seed, PATH_TIES, source, target))
        counts[index] = _yen(
            source, target, hops[source] + extra, out_start, dst, hops, salt, marks, scratch, accepted, waiting, trial
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
    topology: Topology, target: int, sources: npt.ArrayLike, k: int, *, extra: int | None = None, seed: int = 0
) -> PathSet:
    """The k shortest loopless paths from each of ``sources`` (int64 [pairs]) to one switch.

    extra: only paths at most so many hops longer than the shortest; 0 gives the equal-cost paths. A pair has
    fewer than k paths where no more exist, none if source and target are the same. Which of several paths of
    equal length are among the k is drawn from the seed for each pair, though not with equal probability;
    other pairs asked for along with it play no part.

    Source: Yen, Management Science 17, 1971, doi:10.1287/mnsc.17.11.712; Lawler, Management Science 18, 1972,
    doi:10.1287/mnsc.18.7.401.
    """
    if k < 1:
        raise ValueError("k must be at least 1")
    counts, lengths, channel = _k_shortest_to(
        target, np.asarray(sources, np.int64), k, _UNLIMITED if extra is None else extra, seed,
        topology.out_start, topology.dst, topology.in_start, topology.src[topology.in_channels],
    )  # fmt: skip
    return PathSet(starts(counts), starts(lengths), channel)


def k_shortest_paths(
    topology: Topology, pairs: npt.ArrayLike, k: int, *, extra: int | None = None, seed: int = 0
) -> PathSet:
    """The k shortest loopless paths of each pair (source, target); see :func:`k_shortest_to`."""
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    order = np.argsort(pairs[:, 1], kind="stable")
    targets, first = np.unique(pairs[order, 1], return_index=True)
    groups = np.split(pairs[order, 0], first[1:])
    sets = [
        k_shortest_to(topology, target, sources, k, extra=extra, seed=seed)
        for target, sources in zip(targets.tolist(), groups, strict=False)  # one empty group if there are no pairs
    ]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return concatenate(sets, place)


def all_k_shortest(topology: Topology, k: int, *, extra: int | None = None, seed: int = 0) -> Iterator[PathSet]:
    """One set for each target 0, 1, …, with all other switches as sources, in order."""
    everything = np.arange(topology.switches)
    for target in range(topology.switches):
        yield k_shortest_to(topology, target, np.delete(everything, target), k, extra=extra, seed=seed)
