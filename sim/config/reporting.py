# SPDX-License-Identifier: Apache-2.0
"""The sections about results: figures, and published values for comparison."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.sim.config.section import BY_SHAPE, Name, Section, as_list


def _registered(name: str) -> str:
    from flitlab.sim.report.figures.registry import names

    if name not in names():
        raise PydanticCustomError("not_a_choice", "is not one of the choices", {"choices": names()})
    return name


Figure = Annotated[str, AfterValidator(_registered)]
"""A figure of ``outputs.figures``: a file of ``flitlab.sim.report.figures.kinds``, or one of a plugin."""

Which = str | dict[str, Any]


class PlotConfig(Section):
    """A figure of an experiment without simulations: columns of metrics.csv against one of them.

    y: one column or several, or ratios ``a / b``. Columns of lists or mappings are drawn as distributions, mappings as
    cumulative sums if ``cumulative``. x: by default the numeric swept key, else the size if it varies, else one bar per
    scenario. by: columns whose values define the curves; by default the case and the other swept keys. where: columns
    and the value, or values, that a row must have. Rows that differ in a swept ``seed`` are averaged. style: ``points``
    are not connected. log: by default x, if its values are geometric. name: of the files; by default from y and x.
    """

    y: Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str]), Field(min_length=1)]
    x: str | None = None
    by: Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str])] | None = None
    where: dict[str, int | float | str | list[int | float | str]] = {}
    log: Literal["", "x", "y", "xy"] | None = None
    cumulative: bool = False
    style: Literal["lines", "points"] = "lines"
    name: Name | None = None
    x_label: str | None = None
    y_label: str | None = None


class OutputsConfig(Section):
    """``outputs:``. figures: of a load sweep or of applications; ``bottleneck`` draws the bottlenecks of the maximum
    concurrent flow ``mcf`` of each scenario, for any experiment that computes it; ``budget`` draws the loss budget of
    each packet scenario, which takes further points. plots: of the other experiments, from metrics.csv. relative_to:
    the reference scenario for the time of applications, or a mapping of swept keys that matches one for each program.

    formats: of all figures. size: for one column of a paper, 3.5 in wide, or across two, 7.16 in. y: the latency axis;
    ``both`` is linear around the zero-load latency and logarithmic above, else all ``linear`` or ``log``. The break
    depends only on the zero-load latency, so it is the same in all runs of a study.
    """

    figures: list[Figure] = [
        "latency_load", "accepted_load", "saturation", "hops_load", "throughput", "completion", "slowdown",
        "transports", "throughput_time", "performance", "steps", "utilisation", "timeline", "busbw_size", "time_size",
        "cut",
    ]  # fmt: skip
    relative_to: Which | None = None
    plots: list[PlotConfig] = []
    formats: Annotated[list[Literal["png", "svg", "pdf"]], Field(min_length=1)] = ["png", "svg"]
    size: Literal["column", "double"] = "column"
    y: Literal["linear", "log", "both"] = "both"
    html: bool = True
    parquet: bool = False


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
    """The result under another assumption. what: the assumption. gives: the result in a few words, with numbers."""

    what: Words
    gives: Words


class ChoiceConfig(Section):
    """A setting that a publication omits. ours: the value taken here. others: alternatives."""

    setting: Words
    ours: Words
    why: str = ""
    others: list[Outcome] = []


class PublishedConfig(Section):
    """A published value for comparison; see ``flitlab.sim.experiment.published``.

    where: place in the paper, or ``<scenario label>.<quantity>`` if ``quantity`` is absent. scenario, relative_to: a
    label, or a mapping of swept keys; with ``over``, which takes the mean, min, max or sum, all matching scenarios
    (``{n: [64, 256]}`` matches both), without ``scenario`` all of them. per: a swept key; the ratio to ``relative_to``
    is taken for each of its values, then ``over`` aggregates the ratios. among: a comparison; scenarios where it does
    not hold are omitted. tolerance: absolute, or ``5%``. claim: ``order`` if the publication uses words (*almost the
    same*), which ``value`` and ``tolerance`` express in numbers, else ``number``; by default ``order`` for comparisons
    and for ``compare`` other than ``about``. cause: of a difference: a ``slip`` of the publication, or a ``setting``
    that it omits; ``why`` has the evidence. comparable: whether the quantities are the same at all; if not, ``why`` has
    the difference. tried: experiments on the cause of a difference.
    """

    where: Words
    value: Annotated[float, Field(allow_inf_nan=False)]
    tolerance: Annotated[
        Annotated[float, Field(ge=0), Tag("<number>")]
        | Annotated[str, AfterValidator(_percentage), Tag("<text>")]
        | Annotated[float, Tag("<list>")]
        | Annotated[float, Tag("<map>")],
        BY_SHAPE,
    ] | None = None  # fmt: skip
    why: str = ""
    quantity: Annotated[str, AfterValidator(_quantity)] | None = None
    scenario: Which | None = None
    relative_to: Which | None = None
    over: Literal["mean", "min", "max", "sum"] | None = None
    per: str | None = None
    among: Annotated[str, AfterValidator(_quantity), AfterValidator(_condition)] | None = None
    compare: Literal["about", "at_most", "at_least", "less_than", "greater_than"] = "about"
    claim: Literal["number", "order"] | None = None
    cause: Literal["slip", "setting"] | None = None
    comparable: bool = True
    tried: list[Outcome] = []

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
