# SPDX-License-Identifier: Apache-2.0
"""Schedules from trees: list scheduling of chunks over trees that share channels.

A stream is the traffic of one tree: ``count`` parts of the data, each divided into chunks, over arcs with dependencies.
A channel sends one chunk at a time, of the stream with the most remaining work.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int, Ints
from flitlab.models.collective.schedule import ALL, Schedule
from flitlab.models.collective.tree import Tree
from flitlab.models.jit import kernel, njit

RankPair = tuple[int, int]
"""Two ranks, of which the first sends to the second."""

LAGS = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Priority penalties that are tried: levels of a tree that an arc loses once it has sent all chunks of a stream.

The first is best where streams are short and have few chunks, the others where they are long or depend on each other.
"""


@dataclass(frozen=True)
class Stream:
    """Parts of the data that take the same paths.

    start, goal: the rank that has them and the rank that needs them (``ALL``: all ranks). count: number of parts. arcs:
    (source, target), each after the arcs on which it depends. after: for every arc, the indices of those arcs. paths:
    the switches on each arc.
    """

    start: int
    goal: int
    count: int
    arcs: tuple[RankPair, ...]
    after: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]


class ChunkOrder(NamedTuple):
    """Transmission times of chunks: arrays with a row per transmission, in ascending order of begin.

    stream, number, arc: int64, the stream, the chunk's number in it, and the arc of the stream. begin, end: float64, in
    the unit of time of the rates.
    """

    stream: Ints
    number: Ints
    arc: Ints
    begin: Floats
    end: Floats


def broadcast_stream(tree: Tree, rank: Mapping[int, int], goal: int) -> Stream:
    """Return the stream from the root of a tree to all its vertices.

    Parameters
    ----------
    tree: the tree.
    rank: the rank of a vertex.
    goal: rank that needs the data, or ``ALL``.
    """
    arc_to = {tree.root: -1}
    arcs: list[RankPair] = []
    after: list[tuple[int, ...]] = []
    for path in tree.paths:
        predecessor = arc_to[path[0]]
        arc_to[path[-1]] = len(arcs)
        arcs.append((rank[path[0]], rank[path[-1]]))
        after.append((predecessor,) if predecessor >= 0 else ())
    return Stream(rank[tree.root], goal, tree.count, tuple(arcs), tuple(after), tree.paths)


def reversed_stream(stream: Stream, start: int) -> Stream:
    """Return the stream with reversed arcs in reversed order: a gather instead of a broadcast. start: rank, or
    ``ALL``.
    """
    last = len(stream.arcs) - 1
    after: list[list[int]] = [[] for _ in stream.arcs]
    for arc, predecessors in enumerate(stream.after):
        for other in predecessors:
            after[last - other].append(last - arc)
    return Stream(
        start, stream.start, stream.count, tuple((b, a) for a, b in reversed(stream.arcs)),
        tuple(tuple(sorted(some)) for some in after), tuple(path[::-1] for path in reversed(stream.paths)),
    )  # fmt: skip


def chained_streams(into: Stream, out: Stream) -> Stream:
    """Return one stream followed by another: data gathered at a rank leaves it when all of it has arrived."""
    offset = len(into.arcs)
    arcs_to_root = tuple(arc for arc, (_, target) in enumerate(into.arcs) if target == out.start)
    after = tuple(
        tuple(arc + offset for arc in predecessors) if predecessors else arcs_to_root for predecessors in out.after
    )  # fmt: skip
    return Stream(into.start, out.goal, into.count, into.arcs + out.arcs, into.after + after, into.paths + out.paths)


class _Lists(NamedTuple):
    """Lists of arcs: those of i are arc[first[i]:first[i + 1]]."""

    first: Ints
    arc: Ints


class _Arcs(NamedTuple):
    """The arcs of all streams.

    stream, pair, height: int64 [arcs]: stream, pair of ranks, and :func:`_heights`. of_pair: arcs of each pair.
    predecessors: arcs on which each arc depends. successors: arcs that depend on it.
    """

    stream: Ints
    pair: Ints
    height: Ints
    of_pair: _Lists
    predecessors: _Lists
    successors: _Lists


def chunk_order(streams: Sequence[Stream], chunks: int, rate: Mapping[RankPair, Fraction | float]) -> ChunkOrder:
    """Return the transmission order of all chunks with the earliest end among those of :data:`LAGS`.

    Parameters
    ----------
    streams: what each tree carries.
    chunks: chunks per part.
    rate: parts per unit of time of every pair of ranks.
    """
    pair_ids = {pair: i for i, pair in enumerate(dict.fromkeys(arc for stream in streams for arc in stream.arcs))}
    first = np.cumsum([0, *(len(stream.arcs) for stream in streams)])
    pair = np.array([pair_ids[arc] for stream in streams for arc in stream.arcs], np.int64)
    after = [[first[i] + k for k in predecessors] for i, stream in enumerate(streams) for predecessors in stream.after]
    stream = np.repeat(np.arange(len(streams)), np.diff(first))
    count = np.array([stream.count * chunks for stream in streams], np.int64)
    duration = np.array([1 / float(rate[arc]) / chunks for arc in pair_ids])
    pair_arcs = np.argsort(pair, kind="stable")
    of_pair = _Lists(np.searchsorted(pair[pair_arcs], np.arange(len(pair_ids) + 1)), pair_arcs)
    arcs = _Arcs(stream, pair, _heights(after), of_pair, _flattened(after), _flattened(_successors(after)))
    orders = (_serve_chunks(arcs, count, duration, lag) for lag in LAGS)
    order_arc, number, begin, end = min(orders, key=lambda order: order[-1].max(initial=0.0))
    order = np.argsort(begin, kind="stable")
    order_arc = order_arc[order]
    return ChunkOrder(stream[order_arc], number[order], order_arc - first[stream[order_arc]], begin[order], end[order])


def _successors(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the arcs that depend on each arc."""
    successors: list[list[int]] = [[] for _ in after]
    for arc, predecessors in enumerate(after):
        for other in predecessors:
            successors[other].append(arc)
    return successors


def _flattened(lists: Sequence[Sequence[int]]) -> _Lists:
    flat = np.array([entry for entries in lists for entry in entries], np.int64)
    return _Lists(np.cumsum([0, *map(len, lists)]), flat)


def _heights(after: Sequence[Sequence[int]]) -> Ints:
    """Return the length of the longest chain of arcs that depend on each arc: int64 [arcs]."""
    heights = np.zeros(len(after), np.int64)
    for arc in range(len(after) - 1, -1, -1):
        for other in after[arc]:
            heights[other] = max(heights[other], heights[arc] + 1)
    return heights


@kernel
def _most_urgent(arcs: _Arcs, count: Ints, sent: Ints, received: Ints, channel: int, lag: float) -> Int:
    """The arc of a pair of ranks that sends its next chunk first, -1: none has one."""
    best, best_urgency = np.int64(-1), -np.inf
    for k in range(arcs.of_pair.first[channel], arcs.of_pair.first[channel + 1]):
        arc = arcs.of_pair.arc[k]
        chunks = count[arcs.stream[arc]]
        ready = chunks
        for b in range(arcs.predecessors.first[arc], arcs.predecessors.first[arc + 1]):
            ready = min(ready, received[arcs.predecessors.arc[b]])
        if sent[arc] < ready:
            urgency = arcs.height[arc] - lag * (sent[arc] + 0.5) / chunks
            if urgency > best_urgency:
                best, best_urgency = arc, urgency
    return best


@njit
def _serve_chunks(arcs: _Arcs, count: Ints, duration: Floats, lag: float) -> tuple[Ints, Ints, Floats, Floats]:
    """Transmit all chunks; return (arc, number of the chunk in its stream, begin, end) of each transmission.

    Parameters
    ----------
    arcs: the arcs.
    count: int64 [streams], chunks.
    duration: float64 [pairs], time of a chunk.
    lag: see :data:`LAGS`.
    """
    pairs, successors = len(duration), arcs.successors
    sent, received = np.zeros(len(arcs.stream), np.int64), np.zeros(len(arcs.stream), np.int64)
    total = 0
    for i in arcs.stream:
        total += count[i]
    order_arc, number = np.empty(total, np.int64), np.empty(total, np.int64)
    begin, end = np.empty(total), np.empty(total)
    serving = np.full(pairs, -1, np.int64)
    busy_until = np.full(pairs, np.inf)
    done = 0
    pending = np.ones(pairs, np.bool_)  # pairs that may have a chunk to send
    time = 0.0
    while True:
        for channel in range(pairs):
            if not pending[channel] or serving[channel] >= 0:
                continue
            pending[channel] = False
            best = _most_urgent(arcs, count, sent, received, channel, lag)
            if best >= 0:
                serving[channel] = best
                busy_until[channel] = time + duration[channel]
                order_arc[done], number[done], begin[done], end[done] = best, sent[best], time, busy_until[channel]
                sent[best] += 1
                done += 1
        time = busy_until.min()
        if time == np.inf:
            break
        for channel in range(pairs):
            if serving[channel] >= 0 and busy_until[channel] <= time * (1 + 1e-12):
                arc = serving[channel]
                received[arc] += 1
                serving[channel], busy_until[channel], pending[channel] = -1, np.inf, True
                for w in range(successors.first[arc], successors.first[arc + 1]):
                    pending[arcs.pair[successors.arc[w]]] = True
    return order_arc[:done], number[:done], begin[:done], end[:done]


def all_gather_streams(trees: Iterable[Tree], rank: Mapping[int, int]) -> list[Stream]:
    """Return the streams of an all-gather: each root's data flows out along its trees. rank: the rank of a vertex."""
    return [broadcast_stream(tree, rank, ALL) for tree in trees]


def reduce_scatter_streams(trees: Iterable[Tree], rank: Mapping[int, int]) -> list[Stream]:
    """Return the streams of a reduce-scatter: each root's data flows in, along trees of the reversed network."""
    return [reversed_stream(broadcast_stream(tree, rank, ALL), ALL) for tree in trees]


def all_reduce_streams(pairs: Iterable[tuple[Tree, Tree]], rank: Mapping[int, int]) -> list[Stream]:
    """Return the streams of an all-reduce: data is reduced to a root and broadcast from it.

    pairs: (tree of the reversed network, tree), both with the same root and count. rank: the rank of a vertex.
    """
    streams = []
    for into, out in pairs:
        streams.append(
            chained_streams(reversed_stream(broadcast_stream(into, rank, ALL), ALL), broadcast_stream(out, rank, ALL))
        )
    return streams


def build_schedule(
    kind: str, ranks: int, parts: int, streams: Sequence[Stream], chunks: int,
    rate: Mapping[RankPair, Fraction | float], root: int = 0,
) -> Schedule:  # fmt: skip
    """Build the schedule of streams; each part of the data is divided into ``chunks`` chunks.

    Parameters
    ----------
    kind: name of the collective.
    ranks: number of ranks.
    parts: parts of a piece of the data; the counts of the streams of one piece add up to it.
    streams: what each tree carries.
    chunks: chunks per part.
    rate: parts per unit of time of every pair of ranks; it determines only the order.
    root: rank, of collectives that have one.
    """
    order = chunk_order(streams, chunks, rate)
    count = np.array([stream.count * chunks for stream in streams], np.int64)
    first = np.concatenate([[0], np.cumsum(count)])
    arc_first = np.cumsum([0, *(len(stream.arcs) for stream in streams)])
    arcs = np.array([arc for stream in streams for arc in stream.arcs], np.int64).reshape(-1, 2)
    arc_of_send = arc_first[order.stream] + order.arc
    _, step = np.unique(order.begin, return_inverse=True)
    return Schedule(
        kind=kind, ranks=ranks, root=root, start=np.repeat([stream.start for stream in streams], count),
        goal=np.repeat([stream.goal for stream in streams], count), amount=np.ones(first[-1], np.int64),
        parts=parts * chunks, chunk=first[order.stream] + order.number, source=arcs[arc_of_send, 0],
        target=arcs[arc_of_send, 1], step=step,
    )  # fmt: skip
