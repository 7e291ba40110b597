# SPDX-License-Identifier: Apache-2.0
"""Programs that are a single collective."""

from math import prod
from typing import Annotated

from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.program import Program
from flitlab.models.application.skeletons.skeleton import Skeleton, everyone
from flitlab.models.registry import SpecError, register

Bytes = Annotated[int, Field(ge=0, le=10**12)]
Repeats = Annotated[int, Field(ge=1, le=1_000_000)]
Side = Annotated[int, Field(ge=1)]


class CollectiveProgram(Skeleton):
    """A collective of all ranks, repeated.

    A rank begins the next one as soon as it has completed the previous one. A reduction takes an operation per 8 bytes.
    """

    algorithm: str | None = None
    """Its algorithm. null: as an MPI library chooses; best: the fastest on the network."""
    repeats: Repeats = 1
    """How often, one after another."""

    def extent(self, ranks: int) -> tuple[int, int]:
        return self.repeats, self.repeats

    def size(self) -> int:
        """Bytes that a rank contributes."""
        return 0

    def iterate(self, builder: Builder) -> None:
        collective(builder, self.kind, everyone(builder), self.size(), self.algorithm, self.ns_per_byte)


class SizedCollective(CollectiveProgram):
    """A collective of ``size_bytes`` bytes."""

    size_bytes: Bytes = 65536
    """Bytes of the collective."""

    def size(self) -> int:
        return self.size_bytes


class ArrangedCollective(SizedCollective):
    """A collective of ``size_bytes`` bytes of ranks in a torus of ``dims``, or in groups of ``group``."""

    dims: Annotated[tuple[Side, ...], Field(min_length=1, max_length=16)] | None = None
    """Sides of the torus of ranks, for algorithm bucket."""
    group: Side | None = None
    """Ranks of a group, for algorithm hierarchical."""

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
            builder, self.kind, everyone(builder), self.size(), self.algorithm, self.ns_per_byte,
            dims=self.dims or (), group=self.group,
        )  # fmt: skip


@register("application", "all_gather")
class AllGather(ArrangedCollective):
    """Every rank gets ``size_bytes`` bytes of each.

    algorithm: ``recursive_doubling``, ``bruck``, ``ring``, ``bucket`` or ``hierarchical``, by default as an
    MPI library chooses. dims: of ``bucket``, the sides of the torus that the ranks form, the last coordinate changing
    fastest; by default one ring. group: of ``hierarchical``, how many ranks in a row are close together, such as the
    hosts of a switch; by default the greatest divisor of the number of ranks up to its root.

    Example: ``application: {kind: all_gather, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.1.
    """


@register("application", "all_reduce")
class AllReduce(ArrangedCollective):
    """Every rank gets the sum of ``size_bytes`` bytes of each.

    algorithm: ``recursive_doubling``, ``rabenseifner``, ``ring``, ``bucket`` or ``hierarchical``, by default as an
    MPI library chooses. dims: of ``bucket``, the sides of the torus that the ranks form, the last coordinate changing
    fastest; by default one ring. group: of ``hierarchical``, how many ranks in a row are close together, such as the
    hosts of a switch; by default the greatest divisor of the number of ranks up to its root.

    Example: ``application: {kind: all_reduce, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.5.
    """


@register("application", "all_to_all")
class AllToAll(SizedCollective):
    """Every rank sends ``size_bytes`` bytes to each of the others.

    algorithm: ``bruck``, ``scattered`` (32 messages at a time), ``linear`` (all at once) or ``pairwise``, by default as
    an MPI library chooses.

    Example: ``application: {kind: all_to_all, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.3.
    """


@register("application", "barrier")
class Barrier(CollectiveProgram):
    """No rank goes on before all have come.

    algorithm: ``dissemination``.

    Example: ``application: {kind: barrier, repeats: 10, ranks: 64}``

    Source: Hensgen, Finkel and Manber 1988, doi:10.1007/BF01379320.
    """


@register("application", "broadcast")
class Broadcast(SizedCollective):
    """Rank 0 sends ``size_bytes`` bytes to all others.

    algorithm: ``binomial``, ``scatter_doubling`` or ``van_de_geijn``, by default as an MPI library chooses.

    Example: ``application: {kind: broadcast, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.2.
    """


@register("application", "reduce_scatter")
class ReduceScatter(ArrangedCollective):
    """Every rank gets its p-th part of the sum of ``size_bytes`` bytes of each.

    algorithm: ``recursive_halving``, ``pairwise``, ``ring``, ``bucket`` or ``hierarchical``, by default as an
    MPI library chooses. dims: of ``bucket``, the sides of the torus that the ranks form, the last coordinate changing
    fastest; by default one ring. group: of ``hierarchical``, how many ranks in a row are close together, such as the
    hosts of a switch; by default the greatest divisor of the number of ranks up to its root.

    Example: ``application: {kind: reduce_scatter, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.4.
    """
