"""Curves: means over replicates of what rows hold, by increasing load."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.report.folder.frames import Key, Row, load, saturated


@dataclass(frozen=True, eq=False)
class Curve:
    """Means over replicates, by increasing load.

    load, x, y: float64 [points]. half: half-width of the 95 % interval of y, NaN where unknown.
    saturated: bool [points], whether any replicate was. replicates: int64 [points].
    """

    scenario: str
    load: Floats
    x: Floats
    y: Floats
    half: Floats
    saturated: Bools
    replicates: Ints


def curves(rows: Iterable[Row], x: Key, y: Key, half: Key | None = None) -> list[Curve]:
    """One curve per scenario in order of appearance; rows without a finite x and y are left out.

    half: the half-width that a single replicate states for itself.
    """
    groups: dict[str, dict[float, list[Row]]] = {}
    for row in rows:
        if math.isfinite(load(row)) and math.isfinite(x(row)) and math.isfinite(y(row)):
            groups.setdefault(row.get("scenario") or "", {}).setdefault(load(row), []).append(row)
    return [_curve(scenario, points, x, y, half) for scenario, points in groups.items()]


def _curve(scenario: str, points: dict[float, list[Row]], x: Key, y: Key, half: Key | None) -> Curve:
    loads = sorted(points)
    replicates = [points[value] for value in loads]
    alone = half or (lambda row: math.nan)
    means, halves = np.array([mean_and_half([y(r) for r in rows], alone(rows[0])) for rows in replicates]).T
    return Curve(
        scenario=scenario,
        load=np.array(loads),
        x=np.array([fmean(map(x, rows)) for rows in replicates]),
        y=means,
        half=halves,
        saturated=np.array([any(map(saturated, rows)) for rows in replicates]),
        replicates=np.array([len(rows) for rows in replicates]),
    )
