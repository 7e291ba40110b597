# SPDX-License-Identifier: Apache-2.0
"""Cannon's matrix multiplication."""

from math import isqrt

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.skeletons.matrix import MatrixProduct
from flitlab.models.arrays import Ints
from flitlab.models.registry import register


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
