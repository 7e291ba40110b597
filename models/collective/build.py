# SPDX-License-Identifier: Apache-2.0
"""Schedules of collectives from out-trees, in-trees, or both."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from flitlab.models.collective.pipeline import (
    RankPair,
    Stream,
    broadcast_stream,
    chained_streams,
    chunk_order,
    reversed_stream,
)
from flitlab.models.collective.schedule import ALL, Schedule
from flitlab.models.collective.tree import Tree


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
