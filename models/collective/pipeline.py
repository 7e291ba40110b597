# SPDX-License-Identifier: Apache-2.0
"""The order in which the parts of trees follow each other over shared channels, so that none waits long.

A stream is what follows one tree: ``count`` parts of the data, each cut into chunks, over arcs of which some wait for
others. Channels serve one chunk after another, of the streams that have one for them that with the most left to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.collective.tree import Tree
from flitlab.models.jit import njit

Lane = tuple[int, int]
"""Two ranks, of which the first sends to the second."""

LAGS = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""By how many levels of a tree a channel is behind that has sent all chunks of a stream: what is tried for an order.

The first is best where streams are short and have few chunks, the others where they are long or wait for each other.
"""


@dataclass(frozen=True)
class Stream:
    """Parts of the data that take the same way.

    start, goal: who has them, and who needs them (``ALL``: everybody). count: how many parts. arcs: (source, target),
    in an order in which each comes after those that it waits for. after: for every arc, the places of those arcs.
    paths: the switches on each.
    """

    start: int
    goal: int
    count: int
    arcs: tuple[Lane, ...]
    after: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]


class Order(NamedTuple):
    """When chunks begin and end: arrays with a row for each, int64 but for the times, in the order of their begin."""

    stream: Ints
    number: Ints
    arc: Ints
    begin: Floats
    end: Floats


def outwards(tree: Tree, rank: Mapping[int, int], goal: int) -> Stream:
    """The stream from the root of a tree to all its vertices. rank: of a vertex."""
    place = {tree.root: -1}
    arcs: list[Lane] = []
    after: list[tuple[int, ...]] = []
    for path in tree.paths:
        before = place[path[0]]
        place[path[-1]] = len(arcs)
        arcs.append((rank[path[0]], rank[path[-1]]))
        after.append((before,) if before >= 0 else ())
    return Stream(rank[tree.root], goal, tree.count, tuple(arcs), tuple(after), tree.paths)


def backwards(stream: Stream, start: int) -> Stream:
    """The stream whose arcs lead the other way, in the other order: what went out to many is gathered from them."""
    last = len(stream.arcs) - 1
    after: list[list[int]] = [[] for _ in stream.arcs]
    for place, waited in enumerate(stream.after):
        for other in waited:
            after[last - other].append(last - place)
    return Stream(
        start, stream.start, stream.count, tuple((b, a) for a, b in reversed(stream.arcs)),
        tuple(tuple(sorted(some)) for some in after), tuple(path[::-1] for path in reversed(stream.paths)),
    )  # fmt: skip


def joined(into: Stream, out: Stream) -> Stream:
    """One stream after another: what has been gathered at a rank goes out from there, when all of it is there."""
    offset = len(into.arcs)
    entering = tuple(place for place, (_, target) in enumerate(into.arcs) if target == out.start)
    after = tuple(
        tuple(place + offset for place in waited) if waited else entering for waited in out.after
    )  # fmt: skip
    return Stream(into.start, out.goal, into.count, into.arcs + out.arcs, into.after + after, into.paths + out.paths)


def pipelined(streams: Sequence[Stream], chunks: int, rate: Mapping[Lane, Fraction | float]) -> Order:
    """The order of all chunks, ``chunks`` for each part, that ends first of those that are tried.

    rate: of every lane, parts in a unit of time.
    """
    lanes = {lane: i for i, lane in enumerate(dict.fromkeys(arc for stream in streams for arc in stream.arcs))}
    first = np.cumsum([0, *(len(stream.arcs) for stream in streams)])
    lane = np.array([lanes[arc] for stream in streams for arc in stream.arcs], np.int64)
    after = [[first[i] + k for k in waited] for i, stream in enumerate(streams) for waited in stream.after]
    stream = np.repeat(np.arange(len(streams)), np.diff(first))
    count = np.array([stream.count * chunks for stream in streams], np.int64)
    duration = np.array([1 / float(rate[arc]) / chunks for arc in lanes])
    of_lane = np.argsort(lane, kind="stable")
    before, waiting = _table(after), _table(_turned(after))
    lane_first = np.searchsorted(lane[of_lane], np.arange(len(lanes) + 1))
    tried = (
        _serve(stream, count, lane, duration, lane_first, of_lane, *before, *waiting, _heights(after), lag)
        for lag in LAGS
    )
    place, number, begin, end = min(tried, key=lambda order: order[-1].max(initial=0.0))
    order = np.argsort(begin, kind="stable")
    place = place[order]
    return Order(stream[place], number[order], place - first[stream[place]], begin[order], end[order])


def _turned(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """For every arc, those that wait for it."""
    found: list[list[int]] = [[] for _ in after]
    for arc, waited in enumerate(after):
        for other in waited:
            found[other].append(arc)
    return found


def _table(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Lists as one array, and where each begins in it."""
    flat = np.array([entry for entries in lists for entry in entries], np.int64)
    return np.cumsum([0, *map(len, lists)]), flat


def _heights(after: Sequence[Sequence[int]]) -> Ints:
    """int64 [arcs]: how many arcs follow one another at most, of those that wait for an arc."""
    found = np.zeros(len(after), np.int64)
    for arc in range(len(after) - 1, -1, -1):
        for other in after[arc]:
            found[other] = max(found[other], found[arc] + 1)
    return found


@njit
def _serve(
    stream: Ints, count: Ints, lane: Ints, duration: Floats, lane_first: Ints, lane_arcs: Ints, before_first: Ints,
    before: Ints, waiting_first: Ints, waiting: Ints, height: Ints, lag: float,
) -> tuple[Ints, Ints, Floats, Floats]:  # fmt: skip
    """Serve all chunks; returns (arc, number of the chunk in its stream, begin, end) of each.

    stream, lane, height: int64 [arcs]. count: int64 [streams], chunks. duration: float64 [lanes], time of a chunk.
    lag: see :data:`LAGS`. The other pairs are lists: the arcs of a lane, those before an arc, and those that wait for
    it.
    """
    arcs, lanes = len(stream), len(duration)
    sent, there = np.zeros(arcs, np.int64), np.zeros(arcs, np.int64)
    total = 0
    for arc in range(arcs):
        total += count[stream[arc]]
    place, number = np.empty(total, np.int64), np.empty(total, np.int64)
    begin, end = np.empty(total), np.empty(total)
    serving = np.full(lanes, -1, np.int64)
    until = np.full(lanes, np.inf)
    done = 0
    look = np.ones(lanes, np.bool_)  # lanes that may have something to send
    now = 0.0
    while True:
        for one in range(lanes):
            if not look[one] or serving[one] >= 0:
                continue
            look[one] = False
            best, most = -1, -np.inf
            for k in range(lane_first[one], lane_first[one + 1]):
                arc = lane_arcs[k]
                ready = count[stream[arc]]
                for b in range(before_first[arc], before_first[arc + 1]):
                    ready = min(ready, there[before[b]])
                if sent[arc] < ready:
                    urgency = height[arc] - lag * (sent[arc] + 0.5) / count[stream[arc]]
                    if urgency > most:
                        best, most = arc, urgency
            if best >= 0:
                serving[one] = best
                until[one] = now + duration[one]
                place[done], number[done], begin[done], end[done] = best, sent[best], now, until[one]
                sent[best] += 1
                done += 1
        now = until.min()
        if now == np.inf:
            break
        for one in range(lanes):
            if serving[one] >= 0 and until[one] <= now * (1 + 1e-12):
                arc = serving[one]
                there[arc] += 1
                serving[one], until[one], look[one] = -1, np.inf, True
                for w in range(waiting_first[arc], waiting_first[arc + 1]):
                    look[lane[waiting[w]]] = True
    return place[:done], number[:done], begin[:done], end[:done]
