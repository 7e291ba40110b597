# SPDX-License-Identifier: Apache-2.0
"""The common part of parallel matrix multiplications."""

from math import isqrt
from typing import Annotated, Any, ClassVar

from pydantic import Field

from flitlab.models.application.skeletons.skeleton import Skeleton


class MatrixProduct(Skeleton):
    """A product of two matrices of ``order`` rows over q x q ranks, in q steps.

    A step has 2 order^3 / (p q) operations per rank. iterations: simulated steps.
    """

    rule: ClassVar[str] = "a square q^2, q not above the matrices' order"

    order: Annotated[int, Field(ge=1, le=10_000_000)] = 1024
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 2

    def allows(self, ranks: int) -> bool:
        return isqrt(ranks) ** 2 == ranks and isqrt(ranks) <= self.order

    def extent(self, ranks: int) -> tuple[int, int]:
        return min(self.iterations, isqrt(ranks)), isqrt(ranks)

    def notes(self, ranks: int) -> dict[str, Any]:
        return {"grid": [isqrt(ranks)] * 2}

    def block(self, ranks: int) -> int:
        """Bytes of a rank's block of a matrix."""
        return 8 * self.order**2 // ranks

    def step_time(self, ranks: int) -> float:
        """Nanoseconds of a step's multiplication."""
        return self.time(2 * self.order**3 / ranks / isqrt(ranks))
