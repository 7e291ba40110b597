# SPDX-License-Identifier: Apache-2.0
"""Path tables after a reroute that change the path of as few draws as possible."""

from dataclasses import replace

import numpy as np

from flitlab.models.arrays import Bytes, Ints
from flitlab.models.jit import njit
from flitlab.models.paths.pathset import starts
from flitlab.models.registry import SpecError
from flitlab.models.routing.route_set import LAST_WORD, PathTable, Routes
from flitlab.models.rules.tables import RouteForm
from flitlab.models.timeline.renumbering import renumbered_routes
from flitlab.models.timeline.surviving import SurvivingNetwork
from flitlab.models.topology.graph import Topology

_WORDS = np.int64(LAST_WORD + 1)
"""Number of 32-bit draws; each path of a pair has an interval of them."""


def merged_routes(whole: Topology, built: Routes, surviving: SurvivingNetwork, routes: Routes) -> Routes:
    """Combine the routes of the surviving network with the old routes of switches that are not reachable any more.

    Parameters
    ----------
    whole: the network as built.
    built: its routes.
    surviving: the surviving network.
    routes: its routes.

    Returns
    -------
    Routes in the numbers of switches and ports of ``whole``.

    Raises
    ------
    SpecError: the routes are neither next hops nor paths, or were of another form before.
    """
    if surviving.topology is whole:
        return built
    if routes.form != built.form or routes.form not in (RouteForm.TABLE, RouteForm.PATHS):
        raise SpecError(f"{routes.kind} gives routes of another form in the remaining network", key="timeline")
    renumbered = renumbered_routes(routes, surviving, whole)
    if routes.form == RouteForm.PATHS:
        return renumbered
    pairs, ports = np.ix_(surviving.switch, surviving.switch), built.ports.copy()
    ports[pairs] = renumbered.ports[pairs]
    return replace(renumbered, ports=ports)


def stable_paths(previous: PathTable, current: PathTable) -> PathTable:
    """Reorder path intervals so that a draw keeps its path wherever the new weights allow it.

    Parameters
    ----------
    built: the paths so far.
    now: the paths from now on.

    Returns
    -------
    The paths ``now`` with the same weights. A draw keeps its path as far as that path's weight allows; the other draws
        are distributed over the paths that lack weight. A path may therefore occur several times.
    """
    ends, last = np.concatenate([_interval_ends(previous), _interval_ends(current)]), len(previous.path_start) - 1
    capacity = 2 * last + len(current.path_start)
    end, path, counts = (
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(len(current.pair_start) - 1, np.int64),
    )
    _assign_intervals(previous, ends[:last], current, ends[last:], end, path, counts)
    used = slice(0, counts.sum())
    lengths = np.diff(current.path_start)[path[used]]
    path_start = starts(lengths)
    within = np.arange(path_start[-1]) - np.repeat(path_start[:-1], lengths)
    port = current.port[np.repeat(current.path_start[path[used]], lengths) + within]
    return PathTable(starts(counts), path_start, port, np.minimum(end[used], LAST_WORD).astype(np.uint32))


def with_thresholds(paths: PathTable) -> PathTable:
    """Return paths with explicit thresholds, also for pairs that draw all paths with equal probability."""
    return paths._replace(threshold=np.minimum(_interval_ends(paths), LAST_WORD).astype(np.uint32))


def _interval_ends(paths: PathTable) -> Ints:
    """Return the end of each path's interval of draws, int64 [paths]; 2**32 for the last path of a pair."""
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
    """Whether two paths of a pair have the same ports."""
    return np.array_equal(
        one_port[one_start[one] : one_start[one + 1]], other_port[other_start[other] : other_start[other + 1]]
    )


@njit
def _assign_intervals(
    previous: PathTable, previous_end: Ints, current: PathTable, current_end: Ints, end: Ints, path: Ints, counts: Ints
) -> None:  # fmt: skip
    """Write the intervals of draws of every pair; see :func:`stable_paths`.

    Parameters
    ----------
    previous, previous_end: the old paths, and the ends of their intervals.
    current, current_end: the new ones.
    end, path: int64, become the end and the path of each interval.
    counts: int64 [pairs], becomes the number of intervals.
    """
    previous_pair, previous_start, previous_port, _ = previous
    current_pair, current_start, current_port, _ = current
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
            if begin < previous_end[i]:  # the rest is assigned later
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
    """Distribute intervals without a path over paths that lack weight; return the end of the slots in use.

    Parameters
    ----------
    end, path: as in :func:`_assign_intervals`; path is -1 for an interval without one.
    first_slot, end_slot: the slots of the pair.
    missing: int64 [paths], draws that each path lacks.
    j: first path of the pair.
    """
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
