# SPDX-License-Identifier: Apache-2.0
"""Pseudo-applications of the NAS Parallel Benchmarks: BT and SP, which share a scheme, and LU."""

from math import isqrt
from typing import ClassVar

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.skeletons.nas import NasBenchmark
from flitlab.models.application.skeletons.skeleton import is_power_of_two
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register

RHS = 0.2
"""The share of the right-hand side in the operations of an iteration; the directions, or both sweeps of LU, share the
rest equally.
"""


class Multipartition(NasBenchmark):
    """An implicit solver that sweeps forward and back in each direction, cell by cell.

    Every rank has a cell in each of sqrt p slabs of each direction.

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


@register("application", "lu")
class Lu(NasBenchmark):
    """NPB LU on xdim x ydim ranks, xdim = ydim or 2 ydim, n^3 points; every rank has a block of columns.

    An iteration: a wavefront runs through each of n - 2 planes from the corner of rank 0 (receive from north and west,
    calculate, send 5 words a point of the edge to south and east), then through all planes back; then the right-hand
    side, with 10 words a point of the side to south, north, east and west, one after another. Operations: 1984.77 n^3
    - 10923.3 n^2 + 27770.9 n - 144010 an iteration, a fifth of them for the right-hand side, the others equally for
    the planes of both sweeps.

    Example: ``application: {kind: lu, class: B, ranks: 64, iterations: 1}``

    Source: NPB 3.3, LU (``ssor.f``, ``exchange_1.f``, ``exchange_3.f``, ``proc_grid.f``).
    """

    rule: ClassVar[str] = "a power of two, with blocks of at least 4 points a side"
    loop: ClassVar[dict[str, int]] = {"S": 50, "W": 300, "A": 250, "B": 250, "C": 250, "D": 300}
    points: ClassVar[dict[str, int]] = {"S": 12, "W": 33, "A": 64, "B": 102, "C": 162, "D": 408}

    def allows(self, ranks: int) -> bool:
        return is_power_of_two(ranks) and 4 * max(lu_grid(ranks)) <= self.points[self.class_]

    def iterate(self, builder: Builder) -> None:
        n = self.points[self.class_]
        work = self.time((1984.77 * n**3 - 10923.3 * n**2 + 27770.9 * n - 144010) / builder.ranks)
        plane = (1 - RHS) * work / 2 / (n - 2)
        south, east = _towards(lu_grid(builder.ranks))
        edges = [5 * 8 * n / side for side in reversed(lu_grid(builder.ranks))]
        for name, reverse in (("lower", False), ("upper", True)):
            builder.begin(name, size=round(edges[0]))
            axes = [pair[::-1] if reverse else pair for pair in (south, east)]
            for _ in range(n - 2):
                _wave(builder, axes, edges, plane)
        builder.begin("rhs", size=round(2 * n * edges[0]))
        for pair, edge in zip((south, east), edges, strict=True):
            builder.exchange(pair[0], pair[1], round(2 * n * edge))
            builder.exchange(pair[1], pair[0], round(2 * n * edge))
        builder.calculate(RHS * work)

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": list(lu_grid(ranks)), "planes": self.points[self.class_] - 2}


def lu_grid(ranks: int) -> tuple[int, int]:
    """(xdim, ydim) of a power of two; x runs south, y east."""
    ydim = 1 << (ranks.bit_length() - 1) // 2
    return ranks // ydim, ydim


def _towards(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring ranks to the south, and to the east: int64 [2, neighbours] each."""
    grid_ranks = np.arange(shape[0] * shape[1]).reshape(shape[::-1]).T
    south = np.stack([grid_ranks[:-1].ravel(), grid_ranks[1:].ravel()])
    east = np.stack([grid_ranks[:, :-1].ravel(), grid_ranks[:, 1:].ravel()])
    return south, east


def _wave(builder: Builder, pairs: list[np.ndarray], edges: list[float], plane: float) -> None:
    """A plane of a sweep: ``edges`` bytes to the two neighbours."""
    source, target = np.concatenate(pairs, axis=1)
    size = np.repeat(np.rint(edges).astype(np.int64), [pair.shape[1] for pair in pairs])
    messages = builder.declare(source, target, size)
    builder.receive(messages)
    builder.calculate(plane)
    builder.send(messages)
