# SPDX-License-Identifier: Apache-2.0
"""Routes that change under packets which choose them by draws: most draws give what they gave before."""

from dataclasses import replace

import numpy as np

from flitlab.models.arrays import Bytes, Ints
from flitlab.models.jit import njit
from flitlab.models.paths.pathset import starts
from flitlab.models.registry import SpecError
from flitlab.models.routing.ways import LAST_WORD, PathTable, Routes
from flitlab.models.rules.tables import PATHS, TABLE
from flitlab.models.timeline.epochs import Left
from flitlab.models.timeline.widened import widened
from flitlab.models.topology.graph import Topology

_WORDS = np.int64(LAST_WORD + 1)
"""Draws of 32 bits, of which each path of a pair has an interval."""


def kept(whole: Topology, built: Routes, left: Left, routes: Routes) -> Routes:
    """The routes of what is left of a network, beside those by which switches send that are not reached any more.

    built: the routes of the whole network, in whose numbers of switches and ports the result is. Raises ``SpecError``
    where routes are neither next hops nor paths, or were something else before.
    """
    if left.topology is whole:
        return built
    if routes.form != built.form or routes.form not in (TABLE, PATHS):
        raise SpecError(f"{routes.kind} gives routes of another kind in what is left of the network", key="timeline")
    moved = widened(routes, left, whole)
    if routes.form == PATHS:
        return moved
    here, ports = np.ix_(left.switch, left.switch), built.ports.copy()
    ports[here] = moved.ports[here]
    return replace(moved, ports=ports)


def round_rate(built: PathTable, now: PathTable) -> PathTable:
    """The paths ``now``, in an order in which draws that gave one of them among those ``built`` give it still.

    A draw keeps its path as far as the path's weight allows; what other draws gave is dealt out to the paths that lack
    weight. A path may therefore stand there several times.
    """
    ends, last = np.concatenate([_ends(built), _ends(now)]), len(built.path_start) - 1
    room = 2 * last + len(now.path_start)
    end, path, counts = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(len(now.pair_start) - 1, np.int64)
    _deal(
        built.pair_start, built.path_start, built.port, ends[:last], now.pair_start, now.path_start, now.port,
        ends[last:], end, path, counts,
    )  # fmt: skip
    used = slice(0, counts.sum())
    lengths = np.diff(now.path_start)[path[used]]
    path_start = starts(lengths)
    within = np.arange(path_start[-1]) - np.repeat(path_start[:-1], lengths)
    port = now.port[np.repeat(now.path_start[path[used]], lengths) + within]
    return PathTable(starts(counts), path_start, port, np.minimum(end[used], LAST_WORD).astype(np.uint32))


def with_shares(paths: PathTable) -> PathTable:
    """Paths drawn as in a table, with thresholds that say so also where all of a pair are drawn alike."""
    return paths._replace(threshold=np.minimum(_ends(paths), LAST_WORD).astype(np.uint32))


def _ends(paths: PathTable) -> Ints:
    """The draw, int64 [paths], from which on the next path of the pair is taken; 2**32 of a pair's last."""
    counts = np.diff(paths.pair_start)
    if len(paths.threshold):
        found = paths.threshold.astype(np.int64)
    else:
        turn = np.arange(counts.sum()) - np.repeat(paths.pair_start[:-1], counts)
        many = np.repeat(counts, counts)
        found = -(-(turn + 1) * _WORDS // np.maximum(many, 1))
    found[paths.pair_start[1:][counts > 0] - 1] = _WORDS
    return found


@njit
def _alike(one_start: Ints, one_port: Bytes, one: int, other_start: Ints, other_port: Bytes, other: int) -> bool:
    """Whether two paths of a pair are the same."""
    return np.array_equal(
        one_port[one_start[one] : one_start[one + 1]], other_port[other_start[other] : other_start[other + 1]]
    )


@njit
def _deal(
    was_pair: Ints, was_start: Ints, was_port: Bytes, was_end: Ints, now_pair: Ints, now_start: Ints, now_port: Bytes,
    now_end: Ints, end: Ints, path: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Write the intervals of draws of every pair: their ends, their paths, and how many there are."""
    lacks = np.zeros(len(now_end), np.int64)
    at = 0
    for pair in range(len(counts)):
        first, last = now_pair[pair], now_pair[pair + 1]
        if first == last:
            continue
        begin = np.int64(0)
        for j in range(first, last):
            lacks[j] = now_end[j] - begin
            begin = now_end[j]
        opened, begin = at, np.int64(0)
        for i in range(was_pair[pair], was_pair[pair + 1]):
            for j in range(first, last):
                if lacks[j] > 0 and _alike(was_start, was_port, i, now_start, now_port, j):
                    kept = min(lacks[j], was_end[i] - begin)
                    lacks[j] -= kept
                    begin += kept
                    end[at], path[at] = begin, j
                    at += 1
                    break
            if begin < was_end[i]:  # of the rest it is not known yet whose it is
                begin = was_end[i]
                end[at], path[at] = begin, -1
                at += 1
        if at == opened:
            end[at], path[at] = 1 << 32, -1
            at += 1
        at = _fill(end, path, opened, at, lacks, first)
        counts[pair] = at - opened


@njit
def _fill(end: Ints, path: Ints, opened: int, closed: int, lacks: Ints, j: int) -> int:
    """Deal intervals opened .. closed - 1 that have no path to those that lack some, from path j on; the new end."""
    ends, paths = end[opened:closed].copy(), path[opened:closed].copy()
    at, begin = opened, np.int64(0)
    for k in range(len(ends)):
        if paths[k] >= 0:
            end[at], path[at] = ends[k], paths[k]
            at, begin = at + 1, ends[k]
        while begin < ends[k]:
            while lacks[j] == 0:
                j += 1
            part = min(lacks[j], ends[k] - begin)
            lacks[j] -= part
            begin += part
            end[at], path[at] = begin, j
            at += 1
    return at
