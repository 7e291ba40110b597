# SPDX-License-Identifier: Apache-2.0
"""The figure ``completion``."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.flows import Point, messages_of
from flitlab.sim.report.figures.programs import finish, first_of, label_groups
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import new_figure
from flitlab.sim.report.folder.names import Longest
from flitlab.sim.report.folder.run import Run
from flitlab.sim.terminal import shown_label

WIDTH = 0.7
"""Part of the distance between two groups that the marks of one take."""

HEIGHT, GROUP = 0.75, 0.12
"""Inches for a mark: the height of a panel in parts of that of a figure, and the width of a mark of a group."""


@figure("completion", "flows", place=6)
def completion(run: Run, size: tuple[float, float]) -> Figure | None:
    """Completion times of messages that begin together: mean, 99 %, longest, and the least possible for the last.

    A mark is the mean over the messages and seeds of a scenario; the thick bar leads to the time that 99 % do not
    exceed, the whisker to the longest. The line across a network is the time that the maximum concurrent flow takes for
    all messages, without any latency: by no routing can the last one arrive sooner. Networks stand side by side, with a
    colour for each transport; what else is swept, such as traffic, makes panels.
    """
    points = messages_of(run)
    if not points:
        return None
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
    finish(figure, [*_key(series, any(point.values("fct_ms_bound") for point in points))], told)
    return figure


def _names(values: Any) -> list[str]:
    """Each of some values once, in order of appearance."""
    return list(dict.fromkeys(values))


def _panel(ax: Axes, points: Sequence[Point], groups: Sequence[str], series: Sequence[str]) -> None:
    for point in points:
        i, middle = series.index(point.series), groups.index(point.group)
        x = middle + (i - (len(series) - 1) / 2) * WIDTH / len(series)
        style = marks.symbol(i)
        mean, most = fmean(point.values("fct_ms_mean")), max(point.values("fct_ms_max"))
        span = [mean, fmean(point.values("fct_ms_p99"))]
        ax.plot([x, x], span, color=style["color"], linewidth=3, alpha=0.4, solid_capstyle="butt")
        ax.plot([x, x], [mean, most], color=style["color"], linewidth=0.6, marker="_", markersize=4, gid="longest")
        ax.plot([x], [mean], linestyle="none", gid="curve", **style)
        for bound in {value for row in point.rows if math.isfinite(value := number(row, "fct_ms_bound"))}:
            ends = [middle - 0.44, middle + 0.44]
            ax.plot(ends, [bound] * 2, color=marks.NEUTRAL, linewidth=0.9, zorder=1.8, gid="ceiling")
    ax.set_ylim(0, 1.08 * max(value for point in points for value in point.values("fct_ms_max")))
    ax.yaxis.set_major_formatter(marks.THOUSANDS)
    ax.grid(visible=False, axis="x")


def _key(series: Sequence[str], bounded: bool) -> list[Any]:
    """What the key says of transports and of the marks that each has."""
    entries = [marks.key(name, **marks.symbol(i)) for i, name in enumerate(series) if len(series) > 1]
    entries += [
        marks.key("thick: mean to 99 %", linestyle="-", linewidth=3, alpha=0.4),
        marks.key("whiskers: mean to longest", linestyle="-", linewidth=0.6, marker="_", markersize=4),
    ]
    return entries + [marks.key("least time for the last (mcf)", linestyle="-", linewidth=0.9)] * bounded
