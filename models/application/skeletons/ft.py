# SPDX-License-Identifier: Apache-2.0
"""NPB FT: Fourier transform."""

from math import log, prod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.program import Program
from flitlab.models.application.skeletons.nas import Letter, NasBenchmark
from flitlab.models.application.skeletons.skeleton import everyone, is_power_of_two
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError, register

Side = Annotated[int, Field(ge=1)]


@register("application", "ft")
class Ft(NasBenchmark):
    """NPB FT: transforms of nx x ny x nz complex numbers of 16 bytes.

    An iteration: a third of the transform, a transposition, the rest, and a reduction of the 16-byte checksum. While
    there are no more ranks than planes, it is an all-to-all of all ranks, 16 nx ny nz / p^2 bytes a pair. For more,
    ranks are a ``grid`` of np1 x np2, and there are two: within the groups of np2 ranks next to each other, then,
    after another third, within those of np1, 16 nx ny nz / (p np) bytes a pair in groups of np. grid: by default as
    square as possible; the program takes [nz, p / nz] unless told otherwise. algorithm: of the all-to-all, by default
    as an MPI library chooses. Before the loop, the first transform. Operations: with N = nx ny nz, N (14.8157 + 7.19641
    ln N) before the loop and N (5.23518 + 7.21113 ln N) an iteration, in three equal parts.

    Example: ``application: {kind: ft, class: A, ranks: 64, iterations: 2}``

    Source: NPB 3.3, FT (``ft.f``: ``setup``, ``fft``, ``transpose_x_yz``).
    """

    rule: ClassVar[str] = "a power of two that divides the transform's planes or lines"
    loop: ClassVar[dict[str, int]] = {"S": 6, "W": 6, "A": 6, "B": 20, "C": 20, "D": 25}
    points: ClassVar[dict[str, tuple[int, int, int]]] = {
        "S": (64, 64, 64), "W": (128, 128, 32), "A": (256, 256, 128), "B": (512, 256, 256), "C": (512, 512, 512),
        "D": (2048, 1024, 1024),
    }  # fmt: skip

    class_: Letter = Field("A", alias="class")
    """Class of the benchmark: its size."""
    grid: tuple[Side, Side] | None = None
    """Grid of ranks, for more ranks than planes. null: as square as possible."""
    algorithm: str | None = None
    """Algorithm of the all-to-all. null: as an MPI library chooses."""

    def program(self, hosts: int) -> Program:
        if self.grid is not None and not self._fits(self.grid):
            raise SpecError("must be powers of two, np1 up to min(nx, ny) and np2 up to min(ny, nz)", "grid")
        if self.grid is not None and self.ranks not in (None, prod(self.grid)):
            raise SpecError(f"has {prod(self.grid)} ranks, not {self.ranks}", "grid")
        return super().program(hosts)

    def allows(self, ranks: int) -> bool:
        layout = self.layout(ranks)
        return prod(layout) == ranks and self._fits(layout)

    def layout(self, ranks: int) -> tuple[int, int]:
        """np1 x np2; np1 is 1 where every rank has whole planes."""
        if self.grid is not None:
            return self.grid
        _, ny, nz = self.points[self.class_]
        if ranks <= min(ny, nz):
            return 1, ranks
        np2 = 1 << (ranks.bit_length() - 1) // 2
        return ranks // np2, np2

    def prepare(self, builder: Builder) -> None:
        total = self._total()
        self._transform(builder, total * (14.8157 + 7.19641 * log(total)))

    def iterate(self, builder: Builder) -> None:
        total = self._total()
        self._transform(builder, total * (5.23518 + 7.21113 * log(total)))
        collective(builder, "reduce", everyone(builder), 16, ns_per_byte=self.ns_per_byte, label="checksum")

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": list(self.layout(ranks))}

    def _fits(self, layout: tuple[int, int]) -> bool:
        nx, ny, nz = self.points[self.class_]
        powers = all(map(is_power_of_two, layout))
        return powers and layout[0] <= min(nx, ny) and layout[1] <= min(ny, nz)

    def _total(self) -> int:
        return prod(self.points[self.class_])

    def _transform(self, builder: Builder, operations: float) -> None:
        np1, np2 = self.layout(builder.ranks)
        ranks = np.arange(builder.ranks).reshape(np1, np2)
        part = self.time(operations / builder.ranks / 3)
        for groups, parts in ((ranks, 1), (ranks.T, 1 if np1 > 1 else 2)):
            builder.begin("fft")
            builder.calculate(parts * part)
            if groups.shape[1] > 1:
                size = 16 * self._total() // builder.ranks // groups.shape[1]
                collective(builder, "all_to_all", groups, size, self.algorithm, label="transpose")
        if np1 > 1:
            builder.begin("fft")
            builder.calculate(part)
