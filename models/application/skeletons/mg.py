# SPDX-License-Identifier: Apache-2.0
"""NPB MG: multigrid."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.skeletons.nas import NasBenchmark
from flitlab.models.application.skeletons.skeleton import is_power_of_two
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register

RESTRICT, SMOOTH, RESIDUAL, PROLONGATE = 3.0, 19.0, 19.0, 2.5
"""Operations a point of the finer level as the program's comments count them (a coarse point: 24 and 20)."""


@register("application", "mg")
class Mg(NasBenchmark):
    """NPB MG: V-cycles on a periodic grid of n^3 points, n = 2^levels, over a 3-D grid of ranks.

    An iteration: down to the level of 2^3 points and up again, then a residual. Every operator at a level ends with an
    exchange of all six faces, two at a time; a face has 8 bytes a point. On levels with fewer points than ranks a
    side, only every s-th rank of that side has points, s = 2, 4, ..., its neighbours are s apart, and on the way up it
    gives those between a layer. Operations: 58 n^3 an iteration, divided among operators as the program's comments
    count them and among levels by points.

    Example: ``application: {kind: mg, class: B, ranks: 64, iterations: 2}``

    Source: NPB 3.3, MG (``mg.f``: ``setup``, ``mg3P``, ``comm3``, ``comm3_ex``).
    """

    rule: ClassVar[str] = "a power of two, not more ranks a side than points"
    loop: ClassVar[dict[str, int]] = {"S": 4, "W": 4, "A": 4, "B": 20, "C": 20, "D": 50}
    levels: ClassVar[dict[str, int]] = {"S": 5, "W": 7, "A": 8, "B": 8, "C": 9, "D": 10}

    def allows(self, ranks: int) -> bool:
        return is_power_of_two(ranks) and max(grid(ranks)) <= 1 << self.levels[self.class_]

    def iterate(self, builder: Builder) -> None:
        top = self.levels[self.class_]
        levels = [MultigridLevel(grid(builder.ranks), k) for k in range(top + 1)]
        unit = self.time(58 * 8**top / _weight(top))

        def operate(name: str, cost: float, level: MultigridLevel) -> None:
            builder.begin(name, size=level.face(2))
            builder.calculate(cost * unit * 8**level.number / len(level.active), level.active)

        for coarser in levels[top - 1 : 0 : -1]:
            operate("restrict", RESTRICT * 8, coarser)
            coarser.exchange(builder)
        operate("smooth", SMOOTH, levels[1])
        levels[1].exchange(builder)
        for level in levels[2:]:
            operate("prolongate", PROLONGATE, level)
            level.spread(builder)
            operate("residual", RESIDUAL, level)
            level.exchange(builder)
            operate("smooth", SMOOTH, level)
            level.exchange(builder)
        operate("residual", RESIDUAL, levels[top])
        levels[top].exchange(builder)

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": list(grid(ranks))}


def grid(ranks: int) -> tuple[int, int, int]:
    """Ranks a side of a power of two, as the program divides them; the first changes fastest."""
    log = ranks.bit_length() - 1
    x, y = log // 3, (log - log // 3) // 2
    return 1 << x, 1 << y, 1 << (log - x - y)


def _weight(top: int) -> float:
    """Operations of a V-cycle and a residual, by the counts of the operators."""
    ups = sum(8**k for k in range(2, top + 1))
    flops: float = (RESTRICT + PROLONGATE + RESIDUAL + SMOOTH) * ups + SMOOTH * 8 + RESIDUAL * 8**top
    return flops


@dataclass(frozen=True)
class MultigridLevel:
    """The grid of (2^number)^3 points over ``sides`` of ranks."""

    sides: tuple[int, int, int]
    number: int

    @cached_property
    def stride(self) -> list[int]:
        """Distance between ranks with points, for each side."""
        return [max(1, side >> self.number) for side in self.sides]

    @cached_property
    def local(self) -> list[int]:
        """Points a side of a rank that has some."""
        return [max(1, (1 << self.number) // side) for side in self.sides]

    @cached_property
    def place(self) -> Ints:
        """int64 [3, ranks]: coordinates."""
        x, y, _ = self.sides
        rank = np.arange(prod(self.sides))
        return np.stack([rank % x, rank // x % y, rank // (x * y)])

    @cached_property
    def active(self) -> np.ndarray:
        """Ranks that have points."""
        has = [place % stride == stride - 1 for place, stride in zip(self.place, self.stride, strict=True)]
        return np.flatnonzero(np.logical_and.reduce(has))

    def face(self, axis: int) -> int:
        """Bytes of a face across an axis."""
        return 8 * prod(self.local) // self.local[axis]

    def neighbour(self, rank: np.ndarray, axis: int, direction: int) -> Ints:
        """The next rank with points along an axis.

        Parameters
        ----------
        rank: int64, ranks.
        axis: 0, 1 or 2.
        direction: 1 or -1.

        Returns
        -------
        int64, as ``rank``.
        """
        place = self.place[:, rank].copy()
        place[axis] = (place[axis] + direction * self.stride[axis]) % self.sides[axis]
        x, y, _ = self.sides
        ranks: Ints = place[0] + x * (place[1] + y * place[2])
        return ranks

    def exchange(self, builder: Builder) -> None:
        """All faces to the neighbours, axis by axis."""
        for axis in range(3):
            both = np.concatenate([self.neighbour(self.active, axis, direction) for direction in (1, -1)])
            builder.exchange(np.tile(self.active, 2), both, self.face(axis))

    def spread(self, builder: Builder) -> None:
        """Data for ranks without points at the next coarser level: two layers forward and one back.

        Parameters
        ----------
        builder: collects the rounds.
        """
        for axis in range(3):
            if self.sides[axis] >> (self.number - 1) < 2:
                continue
            gives = self.active[self.place[axis, self.active] % (2 * self.stride[axis]) == 2 * self.stride[axis] - 1]
            layer = 8 * prod(n + 2 for n in self.local) // (self.local[axis] + 2)
            both = np.concatenate([self.neighbour(gives, axis, direction) for direction in (1, -1)])
            builder.exchange(np.tile(gives, 2), both, np.repeat([2 * layer, layer], len(gives)))
