# SPDX-License-Identifier: Apache-2.0
"""Time spans in which ranks are active, and the time that their union covers."""

from typing import NamedTuple, Self

import numpy as np

from flitlab.models.application.program import Op, Program
from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.sim.engines.base import Execution


class Spans(NamedTuple):
    """Spans [start, end) of ranks, in any order; int64 [spans] each. operation: the operation of each."""

    rank: Ints
    start: Ints
    end: Ints
    operation: Ints

    def only(self, some: Bools) -> Self:
        """Return the spans selected by ``some``, bool [spans]."""
        return type(self)(*(part[some] for part in self))

    def joined(self, other: Self) -> Self:
        """Return the spans of both, these first."""
        return type(self)(*(np.concatenate(parts) for parts in zip(self, other, strict=True)))


def busy_spans(program: Program, execution: Execution, hold: Ints, part: slice) -> Spans:
    """Return when the operations of a part of the program hold their processors.

    hold: int64 [operations], time units for which each operation holds its processor. part: slice of operations.
    """
    some = part.start + np.flatnonzero((hold[part] > 0) & (execution.start[part] >= 0))
    start = execution.start[some]
    return Spans(program.rank[some], start, start + hold[some], some)


def communicating_spans(program: Program, execution: Execution, part: slice) -> Spans:
    """Return when messages sent by a part of the program are in flight, or receives of it wait for theirs.

    part: slice of operations.
    """
    kind = program.kind[part]
    send = part.start + np.flatnonzero((kind == Op.SEND) & (execution.delivered[part] >= 0))
    receive = part.start + np.flatnonzero((kind == Op.RECV) & (execution.start[part] >= 0))
    start = np.concatenate([execution.queued[send], execution.ready[receive]])
    end = np.concatenate([execution.delivered[send], execution.start[receive]])
    some = np.concatenate([send, receive])
    return Spans(program.rank[some], start, end, some)


def union_lengths(spans: Spans, ranks: int) -> Ints:
    """Return how long at least one span of each rank lasts, int64 [ranks]."""
    order = np.lexsort((spans.start, spans.rank))
    rank, start, end = (part[order] for part in spans[:3])
    apart = int(end.max(initial=0)) + 1
    shift = rank.astype(np.int64) * apart  # ranks one after another, so that one sweep serves all
    reached = np.maximum.accumulate(np.concatenate([[0], end + shift]))[:-1]
    fresh = np.maximum(end + shift - np.maximum(start + shift, reached), 0)
    return np.bincount(rank, fresh, ranks).astype(np.int64)


def union_until(spans: Spans, times: Floats) -> Floats:
    """Return how long at least one span has lasted up to each time, float64 [times]."""
    if not len(spans.start):
        return np.zeros(len(times))
    order = np.argsort(spans.start, kind="stable")
    start, end = spans.start[order], np.maximum.accumulate(spans.end[order])
    first = np.flatnonzero(np.concatenate([[True], start[1:] > end[:-1]]))
    begin, close = start[first], end[np.append(first[1:] - 1, len(end) - 1)]
    corners = np.stack([begin, close], axis=1).ravel().astype(float)
    covered = np.stack([np.zeros(len(begin)), close - begin], axis=1).ravel().cumsum()
    lasted: Floats = np.interp(times, corners, covered, left=0.0)
    return lasted
