"""What a configuration may say, and the defaults of what it leaves out.

One :class:`Config` describes one scenario: cases and sweeps are resolved before (see ``expand``).
Topology, routing and traffic are mappings here; the registry knows their keys.
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

CeilingKind = Literal["mcf", "mcf_paths", "split", "total", "bounds"]

CEILINGS: tuple[CeilingKind, ...] = get_args(CeilingKind)
"""Ceilings that can be asked for."""

BY_ROUTING = ("mcf_paths", "split")
"""Ceilings that depend on the routing."""

Figure = Literal["latency_load", "accepted_load", "hops_load", "latency_offered", "percentiles"]
"""Figures that ``outputs.figures`` may name (``sim.report.figures`` draws them)."""


class Section(BaseModel):
    """A mapping in a configuration: unknown keys and wrong types are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _not_built(*names: str) -> BeforeValidator:
    """Says of names that INTERFACE.md gives to later versions that they are not there yet."""

    def check(value: Any) -> Any:
        if isinstance(value, str) and value in names:
            raise PydanticCustomError("not_built", "is not built yet")
        return value

    return BeforeValidator(check)


def _whole(value: Any) -> Any:
    """1e4 is a fine way to write a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unlike(values: list) -> list:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise PydanticCustomError("listed_twice", "{value} is listed twice", {"value": str(value)})
    return values


def _shape(value: Any) -> str:
    """Which form of a key that has several is meant, so that errors speak of that form alone."""
    forms: dict[type, str] = {dict: "<map>", list: "<list>", str: "<text>"}
    return forms.get(type(value), "<number>")


_BY_SHAPE = Discriminator(_shape)

Count = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=10**9)]
Load = Annotated[float, Field(ge=1e-6, le=1)]

MOST_LOADS = 10_000
"""A range of more loads than this is refused."""


def _folder(value: str) -> str:
    if not value.strip() or value.startswith(".") or set(value) & set("/\\\0\n"):
        raise PydanticCustomError("folder", "must be the name of a folder")
    return value


def _percentage(value: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)? ?%", value):
        raise PydanticCustomError("percentage", "must be a number or a percentage such as 5%")
    return value


Name = Annotated[str, AfterValidator(_folder)]


class LoadRange(Section):
    """``{from, to, step}``, both ends included."""

    first: Load = Field(alias="from")
    last: Load = Field(alias="to")
    step: Annotated[float, Field(gt=0)]

    def values(self) -> list[float]:
        """from, from + step, ..., without drift."""
        first, last, step = (Decimal(repr(value)) for value in (self.first, self.last, self.step))
        count = int((last - first) / step) + 1
        if first > last:
            raise PydanticCustomError("empty_range", "from is above to")
        if count > MOST_LOADS:
            raise PydanticCustomError("long_range", "{count} loads are too many", {"count": count})
        return [float(first + i * step) for i in range(count)]


def _loads(value: Any) -> list[float]:
    if isinstance(value, LoadRange):
        value = value.values()
    return sorted(_unlike(value if isinstance(value, list) else [value]))


Loads = Annotated[
    Annotated[LoadRange, Tag("<map>")]
    | Annotated[list[Load], Field(min_length=1), Tag("<list>")]
    | Annotated[Load, Tag("<number>")]
    | Annotated[Load, Tag("<text>")],
    _BY_SHAPE,
    AfterValidator(_loads),
]

LONGEST_DELAY = 1_000_000
"""Ticks of the longest delay: an engine's memory grows with it."""

Room = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=100_000)]
"""Of a buffer; an engine's memory grows with it."""

Delay = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=LONGEST_DELAY)]
DelayNs = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SwitchingConfig(Section):
    """``switching:``. Every delay as ``*_ticks``, or as ``*_ns`` together with ``flit_ns``; see ``sim.config.time``.

    Defaults: 4 VCs, buffers of two packets of the greatest length, the allocator of the mode (vct ``age``, wormhole
    ``islip``), header 0, all other delays 1 tick. ``iterations``: of islip.
    """

    mode: Annotated[Literal["vct", "wormhole", "deflection"], _not_built("datagram")] = "vct"
    vcs: Annotated[int, Field(ge=1, le=64)] = 4
    buffer_flits: Room | None = None
    allocator: Literal["age", "islip"] | None = None
    iterations: Annotated[int, BeforeValidator(_whole), Field(ge=1, le=64)] = 1
    input_speedup: Literal[1, "vcs"] = 1
    allow_deadlock: bool = False
    hold_packets: Room | None = None
    slotted: bool = False
    flit_ns: DelayNs | None = None
    header_ticks: Annotated[int, BeforeValidator(_whole), Field(ge=0, le=LONGEST_DELAY)] | None = None
    header_ns: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    switch_ticks: Delay | None = None
    switch_ns: DelayNs | None = None
    link_ticks: Delay | None = None
    link_ns: DelayNs | None = None
    injection_ticks: Delay | None = None
    injection_ns: DelayNs | None = None
    ejection_ticks: Delay | None = None
    ejection_ns: DelayNs | None = None
    credit_ticks: Delay | None = None
    credit_ns: DelayNs | None = None


class Share(Section):
    """One packet length of a mix."""

    flits: Count
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SourceConfig(Section):
    """The keys of ``traffic:`` that are not the pattern's."""

    packet_flits: Annotated[
        Annotated[list[Share], Field(min_length=1), Tag("<list>")]
        | Annotated[Count, Tag("<number>")]
        | Annotated[Count, Tag("<text>")]
        | Annotated[Count, Tag("<map>")],
        _BY_SHAPE,
    ] = 1
    arrivals: Literal["bernoulli", "poisson", "onoff"] = "bernoulli"
    burst: Annotated[float, Field(ge=1, le=10**6)] = 8.0


class MeasureConfig(Section):
    """``measure:``, in ticks. ``ci``: wanted relative half-width, null to measure exactly ``ticks``.

    Defaults: 30,000 ticks, 5 %, at most twice the ticks.
    """

    warmup: Annotated[
        Annotated[Literal["auto"], Tag("<text>")]
        | Annotated[int, BeforeValidator(_whole), Field(ge=0, le=10**9), Tag("<number>")]
        | Annotated[int, Tag("<list>")]
        | Annotated[int, Tag("<map>")],
        _BY_SHAPE,
    ] = "auto"
    ticks: Count = 30_000
    ci: Annotated[float, Field(gt=0, lt=1)] | None = 0.05
    max_ticks: Count | None = None
    stop_when_saturated: bool = False

    @property
    def longest(self) -> int:
        """The most ticks that a point may measure."""
        if self.ci is None:
            return self.ticks
        return 2 * self.ticks if self.max_ticks is None else self.max_ticks


class CeilingConfig(Section):
    """One of ``ceilings:``; a bare name is its kind."""

    kind: CeilingKind
    method: Literal["auto", "exact", "approx"] = "auto"
    gap: Annotated[float, Field(gt=0, lt=1)] = 0.01


def _named(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class PlotConfig(Section):
    """A figure of the experiment ``metrics``: columns of metrics.csv against one of them.

    y: one column or several, or ratios ``a / b``. A column of lists or mappings is drawn as a distribution, one
    of mappings as a sum up to each key if ``cumulative``. x: by default the swept key that is a number, else the
    size if it varies, else a chart by scenario. by: columns whose values make a curve each; by default the case and
    the other swept keys. where: columns and the value, or values, that a row must have. Draws that differ in a swept
    ``seed`` are averaged. log: by default x, where its values grow
    by a factor. name: of the files; by default from y and x.
    """

    y: Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
    x: str | None = None
    by: Annotated[list[str], BeforeValidator(_listed)] | None = None
    where: dict[str, int | float | str | list[int | float | str]] = {}
    log: Literal["", "x", "y", "xy"] | None = None
    cumulative: bool = False
    name: Name | None = None
    x_label: str | None = None
    y_label: str | None = None


class OutputsConfig(Section):
    """``outputs:``. figures: of a load sweep. plots: of the experiment ``metrics``."""

    figures: list[Figure] = ["latency_load", "accepted_load", "hops_load"]
    plots: list[PlotConfig] = []
    html: bool = True
    parquet: bool = False


Which = str | dict[str, Any]


def operands(quantity: str) -> list[str]:
    """A quantity alone, or as [quantity, operator, quantity].

    >>> operands("aspl"), operands("aspl / moore_aspl")
    (['aspl'], ['aspl', '/', 'moore_aspl'])
    """
    return re.split(r"\s+(/|-|==|<=|>=|<|>)\s+", quantity.strip())


def _quantity(value: str) -> str:
    if len(operands(value)) > 3:
        raise PydanticCustomError("operators", "must have at most one operator")
    return value


class PublishedConfig(Section):
    """A published number to compare with; see ``sim.experiment.published``.

    where: place in the paper, or ``<scenario label>.<quantity>`` if ``quantity`` is absent.
    scenario, relative_to: a label, or a mapping of swept keys; with ``over``, which takes the mean, min, max or sum,
    all scenarios that the mapping fits (``{n: [64, 256]}`` fits both), without ``scenario`` all there are.
    tolerance: absolute, or ``5%``.
    """

    where: str
    value: Annotated[float, Field(allow_inf_nan=False)]
    tolerance: Annotated[
        Annotated[float, Field(ge=0), Tag("<number>")]
        | Annotated[str, AfterValidator(_percentage), Tag("<text>")]
        | Annotated[float, Tag("<list>")]
        | Annotated[float, Tag("<map>")],
        _BY_SHAPE,
    ] | None = None  # fmt: skip
    why: str = ""
    quantity: Annotated[str, AfterValidator(_quantity)] | None = None
    scenario: Which | None = None
    relative_to: Which | None = None
    over: Literal["mean", "min", "max", "sum"] | None = None
    compare: Literal["about", "at_most", "at_least", "less_than", "greater_than"] = "about"

    @model_validator(mode="after")
    def _says_what_is_taken_over_several(self) -> Self:
        if self.over is not None and self.quantity is None:
            raise PydanticCustomError("over", "over needs a quantity")
        return self


class Config(Section):
    """A whole configuration of one scenario."""

    schema_: Literal[1] = Field(1, alias="schema")
    name: Name | None = None
    topology: dict[str, Any] | None = None
    routing: dict[str, Any] | None = None
    switching: SwitchingConfig = SwitchingConfig()
    traffic: dict[str, Any] | None = None
    loads: Loads | None = None
    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1), AfterValidator(_unlike)] = [1]
    measure: MeasureConfig = MeasureConfig()
    ceilings: list[Annotated[CeilingConfig, BeforeValidator(_named)]] | None = None
    engine: Literal["reference", "compiled", "both"] = "compiled"
    outputs: OutputsConfig = OutputsConfig()
    plugins: list[str] = []
    experiment: Annotated[
        Literal["load_sweep", "metrics", "ceilings"],
        _not_built("saturation", "relative", "search", "application"),
    ] = "load_sweep"
    metrics: list[Which] = []
    published: list[PublishedConfig] = []
    quick: dict[str, Any] = {}

    @property
    def load_list(self) -> list[float]:
        """The loads, ascending."""
        assert self.loads is None or isinstance(self.loads, list)  # the validator makes lists of all forms
        return self.loads or []


NEEDS = {
    "load_sweep": ("topology", "routing", "traffic", "loads"),
    "ceilings": ("topology", "traffic"),
    "metrics": ("topology",),
}
"""Experiment -> keys that it cannot do without."""
