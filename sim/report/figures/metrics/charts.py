# SPDX-License-Identifier: Apache-2.0
"""Charts: a line for each category, with bars or markers."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.metrics.series import categories, chart
from flitlab.sim.report.figures.metrics.specification import Plot
from flitlab.sim.report.figures.metrics.strokes import Strokes
from flitlab.sim.report.figures.style import ArtistProperties, log_axis
from flitlab.sim.report.folder.curves import Curve
from flitlab.sim.report.folder.names import Longest, shown_names
from flitlab.sim.report.folder.run import Run

MOST_LINES = 150
"""The most lines of a chart that is drawn."""


def draw_chart(ax: Axes, run: Run, plot: Plot) -> list[Artist] | None:
    """One line per category: a bar, or a marker for each of several quantities or curves."""
    names = [name for name, _ in categories(run, plot)]
    entries = chart(run, plot)
    drawn = [entry for entry in entries if not entry.quantity.bound] or entries
    if not drawn or len(names) > MOST_LINES:
        return None
    strokes = Strokes(plot.by, [(entry.quantity, entry.values) for entry in drawn], dashed=False)
    log = plot.log or ""
    _set_height(ax, len(names) * (1 + 0.3 * (len(drawn) - 1)) + bool(plot.x_label))
    for i, entry in enumerate(drawn):
        own = strokes(entry.quantity, entry.values)
        if len(drawn) == 1 and not log:
            _bars(ax, entry.curve, own["color"])
        else:
            shift = 0.5 * (i - (len(drawn) - 1) / 2) / len(drawn)
            _dots(ax, entry.curve, shift, own | {"linestyle": "none"})
    bounds = [entry for entry in entries if entry not in drawn]
    style: ArtistProperties = {"color": "black", "marker": "|", "markersize": 9, "path_effects": marks.HALO}
    for entry in bounds:
        ax.plot(entry.curve.y, entry.curve.x, linestyle="none", **style, zorder=3, gid="bound")
    _chart_axes(ax, names, bool(log), len(drawn) > 1)
    marks.put_label(ax.set_xlabel, plot.y_title, 45)
    if plot.x_label:  # on top: beside a few names there is no room for a rotated line
        ax.set_title(plot.x_label, loc="left", fontsize=ax.xaxis.label.get_fontsize(), pad=3)
    keys = [marks.key(quantity.name, **style) for quantity in dict.fromkeys(entry.quantity for entry in bounds)]
    return (strokes.handles(linestyle="none") if len(drawn) > 1 else []) + keys


def _chart_axes(ax: Axes, names: Sequence[str], log: bool, several: bool) -> None:
    """Names from top to bottom; values from 0, with room for the number behind each bar."""
    if log:
        log_axis(ax, "x")
    else:
        low, high = min(0.0, *ax.get_xlim()), max(0.0, *ax.get_xlim())
        ax.set_xlim(low and 1.05 * low, high * (1.02 if several else 1.15))
    ax.xaxis.set_major_formatter(marks.THOUSANDS)
    ax.set_yticks(range(len(names)), shown_names(names, Longest.ROW))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="y", visible=several)
    ax.tick_params(axis="y", length=0)


def _set_height(ax: Axes, lines: float) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.set_figheight(0.45 + 0.2 * max(lines, 2))


def _bars(ax: Axes, curve: Curve, colour: str) -> None:
    ax.barh(curve.x, curve.y, height=0.62, color=colour, gid="bar")
    _whiskers(ax, curve, 0.0, "#222222")
    ends = curve.y + np.where(np.isfinite(curve.half), curve.half, 0.0)
    for place, end, value in zip(curve.x, ends, curve.y, strict=True):
        ax.annotate(
            f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}", (max(end, 0.0), place), va="center",
            xytext=(3, 0), textcoords="offset points", fontsize=7, gid="value",
        )  # fmt: skip


def _dots(ax: Axes, curve: Curve, shift: float, style: ArtistProperties) -> None:
    ax.plot(curve.y, curve.x + shift, **style, gid="curve", zorder=2.5)
    _whiskers(ax, curve, shift, style["color"])


def _whiskers(ax: Axes, curve: Curve, shift: float, colour: str) -> None:
    """The 95 % confidence intervals, where they are known."""
    known = np.isfinite(curve.half)
    low, high = (curve.y - curve.half)[known], (curve.y + curve.half)[known]
    ax.hlines(curve.x[known] + shift, low, high, color=colour, linewidth=0.9, gid="band")
