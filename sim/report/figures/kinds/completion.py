# SPDX-License-Identifier: Apache-2.0
"""The figure ``completion``."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.flows import MOST_GROUPS, Point, messages_of, unfinished
from flitlab.sim.report.figures.programs import finish, first_of, label_groups
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import log_axis, new_figure
from flitlab.sim.report.folder.names import Longest, shown_names
from flitlab.sim.report.folder.run import Run
from flitlab.sim.terminal import shown_label

WIDTH = 0.7
"""Part of the distance between two groups that the marks of one take."""

HEIGHT, GROUP = 0.75, 0.12
"""Inches for a mark: the height of a panel in parts of that of a figure, and the width of a mark of a group."""


LETTER, COLUMN, ROW, BETWEEN = 0.055, 1.3, 0.14, 0.32
"""Inches of a letter, of a panel of rows, of a row, and between two panels."""

WIDE = 12.0
"""From this ratio of the longest to the least time on, the axis of a panel is logarithmic."""


@figure("completion", "flows", place=6)
def completion(run: Run, size: tuple[float, float]) -> Figure | None:
    """Completion times of messages that begin together: mean, 99 %, longest, and the least possible for the last.

    A mark is the mean over the messages and seeds of a scenario; the thick bar leads to the time that 99 % do not
    exceed, the whisker to the longest. The line across a network is the time that the maximum concurrent flow takes for
    all messages, without any latency: by no routing can the last one arrive sooner. Networks stand side by side, with a
    colour for each transport; what else is swept, such as traffic, makes panels. More than eight networks, cases and
    routings are rows below each other, with a panel for each network and traffic. Times that differ much have a
    logarithmic axis.
    """
    points = messages_of(run)
    if not points:
        return None
    if any(point.network for point in points) or len({point.group for point in points}) > MOST_GROUPS:
        return _in_rows(points, size, unfinished(run))
    panels, told = first_of(_names(point.panel for point in points), "panels")
    groups, series = _names(point.group for point in points), _names(point.series for point in points)
    width = max(size[0], 0.9 + GROUP * len(groups) * (len(series) + 1))
    figure = new_figure((width, size[1] * (1 + HEIGHT * (len(panels) - 1))))
    axes: list[Axes] = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0].tolist()
    for ax, panel in zip(axes, panels, strict=True):
        _panel(ax, [point for point in points if point.panel == panel], groups, series)
        ax.set_title(shown_label(panel, Longest.TITLE))
    label_groups(axes[-1], groups)
    figure.supylabel("completion time (ms)", fontsize=axes[0].yaxis.label.get_fontsize())
    _finish(figure, points, series, told, unfinished(run))
    return figure


def _in_rows(points: Sequence[Point], size: tuple[float, float], left_out: str) -> Figure:
    """A panel for each traffic and network, in a column and a line of panels, with a row for each group and series."""
    panels, told = first_of(_names(point.panel for point in points), "panels")
    networks = _names(point.network for point in points)
    groups, series = _names(point.group for point in points), _names(point.series for point in points)
    letters = max(len(shown_label(group, Longest.TITLE)) for group in groups)
    width = max(size[0], LETTER * letters + COLUMN * len(panels))
    height = 0.7 + len(networks) * (BETWEEN + ROW * len(groups) * max(1.0, 0.6 * len(series)))
    figure = new_figure((width, height))
    grid = figure.subplots(len(networks), len(panels), squeeze=False, sharex="col", sharey=True)
    for line, network in zip(grid, networks, strict=True):
        for ax, panel in zip(line, panels, strict=True):
            own = [point for point in points if point.panel == panel and point.network == network]
            _rows(ax, own, groups, series)
        line[0].set_title(shown_label(network, Longest.TITLE), fontsize=7, pad=2, loc="left")
    for ax, panel in zip(grid[-1], panels, strict=True):
        _time_axis(ax, "x", [point for point in points if point.panel == panel])
        lines = 1 + int(len(panel) * LETTER * (len(panels) + 0.5) / width)
        name = marks.in_lines(shown_label(panel, Longest.TITLE), lines)
        ax.set_xlabel(f"completion time (ms)\n{name}".strip(), fontsize=7)
    _finish(figure, points, series, told, left_out)
    return figure


def _finish(figure: Figure, points: Sequence[Point], series: Sequence[str], *told: str) -> None:
    key = _key(series, any(point.values("fct_ms_bound") for point in points))
    finish(figure, key, "; ".join(note for note in told if note))


def _time_axis(ax: Axes, which: Literal["x", "y"], points: Sequence[Point]) -> None:
    """Scale an axis to the completion times of a panel, and to the least possible ones."""
    low, high = (
        end(value for point in points for name in ("fct_ms_max", "fct_ms_mean", "fct_ms_bound")
            for value in point.values(name))
        for end in (min, max)
    )  # fmt: skip
    axis, is_wide = getattr(ax, f"{which}axis"), 0 < WIDE * low < high
    if is_wide:
        log_axis(ax, which)
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_minor_locator(NullLocator())
    elif which == "x":
        axis.set_major_locator(MaxNLocator(3))
    axis.set_major_formatter(marks.THOUSANDS)
    getattr(ax, f"set_{which}lim")(*((low / 1.3, high * 1.3) if is_wide else (0, 1.08 * high)))


def _rows(ax: Axes, points: Sequence[Point], groups: Sequence[str], series: Sequence[str]) -> None:
    for point in points:
        i = series.index(point.series)
        y = groups.index(point.group) + (i - (len(series) - 1) / 2) * WIDTH / len(series)
        style, (mean, most, late) = marks.symbol(i), _times(point)
        ax.plot([mean, late], [y, y], color=style["color"], linewidth=3, alpha=0.4, solid_capstyle="butt")
        ax.plot([mean, most], [y, y], color=style["color"], linewidth=0.6, marker="|", markersize=4, gid="longest")
        ax.plot([mean], [y], linestyle="none", gid="curve", **style)
    for bound in sorted({value for point in points for value in point.values("fct_ms_bound")}):
        rows = [groups.index(point.group) for point in points if bound in point.values("fct_ms_bound")]
        ends = [min(rows) - 0.44, max(rows) + 0.44]
        ax.plot([bound] * 2, ends, color=marks.NEUTRAL, linewidth=0.9, zorder=1.8, gid="ceiling")
    ax.set_yticks(range(len(groups)), shown_names(groups), fontsize=6.5)
    ax.set_ylim(len(groups) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")


def _times(point: Point) -> tuple[float, float, float]:
    """Mean and longest completion time of a point, and that of 99 %."""
    mean, most = fmean(point.values("fct_ms_mean")), max(point.values("fct_ms_max"))
    return mean, most, fmean(point.values("fct_ms_p99"))


def _names(values: Iterable[str]) -> list[str]:
    """Each of some values once, in order of appearance."""
    return list(dict.fromkeys(values))


def _panel(ax: Axes, points: Sequence[Point], groups: Sequence[str], series: Sequence[str]) -> None:
    for point in points:
        i, middle = series.index(point.series), groups.index(point.group)
        x = middle + (i - (len(series) - 1) / 2) * WIDTH / len(series)
        style, (mean, most, late) = marks.symbol(i), _times(point)
        ax.plot([x, x], [mean, late], color=style["color"], linewidth=3, alpha=0.4, solid_capstyle="butt")
        ax.plot([x, x], [mean, most], color=style["color"], linewidth=0.6, marker="_", markersize=4, gid="longest")
        ax.plot([x], [mean], linestyle="none", gid="curve", **style)
        for bound in {value for row in point.rows if math.isfinite(value := number(row, "fct_ms_bound"))}:
            ends = [middle - 0.44, middle + 0.44]
            ax.plot(ends, [bound] * 2, color=marks.NEUTRAL, linewidth=0.9, zorder=1.8, gid="ceiling")
    _time_axis(ax, "y", points)
    ax.grid(visible=False, axis="x")


def _key(series: Sequence[str], bounded: bool) -> list[Line2D]:
    """What the key says of transports and of the marks that each has."""
    entries = [marks.key(name, **marks.symbol(i)) for i, name in enumerate(series) if len(series) > 1]
    entries += [
        marks.key("thick: mean to 99 %", linestyle="-", linewidth=3, alpha=0.4),
        marks.key("whiskers: mean to longest", linestyle="-", linewidth=0.6, marker="_", markersize=4),
    ]
    return entries + [marks.key("least time for the last (mcf)", linestyle="-", linewidth=0.9)] * bounded
