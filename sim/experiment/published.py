"""Published numbers beside measured ones: *published | measured | verdict*.

A quantity is one of

* a column of results.csv or metrics.csv: its mean over all rows of the scenario, ``aspl``;
* ``<column>@<load>``: mean over seeds at that load, between two loads by linear interpolation, ``hops_mean@0.3``;
* a ceiling: ``mcf`` (what is certified to be reachable; the upper end where that is not known), ``mcf.lower``,
  ``mcf.upper``;
* one of the functions of a load sweep in :data:`SWEEP`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from statistics import fmean
from typing import Any

from sim.config.schema import PublishedConfig
from sim.config.study import Case, Study, label_of

COLUMNS = (
    "where", "scenario", "quantity", "compare", "published", "tolerance", "measured", "verdict", "why",
)  # fmt: skip
"""Columns of published.csv."""

AGREES, DIFFERS, NOT_MEASURED = "agrees", "differs", "not measured"

Row = Mapping[str, Any]


class Sweep:
    """One scenario's load sweep: columns averaged over seeds, by ascending load. Failed points are left out."""

    def __init__(self, rows: Sequence[Row]):
        self.rows = [row for row in rows if row.get("status", "ok") == "ok"]
        self.loads = sorted({row["load"] for row in self.rows if "load" in row})

    def column(self, name: str) -> list[float]:
        """Means of a column, one per load; NaN where no seed has a number."""
        return [_mean(_numbers([row for row in self.rows if row["load"] == load], name)) for load in self.loads]

    def at(self, name: str, load: float) -> float | None:
        """A column at a load, interpolated; None outside the loads."""
        return _interpolate(self.loads, self.column(name), load)

    def accepted_max(self) -> float | None:
        """Highest accepted traffic, in flits/tick/host."""
        return max(self.column("accepted"), default=None)

    def saturation_load(self) -> float | None:
        """Lowest load at which a replicate is saturated; None if none is."""
        return min((row["load"] for row in self.rows if row.get("saturated")), default=None)

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
    "hops_growth_10x": Sweep.hops_growth_10x,
}
"""Quantities of a whole load sweep; ``efficiency`` (accepted_max over mcf) is one more."""


def compare(study: Study, rows: Sequence[Row], ceilings: Sequence[Row]) -> list[dict[str, Any]]:
    """One row per entry of ``published:``, with the columns :data:`COLUMNS`.

    rows: of results.csv or metrics.csv. ceilings: of ceilings.csv.
    """
    return [_compare(entry, study.cases, rows, ceilings) for entry in study.published]


def _compare(
    entry: PublishedConfig, cases: Sequence[Case], rows: Sequence[Row], ceilings: Sequence[Row]
) -> dict[str, Any]:
    label, quantity = _subject(entry, cases)
    measured = None if label is None else _quantity(quantity, label, rows, ceilings)
    if measured is not None and entry.relative_to is not None:
        other = label_of(entry.relative_to, cases)
        reference = None if other is None else _quantity(quantity, other, rows, ceilings)
        measured = measured / reference if reference else None
    return {
        "where": entry.where, "scenario": label or "", "quantity": quantity, "compare": entry.compare,
        "published": entry.value, "tolerance": "" if entry.tolerance is None else str(entry.tolerance),
        "measured": measured, "verdict": verdict(entry, measured), "why": entry.why,
    }  # fmt: skip


def _subject(entry: PublishedConfig, cases: Sequence[Case]) -> tuple[str | None, str]:
    """(label of the scenario, quantity) that an entry speaks of; no label if there is no such scenario."""
    if entry.scenario is not None:
        return label_of(entry.scenario, cases), entry.quantity or entry.where
    if entry.quantity is not None:
        return (cases[0].label if len(cases) == 1 else None), entry.quantity
    for case in sorted(cases, key=lambda case: -len(case.label)):
        if entry.where.startswith(case.label + "."):
            return case.label, entry.where[len(case.label) + 1 :]
    return (cases[0].label if len(cases) == 1 else None), entry.where


def _quantity(name: str, label: str, rows: Sequence[Row], ceilings: Sequence[Row]) -> float | None:
    sweep = Sweep([row for row in rows if row["scenario"] == label])
    column, at, load = name.partition("@")
    if at:
        value = sweep.at(column, float(load)) if _is_number(load) else None
    elif name in SWEEP:
        value = SWEEP[name](sweep)
    elif name == "efficiency":
        most, ceiling = sweep.accepted_max(), _ceiling("mcf", label, ceilings)
        value = most / ceiling if most is not None and ceiling else None
    else:
        value = _ceiling(name, label, ceilings)
        numbers = _numbers(sweep.rows, name)
        value = _mean(numbers) if value is None and numbers else value
    return None if value is None or math.isnan(value) else value


def _ceiling(name: str, label: str, ceilings: Sequence[Row]) -> float | None:
    """A ceiling of a scenario, or one of its ends."""
    kind, _, end = name.partition(".")
    for row in ceilings:
        if row["scenario"] == label and row["ceiling"] == kind and row["load"] is None:
            lower, upper = row["lower"], row["upper"]
            return {"lower": lower, "upper": upper, "": upper if lower is None else lower}.get(end)
    return None


def _numbers(rows: Sequence[Row], name: str) -> list[float]:
    values = [row.get(name) for row in rows]
    return [float(value) for value in values if isinstance(value, int | float) and not math.isnan(value)]


def _mean(numbers: Sequence[float]) -> float:
    return fmean(numbers) if numbers else math.nan


def _interpolate(x: Sequence[float], y: Sequence[float], at: float) -> float | None:
    """y at x = ``at`` on the polyline through the points; None outside."""
    for i, value in enumerate(x):
        if math.isclose(value, at, rel_tol=1e-9):
            return y[i]
        if value > at:
            return None if i == 0 else y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (value - x[i - 1])
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def verdict(entry: PublishedConfig, measured: float | None) -> str:
    """``agrees``, ``differs`` or ``not measured``."""
    if measured is None:
        return NOT_MEASURED
    margin = _margin(entry)
    agrees = {
        "about": abs(measured - entry.value) <= margin * (1 + 1e-12),
        "at_most": measured <= entry.value + margin,
        "at_least": measured >= entry.value - margin,
        "less_than": measured < entry.value + margin,
        "greater_than": measured > entry.value - margin,
    }[entry.compare]
    return AGREES if agrees else DIFFERS


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
