# SPDX-License-Identifier: Apache-2.0
"""Published numbers beside measured ones: *published | measured | verdict*.

A quantity is one of

* a column of results.csv or metrics.csv: its mean over all rows of the scenario, ``aspl``;
* ``<column>@<load>``: mean over seeds at that load, between two loads by linear interpolation, ``hops_mean@0.3``;
* a ceiling: ``mcf`` (what is certified to be reachable; the upper end where that is not known), ``mcf.lower``,
  ``mcf.upper``; ``total@0.9`` at one of the loads;
* one of the functions of a load sweep in :data:`SWEEP`;
* two of these, or one and a number, with one of :data:`OPERATORS` between them, spaces around it:
  ``aspl / lemma_bounds_k_shortest``, ``diameter == 3``. A comparison is 1 where it holds and 0 where not.

With ``over`` the quantity is found for each of several scenarios, then their mean, min, max or sum is taken: the mean
of a comparison is the share of scenarios where it holds, its sum their number. ``among`` leaves out the scenarios where
a comparison does not hold. With ``relative_to`` the same is found for other scenarios and divided by; with ``per`` for
each value of a swept key apart, and ``over`` is taken once more, of the ratios.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from statistics import fmean

from flitlab.models.delimited import is_number
from flitlab.models.mappings import Row
from flitlab.sim.config.case import Case, Study, labels_of, swept
from flitlab.sim.config.reporting import PublishedConfig, is_comparison, operands
from flitlab.sim.measure.rows import Status
from flitlab.sim.measure.saturation import saturation

COLUMNS = (
    "where", "scenario", "quantity", "compare", "published", "tolerance", "measured", "claim", "verdict", "why",
)  # fmt: skip
"""Columns of published.csv."""


class Claim(StrEnum):
    """The kind of a published value: a number, or an order (larger, about equal, or a condition)."""

    NUMBER = "number"
    ORDER = "order"


class Verdict(StrEnum):
    """The outcome of a comparison."""

    AGREES = "agrees"
    ORDER_AGREES = "order agrees"
    SLIP = "differs: the paper slips"
    SETTING = "differs: unpublished setting"
    UNEXPLAINED = "differs: unexplained"
    NOT_COMPARABLE = "not comparable"
    NOT_MEASURED = "not measured"

    @property
    def agrees(self) -> bool:
        """Whether the verdict is agreement."""
        return self in (Verdict.AGREES, Verdict.ORDER_AGREES)

    @property
    def differs(self) -> bool:
        """Whether the verdict is a difference."""
        return self in (Verdict.SLIP, Verdict.SETTING, Verdict.UNEXPLAINED)


class Sweep:
    """One scenario's load sweep: columns averaged over seeds, by ascending load. Failed points are left out."""

    def __init__(self, rows: Sequence[Row]):
        self.rows = [row for row in rows if row.get("status", Status.OK) == Status.OK]
        self.loads = sorted({row["load"] for row in self.rows if "load" in row})

    def column(self, name: str) -> list[float]:
        """Means of a column, one per load; NaN if no seed has a number."""
        return [_mean(_numbers([row for row in self.rows if row["load"] == load], name)) for load in self.loads]

    def at(self, name: str, load: float) -> float | None:
        """A column at a load, interpolated linearly; None outside the loads."""
        return _interpolate(self.loads, self.column(name), load)

    def accepted_max(self) -> float | None:
        """Highest accepted traffic, in flits/tick/host."""
        return max(self.column("accepted"), default=None)

    def saturation_load(self) -> float | None:
        """Lowest load at which a seed is saturated; None if none is."""
        return min((row["load"] for row in self.rows if row.get("saturated")), default=None)

    def saturation(self) -> float | None:
        """The saturation point, see ``flitlab.sim.measure.saturation``; None if nothing is saturated."""
        point = saturation(self.rows)
        return None if point is None else point.value

    def hops_growth_10x(self) -> float | None:
        """Mean hops at the highest accepted traffic over those at a tenth of it."""
        accepted, hops = self.column("accepted"), self.column("hops_mean")
        if not accepted:
            return None
        rising = [i for i in range(len(accepted)) if all(accepted[i] > accepted[j] for j in range(i))]
        most = max(accepted)
        # below the lowest load the path length no longer depends on it
        low = max(most / 10, accepted[rising[0]])
        few = _interpolate([accepted[i] for i in rising], [hops[i] for i in rising], low)
        return hops[accepted.index(most)] / few if few else None


SWEEP: dict[str, Callable[[Sweep], float | None]] = {
    "accepted_max": Sweep.accepted_max,
    "saturation_load": Sweep.saturation_load,
    "saturation": Sweep.saturation,
    "hops_growth_10x": Sweep.hops_growth_10x,
}
"""Quantities of a whole load sweep; ``efficiency`` (saturation over mcf) is another one, if it is no column."""


def _same(a: float, b: float) -> bool:
    """Whether two numbers are equal up to rounding."""
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


OPERATORS: dict[str, Callable[[float, float], float | None]] = {
    "/": lambda a, b: a / b if b else None,
    "-": lambda a, b: a - b,
    "==": _same,
    "<=": lambda a, b: a < b or _same(a, b),
    ">=": lambda a, b: a > b or _same(a, b),
    "<": lambda a, b: a < b and not _same(a, b),
    ">": lambda a, b: a > b and not _same(a, b),
}
"""Operators between two quantities. Comparisons treat a relative difference of 1e-9 as equal."""

OVER: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "min": min, "max": max, "sum": math.fsum}
"""Aggregations of ``over``, for the values of several scenarios."""


@dataclass
class Measured:
    """The results of one scenario: rows of results.csv or metrics.csv, and of ceilings.csv."""

    rows: list[Row] = field(default_factory=list)
    ceilings: list[Row] = field(default_factory=list)

    def quantity(self, name: str) -> float | None:
        """A quantity, or the result of an operator on two; None if it was not measured."""
        first, *rest = operands(name)
        if not rest:
            return self._one(first)
        operator, second = rest
        a, b = (float(part) if is_number(part) else self._one(part) for part in (first, second))
        value = None if a is None or b is None else OPERATORS[operator](a, b)
        return None if value is None else float(value)

    def _one(self, name: str) -> float | None:
        sweep = Sweep(self.rows)
        column, at, load = name.partition("@")
        if at and not any(name in row for row in sweep.rows):
            value = sweep.at(column, float(load)) if is_number(load) else None
        elif name in SWEEP:
            value = SWEEP[name](sweep)
        elif name == "efficiency" and not _numbers(sweep.rows, name):
            point, ceiling = sweep.saturation(), self._ceiling("mcf.upper")
            value = point / ceiling if point is not None and ceiling else None
        else:
            value = self._ceiling(name)
            numbers = _numbers(sweep.rows, name)
            value = _mean(numbers) if value is None and numbers else value
        return None if value is None or math.isnan(value) else value

    def _ceiling(self, name: str) -> float | None:
        """A ceiling of the scenario, or one of its ends."""
        kind, _, end = name.partition(".")
        for row in self.ceilings:
            if row["ceiling"] == kind and row["load"] is None:
                lower, upper = row["lower"], row["upper"]
                return {"lower": lower, "upper": upper, "": upper if lower is None else lower}.get(end)
        return None


def compare(study: Study, rows: Sequence[Row], ceilings: Sequence[Row], full_size: Mapping[str, Verdict]) -> list[Row]:
    """One row per entry of ``published:``, with the columns :data:`COLUMNS`.

    Parameters
    ----------
    study: has the published values.
    rows: of results.csv or metrics.csv.
    ceilings: rows of ceilings.csv.
    full_size: of a quick version, the verdicts at full size by ``where``.
    """
    measured = {case.label: Measured() for case in study.cases}
    for row in rows:
        measured[row["scenario"]].rows.append(row)
    for row in ceilings:
        measured[row["scenario"]].ceilings.append(row)
    cases = [case for case in study.cases if case.compared]
    return [_compare(entry, cases, measured, full_size.get(entry.where)) for entry in study.published]


def _compare(
    entry: PublishedConfig, cases: Sequence[Case], measured: Mapping[str, Measured], full_size: Verdict | None
) -> Row:
    labels, quantity = _subject(entry, cases)
    value = _measured(entry, quantity, [case for case in cases if case.label in labels], cases, measured)
    return {
        "where": entry.where, "scenario": _named(entry, labels), "quantity": quantity, "compare": entry.compare,
        "published": entry.value, "tolerance": "" if entry.tolerance is None else str(entry.tolerance),
        "measured": value, "claim": claim(entry, quantity), "verdict": verdict(entry, quantity, value, full_size),
        "why": entry.why,
    }  # fmt: skip


def _subject(entry: PublishedConfig, cases: Sequence[Case]) -> tuple[list[str], str]:
    """(labels of scenarios, quantity) of an entry; no labels if there is no such scenario."""
    if entry.scenario is not None:
        return labels_of(entry.scenario, cases), entry.quantity or entry.where
    if entry.over is not None or len(cases) == 1:
        labels = [case.label for case in cases]
    else:
        labels = []
    if entry.quantity is not None:
        return labels, entry.quantity
    for case in sorted(cases, key=lambda case: -len(case.label)):
        if entry.where.startswith(case.label + "."):
            return [case.label], entry.where[len(case.label) + 1 :]
    return labels, entry.where


def _measured(
    entry: PublishedConfig, quantity: str, own: Sequence[Case], cases: Sequence[Case], measured: Mapping[str, Measured]
) -> float | None:
    """The quantity of the scenarios of an entry, relative to the reference if it has one."""

    def value(of: Sequence[Case]) -> float | None:
        return _value(entry, quantity, [measured[case.label] for case in of])

    if entry.relative_to is None:
        return value(own)
    labels, key = labels_of(entry.relative_to, cases), entry.per
    reference = [case for case in cases if case.label in labels]
    if key is None:
        return _ratio(value(own), value(reference))
    assert entry.over is not None
    groups = [[[case for case in of if swept(case, key) == at] for of in (own, reference)] for at in _values(own, key)]
    ratios = [_ratio(value(own_group), value(reference_group)) for own_group, reference_group in groups]
    known = [ratio for ratio in ratios if ratio is not None]
    return OVER[entry.over](known) if known and len(known) == len(ratios) else None


def _values(cases: Sequence[Case], key: str) -> list[object]:
    """The distinct values of a swept key, which may be unhashable."""
    values: list[object] = []
    for case in cases:
        if (value := swept(case, key)) not in values:
            values.append(value)
    return values


def _ratio(value: float | None, reference: float | None) -> float | None:
    return value / reference if value is not None and reference else None


def _value(entry: PublishedConfig, quantity: str, scenarios: Sequence[Measured]) -> float | None:
    """The quantity of one or several scenarios; None unless all of them have it."""
    if entry.among is not None:
        condition = [scenario.quantity(entry.among) for scenario in scenarios]
        if None in condition:
            return None
        scenarios = [scenario for scenario, holds in zip(scenarios, condition, strict=True) if holds]
    values = [scenario.quantity(quantity) for scenario in scenarios]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return known[0] if entry.over is None else OVER[entry.over](known)


def _named(entry: PublishedConfig, labels: Sequence[str]) -> str:
    """The label of the scenario, or the number of scenarios and their selection."""
    if entry.over is None:
        return labels[0] if labels else ""
    which = entry.scenario or {}
    keys = [which] if isinstance(which, str) else [f"{key}={_short(value)}" for key, value in which.items()]
    keys += [f"where {entry.among}"] * (entry.among is not None) + [f"per {entry.per}"] * (entry.per is not None)
    return f"{entry.over} of {len(labels)}" + "".join(f", {key}" for key in keys)


def _short(value: object) -> str:
    """A value, or the ends of a list."""
    if not isinstance(value, list) or len(value) < 3:
        return str(value)
    return f"[{value[0]}, ..., {value[-1]}]"


def _numbers(rows: Sequence[Row], name: str) -> list[float]:
    values = [row.get(name) for row in rows]
    return [float(value) for value in values if isinstance(value, int | float) and not math.isnan(value)]


def _mean(numbers: Sequence[float]) -> float:
    return fmean(numbers) if numbers else math.nan


def _interpolate(x: Sequence[float], y: Sequence[float], at: float) -> float | None:
    """y at x = ``at`` by linear interpolation; None outside."""
    for i, value in enumerate(x):
        if math.isclose(value, at, rel_tol=1e-9):
            return y[i]
        if value > at:
            return None if i == 0 else y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (value - x[i - 1])
    return None


def claim(entry: PublishedConfig, quantity: str) -> Claim:
    """Whether a publication gives a number or an order.

    A comparison (``diameter == 3``) is an order, unless its count over scenarios is published.
    """
    if entry.claim is not None:
        return Claim(entry.claim)
    holds = entry.over != "sum" and entry.value in (0, 1) and is_comparison(quantity)
    return Claim.ORDER if entry.compare != "about" or holds else Claim.NUMBER


CAUSES = {None: Verdict.UNEXPLAINED, "slip": Verdict.SLIP, "setting": Verdict.SETTING}
"""Cause of an entry -> verdict on a value that differs."""


def verdict(entry: PublishedConfig, quantity: str, measured: float | None, full_size: Verdict | None = None) -> Verdict:
    """The verdict on a measured value, determined by the entry and the value.

    Parameters
    ----------
    entry: the published value.
    quantity: what is compared.
    measured: None if it was not measured.
    full_size: of a quick version, the verdict at full size; a verdict that would contradict it is ``not comparable``.
    """
    if measured is None:
        return Verdict.NOT_MEASURED
    if not entry.comparable:
        return Verdict.NOT_COMPARABLE
    agreement = Verdict.AGREES if claim(entry, quantity) is Claim.NUMBER else Verdict.ORDER_AGREES
    result = agreement if _within(entry, measured) else CAUSES[entry.cause]
    contradicted = full_size is not None and (full_size.differs if result.agrees else full_size.agrees)
    return Verdict.NOT_COMPARABLE if contradicted else result


def _within(entry: PublishedConfig, measured: float) -> bool:
    margin = _margin(entry)
    return {
        "about": abs(measured - entry.value) <= margin * (1 + 1e-12),
        "at_most": measured <= entry.value + margin,
        "at_least": measured >= entry.value - margin,
        "less_than": measured < entry.value + margin,
        "greater_than": measured > entry.value - margin,
    }[entry.compare]


def _margin(entry: PublishedConfig) -> float:
    """The tolerance in the unit of the value; by default half a unit of its last digit for ``about``, else 0."""
    if isinstance(entry.tolerance, str):
        return abs(entry.value) * float(entry.tolerance.rstrip(" %")) / 100
    if entry.tolerance is not None:
        return entry.tolerance
    if entry.compare != "about":
        return 0.0
    exponent = Decimal(repr(entry.value).removesuffix(".0")).as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent
