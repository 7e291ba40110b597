# SPDX-License-Identifier: Apache-2.0
"""Certified ceilings of ceilings.csv; equal ceilings of several scenarios are merged into one mark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

import numpy as np

from flitlab.fluid.ceiling import THETA_UNITS
from flitlab.fluid.kinds.spec import kind_of
from flitlab.models.arrays import Floats
from flitlab.models.mappings import JsonObject
from flitlab.sim.measure.columns.registry import RATE
from flitlab.sim.measure.rows import number
from flitlab.sim.report.folder.frames import Row

SAME = 1e-9
"""Relative difference below which two ceilings are equal."""


@dataclass(frozen=True)
class Ceiling:
    """A row of ceilings.csv as a certified interval; both ends NaN if it was omitted.

    load: NaN except for ceilings that depend on it (``total``). known_ends: the ends that the row has; a missing end
    equals the other. range: least and greatest over draws, of a mean over draws.
    """

    scenario: str
    name: str
    load: float
    lower: float
    upper: float
    unit: str
    method: str
    note: str
    known_ends: Literal["both", "lower", "upper"] = "both"
    range: tuple[float, float] | None = None

    @classmethod
    def from_row(cls, row: Row) -> "Ceiling":
        """Return the ceiling of a row; a missing end is taken from the other."""
        lower, upper = number(row, "lower"), number(row, "upper")
        return cls(
            scenario=row.get("scenario") or "",
            name=row.get("ceiling") or "",
            load=number(row, "load"),
            lower=upper if math.isnan(lower) else lower,
            upper=lower if math.isnan(upper) else upper,
            known_ends="both" if math.isnan(lower) == math.isnan(upper) else "upper" if math.isnan(lower) else "lower",
            unit=row.get("unit") or "",
            method=row.get("method") or "",
            note=row.get("note") or "",
        )

    @property
    def known(self) -> bool:
        """Whether it has a value."""
        return math.isfinite(self.upper) and math.isfinite(self.lower)

    @property
    def is_line(self) -> bool:
        """Whether figures over load show it as a vertical line: one number in the unit of loads, of a kind that
        allows it.
        """
        single = ":" not in self.name and math.isnan(self.load) and self.unit in (*THETA_UNITS, RATE, "")
        return single and kind_of(self.name).line

    @property
    def row(self) -> JsonObject:
        """Name, load and ends as a row of ceilings.csv; None for missing values."""
        load = None if math.isnan(self.load) else self.load
        lower, upper = (
            None if self.known_ends == "upper" else self.lower,
            None if self.known_ends == "lower" else self.upper,
        )
        return {"ceiling": self.name, "load": load, "lower": lower, "upper": upper}

    def scaled(self, factor: float, beside: float = 0.0) -> "Ceiling":
        """Return the ceiling in another unit: its ends times ``factor``, plus ``beside``, the background traffic."""
        ends = self.range and (self.range[0] * factor + beside, self.range[1] * factor + beside)
        return replace(self, lower=self.lower * factor + beside, upper=self.upper * factor + beside, range=ends)


def averaged(draws: Sequence[Ceiling], scenario: str, rates: Sequence[float]) -> Ceiling:
    """Return the mean of one ceiling over draws. rates: mean traffic of each draw at load 1.

    Ends are weighted by rates, so that the mean holds for traffic. Draws without the ceiling do not count.
    """
    known = [(one, rate) for one, rate in zip(draws, rates, strict=True) if one.known]
    if len(known) < 2:
        return replace(known[0][0] if known else draws[0], scenario=scenario)
    mean = fmean(rate for _, rate in known) or 1.0
    lower, upper = (fmean(getattr(one, end) * rate / mean for one, rate in known) for end in ("lower", "upper"))
    ends = min(one.lower * rate / mean for one, rate in known), max(one.upper * rate / mean for one, rate in known)
    return replace(known[0][0], scenario=scenario, lower=lower, upper=upper, range=ends)


@dataclass(frozen=True)
class Mark:
    """A ceiling of one or several scenarios, in flits/tick/host of accepted traffic.

    range: least and greatest over draws, of a mean over draws.
    """

    name: str
    scenarios: tuple[str, ...]
    lower: float
    upper: float
    method: str
    range: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Total:
    """Largest total accepted traffic over offered traffic (flits/tick/host), for some scenarios."""

    scenarios: tuple[str, ...]
    offered: Floats
    accepted: Floats


def _same(mark: Mark, ceiling: Ceiling) -> bool:
    tolerance = SAME * max(1.0, abs(mark.upper))
    if abs(mark.lower - ceiling.lower) <= tolerance and abs(mark.upper - ceiling.upper) <= tolerance:
        return True
    overlap = ceiling.lower <= mark.upper and mark.lower <= ceiling.upper
    return overlap and mark.method == ceiling.method


def join(marks: list[Mark], ceiling: Ceiling) -> None:
    """Merge a ceiling into an equal mark, which widens to hold both, or append it as a new mark."""
    for i, mark in enumerate(marks):
        if _same(mark, ceiling):
            scenarios = tuple(dict.fromkeys((*mark.scenarios, ceiling.scenario)))
            lower, upper = min(mark.lower, ceiling.lower), max(mark.upper, ceiling.upper)
            marks[i] = replace(mark, scenarios=scenarios, lower=lower, upper=upper)
            return
    marks.append(Mark(ceiling.name, (ceiling.scenario,), ceiling.lower, ceiling.upper, ceiling.method, ceiling.range))


def join_total(totals: list[Total], new: Total) -> None:
    for i, total in enumerate(totals):
        equal = len(total.offered) == len(new.offered) and np.allclose(
            (total.offered, total.accepted), (new.offered, new.accepted), rtol=SAME, atol=SAME
        )
        if equal:
            totals[i] = replace(total, scenarios=total.scenarios + new.scenarios)
            return
    totals.append(new)
