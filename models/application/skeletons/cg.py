# SPDX-License-Identifier: Apache-2.0
"""NPB CG: conjugate gradients."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.communicator import distances
from flitlab.models.application.skeletons.nas import NasBenchmark
from flitlab.models.application.skeletons.skeleton import is_power_of_two
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register

INNER = 25
"""Conjugate-gradient iterations of an iteration of the program."""


@register("application", "cg")
class Cg(NasBenchmark):
    """NPB CG: rows x cols ranks, cols = rows or 2 rows, have the blocks of a sparse matrix of ``order`` rows.

    A product with the matrix: its partial sums, 8 order / cols bytes, are added up by log2 cols exchanges within the
    row of ranks, then exchanged with the transposed rank. A scalar product: log2 cols exchanges of 8 bytes. An
    iteration of the program has 25 iterations of the method (a matrix product and two scalar products each), another
    matrix product, and three scalar products, two of them in one message. Operations: with z = nonzer (nonzer + 1),
    2 order (3 + z + 25 (5 + z) + 3) an iteration, 2 order z of them in a matrix product.

    Example: ``application: {kind: cg, class: B, ranks: 256, iterations: 1}``

    Source: NPB 3.3, CG (``cg.f``: ``setup_submatrix_info``, ``conj_grad``).
    """

    rule: ClassVar[str] = "a power of two, not above the matrix's order"
    loop: ClassVar[dict[str, int]] = {"S": 15, "W": 15, "A": 15, "B": 75, "C": 75, "D": 100}
    order: ClassVar[dict[str, int]] = {"S": 1400, "W": 7000, "A": 14000, "B": 75000, "C": 150000, "D": 1500000}
    nonzer: ClassVar[dict[str, int]] = {"S": 7, "W": 8, "A": 11, "B": 13, "C": 15, "D": 21}

    def allows(self, ranks: int) -> bool:
        return is_power_of_two(ranks) and ranks <= self.order[self.class_]

    def iterate(self, builder: Builder) -> None:
        self._add_up(builder, 8, 1)
        for _ in range(INNER):
            self._matrix_product(builder)
            self._add_up(builder, 8, 1)
            self._add_up(builder, 8, 4)
        self._matrix_product(builder)
        self._add_up(builder, 8, 2)
        self._add_up(builder, 16, 3)

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": list(grid(ranks)), "inner iterations": INNER}

    def _matrix_product(self, builder: Builder) -> None:
        order, nonzer = self.order[self.class_], self.nonzer[self.class_]
        rows, cols = grid(builder.ranks)
        size = 8 * order // cols
        builder.begin("matrix_product", "recursive_doubling", size, cols)
        builder.calculate(self.time(2 * order * nonzer * (nonzer + 1) / builder.ranks))
        _within_rows(builder, size, reversed(_halves(cols)))
        builder.begin("transpose", size=size)
        builder.exchange(np.arange(builder.ranks), transposed(rows, cols), size)

    def _add_up(self, builder: Builder, size: int, operations: int) -> None:
        """A scalar product, and ``2 * operations`` operations on each entry of a vector."""
        cols = grid(builder.ranks)[1]
        builder.begin("scalar_product", "recursive_doubling", size, cols)
        builder.calculate(self.time(2 * operations * self.order[self.class_] / builder.ranks))
        _within_rows(builder, size, _halves(cols))


def grid(ranks: int) -> tuple[int, int]:
    """(rows, cols) of a power of two."""
    rows = 1 << (ranks.bit_length() - 1) // 2
    return rows, ranks // rows


def transposed(rows: int, cols: int) -> Ints:
    """The rank with the transposed block, or blocks: int64 [ranks]."""
    rank, wide = np.arange(rows * cols), cols // rows
    pair = rank // wide
    return wide * (pair % rows * rows + pair // rows) + rank % wide


def _halves(cols: int) -> list[int]:
    """Distances of partners in the order of the summation."""
    return distances(cols)[::-1]


def _within_rows(builder: Builder, size: int, order: Iterable[int]) -> None:
    """Exchanges with ranks of the same row, at distances in an order."""
    rank = np.arange(builder.ranks)
    for distance in order:
        builder.exchange(rank, rank ^ distance, size)
