"""What an algorithm of collectives is asked for, and what it gives."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from flitlab.fluid.collective.collective import Ranks
from flitlab.fluid.collective.network import Network
from flitlab.models.application.program import Program
from flitlab.models.arrays import Ints
from flitlab.models.collective.schedule import KINDS, CollectiveName, Schedule
from flitlab.models.registry import Spec, SpecError
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology

Once = Callable[[Hashable, Callable[[], Any]], Any]
"""Gives what a function makes, or what it made when it was first asked for under the same key, with another size."""


@dataclass(frozen=True, eq=False)
class Question:
    """A collective of given size on a network, for which an algorithm is to be made a program.

    collective: its name in :data:`~flitlab.models.collective.schedule.KINDS`. topology: with hosts; rank r is on host r
    unless the algorithm has another order. ranks: what they are. piece: bytes of a piece of the data. root: of those
    that have one. ns_per_byte: nanoseconds that it takes to reduce a byte with another.
    """

    collective: CollectiveName
    topology: Topology
    ranks: Ranks
    piece: int
    root: int = 0
    ns_per_byte: float = 0.0

    @property
    def count(self) -> int:
        """How many ranks there are: one for each host."""
        return self.topology.hosts

    @property
    def size(self) -> int:
        """S, the bytes in which results state bandwidth."""
        return int(self.piece / KINDS[self.collective].share(self.count))

    def network(self) -> Network:
        """The network in whole numbers. Raises :class:`~flitlab.fluid.problem.FluidError`."""
        return Network.of(self.topology, self.ranks)


@dataclass(frozen=True, eq=False)
class Plan:
    """A program of a collective, and what there is to know of it.

    host: int64 [ranks]. schedule: that the program follows; None where it is made of rounds. reaches: units of time, of
    a piece over a channel of capacity 1, that it takes if nothing ever waits and chunks are small; None where that is
    not known. trees: how many each rank has. chunks: into how many a piece is cut. depth: of the deepest tree. routes:
    that messages take instead of those of the scenario; None where these serve.
    notes: of the order of the ranks.
    """

    program: Program
    host: Ints
    schedule: Schedule | None = None
    reaches: Fraction | None = None
    trees: int | None = None
    chunks: int | None = None
    depth: int | None = None
    routes: Routes | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class AlgorithmSpec(Spec):
    """The keys of an algorithm, ``collective.algorithm`` in a configuration. An algorithm defines :meth:`plan`.

    collectives: those that it is for. optional: whether a scenario is left out, with a warning, where there is no
    program.
    """

    optional: bool = False
    collectives: ClassVar[tuple[str, ...]] = ()

    def plan(self, question: Question, once: Once) -> Plan:
        """The program for a collective on a network. Raises ``SpecError`` where there is none.

        once: see :data:`Once`.
        """
        raise NotImplementedError

    def build(self, question: Question, once: Once = lambda key, make: make()) -> Plan:
        """The program for a collective, once it is one that the algorithm is for."""
        if question.collective not in self.collectives:
            choices = for_kind(question.collective)
            raise SpecError(f"{self.kind} is no algorithm of {question.collective}", "kind", choices)
        return self.plan(question, once)


def for_kind(collective: str) -> list[str]:
    """The algorithms that a collective has."""
    from flitlab.models.registry import names, spec_class

    found = []
    for name in names("algorithm"):
        spec = spec_class("algorithm", name)
        if issubclass(spec, AlgorithmSpec) and collective in spec.collectives:
            found.append(name)
    return found


def in_order(question: Question) -> Ints:
    """int64 [ranks]: rank r on host r."""
    return np.arange(question.count)


def made(found: Any) -> Any:
    """What a function made, or the exception that it raised when it was first called, again."""
    if isinstance(found, BaseException):
        raise found
    return found
