# SPDX-License-Identifier: Apache-2.0
"""Parts of a program that cannot overlap in time, on any network.

A step is a *separator* if it is synchronising and, in every rank, its operations are contiguous, wait for all earlier
ones, and are awaited by all later ones. Everything before a separator ends before anything after it begins.
"""

import numpy as np

from flitlab.models.application.program import Op, Program
from flitlab.models.arrays import Bools, Integers, Ints32, scratch
from flitlab.models.jit import device_function


@device_function
def _links(
    start: Integers, kind: Integers, after: Integers, successor: Integers, first: Integers, last: Integers, tidy: Bools
) -> None:
    """First and last dependents and dependencies of each operation; only ends count, as starts prove nothing.

    first: int64 [operations], the first operation that waits for its end, the end of the rank if there is none; -1 of a
    send without dependents, as its message counts at the receiver. last: int64 [operations], the last operation whose
    end it waits for, -1 if there is none. tidy: bool [ranks], whether all wait for earlier ones only.
    """
    for r in range(len(start) - 1):
        tidy[r] = True
        for o in range(start[r], start[r + 1]):
            last[o] = -1
        for o in range(start[r], start[r + 1]):
            dangling = kind[o] == Op.SEND
            for k in range(after[o], after[o + 1]):
                if successor[k] & 1 == 0:
                    dangling = False
                    waiting = successor[k] >> 1
                    tidy[r] &= waiting > o
                    last[waiting] = max(last[waiting], o)
            first[o] = -1 if dangling else start[r + 1]
        for o in range(start[r], start[r + 1]):
            for k in range(after[o], after[o + 1]):
                waiting = successor[k] >> 1
                if successor[k] & 1 == 0 and first[waiting] >= 0 and first[o] >= 0:
                    first[o] = min(first[o], waiting)


@device_function
def _open(begin: int, end: int, first: Integers, count: Integers) -> None:
    """Set count[k - begin] to the operations before k that k must wait for, as nothing between waits for them."""
    for o in range(begin, end):
        if first[o] >= 0:
            count[o + 1 - begin] += 1
            if first[o] + 1 - begin < len(count):
                count[first[o] + 1 - begin] -= 1
    for k in range(1, end - begin + 1):
        count[k] += count[k - 1]


@device_function
def _clean(
    begin: int,
    end: int,
    bound: Integers,
    first: Integers,
    last: Integers,
    awaited: tuple[Integers, Integers],
    open_: Integers,
    clean: Bools,
) -> None:
    """Set clean[i]: whether all operations from bound[i] on wait for all before it.

    awaited: (start, operations), the operations whose ends each one waits for. open_: from :func:`_open`.
    """
    start, operation = awaited
    for i in range(len(bound)):
        clean[i] = True
    for o in range(begin, end):
        high = len(bound)
        while high > 0 and bound[high - 1] > o:  # boundaries up to o
            high -= 1
        while high > 0 and bound[high - 1] > last[o]:  # nothing from there on is waited for
            high -= 1
            k = bound[high]
            if clean[high]:
                covered = 0
                for e in range(start[o], start[o + 1]):
                    covered += first[operation[e]] >= k
                clean[high] = covered == open_[k - begin]


def separators(program: Program) -> list[int]:
    """The separating steps, in the order in which all ranks reach them.

    Parameters
    ----------
    program: the program.
    """
    synchronising = np.flatnonzero([step.synchronising for step in program.steps])
    if not len(synchronising) or not program.operations:
        return []
    first, last = scratch(program.operations, np.int64), scratch(program.operations, np.int64)
    tidy = np.zeros(program.ranks, np.bool_)
    _links(program.start, program.kind, program.after, program.successor, first, last, tidy)
    if not tidy.all():
        return []
    awaited = _awaited(program)
    order: list[int] | None = None
    for r in range(program.ranks):
        rank_order = _rank_separators(program, r, synchronising, first, last, awaited)
        order = rank_order if order is None else [step for step in order if step in set(rank_order)]
        if not order:
            return []
        common = set(order)
        if [step for step in rank_order if step in common] != order:
            return []  # ranks come to them in different orders
    return order or []


def _awaited(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """The operations whose ends each one waits for: start index, int64 [operations + 1], and operations."""
    at_end = program.successor & 1 == 0
    waiting = program.successor[at_end] >> 1
    source = np.repeat(np.arange(program.operations), np.diff(program.after))[at_end]
    order = np.argsort(waiting, kind="stable")
    counts = np.bincount(waiting, minlength=program.operations)
    return np.concatenate([[0], np.cumsum(counts)]), source[order]


def _rank_separators(
    program: Program,
    r: int,
    synchronising: np.ndarray,
    first: Integers,
    last: Integers,
    awaited: tuple[Integers, Integers],
) -> list[int]:
    """The synchronising steps with contiguous operations and clean boundaries in a rank, in order."""
    begin, end = int(program.start[r]), int(program.start[r + 1])
    step = program.step[begin:end]
    changes = np.flatnonzero(np.diff(step)) + 1
    bound = begin + np.concatenate([[0], changes, [len(step)]])
    run = step[bound[:-1] - begin] if len(step) else step
    open_ = np.zeros(end - begin + 1, np.int64)
    _open(begin, end, first, open_)
    clean = np.zeros(len(bound), np.bool_)
    _clean(begin, end, bound, first, last, awaited, open_, clean)
    once = np.bincount(run, minlength=len(program.steps)) == 1
    good = clean[:-1] & clean[1:] & once[run] & np.isin(run, synchronising)
    steps: list[int] = run[good].tolist()
    return steps


def phases(program: Program) -> Ints32:
    """The phase of each operation, int32 [operations]: 2 a + 1 in the a-th separator, 2 a before it.

    The ends of all receives of phase p precede the starts of all operations of phase q if a separator, an odd phase,
    lies between the two: p < 2 a + 1 < q.

    Parameters
    ----------
    program: the program.
    """
    index_of_step = np.full(len(program.steps), -1, np.int64)
    order = separators(program)
    if not order:
        return scratch(program.operations, np.int32)
    index_of_step[order] = np.arange(len(order))
    inside = index_of_step[program.step]
    # operations of a rank stand in a row, so the separators begun so far are the highest number yet
    begun = np.maximum.accumulate(np.where(inside >= 0, inside + 1, 0) + program.rank * np.int64(len(order) + 1))
    begun -= program.rank * np.int64(len(order) + 1)
    return np.where(inside >= 0, 2 * inside + 1, 2 * begun).astype(np.int32)
