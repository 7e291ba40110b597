# SPDX-License-Identifier: Apache-2.0
"""Jobs that share a network, as one program with the ranks of all of them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from flitlab.models.application.program import Op, Program, Step
from flitlab.models.arrays import Ints

ARRIVAL = "arrival"
"""Name of the step in which the ranks of a job wait for its arrival."""


def arriving(program: Program, ns: int) -> Program:
    """A program that starts after ``ns`` nanoseconds.

    Every rank gets a first operation, a calculation of that length; all operations without dependencies wait for it. It
    is a step of its own, ``ARRIVAL``, which is synchronising: all ranks begin it at time 0.
    """
    if ns == 0:
        return program
    ranks, first = program.ranks, program.start[:-1]
    moved = np.arange(program.operations) + program.rank + 1  # the new number of every operation
    free = np.flatnonzero(program.need == 0)
    waiting = np.bincount(program.rank[free], minlength=ranks)
    successor = 2 * moved[program.successor >> 1] + (program.successor & 1)
    insert_at = np.repeat(program.after[first], waiting)
    counts = np.insert(np.diff(program.after), first, waiting)
    need = program.need.copy()
    need[free] = 1

    def with_arrivals(array: np.ndarray, value: int) -> np.ndarray:
        return np.insert(array, first, value)

    return replace(
        program,
        start=program.start + np.arange(ranks + 1),
        kind=with_arrivals(program.kind, Op.CALC),
        amount=with_arrivals(program.amount, ns),
        peer=with_arrivals(program.peer, -1),
        tag=with_arrivals(program.tag, 0),
        cpu=with_arrivals(program.cpu, 0),
        step=with_arrivals(program.step, len(program.steps)),
        partner=with_arrivals(np.where(program.partner >= 0, moved[program.partner], -1), -1),
        need=with_arrivals(need, 0),
        after=np.concatenate([[0], np.cumsum(counts)]),
        successor=np.insert(successor, insert_at, 2 * moved[free]),
        steps=(*program.steps, Step(ARRIVAL, ranks=ranks, synchronising=True)),
        source="",
    )


def arrivals(program: Program) -> Ints:
    """The operations in which ranks wait for the arrival of their job, int64: the first of each such rank.

    Parameters
    ----------
    program: the program.
    """
    steps = [number for number, step in enumerate(program.steps) if step.name == ARRIVAL]
    first = program.start[:-1][np.diff(program.start) > 0]
    return first[np.isin(program.step[first], steps)]


def together(programs: Mapping[str, Program]) -> Program:
    """All programs as one: ranks and operations of each job follow those of the previous one.

    A single program is returned unchanged. Of several, steps become ``job: step`` (except ``ARRIVAL``), and belong to
    no iteration; none is synchronising, since ranks do not wait for other jobs. The notes are those of each job under
    its name, where it has any. ``source`` is '', and ``simulated`` and ``iterations`` are 1.

    Parameters
    ----------
    programs: the program of each job by its name, in this order; one or more.
    """
    if len(programs) == 1:
        return next(iter(programs.values()))
    programs_in_order = list(programs.values())
    rank, operation, dependency, step = (
        np.concatenate([[0], np.cumsum(sizes)]) for sizes in zip(*map(_sizes, programs_in_order), strict=True)
    )  # fmt: skip

    def joined(name: str, offsets: Ints | None = None) -> np.ndarray:
        """One array of all; offsets: added to the non-negative entries of each program."""
        arrays = [getattr(part, name) for part in programs_in_order]
        if offsets is not None:
            arrays = [np.where(a >= 0, a + n, a).astype(a.dtype) for a, n in zip(arrays, offsets, strict=False)]
        return np.concatenate(arrays)

    def ends(name: str, offsets: Ints) -> Ints:
        """The start indices of all programs, one after another."""
        begin = [getattr(part, name)[:-1] + n for part, n in zip(programs_in_order, offsets, strict=False)]
        return np.concatenate([*begin, offsets[-1:]])

    return Program(
        start=ends("start", operation), kind=joined("kind"), amount=joined("amount"), peer=joined("peer", rank),
        tag=joined("tag"), cpu=joined("cpu"), step=joined("step", step), partner=joined("partner", operation),
        need=joined("need"), after=ends("after", dependency), successor=joined("successor", 2 * operation),
        steps=tuple(_of_job(name, one) for name, part in programs.items() for one in part.steps),
        notes={name: part.notes for name, part in programs.items() if part.notes},
    )  # fmt: skip


def _sizes(program: Program) -> tuple[int, int, int, int]:
    """How many ranks, operations, dependencies and steps there are."""
    return program.ranks, program.operations, len(program.successor), len(program.steps)


def _of_job(name: str, step: Step) -> Step:
    own = step.name if step.name == ARRIVAL else f"{name}: {step.name}"
    return replace(step, name=own, synchronising=False, iteration=-1)
