# SPDX-License-Identifier: Apache-2.0
"""Parallel matrix multiplications: Cannon's algorithm and SUMMA."""

from math import isqrt
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.skeletons.skeleton import Skeleton
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register


class MatrixProduct(Skeleton):
    """A product of two matrices of ``order`` rows over q x q ranks, in q steps.

    A step has 2 order^3 / (p q) operations per rank.
    """

    rule: ClassVar[str] = "a square q^2, q not above the matrices' order"

    order: Annotated[int, Field(ge=1, le=10_000_000)] = 1024
    """Rows of the matrices."""
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 2
    """Simulated steps."""

    def allows(self, ranks: int) -> bool:
        return isqrt(ranks) ** 2 == ranks and isqrt(ranks) <= self.order

    def extent(self, ranks: int) -> tuple[int, int]:
        return min(self.iterations, isqrt(ranks)), isqrt(ranks)

    def notes(self, ranks: int) -> Notes:
        return {"grid": [isqrt(ranks)] * 2}

    def block(self, ranks: int) -> int:
        """Bytes of a rank's block of a matrix."""
        return 8 * self.order**2 // ranks

    def step_time(self, ranks: int) -> float:
        """Nanoseconds of a step's multiplication."""
        return self.time(2 * self.order**3 / ranks / isqrt(ranks))


@register("application", "cannon")
class Cannon(MatrixProduct):
    """Cannon's algorithm on q x q ranks, ranks of a row next to each other.

    Before the loop, row i shifts its blocks of A by i to the left and column j its blocks of B by j upwards. A step:
    all multiply, then shift A by one to the left and B by one upwards, 8 order^2 / p bytes each (not after the last).

    Example: ``application: {kind: cannon, order: 4096, ranks: 64, iterations: 8}``

    Source: Cannon 1969, "A cellular computer to implement the Kalman filter algorithm".
    """

    def prepare(self, builder: Builder) -> None:
        side = isqrt(builder.ranks)
        row, column = np.divmod(np.arange(builder.ranks), side)
        self._shift(builder, "skew", row, column)

    def iterate(self, builder: Builder) -> None:
        builder.begin("multiply")
        builder.calculate(self.step_time(builder.ranks))
        if builder.iteration < isqrt(builder.ranks) - 1:
            self._shift(builder, "shift", 1, 1)

    def _shift(self, builder: Builder, name: str, left: Ints | int, up: Ints | int) -> None:
        side, rank = isqrt(builder.ranks), np.arange(builder.ranks)
        row, column = np.divmod(rank, side)
        targets = np.concatenate([row * side + (column - left) % side, (row - up) % side * side + column])
        builder.begin(name, size=self.block(builder.ranks))
        builder.exchange(np.tile(rank, 2), targets, self.block(builder.ranks))


@register("application", "summa")
class Summa(MatrixProduct):
    """SUMMA on q x q ranks, ranks of a row next to each other.

    Step k: the k-th rank of each row broadcasts its block of A, 8 order^2 / p bytes, within the row, the k-th of each
    column its block of B within the column; then all multiply.

    Example: ``application: {kind: summa, order: 4096, ranks: 64, iterations: 8}``

    Source: van de Geijn and Watts 1997, doi:10.1002/(SICI)1096-9128(199704)9:4<255::AID-CPE250>3.0.CO;2-2.
    """

    algorithm: str | None = None
    """Of the broadcasts. null: as an MPI library chooses."""

    def iterate(self, builder: Builder) -> None:
        side, size = isqrt(builder.ranks), self.block(builder.ranks)
        ranks = np.arange(builder.ranks).reshape(side, side)
        for name, groups in (("rows", ranks), ("columns", ranks.T)):
            first = np.roll(groups, -builder.iteration, axis=1)
            collective(builder, "broadcast", first, size, self.algorithm, label=name)
        builder.begin("multiply")
        builder.calculate(self.step_time(builder.ranks))
