# SPDX-License-Identifier: Apache-2.0
"""NPB LU: lower-upper symmetric Gauss-Seidel."""

from typing import ClassVar

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.skeletons.nas import NasBenchmark
from flitlab.models.application.skeletons.skeleton import is_power_of_two
from flitlab.models.mappings import Notes
from flitlab.models.registry import register

RHS = 0.2
"""The share of the right-hand side in the operations of an iteration; the two sweeps share the rest equally."""


@register("application", "lu")
class Lu(NasBenchmark):
    """NPB LU on xdim x ydim ranks, xdim = ydim or 2 ydim, n^3 points, columns of which every rank has a block.

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
        return is_power_of_two(ranks) and 4 * max(grid(ranks)) <= self.points[self.class_]

    def iterate(self, builder: Builder) -> None:
        n = self.points[self.class_]
        work = self.time((1984.77 * n**3 - 10923.3 * n**2 + 27770.9 * n - 144010) / builder.ranks)
        plane = (1 - RHS) * work / 2 / (n - 2)
        south, east = _towards(grid(builder.ranks))
        edges = [5 * 8 * n / side for side in reversed(grid(builder.ranks))]
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
        return super().notes(ranks) | {"grid": list(grid(ranks)), "planes": self.points[self.class_] - 2}


def grid(ranks: int) -> tuple[int, int]:
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
