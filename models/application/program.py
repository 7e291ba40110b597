# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a parallel program do: graphs of calculations, sends and receives."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from flitlab.models.application.scratch import scratch
from flitlab.models.arrays import Ints, Ints32
from flitlab.models.hashing import content_hash

# What an operation is.
CALC, SEND, RECV = 0, 1, 2

BLOCK = 1 << 19
"""Operations from which on a block is large enough."""


@dataclass(frozen=True)
class Step:
    """A part of a program that has a name: a collective, a halo exchange, a calculation.

    algorithm: of a collective, as chosen; '' where there is nothing to choose. size: bytes that a rank has to give
    (the argument by which an algorithm is chosen). ranks: how many take part. synchronising: no rank of the program
    is through with it before every rank of the program has begun it. iteration: of the program, -1 outside of its loop.
    """

    name: str
    algorithm: str = ""
    size: int = 0
    ranks: int = 0
    synchronising: bool = False
    iteration: int = -1


@dataclass(frozen=True, eq=False)
class Program:
    """Operations of all ranks as flat arrays, each rank's in a row; an operation's place in them is its number.

    start: int64 [ranks + 1]; rank r has the operations start[r] .. start[r + 1] - 1.
    kind: int8 [operations], CALC, SEND or RECV. amount: int64 [operations], nanoseconds or bytes.
    peer: int32 [operations], the other rank of a message, -1 of a calculation. tag: int32 [operations].
    cpu: int16 [operations], which of its rank's processors an operation needs.
    step: int32 [operations], index into ``steps``.
    partner: int64 [operations], the receive of a send and the send of a receive, -1 of a calculation.
    need: int32 [operations], how many dependencies an operation has.
    after: int64 [operations + 1], successor: int64 [dependencies]: who waits for operation o is in
    successor[after[o] : after[o + 1]], as 2 * operation + early, all in the rank of o; early (1): only for its start.
    source: the GOAL file that it was read from, which has the labels of its operations, or ''.
    simulated, iterations: how many iterations of its loop it has, and how many the program it stands for has.
    notes: what a reader of results should know of it.
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
    notes: dict[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.start) - 1

    @property
    def operations(self) -> int:
        """How many operations all ranks have."""
        return len(self.kind)

    @cached_property
    def rank(self) -> Ints32:
        """int32 [operations]: the rank of each."""
        ranks = scratch(self.operations, np.int32)
        for r in range(self.ranks):
            ranks[self.start[r] : self.start[r + 1]] = r
        return ranks

    def blocks(self) -> Iterator[slice]:
        """All operations in blocks of whole ranks, for what is computed from them bit by bit."""
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
            yield part.start + np.flatnonzero(self.kind[part] == SEND)

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
        return content_hash(*arrays, steps, self.simulated, self.iterations)
