# SPDX-License-Identifier: Apache-2.0
"""Curves: means over replicates, by increasing load."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.rows import flag
from flitlab.sim.report.folder.frames import Key, Row, load, saturated

DRAW, PROBE = "curve.draw", "curve.probe"
"""Columns: the draw of topology or traffic of a row, and whether a search placed its load."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Means over replicates, by increasing load.

    load, x, y: float64 [points]. half: float64 [points], half-width of the 95 % interval of y, NaN where unknown.
    saturated: bool [points], whether any replicate was. replicates: int64 [points]. low, high: float64 [points], least
    and greatest over draws, NaN without draws. joined: whether a line joins the points; probes of a search may have
    different seeds and are not joined.
    """

    scenario: str
    load: Floats
    x: Floats
    y: Floats
    half: Floats
    saturated: Bools
    replicates: Ints
    low: Floats
    high: Floats
    joined: bool = True


def curves(rows: Iterable[Row], x: Key, y: Key, half: Key | None = None) -> list[Curve]:
    """Return one curve per scenario in order of appearance; rows without a finite x and y are left out.

    The mean over draws takes the mean over replicates of each, at loads that all draws have.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of results.csv.
    x, y : callable
        Coordinates of a row.
    half : callable, optional
        Half-width of a single replicate's interval.
    """
    groups: dict[str, dict[float, list[Row]]] = {}
    for row in rows:
        if math.isfinite(load(row)) and math.isfinite(x(row)) and math.isfinite(y(row)):
            groups.setdefault(row.get("scenario") or "", {}).setdefault(load(row), []).append(row)
    return [_curve(scenario, points, x, y, half) for scenario, points in groups.items()]


def _curve(scenario: str, points: dict[float, list[Row]], x: Key, y: Key, half: Key | None) -> Curve:
    joined = not any(flag(row, PROBE) for rows in points.values() for row in rows)
    single_half = half if half is not None and joined else lambda row: math.nan
    by_draw = {value: _draws(points[value]) for value in sorted(points)}
    most = max(map(len, by_draw.values()))
    loads = [value for value, draws in by_draw.items() if len(draws) == most or not joined]
    statistics = [_point(by_draw[value], y, single_half) for value in loads]
    means, halves, low, high = np.array(statistics).T
    return Curve(
        scenario=scenario,
        load=np.array(loads),
        x=np.array([fmean(fmean(map(x, rows)) for rows in by_draw[value]) for value in loads]),
        y=means,
        half=halves if joined else np.full(len(loads), math.nan),
        saturated=np.array([any(map(saturated, points[value])) for value in loads]),
        replicates=np.array([len(points[value]) for value in loads]),
        low=low,
        high=high,
        joined=joined,
    )


def _draws(rows: Iterable[Row]) -> list[list[Row]]:
    """The replicates of each draw."""
    by_draw: dict[str, list[Row]] = {}
    for row in rows:
        by_draw.setdefault(row.get(DRAW) or "", []).append(row)
    return list(by_draw.values())


def _point(draws: Sequence[Sequence[Row]], y: Key, single_half: Key) -> tuple[float, float, float, float]:
    """Mean, half-width, least and greatest at one load."""
    if len(draws) == 1:
        return *mean_and_half([y(row) for row in draws[0]], single_half(draws[0][0])), math.nan, math.nan
    means = [fmean(map(y, rows)) for rows in draws]
    return *mean_and_half(means), min(means), max(means)
