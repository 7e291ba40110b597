# SPDX-License-Identifier: Apache-2.0
"""Schedules of collectives: which chunk goes from which rank to which rank in which step."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from flitlab.models.arrays import Bools, Ints, Masks
from flitlab.models.jit import kernel, njit

ALL = -1
"""Stands for all ranks."""

MAX_RANKS = 65_536
"""Most ranks of a schedule in a file; checking it takes an eighth of the square in bytes."""


@dataclass(frozen=True)
class CollectiveKind:
    """The definition of a collective.

    pieces: for N ranks and a root, the pairs (rank that has the data at first, rank that needs it in the end) of its
    pieces, either of them ``ALL``; data that all ranks have at first is reduced. share: size of a piece as a share of
    S, the size in which results state bandwidth (NCCL tests, PERFORMANCE.md). bus: factor of N from ``algbw`` to
    ``busbw``, the bandwidth of the busiest channel of a rank.
    """

    pieces: Callable[[int, int], Iterable[tuple[int, int]]]
    share: Callable[[int], Fraction]
    bus: Callable[[int], Fraction]


def _per_rank(ranks: int) -> Fraction:
    return Fraction(1, ranks)


def _full_size(ranks: int) -> Fraction:
    return Fraction(1)


def _other_ranks(ranks: int) -> Fraction:
    return Fraction(ranks - 1, ranks)


CollectiveName = Literal[
    "all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce", "gather", "scatter", "all_to_all"
]  # fmt: skip
"""Names of the collectives that have schedules."""

KINDS: dict[str, CollectiveKind] = {
    "all_gather": CollectiveKind(lambda n, root: ((r, ALL) for r in range(n)), _per_rank, _other_ranks),
    "reduce_scatter": CollectiveKind(lambda n, root: ((ALL, r) for r in range(n)), _per_rank, _other_ranks),
    "all_reduce": CollectiveKind(lambda n, root: [(ALL, ALL)], _full_size, lambda n: 2 * _other_ranks(n)),
    "broadcast": CollectiveKind(lambda n, root: [(root, ALL)], _full_size, _full_size),
    "reduce": CollectiveKind(lambda n, root: [(ALL, root)], _full_size, _full_size),
    "gather": CollectiveKind(lambda n, root: ((r, root) for r in range(n) if r != root), _per_rank, _other_ranks),
    "scatter": CollectiveKind(lambda n, root: ((root, r) for r in range(n) if r != root), _per_rank, _other_ranks),
    "all_to_all": CollectiveKind(
        lambda n, root: ((s, t) for s in range(n) for t in range(n) if s != t), _per_rank, _other_ranks
    ),
}
"""The collectives that have schedules, by name."""


CHUNK_ERRORS = {
    1: "is sent by rank {}, which has nothing of it then",
    2: "is sent to rank {}, which has a part of it already",
    3: "does not reach rank {} complete",
}
"""Errors of a chunk, by the code that :func:`_follow_chunks` returns."""


class ScheduleError(ValueError):
    """A schedule does not implement its collective; the message names the chunk and the rank."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """The sends of a collective in steps.

    A rank sends what it has of a chunk before the step; of reduced data, the sum of its own and all received
    contributions.

    kind: the collective. ranks: number of ranks. start, goal: int64 [chunks], the rank that has a chunk at first and
    the rank that needs it in the end (``ALL``: all ranks; data that all ranks have at first is reduced). amount: int64
    [chunks], size in parts. parts: parts per piece (see :class:`CollectiveKind`). chunk, source, target, step: int64
    [sends], sorted by step. root: of collectives that have one.
    """

    kind: str
    ranks: int
    start: Ints
    goal: Ints
    amount: Ints
    parts: int
    chunk: Ints
    source: Ints
    target: Ints
    step: Ints
    root: int = 0

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.start)

    @property
    def sends(self) -> int:
        """Number of messages, each with one chunk."""
        return len(self.chunk)


def check(schedule: Schedule) -> None:
    """Raise :class:`ScheduleError` unless the schedule implements its collective.

    The chunks make up the data; no rank sends data that it does not have; no contribution is added twice; in the end
    every rank has what it needs, complete.
    """
    _check_pieces(schedule)
    s = schedule
    if len(s.chunk) and (min(s.source.min(), s.target.min()) < 0 or max(s.source.max(), s.target.max()) >= s.ranks):
        raise ScheduleError(f"ranks are 0 to {s.ranks - 1}")
    order = np.lexsort((s.step, s.chunk))
    first = np.searchsorted(s.chunk[order], np.arange(s.chunks + 1))
    error, chunk, rank = _follow_chunks(
        s.ranks, s.start, s.goal, first, s.source[order], s.target[order], s.step[order]
    )
    if error:
        text = CHUNK_ERRORS[error]
        raise ScheduleError(f"chunk {chunk} {text.format(rank)}")


def _check_pieces(s: Schedule) -> None:
    amounts: dict[tuple[int, int], int] = {}
    for start, goal, amount in zip(s.start.tolist(), s.goal.tolist(), s.amount.tolist(), strict=True):
        amounts[start, goal] = amounts.get((start, goal), 0) + amount
    for piece in KINDS[s.kind].pieces(s.ranks, s.root):
        if amounts.pop(piece, 0) != s.parts:
            raise ScheduleError(f"the chunks of {_describe_piece(piece)} are not all of it")
    if amounts:
        raise ScheduleError(f"{_describe_piece(next(iter(amounts)))} is no piece of a collective {s.kind}")


def collective_of(ranks: int, start: Ints, goal: Ints) -> tuple[str, int]:
    """Return the collective without reduction that consists of these pieces, and its root (0 without one).

    Parameters
    ----------
    ranks: number of ranks.
    start, goal: int64 [chunks], as in :class:`Schedule`.

    Raises
    ------
    ScheduleError: there is none.
    """
    pieces = set(zip(start.tolist(), goal.tolist(), strict=True))
    starts, goals = ({piece[end] for piece in pieces} for end in (0, 1))
    rooted = {"broadcast": (starts, 1), "scatter": (starts, ranks - 1), "gather": (goals, ranks - 1)}
    candidates = [("all_gather", 0, ranks), ("all_to_all", 0, ranks * (ranks - 1))]
    candidates += [(kind, min(roots), count) for kind, (roots, count) in rooted.items() if len(roots) == 1]
    for kind, root, count in candidates:
        if len(pieces) == count and pieces == set(KINDS[kind].pieces(ranks, root)):
            return kind, root
    to_all = [piece for piece in sorted(pieces) if piece[1] == ALL]
    to_one = [piece for piece in sorted(pieces) if piece[1] != ALL]
    rarer = min((some for some in (to_all, to_one) if some), key=len)
    raise ScheduleError(f"{_describe_piece(rarer[0])}, among {len(pieces)} pieces, is of no collective of all ranks")


def _describe_piece(piece: tuple[int, int]) -> str:
    start, goal = ("all ranks" if end == ALL else f"rank {end}" for end in piece)
    return f"what {start} has for {goal}"


@kernel
def _equal(one: Masks, other: Masks) -> bool:
    equal = True
    for word in range(len(one)):
        equal &= one[word] == other[word]
    return equal


@kernel
def _add(carried: Masks, has: Masks) -> bool:
    """Add contributions to those that a rank has; False if it has one of them."""
    for word in range(len(has)):
        if has[word] & carried[word]:
            return False
        has[word] |= carried[word]
    return True


@njit
def _follow_chunks(
    ranks: int, start: Ints, goal: Ints, first: Ints, source: Ints, target: Ints, step: Ints
) -> tuple[int, int, int]:
    """Simulate the sends of every chunk; return (error, chunk, rank), (0, -1, -1) without errors.

    Parameters
    ----------
    ranks: number of ranks.
    start, goal: int64 [chunks], as in :class:`Schedule`.
    first: int64 [chunks + 1]; the sends of chunk c, by step, are first[c] .. first[c + 1] - 1.
    source, target, step: int64 [sends], in that order.

    Returns
    -------
    error: 1 nothing to send, 2 added twice, 3 incomplete.
    """
    words = (ranks + 63) // 64
    has = np.zeros((ranks, words), np.uint64)
    most = 0
    for chunk in range(len(start)):
        most = max(most, first[chunk + 1] - first[chunk])
    carried = np.zeros((most, words), np.uint64)
    full = np.zeros(words, np.uint64)
    for rank in range(ranks):
        full[rank // 64] |= np.uint64(1) << np.uint64(rank % 64)
    for chunk in range(len(start)):
        has[:] = 0
        for rank in range(ranks):
            if start[chunk] < 0 or start[chunk] == rank:
                has[rank, rank // 64] |= np.uint64(1) << np.uint64(rank % 64)
        i = first[chunk]
        while i < first[chunk + 1]:
            end = i
            while end < first[chunk + 1] and step[end] == step[i]:
                if not has[source[end]].any():
                    return 1, chunk, source[end]
                carried[end - i] = has[source[end]]
                end += 1
            for j in range(i, end):
                if start[chunk] < 0 and _equal(carried[j - i], full):
                    has[target[j]] = full
                elif not _add(carried[j - i], has[target[j]]):
                    return 2, chunk, target[j]
            i = end
        needed = full.copy()
        if start[chunk] >= 0:
            needed[:] = 0
            needed[start[chunk] // 64] = np.uint64(1) << np.uint64(start[chunk] % 64)
        for rank in range(ranks):
            if (goal[chunk] < 0 or goal[chunk] == rank) and not _equal(has[rank], needed):
                return 3, chunk, rank
    return 0, -1, -1


def complete_sends(schedule: Schedule) -> Bools:
    """Return whether each send carries a complete chunk, which the receiver stores without reducing: bool [sends].

    Chunks that are never reduced are always complete; others from the step on in which a rank has all contributions.
    The schedule must pass :func:`check`.
    """
    order = np.lexsort((schedule.step, schedule.chunk))
    sorted_complete = np.ones(len(order), np.bool_)
    first = np.searchsorted(schedule.chunk[order], np.arange(schedule.chunks + 1))
    _find_complete(schedule.ranks, schedule.start, first, schedule.source[order], schedule.target[order],
          schedule.step[order], sorted_complete)  # fmt: skip
    complete = np.empty(len(order), np.bool_)
    complete[order] = sorted_complete
    return complete


@njit
def _find_complete(
    ranks: int, start: Ints, first: Ints, source: Ints, target: Ints, step: Ints, complete: Bools
) -> None:
    """Set ``complete``, bool [sends] in the order of :func:`_follow_chunks`, to False for incomplete chunks."""
    count = np.ones(ranks, np.int64)
    carried = np.zeros(len(source), np.int64)
    for chunk in range(len(start)):
        if start[chunk] >= 0:
            continue
        count[:] = 1
        i = first[chunk]
        while i < first[chunk + 1]:
            end = i
            while end < first[chunk + 1] and step[end] == step[i]:
                carried[end] = count[source[end]]
                end += 1
            for j in range(i, end):
                complete[j] = carried[j] == ranks
                count[target[j]] = ranks if complete[j] else count[target[j]] + carried[j]
            i = end
