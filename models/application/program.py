# SPDX-License-Identifier: Apache-2.0
"""Parallel programs: graphs of calculations, sends and receives."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Ints32, scratch
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import Notes


class _Op(NamedTuple):
    """Kinds of operations."""

    CALC: int = 0
    SEND: int = 1
    RECV: int = 2


Op = _Op()

BLOCK = 1 << 19
"""Least operations of a block."""


@dataclass(frozen=True)
class Step:
    """A named part of a program: a collective, a halo exchange, a calculation.

    algorithm: of a collective; '' where there is no choice. size: bytes that a rank contributes (which select the
    algorithm). ranks: participants. synchronising: no rank completes it before every rank of the program has begun it.
    iteration: of the program, -1 outside of its loop.
    """

    name: str
    algorithm: str = ""
    size: int = 0
    ranks: int = 0
    synchronising: bool = False
    iteration: int = -1


class SendWindow(NamedTuple):
    """A closed loop: with the end of a send of a rank, a dependency of its next send is met that waits for the window.

    waiting: int64 [ranks], the first such send of each rank, or -1. following: int64 [operations], of a send the next
    one of its rank, or -1.
    """

    waiting: Ints
    following: Ints


@dataclass(frozen=True, eq=False)
class Program:
    """Operations of all ranks as flat arrays, rank by rank; the index of an operation is its number.

    start: int64 [ranks + 1]; rank r has the operations start[r] .. start[r + 1] - 1. kind: int8 [operations], CALC,
    SEND or RECV. amount: int64 [operations], nanoseconds or bytes. peer: int32 [operations], the other rank of a
    message, -1 of a calculation. tag: int32 [operations]. cpu: int16 [operations], the processor of its rank that an
    operation needs. step: int32 [operations], index into ``steps``. partner: int64 [operations], the receive of a send
    and the send of a receive, -1 of a calculation. need: int32 [operations], number of dependencies. after: int64
    [operations + 1], successor: int64 [dependencies]: the dependents of operation o are successor[after[o] : after[o +
    1]], as 2 * operation + early, all in the rank of o; early (1): of its start only. source: the GOAL file that it was
    read from, which has the labels of its operations, or ''. simulated, iterations: iterations of its loop that it has,
    and those of the full program. notes: for readers of the results. window: limits the outstanding sends of a rank;
    None: no limit.
    """

    start: Ints
    kind: np.ndarray
    amount: Ints
    peer: Ints32
    tag: Ints32
    cpu: np.ndarray
    step: Ints32
    partner: Ints
    need: Ints32
    after: Ints
    successor: Ints
    steps: tuple[Step, ...]
    simulated: int = 1
    iterations: int = 1
    notes: Notes = field(default_factory=dict)
    source: str = ""
    window: SendWindow | None = None

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self.start) - 1

    @property
    def operations(self) -> int:
        """The number of operations of all ranks."""
        return len(self.kind)

    @cached_property
    def rank(self) -> Ints32:
        """The rank of each operation, int32 [operations]."""
        ranks = scratch(self.operations, np.int32)
        for r in range(self.ranks):
            ranks[self.start[r] : self.start[r + 1]] = r
        return ranks

    def blocks(self) -> Iterator[slice]:
        """All operations in blocks of whole ranks, for computations in pieces."""
        begin = 0
        for end in self.start[1:].tolist():
            if end - begin >= BLOCK:
                yield slice(begin, end)
                begin = end
        if begin < self.operations:
            yield slice(begin, self.operations)

    def sends(self) -> Iterator[np.ndarray]:
        """The numbers of all sends, int64, in blocks."""
        for part in self.blocks():
            yield part.start + np.flatnonzero(self.kind[part] == Op.SEND)

    @cached_property
    def cpus(self) -> int:
        """Processors of a rank."""
        return int(self.cpu.max(initial=0)) + 1

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        arrays = (
            self.start, self.kind, self.amount, self.peer, self.tag, self.cpu, self.step, self.after, self.successor
        )  # fmt: skip
        steps = [asdict(step) for step in self.steps]
        return content_hash(*arrays, steps, self.simulated, self.iterations, *(self.window or ()))


class StepKind(NamedTuple):
    """Steps that differ only in the iteration. size: bytes that a rank contributes."""

    name: str
    algorithm: str
    size: int
    ranks: int

    @property
    def label(self) -> str:
        """The kind of step in words: ``allreduce (ring, 8192 B, 64 ranks)``."""
        candidates = [
            self.algorithm,
            f"{self.size} B" if self.size else "",
            f"{self.ranks} ranks" if self.ranks else "",
        ]
        details = ", ".join(filter(None, candidates))
        return f"{self.name} ({details})" if details else self.name


def step_kinds(program: Program) -> tuple[list[StepKind], np.ndarray]:
    """All kinds in order of appearance, and the kind of each step, int64 [steps].

    Parameters
    ----------
    program: the program.
    """
    kinds: dict[StepKind, int] = {}
    kind_of = [
        kinds.setdefault(StepKind(step.name, step.algorithm, step.size, step.ranks), len(kinds))
        for step in program.steps
    ]
    return list(kinds), np.array(kind_of, np.int64)
