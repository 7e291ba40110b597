# SPDX-License-Identifier: Apache-2.0
"""The scheme of BT and SP: every rank has a cell in each of sqrt p slabs of each direction."""

from math import isqrt
from typing import ClassVar

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.skeletons.nas import NasBenchmark
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register

RHS = 0.2
"""The share of the right-hand side in the operations of an iteration; the three directions share the rest equally."""


class Multipartition(NasBenchmark):
    """An implicit solver that sweeps forward and back in each direction, cell by cell.

    points: of a side, by class. backward: share of the backward sweep in a direction's operations.
    """

    rule: ClassVar[str] = "a square q^2, with cells of at least 3 points a side"
    points: ClassVar[dict[str, int]]
    backward: ClassVar[float]

    def allows(self, ranks: int) -> bool:
        side = isqrt(ranks)
        return side * side == ranks and self.points[self.class_] // side >= 3

    def operations(self, points: int) -> float:
        """Floating-point operations of an iteration of all ranks, on a grid of ``points`` points per side."""
        raise NotImplementedError

    def messages(self, points: int, side: int) -> tuple[float, float]:
        """Bytes of a message of the forward, and of the backward sweep."""
        raise NotImplementedError

    def iterate(self, builder: Builder) -> None:
        points, side = self.points[self.class_], isqrt(builder.ranks)
        ranks, after, before = np.arange(builder.ranks), *neighbours(side)
        work = self.time(self.operations(points) / builder.ranks)
        face = round(80 * (side - 1) * (points / side) ** 2)
        builder.begin("copy_faces", size=face)
        builder.exchange(np.tile(ranks, 6), np.concatenate([*after, *before]), face)
        builder.begin("rhs")
        builder.calculate(RHS * work)
        forth, back = self.messages(points, side)
        cell = (1 - RHS) * work / 3 / side
        for name, up, down in zip("xyz", after, before, strict=True):
            builder.begin(f"{name}_solve", size=round(forth))
            _sweep(builder, side, (1 - self.backward) * cell, up, round(forth))
            _sweep(builder, side, self.backward * cell, down, round(back))

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": [isqrt(ranks)] * 2}


def neighbours(side: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The ranks after and before each rank in x, y and z direction (NPB's ``make_set.f``)."""
    j, i = np.divmod(np.arange(side * side), side)
    steps = ((1, 0), (0, 1), (-1, 1))
    after, before = ([(i + s * a) % side + side * ((j + s * b) % side) for a, b in steps] for s in (1, -1))
    return after, before


def _sweep(builder: Builder, side: int, cell: float, target: Ints, size: int) -> None:
    """Each rank's cells one after another; the result of each goes to the owner of the next cell."""
    for stage in range(side):
        builder.calculate(cell)
        if stage < side - 1:
            builder.exchange(np.arange(builder.ranks), target, size)


@register("application", "bt")
class Bt(Multipartition):
    """NPB BT on q x q ranks, n^3 points in a multipartition.

    An iteration: faces of two layers of 5 words to six neighbours, 80 (q - 1) (n / q)^2 bytes each; then in each
    direction q - 1 messages forth, of 30 words a point of a cell's face, and q - 1 back, of 5 words. A face has
    (n div q + 1)^2 points. Operations: 3478.8 n^3 - 17655.7 n^2 + 28023.7 n an iteration, a fifth of them for the
    right-hand side, the others equally for the directions, a tenth of a direction's on the way back.

    Example: ``application: {kind: bt, class: B, ranks: 256, iterations: 3}``

    Source: NPB 3.3, BT (``copy_faces.f``, ``x_solve.f``).
    """

    loop: ClassVar[dict[str, int]] = {"S": 60, "W": 200, "A": 200, "B": 200, "C": 200, "D": 250}
    points: ClassVar[dict[str, int]] = {"S": 12, "W": 24, "A": 64, "B": 102, "C": 162, "D": 408}
    backward: ClassVar[float] = 0.1

    def operations(self, points: int) -> float:
        return 3478.8 * points**3 - 17655.7 * points**2 + 28023.7 * points

    def messages(self, points: int, side: int) -> tuple[float, float]:
        face = (points // side + 1) ** 2
        return 8 * 30 * face, 8 * 5 * face


@register("application", "sp")
class Sp(Multipartition):
    """NPB SP on q x q ranks, n^3 points in a multipartition.

    An iteration: faces as those of BT; then in each direction q - 1 messages forth, of 22 words a point of a cell's
    face, and q - 1 back, of 10 words. A face has (n / q)^2 points. Operations: 881.174 n^3 - 4683.91 n^2 + 11484.5 n -
    19272.4 an iteration, a fifth of them for the right-hand side, the others equally for the directions, a fifth of a
    direction's on the way back.

    Example: ``application: {kind: sp, class: B, ranks: 256, iterations: 3}``

    Source: NPB 3.3, SP (``copy_faces.f``, ``x_solve.f``).
    """

    loop: ClassVar[dict[str, int]] = {"S": 100, "W": 400, "A": 400, "B": 400, "C": 400, "D": 500}
    points: ClassVar[dict[str, int]] = {"S": 12, "W": 36, "A": 64, "B": 102, "C": 162, "D": 408}
    backward: ClassVar[float] = 0.2

    def operations(self, points: int) -> float:
        return 881.174 * points**3 - 4683.91 * points**2 + 11484.5 * points - 19272.4

    def messages(self, points: int, side: int) -> tuple[float, float]:
        face = (points / side) ** 2
        return 8 * 22 * face, 8 * 10 * face
