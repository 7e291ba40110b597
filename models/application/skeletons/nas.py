# SPDX-License-Identifier: Apache-2.0
"""The common part of the NAS Parallel Benchmarks."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from flitlab.models.application.skeletons.skeleton import Skeleton
from flitlab.models.mappings import Notes

Letter = Literal["S", "W", "A", "B", "C", "D"]


class NasBenchmark(Skeleton):
    """A program of the NAS Parallel Benchmarks 3.3 (MPI), its timed loop only.

    Source: Bailey et al., NAS Parallel Benchmarks, RNR-94-007, and the programs of version 3.3; sizes by class from
    its ``sys/setparams.c``, operations from the formulas by which the programs print their Mop/s.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    loop: ClassVar[dict[str, int]]

    class_: Letter = Field("B", alias="class")
    """The size of the problem."""
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 2
    """Simulated iterations, at most those of the class."""

    def extent(self, ranks: int) -> tuple[int, int]:
        total = self.loop[self.class_]
        return min(self.iterations, total), total

    def notes(self, ranks: int) -> Notes:
        return {"class": self.class_}
