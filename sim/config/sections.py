# SPDX-License-Identifier: Apache-2.0
"""Base class and field types of the sections; the sections of loads and experiments."""

from decimal import Decimal
from typing import Annotated, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.models.collective.schedule import CollectiveName
from flitlab.models.mappings import Keys
from flitlab.models.registry import whole

T = TypeVar("T")


class Section(BaseModel):
    """A mapping of a configuration: unknown keys and wrong types are rejected, nothing is converted.

    The docstring of a field is the meaning of its key: ``simrun show``, editors and the documentation print it.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


def require_distinct(values: list[T]) -> list[T]:
    """The list, if its values are distinct. Raises ``PydanticCustomError``."""
    for i, value in enumerate(values):
        if value in values[:i]:
            raise PydanticCustomError("listed_twice", "{value} is listed twice", {"value": str(value)})
    return values


def _shape(value: object) -> str:
    """The form of a value, so that errors are about this form only."""
    forms: dict[type, str] = {dict: "<map>", list: "<list>", str: "<text>"}
    return forms.get(type(value), "<map>" if isinstance(value, BaseModel) else "<number>")


BY_SHAPE = Discriminator(_shape)
"""Discriminator of a union of forms, tagged as :func:`_shape` names them."""

Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**9)]


MAX_NAME_BYTES = 200
"""Bytes of the longest name of a folder or file: file systems allow 255, and suffixes are added."""


def folder_name(value: str) -> str:
    """A valid name of a folder or file. Raises ``PydanticCustomError``."""
    if not value.strip() or value.startswith(".") or set(value) & set("/\\") or not value.isprintable():
        raise PydanticCustomError("folder", "must be the name of a folder")
    if (length := len(value.encode())) > MAX_NAME_BYTES:
        problem = "must be the name of a folder, at most {most} bytes long, not {length}"
        raise PydanticCustomError("long_folder", problem, {"most": MAX_NAME_BYTES, "length": length})
    return value


Name = Annotated[str, AfterValidator(folder_name)]
"""Name of a folder or file."""


def as_component(value: object) -> object:
    """The mapping of a component; a bare name becomes ``{kind: name}``."""
    return {"kind": value} if isinstance(value, str) else value


def as_list(value: object) -> object:
    """A list; a bare text becomes a list of one."""
    return [value] if isinstance(value, str) else value


Component = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[Keys, Tag("<map>")]
    | Annotated[str, Tag("<list>")]
    | Annotated[str, Tag("<number>")],
    BY_SHAPE,
]
"""The name of a component, or a mapping with its keys."""

Draws = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10_000)]


Longest = Annotated[int, BeforeValidator(whole), Field(ge=1, le=1024)]


class SaturationConfig(Section):
    """``loads.saturation:`` finds the saturation point of every seed by bisection.

    See ``flitlab.sim.experiment.saturation``.
    """

    tolerance: Annotated[float, Field(ge=1e-3, lt=1)] = 0.01
    """Relative width of the bracket at which the search ends."""
    longest: Longest = 16
    """Longest window of a probe, as a multiple of ``measure.ticks``. Windows grow as far as a verdict needs it."""


class AdaptiveConfig(Section):
    """``loads.adaptive:`` places loads along the curve, more where the latency bends.

    See ``flitlab.sim.experiment.saturation``.
    """

    points: Annotated[int, BeforeValidator(whole), Field(ge=4, le=1000)] = 10
    """Loads of the curve, up to the first past saturation."""


CERTIFIED = ("mcf", "mcf_paths", "split")
"""Ceilings that are the upper levels, from the highest."""

MEASURED = ("ideal", "infinite_buffers", "full_speedup", "switch")
"""Levels that are simulated, from the highest.

ideal: the same routes, output queues without limit. infinite_buffers: the switch with unlimited buffers and a crossbar
without limit. full_speedup: its own buffers, a crossbar without limit. switch: as configured.
"""

Change = Literal["vcs", "buffers", "vcs_and_buffers", "speedup", "oldest", "packets", "rising"]
CHANGES: tuple[Change, ...] = get_args(Change)
"""Changes of the switch whose effect on the saturation point a budget measures, one at a time."""


class BudgetConfig(Section):
    """``budget:`` settings of loss budgets, which the figure ``budget`` and ``simrun budget`` make.

    See ``flitlab.sim.experiment.budget``.
    """

    of: Annotated[list[str], AfterValidator(require_distinct)] | None = None
    """Labels of the scenarios that get a budget. null: all."""
    window: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    """Packet times of a run, at least 45,000 ticks; a third is warm-up. null: as ``measure`` says, else 6,000."""
    tolerance: Annotated[float, Field(ge=1e-3, le=0.5)] = 0.01
    """Width of the bracket of a level at which its search ends, as a share of the least ceiling of the routing."""
    longest: Longest = 4
    """Longest window of a probe, as a multiple of the first."""
    sensitivities: Annotated[list[Change], AfterValidator(require_distinct)] = list(CHANGES)
    """Changes of the switch, made one at a time. []: none."""


class CollectiveConfig(Section):
    """``collective:`` the operation of ``experiment: collective``, see docs/collectives.md."""

    kind: CollectiveName
    """The operation."""
    ranks: Literal["hosts", "switches"] = "hosts"
    """Every host is a rank, or every switch that has hosts."""
    size_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**12)] = 2**20
    """S as in NCCL's tests. all-gather: what a rank has in the end; reduce-scatter: what it has at first; all-to-all:
    what it sends, its own share included; others: the vector of a rank."""
    root: Annotated[int, BeforeValidator(whole), Field(ge=0)] = 0
    """The root rank of operations that have one."""
    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Rate at which ranks reduce float64. null: in no time. [Gflop/s]"""
    algorithm: Component | None = None
    """An [algorithm](reference/algorithm.md), by name or as a mapping. null: the choice of an MPI library."""


class RelativeConfig(Section):
    """``relative:`` throughput divided by that of random graphs of the same equipment.

    See ``flitlab.sim.experiment.relative``.
    """

    to: Literal["same_equipment"] = "same_equipment"
    """Random graphs with the same degree and hosts at each switch."""
    by: Literal["mcf", "mcf_paths", "mmf"] = "mcf"
    """The ceiling that is compared. With a routing, mcf_paths and mmf use its paths on the random graphs too."""
    draws: Annotated[int, BeforeValidator(whole), Field(ge=2, le=10_000)] = 10
    """Random graphs; at least two, for the confidence interval."""


class UntilConfig(Section):
    """``until:`` how many draws ``experiment: ceilings`` computes.

    Scenarios that differ in the key ``over`` alone are draws, in the order of its values. They end with the first n at
    which the 95 % interval (Student) of the mean of every ceiling is narrow enough; later ones are left out.
    """

    ci: Annotated[float, Field(gt=0, lt=1)]
    """Half-width of the interval, relative to the mean."""
    over: Annotated[str, Field(min_length=1)] = "traffic.seed"
    """The swept key whose values are draws."""
    least: Annotated[int, BeforeValidator(whole), Field(ge=2, le=10_000)] = 10
    """Draws that are computed in any case."""


class SearchConfig(Section):
    """``search:`` the largest value of an integer key at which the throughput reaches ``until``.

    See ``flitlab.sim.experiment.search``.
    """

    vary: Annotated[str, Field(min_length=1)]
    """A key of the topology (``hosts_total``), or a path (``topology.n``, ``traffic.by``)."""
    until: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Throughput to reach. [load]"""
    verify: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10_000)] = 10
    """Further seeds, tried at the final value."""
    draws: Draws = 3
    """Seeds tried at each value."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the seeds that must reach ``until``."""
    first: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] | None = Field(None, alias="from")
    """Smallest value. null: 1."""
    last: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] | None = Field(None, alias="to")
    """Largest value. null: 16 times the value in the file."""
    tolerance: Annotated[float, Field(ge=1e-5, lt=1)] = 0.001
    """Relative tolerance of the throughput."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.first is not None and self.last is not None and self.first > self.last:
            raise PydanticCustomError("empty_range", "from is above to")
        return self


Load = Annotated[float, Field(ge=1e-6, le=1, allow_inf_nan=False)]

MAX_LOADS = 10_000
"""Loads of the longest range."""


class LoadRange(Section):
    """``{from, to, step}``, both ends included."""

    first: Load = Field(alias="from")
    """First load."""
    last: Load = Field(alias="to")
    """Last load."""
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Difference of neighbours."""

    def values(self) -> list[float]:
        """from, from + step, ..., exact in decimal."""
        first, last, step = (Decimal(repr(value)) for value in (self.first, self.last, self.step))
        count = int((last - first) / step) + 1
        if first > last:
            raise PydanticCustomError("empty_range", "from is above to")
        if count > MAX_LOADS:
            raise PydanticCustomError("long_range", "more than {most} loads are too many", {"most": f"{MAX_LOADS:,}"})
        return [float(first + i * step) for i in range(count)]


def _defaults(value: object) -> object:
    """An empty section has its defaults."""
    return {} if value is None else value


def _loads(value: object) -> list[float]:
    if isinstance(value, LoadRange):
        value = value.values()
    return sorted(require_distinct(value if isinstance(value, list) else [value]))


def _no_text(value: object) -> object:
    if isinstance(value, str):
        raise PydanticCustomError("load_text", "must be a number, a list of numbers, or a range {from, to, step}")
    return value


Loads = Annotated[
    Annotated[LoadRange, Tag("<map>")]
    | Annotated[list[Load], Field(min_length=1), Tag("<list>")]
    | Annotated[Load, Tag("<number>")]
    | Annotated[Load, BeforeValidator(_no_text), Tag("<text>")],
    BY_SHAPE,
    AfterValidator(_loads),
]
"""A load, a list or a range of them; ascending."""


class PlacedLoads(Section):
    """``loads:`` that a search finds as the run goes, and loads ``at`` which there is a point in any case.

    Either ``saturation`` or ``adaptive``; an empty section has its defaults.
    """

    at: Loads = []
    """Loads to simulate in any case."""
    saturation: Annotated[SaturationConfig | None, BeforeValidator(_defaults)] = None
    """Find the saturation point."""
    adaptive: Annotated[AdaptiveConfig | None, BeforeValidator(_defaults)] = None
    """Place loads along the curve."""

    @model_validator(mode="before")
    @classmethod
    def _no_range(cls, value: object) -> object:
        if isinstance(value, dict) and value.keys() & {"from", "to", "step"}:
            raise PydanticCustomError("range", "a range beside a search must be under at")
        return value

    @model_validator(mode="after")
    def _has_one_search(self) -> Self:
        if (self.saturation is None) == (self.adaptive is None):
            raise PydanticCustomError("one_way", "must have one of saturation and adaptive")
        return self


SEARCH_KEYS = frozenset(PlacedLoads.model_fields)
"""Keys of :class:`PlacedLoads`; a mapping without any of them is a range."""


def _form(value: object) -> str:
    return "<placed>" if isinstance(value, dict) and SEARCH_KEYS & value.keys() else "<fixed>"


AnyLoads = Annotated[
    Annotated[Loads, Tag("<fixed>")] | Annotated[PlacedLoads, Tag("<placed>")], Discriminator(_form)
]  # fmt: skip
"""Loads that are as_list, or found by a search."""
