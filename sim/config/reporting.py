# SPDX-License-Identifier: Apache-2.0
"""The sections about results: figures, and published values for comparison."""

import re
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.models.layout.design_prices import ENERGY_KEYS, DesignPrices, design_prices
from flitlab.models.mappings import Keys
from flitlab.sim.config.sections import BY_SHAPE, Name, Section, as_list
from flitlab.sim.report.figures.registry import names, usual


def _registered(name: str) -> str:
    if name not in names():
        raise PydanticCustomError("not_a_choice", "is not one of the choices", {"choices": names()})
    return name


Figure = Annotated[str, AfterValidator(_registered)]
"""A figure of ``outputs.figures``: a file of ``flitlab.sim.report.figures.kinds``, or one of a plugin."""

Which = str | Keys


class PlotConfig(Section):
    """A figure of an experiment that simulates nothing: columns of metrics.csv over one of them.

    Draws that differ in a swept ``seed`` are averaged.
    """

    y: Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str]), Field(min_length=1)]
    """Columns, or ratios ``a / b``. A column of lists or mappings is drawn as a distribution."""
    x: str | None = None
    """Column of the x axis. null: the swept key that is a number, else the size if it varies, else the scenario."""
    by: Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str])] | None = None
    """Columns whose values make a curve each. null: the case and the other swept keys."""
    where: dict[str, int | float | str | list[int | float | str]] = {}
    """Columns and the value, or values, that a row must have."""
    log: Literal["", "x", "y", "xy"] | None = None
    """Logarithmic axes. null: x, where its values grow by a factor."""
    cumulative: bool = False
    """Sum a column of mappings up to each key."""
    style: Literal["lines", "points"] = "lines"
    """Whether points are joined."""
    name: Name | None = None
    """Name of the files. null: from y and x."""
    x_label: str | None = None
    """Label of the x axis."""
    y_label: str | None = None
    """Label of the y axis."""


NotNegative = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


class EnergyConfig(Section):
    """``outputs.energy:`` power of the equipment, see docs/howto/energy.md; null: the value of the profile."""

    profile: Literal["800g", "400g", "slimfly2014", "perseus2011"] = "800g"
    """Generation of the equipment."""
    gbps: Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)] | None = None
    """Rate of the port that the powers are of."""
    switch_port_watts: NotNegative | None = None
    """Power of a port of a switch at full load, both directions."""
    switch_bit_pj: NotNegative | None = None
    """The part of it that a bit takes that the port sends."""
    optic_watts: NotNegative | None = None
    """Power of a transceiver, two of a link between switches, at full load."""
    optic_bit_pj: NotNegative | None = None
    """The part of it that a bit takes that it sends."""
    nic_watts: NotNegative | None = None
    """Power of the NIC of a host at full load, without a transceiver."""
    nic_bit_pj: NotNegative | None = None
    """The part of it that a bit takes."""

    @model_validator(mode="after")
    def _not_below_bits(self) -> Self:
        prices = self.prices()
        for part in ("switch_port", "optic", "nic"):
            bits = getattr(prices, f"{part.removesuffix('_port')}_bit_pj") * prices.gbps / 1000
            if (watts := getattr(prices, f"{part}_watts")) < bits * (1 - 1e-12):
                least = f"the {bits:g} W that its bits take at {prices.gbps:g} Gbit/s"
                raise PydanticCustomError("power", f"{part}_watts = {watts:g} is less than {least}")
        return self

    def prices(self) -> DesignPrices:
        """The values of the profile with those of this section."""
        own = self.model_dump(exclude={"profile"}, exclude_none=True)
        return design_prices(self.profile, own)

    def assumptions(self) -> list[tuple[str, float, str]]:
        """Every value that the power of a run depends on, and its source."""
        return self.prices().assumptions(ENERGY_KEYS)


def _as_profile(value: object) -> object:
    if value is not None and not isinstance(value, str | dict | EnergyConfig):
        choices = get_args(EnergyConfig.model_fields["profile"].annotation)
        raise PydanticCustomError("not_a_choice", "is not one of the choices", {"choices": list(choices)})
    return {"profile": value} if isinstance(value, str) else value


class OutputsConfig(Section):
    """``outputs:`` figures and files of a run."""

    figures: list[Figure] = usual()
    """[Figures](reference/figure.md) to draw, as far as the run has their data; the others are drawn on request."""
    relative_to: Which | None = None
    """Scenario that the completion times of the others are compared with: a label, or a mapping of swept keys."""
    plots: list[PlotConfig] = []
    """Figures of metrics.csv, for experiments that simulate nothing."""
    formats: Annotated[list[Literal["png", "svg", "pdf"]], Field(min_length=1)] = ["png", "svg"]
    """Formats of all figures."""
    size: Literal["column", "double"] = "column"
    """Width for one column of a paper (3.5 in), or for two (7.16 in)."""
    y: Literal["linear", "log", "both"] = "both"
    """Axis of latencies. both: linear near the zero-load latency, logarithmic above."""
    html: bool = True
    """Write report.html."""
    parquet: bool = False
    """Write tables as Parquet too."""
    channels: bool = False
    """Write channels.csv: the traffic of every channel (modes vct, wormhole, ideal and deflection)."""
    energy: Annotated[EnergyConfig, BeforeValidator(_as_profile, json_schema_input_type=str | EnergyConfig)] | None = (
        None
    )
    """Add columns of power and energy to results.csv: a generation, or a mapping with its values."""


COMPARISONS = ("==", "<=", ">=", "<", ">")
BETWEEN = ("/", "-", *COMPARISONS)
"""Operators between two quantities."""


def operands(quantity: str) -> list[str]:
    """A quantity, or [quantity, operator, quantity].

    >>> operands("aspl"), operands("aspl / moore_aspl")
    (['aspl'], ['aspl', '/', 'moore_aspl'])
    """
    return re.split(rf"\s+({'|'.join(BETWEEN)})\s+", quantity.strip())


def _quantity(value: str) -> str:
    parts = operands(value)
    if len(parts) > 3:
        raise PydanticCustomError("operators", "must have at most one operator")
    if any(not part or {"=", *BETWEEN} & set(part.split()) for part in parts[::2]):
        raise PydanticCustomError("quantity", f"must be a quantity, or two with {' or '.join(BETWEEN)} between them")
    return value


def is_comparison(quantity: str) -> bool:
    """Whether a quantity is a comparison: 1 if it holds, else 0."""
    return not {*COMPARISONS}.isdisjoint(operands(quantity)[1:2])


def _condition(value: str) -> str:
    if not is_comparison(value):
        raise PydanticCustomError("condition", f"must be two quantities with {' or '.join(COMPARISONS)} between them")
    return value


def _non_empty(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("said", "must not be empty")
    return value


Words = Annotated[str, AfterValidator(_non_empty)]
"""Text for the reader."""


def _percentage(value: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)? ?%", value):
        raise PydanticCustomError("percentage", "must be a number or a percentage such as 5%")
    return value


class Outcome(Section):
    """Result under another assumption."""

    what: Words
    """The assumption."""
    gives: Words
    """What follows, with numbers."""


class ChoiceConfig(Section):
    """``chosen:`` a setting that a publication does not give."""

    setting: Words
    """The setting."""
    ours: Words
    """Its value here."""
    why: str = ""
    """Reason."""
    others: list[Outcome] = []
    """Other values, and what they give."""


class PublishedConfig(Section):
    """``published:`` a published number to compare with; see ``flitlab.sim.experiment.published``."""

    where: Words
    """Place in the publication; ``<scenario label>.<quantity>`` if there is no ``quantity``."""
    value: Annotated[float, Field(allow_inf_nan=False)]
    """The published number."""
    tolerance: Annotated[
        Annotated[float, Field(ge=0), Tag("<number>")]
        | Annotated[str, AfterValidator(_percentage), Tag("<text>")]
        | Annotated[float, Tag("<list>")]
        | Annotated[float, Tag("<map>")],
        BY_SHAPE,
    ] | None = None  # fmt: skip
    """Largest difference that agrees, absolute or ``5%``. null: half a unit of the last digit of ``value``."""
    why: str = ""
    """Evidence for ``cause``, or why the two are not comparable."""
    quantity: Annotated[str, AfterValidator(_quantity)] | None = None
    """What is compared: a column, a column at a load (``hops_mean@0.3``), a ceiling (``mcf``, ``mcf.upper``,
    ``mmf:min``), or one of ``accepted_max``, ``saturation``, ``saturation_load``, ``hops_growth_10x``, ``efficiency``;
    or two, or one and a number, with an operator between."""
    scenario: Which | None = None
    """A label, or a mapping of swept keys; with ``over`` all scenarios that it matches. null: the only one, or all."""
    relative_to: Which | None = None
    """Scenarios by whose quantity is divided."""
    over: Literal["mean", "min", "max", "sum"] | None = None
    """Statistic over several scenarios."""
    per: str | None = None
    """A swept key: divide by ``relative_to`` separately for each of its values, then apply ``over`` to the ratios."""
    among: Annotated[str, AfterValidator(_quantity), AfterValidator(_condition)] | None = None
    """A comparison: only scenarios where it holds count."""
    compare: Literal["about", "at_most", "at_least", "less_than", "greater_than"] = "about"
    """How the measured value must stand to the published one."""
    claim: Literal["number", "order"] | None = None
    """Whether the publication gives a number or an order. null: order, if ``compare`` is not ``about`` or the quantity
    is a comparison."""
    cause: Literal["slip", "setting"] | None = None
    """Why a value differs: a slip of the publication, or a setting that it does not give."""
    comparable: bool = True
    """Whether both are the same quantity."""
    tried: list[Outcome] = []
    """Experiments that were made to explain a difference."""

    @model_validator(mode="after")
    def _has_aggregation_keys(self) -> Self:
        if self.over is not None and self.quantity is None:
            raise PydanticCustomError("over", "over needs a quantity")
        if self.per is not None and (self.over is None or self.relative_to is None):
            raise PydanticCustomError("per", "per needs over and relative_to")
        if self.among is not None and self.over is None:
            raise PydanticCustomError("among", "among needs over")
        return self

    @model_validator(mode="after")
    def _has_reason(self) -> Self:
        if self.cause is not None and not self.why.strip():
            raise PydanticCustomError("cause", "cause needs a why")
        if not self.comparable and not self.why.strip():
            raise PydanticCustomError("comparable", "comparable: false needs a why")
        return self
