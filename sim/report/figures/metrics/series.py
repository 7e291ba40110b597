# SPDX-License-Identifier: Apache-2.0
"""The numbers of a figure of metrics.csv: curves, charts and distributions."""

import json
import math
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.metrics.quantity import Quantity
from flitlab.sim.report.figures.metrics.rows import SCENARIO, Values, combined, differing, grouped, is_draw
from flitlab.sim.report.figures.metrics.specification import Plot
from flitlab.sim.report.folder.curves import Curve
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run


@dataclass(frozen=True, eq=False)
class Series:
    """One quantity for one combination of the values of ``by``."""

    quantity: Quantity
    values: Values
    curve: Curve


def series(run: Run, plot: Plot) -> list[Series]:
    """The curves of a plot over a numeric x: means over replicates, by increasing x.

    Replicates are what shares the value of a swept x, else what differs in the swept seeds alone.
    """
    alike = [plot.x] if plot.x in run.swept else [key for key in run.swept if not is_draw(key)]
    x = Quantity(plot.x)
    entries = []
    for quantity in plot.y:
        for values, rows in grouped(run.metrics, plot.by).items():
            known = [row for row in rows if math.isfinite(x(row)) and math.isfinite(quantity(row))]
            if known:
                replicates = list(grouped(known, alike).values())
                entries.append(Series(quantity, values, _curve(run, replicates, x, quantity)))
    return entries


def distributions(run: Run, plot: Plot) -> list[tuple[Quantity, Values, list[Any]]]:
    """(column, values of ``by``, one list or mapping per replicate)."""
    entries = []
    for quantity in plot.y:
        for values, rows in grouped(run.metrics, plot.by).items():
            loaded = [json.loads(row[quantity.expression]) for row in rows if row.get(quantity.expression)]
            if loaded:
                entries.append((quantity, values, loaded))
    return entries


def categories(run: Run, plot: Plot) -> list[tuple[str, list[Row]]]:
    """The lines of a chart: name and rows, in order of appearance."""
    keys = [key for key in differing(run) if key not in plot.by] if plot.x == SCENARIO else [plot.x]
    groups = grouped(run.metrics, keys)
    if keys:
        return [(combined(keys, values), rows) for values, rows in groups.items()]
    label = run.scenarios[0] if len(run.scenarios) == 1 else str(run.manifest.get("name") or "all")
    return [(label, rows) for rows in groups.values()]


def chart(run: Run, plot: Plot) -> list[Series]:
    """The series of a chart by category; the x of their curves counts the categories from 0."""
    places: dict[tuple[Quantity, Values], list[tuple[int, list[Row]]]] = {}
    for place, (_, rows) in enumerate(categories(run, plot)):
        for values, part in grouped(rows, plot.by).items():
            for quantity in plot.y:
                known = [row for row in part if math.isfinite(quantity(row))]
                if known:
                    places.setdefault((quantity, values), []).append((place, known))
    order = {quantity: i for i, quantity in enumerate(plot.y)}
    charted = []
    for (quantity, values), entries in sorted(places.items(), key=lambda item: order[item[0][0]]):
        means, halves = _means(run, [rows for _, rows in entries], quantity)
        x = np.array([place for place, _ in entries], float)
        charted.append(Series(quantity, values, _plain(x, means, halves, [len(rows) for _, rows in entries])))
    return charted


def _curve(run: Run, replicates: list[list[Row]], x: Quantity, y: Quantity) -> Curve:
    replicates = sorted(replicates, key=lambda rows: fmean(map(x, rows)))
    means, halves = _means(run, replicates, y)
    return _plain(np.array([fmean(map(x, rows)) for rows in replicates]), means, halves, list(map(len, replicates)))


def _means(run: Run, replicates: list[list[Row]], y: Quantity) -> Floats:
    """Means and half-widths; a mean over anything but random draws has no interval."""
    fixed = [key for key in run.swept if not is_draw(key)]
    pairs = []
    for rows in replicates:
        mean, half = mean_and_half([y(row) for row in rows], number(rows[0], f"{y.expression}_ci95"))
        pairs.append((mean, half if len(grouped(rows, fixed)) == 1 else math.nan))
    return np.array(pairs).T


def _plain(x: Floats, y: Floats, half: Floats, counts: list[int]) -> Curve:
    """A curve of no single scenario, without saturated points."""
    none = np.full(len(x), math.nan)
    return Curve("", x, x, y, half, np.zeros(len(x), bool), np.array(counts), none, none)
