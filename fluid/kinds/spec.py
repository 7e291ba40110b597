# SPDX-License-Identifier: Apache-2.0
"""What every kind of ceiling has in common, and what is known of a kind by its name."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from pydantic import Field, model_validator

from flitlab.fluid.ceiling import Ceiling, Method
from flitlab.fluid.context import Context
from flitlab.models.instance import Instance
from flitlab.models.registry import Spec, UnknownKindError, make, names, spec_class

if TYPE_CHECKING:
    from flitlab.fluid.collective.collective import Collective
    from flitlab.models.traffic.traffic import Traffic
    from flitlab.models.transport.session import Session

THETA = "throughput θ"
"""Unit in figures of ceilings that are a load: the factor of the demand that can be carried."""

Quantities = Mapping[str, tuple[str, str]]
"""Type of a table of what a ceiling says besides: quantity -> what it is called, and its unit."""

COMMON: dict[str, Any] = {"method": "auto", "gap": 0.01, "per_flow": False}
"""Keys that stored configurations and the names of stored results have for every kind.

A kind that does not know one of them takes it at this value alone, which says nothing.
"""


class CeilingSpec(Spec):
    """The keys of a ceiling, one entry of ``ceilings:`` in a configuration, and what its kind says of itself.

    A kind adds its keys, gives the class variables below, and defines :meth:`rows`.

    rank: its place among the kinds: in tables, and where one of several that are known has to be chosen. usual: whether
    a configuration that lists no ceilings gets it.
    label, unit: what figures and the report call it, '' for its name, and what it is measured in there. quantities:
    the same for what ``<kind>:<quantity>`` says besides. minor: how the quantities begin that are left to ceilings.csv
    where there is little room.
    line: whether a number in the unit of loads is a line in figures of loads. share: how a sentence begins about a
    share of it; '' where saturation points are not compared with it. limit: whether the routing it is computed for
    cannot carry more.
    routes: whether it depends on the paths of a routing, and can do without one ("used") or not ("needed").
    by_load: whether it has a row for each load. of_program: whether it bounds a program, ``context.program``.
    beside_background: whether it is known where a part of the demand does not grow. of_one_flow: whether it uses the
    maximum concurrent flow, which such kinds share.
    quick: whether it takes next to no time. growth: power of switches x channels with which its time grows, None where
    that is not estimated; kinds that have one need no keys.
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
        """The rows of ceilings.csv for an instance: ``<kind>``, the ceiling, then any ``<kind>:<quantity>``.

        Raises :class:`~flitlab.fluid.problem.FluidError` where it is not defined.
        """
        raise NotImplementedError

    def absent(self, instance: Instance) -> str:
        """Why there is no such ceiling of an instance, '' if there is: its row is then omitted."""
        routes = instance.routes
        if self.routes == "needed" and routes is None:
            return f"the scenario has no routing, on whose paths {self.kind} depends"
        if self.routes != "unused" and routes is not None and not routes.oblivious:
            return f"{routes.kind} routing does not fix the paths beforehand"
        return ""

    def provable_rows(self) -> "Mapping[str, Collective | None]":
        """The rows that a saved certificate can prove: name -> the collective that the row is about, None if none."""
        return {}

    @classmethod
    def drawn(cls, session: "Session", traffic: "Traffic") -> dict[str, float]:
        """Values of this ceiling over the paths that were drawn for a datagram run, by column of results.csv.

        They are none where the kind knows no such value. session: the run. traffic: its demand.
        """
        return {}

    def plain(self) -> dict[str, Any]:
        """The entry as configurations and the names of results hold it, with all defaults."""
        return {"kind": self.kind, **COMMON} | self.model_dump(mode="json")

    @model_validator(mode="before")
    @classmethod
    def _own_keys(cls, entry: Any) -> Any:
        """Refuses keys of other kinds, with those that have them."""
        if not isinstance(entry, dict):
            return entry
        foreign = {key for key in entry if key not in cls.model_fields}
        idle = {key for key in foreign & COMMON.keys() if entry[key] == COMMON[key]}
        for key in sorted(foreign - idle):
            if having := [kind for kind, spec in kinds().items() if key in spec.model_fields]:
                raise ValueError(f"{key} goes with {', '.join(having)}, not with {entry.get('kind')}")
        return {key: value for key, value in entry.items() if key not in idle}


class Solved(CeilingSpec):
    """A ceiling that a linear program gives.

    method: ``exact`` goes to a gap of 1e-6 (refused, with the size, where that would not fit into memory),
    ``approx`` uses a first-order method, ``auto`` chooses.
    gap: relative distance of the two bounds at which an approximation may stop.
    """

    method: Method = "auto"
    gap: float = Field(default=0.01, gt=0, lt=1)


def kinds() -> dict[str, type[CeilingSpec]]:
    """All kinds of ceilings by name, in the order of their rank."""
    specs = {name: cast(type[CeilingSpec], spec_class("ceiling", name)) for name in names("ceiling")}
    return dict(sorted(specs.items(), key=lambda item: item[1].rank))


def kind_of(ceiling: str) -> type[CeilingSpec]:
    """The kind that a row of ceilings.csv is of, by its name: :class:`CeilingSpec` itself for one that no kind has."""
    try:
        return cast(type[CeilingSpec], spec_class("ceiling", ceiling.partition(":")[0]))
    except UnknownKindError:
        return CeilingSpec


def ceiling_spec(kind: str, **keys: Any) -> CeilingSpec:
    """The ceiling that an entry of ``ceilings:`` asks for.

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
    """Whether a row is one of many that only ceilings.csv has room for."""
    _, colon, quantity = ceiling.partition(":")
    return bool(colon) and quantity.startswith(kind_of(ceiling).minor)
