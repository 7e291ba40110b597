# SPDX-License-Identifier: Apache-2.0
"""Algorithms of MPI libraries in rounds of messages, and variants in the order or the shape of the network."""

from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, TypeVar

import numpy as np
from pydantic import Field

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, in_order
from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import COLLECTIVES, collective
from flitlab.models.application.program import Program
from flitlab.models.collective.ring import Ring, find_ring
from flitlab.models.collective.schedule import KINDS
from flitlab.models.collective.shape import group_sizes, torus_dims
from flitlab.models.registry import SpecError, register

PIECE_COLLECTIVES = ("all_gather", "all_to_all", "gather")
"""Collectives whose size is that of a piece; the size of others is that of all data."""


def with_algorithm(name: str) -> tuple[str, ...]:
    """The collectives for which a library has an algorithm of this name."""
    return tuple(kind for kind in KINDS if kind in COLLECTIVES and name in COLLECTIVES[kind].algorithms)


def rounds(question: Question, algorithm: str | None, dims: Sequence[int] = (), group: int | None = None) -> Program:
    """The program of an algorithm in rounds.

    Parameters
    ----------
    question : Question
        The collective.
    algorithm : str or None
        Name of the algorithm; None for the one that a library would choose.
    dims : sequence of int
        Extents of the torus of ranks, for algorithms that need them.
    group : int or None
        Ranks of a group, for algorithms that need it.

    Raises
    ------
    SpecError
        The program would be too long, or ``dims`` or ``group`` do not fit the ranks.
    """
    count = question.count
    builder = Builder(count)
    size = question.piece if question.collective in PIECE_COLLECTIVES else question.size
    ranks = (np.arange(count) + question.root)[None] % count
    collective(builder, question.collective, ranks, size, algorithm, question.ns_per_byte, dims=dims, group=group)
    return builder.build()


class LibraryAlgorithm(AlgorithmSpec):
    """An algorithm of MPI libraries in rounds of messages; see the table in docs/applications.md."""

    def plan(self, question: Question, once: Once) -> Plan:
        return Plan(rounds(question, self.kind), in_order(question))


L = TypeVar("L", bound=type[LibraryAlgorithm])


def of_library(name: str) -> Callable[[L], L]:
    """Class decorator: registers a library's algorithm for the collectives that have it."""

    def enter(cls: L) -> L:
        cls.collectives = with_algorithm(name)
        return register("algorithm", name)(cls)

    return enter


@register("algorithm", "library")
class Library(AlgorithmSpec):
    """The algorithm that an MPI library chooses for this number of ranks and bytes.

    Example: ``algorithm: library``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.
    """

    collectives: ClassVar[tuple[str, ...]] = tuple(kind for kind in KINDS if kind in COLLECTIVES)

    def plan(self, question: Question, once: Once) -> Plan:
        return Plan(rounds(question, None), in_order(question))


@of_library("ring")
class RingAlgorithm(LibraryAlgorithm):
    """Every rank sends to the next one, in the order in which hosts are numbered, whatever the network.

    Example: ``algorithm: ring``

    Source: Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002.
    """


@of_library("recursive_doubling")
class RecursiveDoubling(LibraryAlgorithm):
    """Ranks 1, 2, 4, ... apart exchange all their data.

    Example: ``algorithm: recursive_doubling``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.
    """


@of_library("recursive_halving")
class RecursiveHalving(LibraryAlgorithm):
    """Ranks ..., 4, 2, 1 apart exchange the half of the data that the other one reduces.

    Example: ``algorithm: recursive_halving``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.4.
    """


@of_library("rabenseifner")
class Rabenseifner(LibraryAlgorithm):
    """A reduce-scatter by recursive halving, then an all-gather by recursive doubling.

    Example: ``algorithm: rabenseifner``

    Source: Rabenseifner 2004, doi:10.1007/978-3-540-24685-5_1.
    """


@of_library("bruck")
class Bruck(LibraryAlgorithm):
    """Every rank sends, in ceil(log2 p) rounds, all its data, or the data whose distance contains that of the round.

    Example: ``algorithm: bruck``

    Source: Bruck et al. 1997, doi:10.1109/71.642949.
    """


@of_library("pairwise")
class Pairwise(LibraryAlgorithm):
    """In each of p - 1 rounds every rank sends to one rank and receives from one.

    Example: ``algorithm: pairwise``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, sections 4.3 and 4.4.
    """


@of_library("linear")
class Linear(LibraryAlgorithm):
    """Every rank sends all its messages at once, without waiting.

    Example: ``algorithm: linear``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.3.
    """


@of_library("scattered")
class Scattered(LibraryAlgorithm):
    """Every rank has 32 messages in flight at a time.

    Example: ``algorithm: scattered``

    Source: the default of MPICH's control variable MPIR_CVAR_ALLTOALL_THROTTLE.
    """


@of_library("binomial")
class Binomial(LibraryAlgorithm):
    """A binomial tree of all ranks, with the root of the collective as its root.

    Example: ``algorithm: binomial``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.
    """


@of_library("van_de_geijn")
class VanDeGeijn(LibraryAlgorithm):
    """The root scatters the message, then a ring all-gathers it.

    Example: ``algorithm: van_de_geijn``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.2.
    """


@of_library("scatter_doubling")
class ScatterDoubling(LibraryAlgorithm):
    """The root scatters the message, then recursive doubling all-gathers it.

    Example: ``algorithm: scatter_doubling``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.2.
    """


@register("algorithm", "bucket")
class Bucket(AlgorithmSpec):
    """Rings in every dimension in turn; each direction of each dimension starts with a part of the data.

    It needs ranks that form a torus (torus, hypercube); hosts of a switch, if there are several, are a dimension.

    Example: ``algorithm: bucket``

    Source: Jain and Sabharwal, Optimal bucket algorithms for large MPI collectives on torus interconnects, ICS 2010.
    """

    collectives: ClassVar[tuple[str, ...]] = with_algorithm("bucket")

    def plan(self, question: Question, once: Once) -> Plan:
        dims = torus_dims(question.topology)
        if dims is None:
            raise SpecError("needs ranks that form a torus", "kind")
        return Plan(rounds(question, "bucket", dims=dims), in_order(question))


@register("algorithm", "hamiltonian_ring")
class HamiltonianRing(AlgorithmSpec):
    """A ring of ranks in the order of a Hamiltonian cycle, or in the order of least channel load that the search finds.

    Where no channel is slower than a host, and the order is a Hamiltonian cycle, no algorithm is faster between hosts.
    ``seed`` is that of the search.

    Example: ``algorithm: hamiltonian_ring``

    Source: Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002.
    """

    collectives: ClassVar[tuple[str, ...]] = with_algorithm("ring")

    seed: int = Field(default=1, ge=0)
    """Seed of the search for a cycle."""

    def plan(self, question: Question, once: Once) -> Plan:
        key = ("ring", question.topology.content_hash, self.seed)
        ring: Ring = once(key, lambda: find_ring(question.topology, self.seed))
        notes = {"hamiltonian": ring.hamiltonian, "ring_load": round(ring.load, 6)}
        return Plan(rounds(question, "ring"), ring.order, notes=notes)


@register("algorithm", "hierarchical")
class Hierarchical(AlgorithmSpec):
    """Groups gather or reduce, one rank of each group takes part in a ring, and groups spread the result.

    ``group``: ranks of a group, which follow each other; by default those of a switch or else of a pod, where all have
    equally many, else the greatest divisor of the number of ranks up to its root.

    Example: ``algorithm: {kind: hierarchical, group: 8}``
    """

    collectives: ClassVar[tuple[str, ...]] = with_algorithm("hierarchical")

    group: Annotated[int, Field(ge=1)] | None = None
    """Ranks of a group. null: those of a switch or of a pod."""

    def plan(self, question: Question, once: Once) -> Plan:
        sizes = group_sizes(question.topology)
        group = self.group or sizes.get("switch") or sizes.get("pod")
        return Plan(rounds(question, "hierarchical", group=group), in_order(question))
