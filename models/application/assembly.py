# SPDX-License-Identifier: Apache-2.0
"""Assembly of rounds into the arrays of a program."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from flitlab.models.application.program import Op, Program, Step
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes


@dataclass(frozen=True)
class Moment:
    """A moment in a thread: the rounds that its ranks have before it."""

    thread: int
    rounds: int


@dataclass
class RoundPlan:
    """Rounds as collected by a :class:`~flitlab.models.application.builder.Builder`.

    rounds: (thread, step) of each. pieces: (round, kind, ranks, nanoseconds or message numbers), by round. messages:
    (sources, targets, bytes, thread), numbered consecutively. waits: (round, moment that its ranks wait for).
    """

    ranks: int
    steps: list[Step] = field(default_factory=list)
    rounds: list[tuple[int, int]] = field(default_factory=list)
    pieces: list[tuple[int, int, np.ndarray, np.ndarray]] = field(default_factory=list)
    messages: list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] = field(default_factory=list)
    waits: list[tuple[int, Moment]] = field(default_factory=list)


def assemble(plan: RoundPlan, simulated: int, iterations: int, notes: Notes) -> Program:
    """The program of a round plan.

    Operations of a rank in a round form a group. All of a group wait for all of the rank's previous group in the
    thread. Where that needs more dependencies than operations, a calculation of no time, the group's head, stands
    between.

    Parameters
    ----------
    plan: the rounds.
    simulated, iterations: as in ``Program``.
    notes: of the program.

    Returns
    -------
    The program.

    Raises
    ------
    ValueError: a message is not sent or received exactly once.
    """
    groups = _Groups(plan)
    before, after = groups.links()
    count = groups.size[before], groups.size[after]
    headed = count[0] * count[1] > count[0] + count[1]
    heads = np.zeros(len(groups.first), np.int64)
    heads[after[headed]] = 1
    first_operation = groups.first + np.cumsum(heads)
    tails, waiting = _dependencies(
        first_operation, groups.size, before[~headed], after[~headed], before[headed], after[headed]
    )
    # A head stands before its group and copies the group's first operation, except for kind and amount.
    copies = np.ones(len(groups.rank), np.int64)
    copies[groups.first] += heads
    source = np.repeat(np.arange(len(groups.rank)), copies)
    kind, value = groups.kind[source], groups.value[source]
    is_head = first_operation[heads == 1] - 1
    kind[is_head], value[is_head] = Op.CALC, 0
    rank, number = groups.rank[source], groups.round[source]
    threads, steps = _table(plan.rounds)
    used, step = np.unique(steps[number], return_inverse=True)
    by = np.argsort(tails, kind="stable")
    return Program(
        start=np.searchsorted(rank, np.arange(plan.ranks + 1)).astype(np.int64),
        kind=kind,
        **_ends(plan, kind, value),  # type: ignore[arg-type]  # all of them arrays
        cpu=threads[number].astype(np.int16),
        step=step.astype(np.int32),
        need=np.bincount(waiting, minlength=len(kind)).astype(np.int32),
        after=np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=len(kind)))]),
        successor=2 * waiting[by],
        steps=tuple(plan.steps[k] for k in used),
        simulated=simulated,
        iterations=iterations,
        notes=notes,
    )


class _Groups:
    """Operations by rank, those of a rank by round.

    rank, kind, value, round: of each operation. first, size: first operation of each group, and their number.
    """

    def __init__(self, plan: RoundPlan) -> None:
        self.plan = plan
        lengths = [len(ranks) for _, _, ranks, _ in plan.pieces]
        rank = _joined([ranks for _, _, ranks, _ in plan.pieces])
        narrow = np.uint16 if plan.ranks <= 1 << 16 else np.int64  # numpy sorts short keys by radix
        order = np.argsort(rank.astype(narrow), kind="stable")
        self.rank = rank[order]
        self.kind = np.repeat(np.array([kind for _, kind, _, _ in plan.pieces], np.int8), lengths)[order]
        self.value = _joined([values for _, _, _, values in plan.pieces])[order]
        self.round = np.repeat(np.array([number for number, _, _, _ in plan.pieces], np.int64), lengths)[order]
        fresh = np.ones(len(order), bool)
        fresh[1:] = (np.diff(self.rank) != 0) | (np.diff(self.round) != 0)
        self.first = np.flatnonzero(fresh)
        self.size = np.diff(np.append(self.first, len(order)))

    @cached_property
    def threads(self) -> int:
        """The number of threads."""
        return max((thread for thread, _ in self.plan.rounds), default=0) + 1

    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of groups; the second waits for the first."""
        rank, number = self.rank[self.first], self.round[self.first]
        rank_thread = rank * self.threads + _table(self.plan.rounds)[0][number]
        order = np.argsort(rank_thread, kind="stable")
        followed = np.flatnonzero(np.diff(rank_thread[order]) == 0)
        before, after = [order[followed]], [order[followed + 1]]
        moment = rank_thread[order] * len(self.plan.rounds) + number[order]
        by_round = np.argsort(number, kind="stable")
        for waits, moment_awaited in self.plan.waits:
            low, high = np.searchsorted(number[by_round], [waits, waits + 1])
            waiting = by_round[low:high]
            awaited_thread = rank[waiting] * self.threads + moment_awaited.thread
            last = np.searchsorted(moment, awaited_thread * len(self.plan.rounds) + moment_awaited.rounds) - 1
            exists = (last >= 0) & (rank_thread[order[last]] == awaited_thread) & (moment_awaited.thread < self.threads)
            before.append(order[last[exists]])
            after.append(waiting[exists])
        return np.concatenate(before), np.concatenate(after)


def _dependencies(
    first_operation: Ints, size: Ints, before: Ints, after: Ints, before_head: Ints, after_head: Ints
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of operations; the second waits for the first.

    first_operation, size: of groups. before, after: groups, one waiting for the other; before_head, after_head: by its
    head.
    """
    pairs = (
        _product(first_operation[before], size[before], first_operation[after], size[after]),
        _product(first_operation[before_head], size[before_head], first_operation[after_head] - 1, 1),
        _product(first_operation[after_head] - 1, 1, first_operation[after_head], size[after_head]),
    )
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)


def _product(a: Ints | int, m: Ints | int, b: Ints | int, n: Ints | int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a .. a + m - 1 and b .. b + n - 1, for each entry of the arrays."""
    a, m, b, n = np.broadcast_arrays(a, m, b, n)
    each = m * n
    which = np.repeat(np.arange(len(each)), each)
    within = np.arange(len(which)) - np.repeat(np.cumsum(each) - each, each)
    return a[which] + within // n[which], b[which] + within % n[which]


def _ends(plan: RoundPlan, kind: np.ndarray, value: np.ndarray) -> dict[str, np.ndarray]:
    """The message arrays of a program. value: message numbers, and times of calculations."""
    source = _joined([sources for sources, _, _, _ in plan.messages])
    target = _joined([targets for _, targets, _, _ in plan.messages])
    size = _joined([sizes for _, _, sizes, _ in plan.messages])
    threads = np.array([thread for _, _, _, thread in plan.messages], np.int64)
    tags = np.repeat(threads, [len(sources) for sources, _, _, _ in plan.messages])
    amount, partner = value.copy(), np.full(len(kind), -1)
    peer, tag = np.full(len(kind), -1, np.int32), np.zeros(len(kind), np.int32)
    operation_of = np.full((2, len(size)), -1)
    for end, kind_at_end, other in ((0, Op.SEND, target), (1, Op.RECV, source)):
        operations = np.flatnonzero(kind == kind_at_end)
        messages = value[operations]
        amount[operations], peer[operations], tag[operations] = size[messages], other[messages], tags[messages]
        operation_of[end, messages] = operations
        if len(operations) != len(size) or operation_of[end].min(initial=0) < 0:
            raise ValueError("a message must be sent, and received, exactly once")
    partner[operation_of[0]], partner[operation_of[1]] = operation_of[1], operation_of[0]
    return {"amount": amount, "peer": peer, "tag": tag, "partner": partner}


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _table(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The two columns of a list of pairs."""
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
