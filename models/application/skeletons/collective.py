# SPDX-License-Identifier: Apache-2.0
"""The common part of programs that are a single collective."""

from math import prod
from typing import Annotated, ClassVar

from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.program import Program
from flitlab.models.application.skeletons.skeleton import Skeleton, everyone
from flitlab.models.registry import SpecError

Bytes = Annotated[int, Field(ge=0, le=10**12)]
Repeats = Annotated[int, Field(ge=1, le=1_000_000)]
Side = Annotated[int, Field(ge=1)]


class CollectiveProgram(Skeleton):
    """A collective of all ranks, repeated.

    A rank begins the next one as soon as it has completed the previous one. A reduction takes an operation per 8 bytes.
    """

    collective: ClassVar[str]

    algorithm: str | None = None
    repeats: Repeats = 1

    def extent(self, ranks: int) -> tuple[int, int]:
        return self.repeats, self.repeats

    def size(self) -> int:
        """Bytes that a rank contributes."""
        return 0

    def iterate(self, builder: Builder) -> None:
        collective(builder, self.collective, everyone(builder), self.size(), self.algorithm, self.ns_per_byte)


class SizedCollective(CollectiveProgram):
    """A collective of ``size_bytes`` bytes."""

    size_bytes: Bytes = 65536

    def size(self) -> int:
        return self.size_bytes


class ArrangedCollective(SizedCollective):
    """A collective of ``size_bytes`` bytes of ranks in a torus of ``dims``, or in groups of ``group``."""

    dims: Annotated[tuple[Side, ...], Field(min_length=1, max_length=16)] | None = None
    group: Side | None = None

    def program(self, hosts: int) -> Program:
        for key, algorithm in (("dims", "bucket"), ("group", "hierarchical")):
            if getattr(self, key) is not None and self.algorithm != algorithm:
                raise SpecError(f"is for algorithm: {algorithm}", key)
        return super().program(hosts)

    def allows(self, ranks: int) -> bool:
        return ranks == prod(self.dims or (ranks,)) and ranks % (self.group or 1) == 0

    def requirement(self) -> str:
        if self.dims is not None:
            return f"{prod(self.dims)}, the product of dims"
        return self.rule if self.group is None else f"a multiple of group = {self.group}"

    def iterate(self, builder: Builder) -> None:
        collective(
            builder, self.collective, everyone(builder), self.size(), self.algorithm, self.ns_per_byte,
            dims=self.dims or (), group=self.group,
        )  # fmt: skip
