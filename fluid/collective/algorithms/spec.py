# SPDX-License-Identifier: Apache-2.0
"""Interface of collective algorithms: the collective that is requested, and the plan that an algorithm returns."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from flitlab.fluid.collective.collective import Ranks
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.models.application.matching import check
from flitlab.models.application.placement import host_errors
from flitlab.models.application.program import Program
from flitlab.models.arrays import Ints
from flitlab.models.collective.schedule import KINDS, CollectiveName, Schedule
from flitlab.models.mappings import Notes
from flitlab.models.registry import Spec, SpecError, is_third_party
from flitlab.models.routing.routes import Routes
from flitlab.models.routing.validation import validate_routes
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import unchanged
from flitlab.models.validation import (
    Errors,
    contiguous,
    copy_fields,
    is_whole,
    notes_errors,
    raise_errors,
    require_type,
)

Once = Callable[[Hashable, Callable[[], Any]], Any]
"""Memo: returns the value of a function, or the stored value of an earlier call with the same key and another size."""


@dataclass(frozen=True, eq=False)
class Question:
    """A collective of a given size on a network, for which an algorithm builds a program.

    collective: its name in :data:`~flitlab.models.collective.schedule.KINDS`. topology: with hosts; rank r is on host r
    unless the algorithm changes the order. ranks: ``switches`` or ``hosts``. piece: bytes of a piece of the data. root:
    of rooted collectives. ns_per_byte: time to reduce a byte, in nanoseconds.
    """

    collective: CollectiveName
    topology: Topology
    ranks: Ranks
    piece: int
    root: int = 0
    ns_per_byte: float = 0.0

    @property
    def count(self) -> int:
        """Number of ranks: one for each host."""
        return self.topology.hosts

    @property
    def size(self) -> int:
        """S, the bytes by which results state bandwidth."""
        return int(self.piece / KINDS[self.collective].share(self.count))

    def network(self) -> CollectiveNetwork:
        """The network in integer capacities. Raises :class:`~flitlab.fluid.problem.FluidError`."""
        return CollectiveNetwork.of(self.topology, self.ranks)


@dataclass(frozen=True, eq=False)
class Plan:
    """A program of a collective, and its properties.

    host: int64 [ranks]. schedule: the schedule of the program; None if it consists of rounds. reaches: time without
    waiting and with small chunks, in units of a piece over a channel of capacity 1; None if unknown. trees: trees per
    rank. chunks: chunks per piece. depth: of the deepest tree. routes: routes of the messages; None for those of the
    scenario. notes: on the order of the ranks.
    """

    program: Program
    host: Ints
    schedule: Schedule | None = None
    reaches: Fraction | None = None
    trees: int | None = None
    chunks: int | None = None
    depth: int | None = None
    routes: Routes | None = None
    notes: Notes = field(default_factory=dict)


class AlgorithmSpec(Spec):
    """The keys of an algorithm, ``collective.algorithm`` in a configuration. An algorithm defines :meth:`plan`.

    collectives: those that it supports.
    """

    optional: bool = False
    """Whether a scenario is left out, with a warning, where there is no program."""
    collectives: ClassVar[tuple[str, ...]] = ()

    def plan(self, question: Question, once: Once) -> Plan:
        """The plan for a collective on a network. Raises ``SpecError`` where there is none.

        once: see :data:`Once`.
        """
        raise NotImplementedError

    def build(self, question: Question, once: Once = lambda key, make: make()) -> Plan:
        """The validated plan for a collective. Raises ``SpecError`` if the algorithm does not support it."""
        if question.collective not in self.collectives:
            choices = algorithms_for(question.collective)
            raise SpecError(f"{self.kind} is not an algorithm of {question.collective}", "kind", choices)
        with unchanged(question.topology, self.plan):
            plan = self.plan(question, once)
        return self._validated(plan, question) if is_third_party(self) else plan

    def _validated(self, plan: Plan, question: Question) -> Plan:
        """The plan of a third-party algorithm, with arrays as compiled code needs them. Raises ``FaultyError``."""
        topology = question.topology
        require_type(plan, Plan, "plan")
        require_type(plan.program, Program, "plan", "program")
        check(plan.program)
        raise_errors(_plan_errors(plan, question.count))
        raise_errors(host_errors(plan.host, plan.program.ranks, topology.hosts))
        routes = None if plan.routes is None else validate_routes(topology, plan.routes, copy=True, method="plan")
        return copy_fields(Plan, plan, host=contiguous(plan.host, np.int64, copy=True), routes=routes)


def _plan_errors(plan: Plan, ranks: int) -> Errors:
    """Errors of a plan, except those of its program, hosts and routes."""
    if plan.program.ranks != ranks:
        yield "ranks", f"the program has {plan.program.ranks} ranks, and the collective {ranks}"
    for name in ("trees", "chunks", "depth"):
        if getattr(plan, name) is not None and not is_whole(getattr(plan, name)):
            yield "numbers", f"{name} must be a whole number or None"
    if plan.reaches is not None and not isinstance(plan.reaches, Fraction):
        yield "reaches", "reaches must be a Fraction or None"
    if plan.schedule is not None and not isinstance(plan.schedule, Schedule):
        yield "schedule", "schedule must be a Schedule or None"
    yield from notes_errors(plan.notes)


def algorithms_for(collective: str) -> list[str]:
    """Names of the algorithms that support a collective."""
    from flitlab.models.registry import names, spec_class

    algorithms = []
    for name in names("algorithm"):
        spec = spec_class("algorithm", name)
        if issubclass(spec, AlgorithmSpec) and collective in spec.collectives:
            algorithms.append(name)
    return algorithms


def in_order(question: Question) -> Ints:
    """int64 [ranks]: rank r is on host r."""
    return np.arange(question.count)


def result_or_raise(outcome: object) -> Any:
    """The stored result of a function; if it raised an exception, raises it again."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
