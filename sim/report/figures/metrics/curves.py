# SPDX-License-Identifier: Apache-2.0
"""Curves over a column of numbers, with the bounds on them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from flitlab.models.arrays import Floats
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.metrics.rows import axis_title
from flitlab.sim.report.figures.metrics.series import Series, series
from flitlab.sim.report.figures.metrics.specification import Plot
from flitlab.sim.report.figures.metrics.strokes import Strokes
from flitlab.sim.report.figures.style import ArtistProperties, log_axis
from flitlab.sim.report.folder.curves import Curve
from flitlab.sim.report.folder.run import Run

MOST_MARKED = 60
"""Curves of more points than this are lines without markers."""

BOUND_DASHES = ((0, (6, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)))


def draw_over_x(ax: Axes, run: Run, plot: Plot) -> list[Artist] | None:
    """Curves over a numeric x, bounds as thin named lines."""
    entries = series(run, plot)
    drawn = [entry for entry in entries if not entry.quantity.bound] or entries
    bounds = [entry for entry in entries if entry not in drawn]
    if not drawn:
        return None
    joined = plot.style == "lines"
    strokes = Strokes(plot.by, [(entry.quantity, entry.values) for entry in drawn], dashed=joined)
    marked = not joined or max(len(entry.curve.x) for entry in drawn) <= MOST_MARKED
    style: ArtistProperties = {} if marked else {"marker": "", "linewidth": 0.8}
    if not joined:
        style = {"linestyle": "none"}
    for entry in drawn:
        own = strokes(entry.quantity, entry.values) | style
        ax.plot(entry.curve.x, entry.curve.y, **own, gid="curve")
        (marks.band if joined else marks.whiskers)(ax, entry.curve, own["color"])
    _scales(ax, plot, np.unique(np.concatenate([entry.curve.x for entry in drawn])), entries)
    keys = []
    for i, quantity in enumerate(dict.fromkeys(entry.quantity for entry in bounds)):
        dashes = BOUND_DASHES[i % len(BOUND_DASHES)]
        keys += _bound(ax, strokes, [entry for entry in bounds if entry.quantity == quantity], dashes)
    marks.put_label(ax.set_xlabel, plot.x_label or axis_title(run, plot.x), 60)
    marks.put_label(ax.set_ylabel, plot.y_title)
    return (strokes.handles(**style) if len(drawn) > 1 else []) + keys


def _scales(ax: Axes, plot: Plot, x: Floats, drawn: Sequence[Series]) -> None:
    """Logarithmic axes where asked for, or where x grows by a factor; from 0 unless that wastes half the axis."""
    log = plot.log if plot.log is not None else "x" * _geometric(x)
    y = np.concatenate([entry.curve.y for entry in drawn])
    if "x" in log:
        log_axis(ax, "x")
        if len(x) <= 8:
            ax.xaxis.set_major_locator(FixedLocator(_apart(x)))
            ax.xaxis.set_minor_locator(NullLocator())
    if "y" in log:
        log_axis(ax, "y")
    elif 0 <= y.min() < 0.3 * y.max():
        ax.set_ylim(0, 1.05 * max(y.max(), ax.dataLim.y1))
    _plain_numbers(ax)


def _apart(x: Floats) -> list[float]:
    """Values that are a twelfth of a logarithmic axis apart, so that their labels do not overlap.

    >>> _apart(np.array([36.0, 40.0, 112.0, 128.0, 600.0]))
    [36.0, 112.0, 600.0]
    """
    kept = [float(x[0])]
    for value in x[1:].tolist():
        if np.log(value / kept[-1]) >= np.log(x[-1] / x[0]) / 12:
            kept.append(value)
    return kept


def _plain_numbers(ax: Axes) -> None:
    """Ticks such as 10,000, and enough of them where a logarithmic axis spans little."""
    for axis, fixed in ((ax.xaxis, isinstance(ax.xaxis.get_major_locator(), FixedLocator)), (ax.yaxis, False)):
        axis.set_major_formatter(marks.THOUSANDS)
        if axis.get_scale() == "log" and not fixed:
            low, high = axis.get_view_interval()
            decades = np.log10(high / low)
            if decades < 2.5:
                axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if decades > 0.8 else range(1, 10)))
            axis.set_minor_formatter(NullFormatter())


def _geometric(x: Floats) -> bool:
    """Whether values grow by a factor rather than by a step.

    >>> _geometric(np.array([16, 32, 64])), _geometric(np.array([16, 32, 48])), _geometric(np.array([1, 2]))
    (True, False, False)
    """
    if len(x) < 3 or x[0] <= 0:
        return False
    factors = x[1:] / x[:-1]
    return bool(factors.min() > 1.4 and factors.max() < 1.5 * factors.min() and x[-1] >= 4 * x[0])


def _bound(ax: Axes, strokes: Strokes, entries: Sequence[Series], dashes: Any) -> list[Artist]:
    """A bound of one sort: one thin line for all curves that share it. Entries of the key.

    A single line has its name on it; of several, each has the dashes or the colour of its curves.
    """
    groups = _equal(entries)
    for group in groups:
        curve = max((entry.curve for entry in group), key=lambda curve: len(curve.x))
        style = {"color": marks.NEUTRAL, "linestyle": dashes}
        if len(groups) > 1:
            style |= strokes.shared([entry.values for entry in group])
        ax.plot(curve.x, curve.y, **style, linewidth=0.6, zorder=1.8, gid="bound")
        if len(groups) == 1:
            points = list(zip(curve.x, curve.y, strict=True))[:: -max(1, len(curve.x) // 12)]
            places: list[marks.Place] = [
                (point, (0, dy), ha, va)
                for point in points
                for dy, va in ((-3, "top"), (3, "bottom"))
                for ha in ("right", "center")
            ]
            name = marks.Name(ax, group[0].quantity.name, places, color=marks.NEUTRAL, gid="bound")
            name.instead = marks.key(group[0].quantity.name, linestyle=dashes, linewidth=0.6)
    if len(groups) == 1:
        return []
    return [marks.key(f"{entries[0].quantity.name} (thin)", linestyle=dashes, linewidth=0.6)]


def _equal(entries: Sequence[Series]) -> list[list[Series]]:
    """Groups of curves that agree wherever two of them have a point."""
    groups: list[list[Series]] = []
    for entry in entries:
        group = next((group for group in groups if all(_agree(entry.curve, other.curve) for other in group)), None)
        if group is None:
            groups.append([entry])
        else:
            group.append(entry)
    return groups


def _agree(a: Curve, b: Curve) -> bool:
    _, i, j = np.intersect1d(a.x, b.x, return_indices=True)
    return len(i) > 0 and bool(np.allclose(a.y[i], b.y[j], rtol=1e-9))
