# SPDX-License-Identifier: Apache-2.0
"""Certified ceilings as ceilings.csv holds them; equal ones of several scenarios are one mark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np

from flitlab.fluid.ceiling import THETA_UNITS
from flitlab.fluid.kinds.spec import kind_of
from flitlab.models.arrays import Floats
from flitlab.sim.measure.rows import number
from flitlab.sim.report.folder.frames import Row

SAME = 1e-9
"""Two ceilings closer than this (relative) are the same ceiling."""


@dataclass(frozen=True)
class Ceiling:
    """One row of ceilings.csv, as a certified interval; both ends NaN when it was omitted.

    load: NaN except for ceilings that depend on it (``total``). given: which ends the row has; where one is missing,
    both are the other. range: the least and the greatest of several draws of which it is the mean.
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
        """Reads a row; an end that is missing is taken from the other."""
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
        """Whether there is a value to draw."""
        return math.isfinite(self.upper) and math.isfinite(self.lower)

    @property
    def is_line(self) -> bool:
        """Whether figures over loads show it as a line: one number, in the unit of the loads, that a kind is about."""
        single = ":" not in self.name and math.isnan(self.load) and self.unit in (*THETA_UNITS, "")
        return single and kind_of(self.name).line

    @property
    def row(self) -> dict[str, Any]:
        """Name, load and ends of the ceiling as a row of ceilings.csv has them: None where there is none."""
        load = None if math.isnan(self.load) else self.load
        lower, upper = (
            None if self.known_ends == "upper" else self.lower,
            None if self.known_ends == "lower" else self.upper,
        )
        return {"ceiling": self.name, "load": load, "lower": lower, "upper": upper}

    def scaled(self, factor: float, beside: float = 0.0) -> "Ceiling":
        """The ceiling in another unit: its ends times ``factor``, plus ``beside``, what is carried besides."""
        ends = self.range and (self.range[0] * factor + beside, self.range[1] * factor + beside)
        return replace(self, lower=self.lower * factor + beside, upper=self.upper * factor + beside, range=ends)


def averaged(draws: Sequence[Ceiling], scenario: str, rates: Sequence[float]) -> Ceiling:
    """The mean of one ceiling over draws, as that of a scenario. rates: mean traffic of each draw at load 1.

    Ends are weighted by rates, so that the mean holds of traffic. Draws without the ceiling do not count.
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
    """A ceiling that one or several scenarios share, in flits/tick/host of accepted traffic.

    range: the least and the greatest of the draws of which it is the mean.
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
    """Adds a ceiling to the mark it equals (which widens to hold both), or as a new mark."""
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
