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
from flitlab.models.timeline.epochs import SurvivingNetwork
from flitlab.models.timeline.renumbering import renumbered_routes
from flitlab.models.topology.graph import Topology

_WORDS = np.int64(LAST_WORD + 1)
"""Draws of 32 bits, of which each path of a pair has an interval."""


def merged_routes(whole: Topology, built: Routes, surviving: SurvivingNetwork, routes: Routes) -> Routes:
    """The routes of what is left of a network, beside those by which switches send that are not reached any more.

    built: the routes of the whole network, in whose numbers of switches and ports the result is. Raises ``SpecError``
    where routes are neither next hops nor paths, or were something else before.
    """
    if surviving.topology is whole:
        return built
    if routes.form != built.form or routes.form not in (TABLE, PATHS):
        raise SpecError(f"{routes.kind} gives routes of another kind in what is left of the network", key="timeline")
    renumbered = renumbered_routes(routes, surviving, whole)
    if routes.form == PATHS:
        return renumbered
    pairs, ports = np.ix_(surviving.switch, surviving.switch), built.ports.copy()
    ports[pairs] = renumbered.ports[pairs]
    return replace(renumbered, ports=ports)


def stable_paths(previous: PathTable, current: PathTable) -> PathTable:
    """The paths ``current``, in an order in which draws that gave one of them among those ``previous`` give it still.

    A draw keeps its path as far as the path's weight allows; what other draws gave is dealt out to the paths that lack
    weight. A path may therefore stand there several times.
    """
    ends, last = np.concatenate([_interval_ends(previous), _interval_ends(current)]), len(previous.path_start) - 1
    capacity = 2 * last + len(current.path_start)
    end, path, counts = (
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(len(current.pair_start) - 1, np.int64),
    )
    _assign_intervals(
        previous.pair_start, previous.path_start, previous.port, ends[:last], current.pair_start, current.path_start, current.port,
        ends[last:], end, path, counts,
    )  # fmt: skip
    used = slice(0, counts.sum())
    lengths = np.diff(current.path_start)[path[used]]
    path_start = starts(lengths)
    within = np.arange(path_start[-1]) - np.repeat(path_start[:-1], lengths)
    port = current.port[np.repeat(current.path_start[path[used]], lengths) + within]
    return PathTable(starts(counts), path_start, port, np.minimum(end[used], LAST_WORD).astype(np.uint32))


def with_thresholds(paths: PathTable) -> PathTable:
    """Paths drawn as in a table, with thresholds that say so also where all of a pair are drawn alike."""
    return paths._replace(threshold=np.minimum(_interval_ends(paths), LAST_WORD).astype(np.uint32))


def _interval_ends(paths: PathTable) -> Ints:
    """The draw, int64 [paths], from which on the next path of the pair is taken; 2**32 of a pair's last."""
    counts = np.diff(paths.pair_start)
    if len(paths.threshold):
        ends = paths.threshold.astype(np.int64)
    else:
        rank = np.arange(counts.sum()) - np.repeat(paths.pair_start[:-1], counts)
        path_count = np.repeat(counts, counts)
        ends = -(-(rank + 1) * _WORDS // np.maximum(path_count, 1))
    ends[paths.pair_start[1:][counts > 0] - 1] = _WORDS
    return ends


@njit
def _is_same_path(one_start: Ints, one_port: Bytes, one: int, other_start: Ints, other_port: Bytes, other: int) -> bool:
    """Whether two paths of a pair are the same."""
    return np.array_equal(
        one_port[one_start[one] : one_start[one + 1]], other_port[other_start[other] : other_start[other + 1]]
    )


@njit
def _assign_intervals(
    previous_pair: Ints, previous_start: Ints, previous_port: Bytes, previous_end: Ints, current_pair: Ints, current_start: Ints, current_port: Bytes,
    current_end: Ints, end: Ints, path: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Write the intervals of draws of every pair: their ends, their paths, and how many there are."""
    missing = np.zeros(len(current_end), np.int64)
    slot = 0
    for pair in range(len(counts)):
        first, last = current_pair[pair], current_pair[pair + 1]
        if first == last:
            continue
        begin = np.int64(0)
        for j in range(first, last):
            missing[j] = current_end[j] - begin
            begin = current_end[j]
        first_slot, begin = slot, np.int64(0)
        for i in range(previous_pair[pair], previous_pair[pair + 1]):
            for j in range(first, last):
                if missing[j] > 0 and _is_same_path(previous_start, previous_port, i, current_start, current_port, j):
                    width = min(missing[j], previous_end[i] - begin)
                    missing[j] -= width
                    begin += width
                    end[slot], path[slot] = begin, j
                    slot += 1
                    break
            if begin < previous_end[i]:  # of the rest it is not known yet whose it is
                begin = previous_end[i]
                end[slot], path[slot] = begin, -1
                slot += 1
        if slot == first_slot:
            end[slot], path[slot] = 1 << 32, -1
            slot += 1
        slot = _assign_free_intervals(end, path, first_slot, slot, missing, first)
        counts[pair] = slot - first_slot


@njit
def _assign_free_intervals(end: Ints, path: Ints, first_slot: int, end_slot: int, missing: Ints, j: int) -> int:
    """Deal intervals opened .. closed - 1 that have no path to those that lack some, from path j on; the new end."""
    ends, paths = end[first_slot:end_slot].copy(), path[first_slot:end_slot].copy()
    slot, begin = first_slot, np.int64(0)
    for k in range(len(ends)):
        if paths[k] >= 0:
            end[slot], path[slot] = ends[k], paths[k]
            slot, begin = slot + 1, ends[k]
        while begin < ends[k]:
            while missing[j] == 0:
                j += 1
            width = min(missing[j], ends[k] - begin)
            missing[j] -= width
            begin += width
            end[slot], path[slot] = begin, j
            slot += 1
    return slot
