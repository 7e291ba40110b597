# SPDX-License-Identifier: Apache-2.0
"""Common base of all kinds of ceilings, and look-up of kinds by name."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from pydantic import Field, model_validator

from flitlab.fluid.ceiling import Ceiling, Method
from flitlab.fluid.context import Context
from flitlab.fluid.saved import Saved
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys
from flitlab.models.registry import Spec, UnknownKindError, make, names, spec_class

if TYPE_CHECKING:
    from flitlab.models.traffic.traffic import Traffic
    from flitlab.models.transport.session import Session

THETA = "throughput θ"
"""Unit in figures of ceilings that are a load: the feasible factor of the demand."""

Quantities = Mapping[str, tuple[str, str]]
"""Type of the table of further quantities of a ceiling: quantity -> label and unit."""

COMMON: Keys = {"method": "auto", "gap": 0.01, "per_flow": False}
"""Keys that stored configurations and result names have for every kind.

A kind that lacks one of them accepts only this default value.
"""


class CeilingSpec(Spec):
    """The keys of a ceiling, one entry of ``ceilings:`` in a configuration, and the properties of its kind.

    A kind adds its keys, sets the class variables below, and defines :meth:`rows`.

    rank: position among the kinds, in tables and where one of several known ceilings is chosen. usual: whether a
    configuration without ``ceilings`` gets it. label, unit: name and unit in figures and the report; '' for the kind's
    name. quantities: the same for ``<kind>:<quantity>``. minor: prefixes of quantities that only ceilings.csv lists.
    line: whether a value in the unit of loads is a line in figures of loads. share: begin of a sentence about a share
    of it; '' where saturation points are not compared with it. limit: whether the routing that it is computed for
    cannot carry more. routes: whether it depends on the paths of a routing, and is defined without one ("used") or not
    ("needed"). by_load: whether it has a row for each load. of_program: whether it bounds a program,
    ``context.program``. beside_background: whether it is defined where a part of the demand does not grow. of_one_flow:
    whether it uses the maximum concurrent flow, which such kinds share. quick: whether it takes almost no time. growth:
    power of switches x channels with which its time grows, None where that is not estimated; kinds with an estimate
    need no keys.
    """

    rank: ClassVar[int] = 100
    usual: ClassVar[bool] = False
    label: ClassVar[str] = ""
    unit: ClassVar[str] = THETA
    quantities: ClassVar[Quantities] = {}
    minor: ClassVar[tuple[str, ...]] = ()
    line: ClassVar[bool] = True
    share: ClassVar[str] = ""
    limit: ClassVar[bool] = False
    routes: ClassVar[Literal["unused", "used", "needed"]] = "unused"
    by_load: ClassVar[bool] = False
    of_program: ClassVar[bool] = False
    beside_background: ClassVar[bool] = False
    of_one_flow: ClassVar[bool] = False
    quick: ClassVar[bool] = False
    growth: ClassVar[float | None] = None

    def rows(self, instance: Instance, context: Context) -> Iterable[Ceiling]:
        """The rows of ceilings.csv of an instance: the ceiling ``<kind>``, then any ``<kind>:<quantity>``.

        Raises :class:`~flitlab.fluid.problem.FluidError` where it is not defined.
        """
        raise NotImplementedError

    def absent(self, instance: Instance) -> str:
        """Why an instance has no such ceiling, '' if it has one; its row is then omitted."""
        routes = instance.routes
        if self.routes == "needed" and routes is None:
            return f"the scenario has no routing, on whose paths {self.kind} depends"
        if self.routes != "unused" and routes is not None and not routes.oblivious:
            return f"{routes.kind} routing does not fix the paths beforehand"
        return ""

    @classmethod
    def proof(cls, row: str) -> type[Saved] | None:
        """The class of a saved proof of a row, by the row's name; None if no certificate proves it."""
        return None

    def provable_rows(self) -> Mapping[str, object]:
        """The rows that a saved certificate can prove.

        Name -> what the proof must be about besides topology, traffic and routes (hashable), or None.
        """
        return {self.kind: None} if self.proof(self.kind) else {}

    @classmethod
    def drawn(cls, session: "Session", traffic: "Traffic") -> dict[str, float]:
        """Values of this ceiling over the paths that a datagram run drew, by column of results.csv; empty if not
        defined.

        session: the run. traffic: its demand.
        """
        return {}

    def plain(self) -> Keys:
        """The entry as in configurations and result names, with all defaults."""
        return {"kind": self.kind, **COMMON} | self.model_dump(mode="json")

    @model_validator(mode="before")
    @classmethod
    def _own_keys(cls, entry: object) -> object:
        """Reject keys of other kinds; the message names the kinds that have them."""
        if not isinstance(entry, dict):
            return entry
        foreign = {key for key in entry if key not in cls.model_fields}
        idle = {key for key in foreign & COMMON.keys() if entry[key] == COMMON[key]}
        for key in sorted(foreign - idle):
            if having := [kind for kind, spec in kinds().items() if key in spec.model_fields]:
                raise ValueError(f"{key} goes with {', '.join(having)}, not with {entry.get('kind')}")
        return {key: value for key, value in entry.items() if key not in idle}


class Solved(CeilingSpec):
    """A ceiling that a linear program gives."""

    method: Method = "auto"
    """exact: to a gap of 1e-6, where it fits into memory; approx: by a first-order method; auto chooses."""
    gap: float = Field(default=0.01, gt=0, lt=1)
    """Relative gap of the two bounds at which an approximation may stop."""


def kinds() -> dict[str, type[CeilingSpec]]:
    """All kinds of ceilings by name, in the order of their rank."""
    specs = {name: cast(type[CeilingSpec], spec_class("ceiling", name)) for name in names("ceiling")}
    return dict(sorted(specs.items(), key=lambda item: item[1].rank))


def kind_of(ceiling: str) -> type[CeilingSpec]:
    """The kind of a row of ceilings.csv, by the row's name; :class:`CeilingSpec` if it is unknown."""
    try:
        return cast(type[CeilingSpec], spec_class("ceiling", ceiling.partition(":")[0]))
    except UnknownKindError:
        return CeilingSpec


def ceiling_spec(kind: str, **keys: object) -> CeilingSpec:
    """The ceiling of an entry of ``ceilings:``.

    Raises :class:`~flitlab.models.registry.UnknownKindError` or ``pydantic.ValidationError``.
    """
    return cast(CeilingSpec, make("ceiling", kind=kind, **keys))


def column_label(column: str) -> tuple[str, str] | None:
    """What a column of metrics.csv with a ceiling is called, and its unit; None if it holds none.

    >>> called("mcf"), called("bounds:moore"), called("cuts:two_node"), called("aspl")
    (('maximum concurrent flow', 'throughput θ'), ('Moore bound on the throughput', 'throughput θ'), \
('sparsest cut found, two node', 'throughput θ'), None)
    """
    name = column.removesuffix(".upper")
    kind, colon, quantity = name.partition(":")
    if kind not in names("ceiling"):
        return None
    spec = kind_of(kind)
    label, unit = spec.label or kind.replace("_", " "), spec.unit
    if colon:
        same = unit if quantity.startswith(spec.minor) else ""
        label, unit = spec.quantities.get(quantity, (f"{label}, {quantity.replace('_', ' ')}", same))
    return (label if name == column else f"{label}, upper end"), unit


def is_minor(ceiling: str) -> bool:
    """Whether a row is a minor quantity, which only ceilings.csv lists."""
    _, colon, quantity = ceiling.partition(":")
    return bool(colon) and quantity.startswith(kind_of(ceiling).minor)
