# SPDX-License-Identifier: Apache-2.0
"""Schedules from trees: every collective along out-trees, in-trees, or both."""

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
    """Streams of an all-gather: the data of every root goes out along its trees. rank: of a vertex."""
    return [broadcast_stream(tree, rank, ALL) for tree in trees]


def reduce_scatter_streams(trees: Iterable[Tree], rank: Mapping[int, int]) -> list[Stream]:
    """Streams of a reduce-scatter, along trees of the reversed network: what is for the root comes in along them."""
    return [reversed_stream(broadcast_stream(tree, rank, ALL), ALL) for tree in trees]


def all_reduce_streams(pairs: Iterable[tuple[Tree, Tree]], rank: Mapping[int, int]) -> list[Stream]:
    """Streams of an all-reduce: the sum comes in to a root along the first tree, and goes out along the second.

    pairs: of trees with the same root and count, the first of the reversed network.
    """
    streams = []
    for into, out in pairs:
        streams.append(
            chained_streams(reversed_stream(broadcast_stream(into, rank, ALL), ALL), broadcast_stream(out, rank, ALL))
        )
    return streams


def build_schedule(
    kind: str, ranks: int, parts: int, streams: Sequence[Stream], chunks: int, rate: Mapping[RankPair, Fraction | float],
    root: int = 0,
) -> Schedule:  # fmt: skip
    """The schedule of streams, each part of the data cut into ``chunks``.

    parts: of a piece of the data, as many as the streams of one piece count together. rate: of every lane, parts in a
    unit of time; it decides the order alone.
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
        parts=parts * chunks, chunk=first[order.stream] + order.number, source=arcs[arc_of_send, 0], target=arcs[arc_of_send, 1],
        step=step,
    )  # fmt: skip
