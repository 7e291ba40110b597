# SPDX-License-Identifier: Apache-2.0
"""The figure ``throughput``."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.flows import Point, equal_rates, points_of
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import ArtistProperties
from flitlab.sim.report.folder.names import shown_names
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units

WIDTH = 0.7
"""Part of the distance between two groups that the points of one take."""

MAX_LETTERS = 50
"""Characters of the names of all groups beyond which they stand askew."""


@figure("throughput", "flows", place=6, panels=False)
def throughput(ax: Axes, run: Run, units: Units, look: Look) -> list[Line2D]:
    """Throughput per host by transport and routing, with what equal rates and fair sharing would give.

    A marker is the mean over hosts and replicates. Thin whiskers are the range of flows, no interval of the mean;
    the thick bar is the range of replicates. The line across a group is what the maximum concurrent flow gives to
    every pair alike, which a mean of unequal rates may exceed.
    """
    points = points_of(run)
    if not points:
        return []
    groups, series = (list(dict.fromkeys(part)) for part in zip(*((p.group, p.series) for p in points), strict=True))
    step = WIDTH / max(1, len(series))
    labelled: set[str] = set()
    for point in points:
        i = series.index(point.series)
        x = groups.index(point.group) + (i - (len(series) - 1) / 2) * step
        look_of = marks.symbol(i)
        label = "_" if point.series in labelled or not point.series else marks.entry_name(point.series)
        labelled.add(point.series)
        _spread(ax, point, x, look_of["color"])
        mean = fmean(point.values("host_throughput"))
        ax.plot([x], [mean], linestyle="none", label=label, gid="curve", **look_of)
        ax.annotate(
            f"{mean:.2f}", (x, mean), xytext=(3, 0), textcoords="offset points", va="center", rotation=90,
            fontsize=6.5, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6}, zorder=1.9,
        )  # fmt: skip
        if fair := point.values("mmf_drawn"):
            ends = [x - 0.42 * step, x + 0.42 * step]
            style: ArtistProperties = {"color": marks.NEUTRAL, "linestyle": marks.DASHES[3], "linewidth": 1}
            ax.plot(ends, [fmean(fair)] * 2, zorder=1.8, gid="fair", **style)  # below the numbers
    _equal(ax, run, points, groups)
    groups = shown_names(groups)
    askew = max(map(len, groups)) * len(groups) > MAX_LETTERS
    ax.set_xticks(range(len(groups)), groups, rotation=25 if askew else 0, ha="right" if askew else "center")
    ax.set_xlim(-0.5, len(groups) - 0.5)
    ax.grid(visible=False, axis="x")
    ax.set_ylim(0, 1.06 * max(float(np.max(line.get_ydata())) for line in ax.lines))
    ax.set_ylabel(units.axis("host_throughput"))
    return _entries(ax)


def _spread(ax: Axes, point: Point, x: float, colour: str) -> None:
    """A bar over all replicates; where every host has one flow, a thin line from the least flow to the greatest."""
    per_host, per_flow = point.values("host_throughput"), point.values("throughput_mean")
    if all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(per_host, per_flow, strict=True)):
        ends = [min(point.values("throughput_min")), max(point.values("throughput_max"))]
        ax.plot([x, x], ends, color=colour, linewidth=0.6, marker="_", markersize=3, gid="flows")
    if len(per_host) > 1:
        ax.plot([x, x], [min(per_host), max(per_host)], color=colour, linewidth=3, alpha=0.4, gid="replicates")


def _equal(ax: Axes, run: Run, points: Sequence[Point], groups: Sequence[str]) -> None:
    """What the maximum concurrent flow gives to hosts of every group's network, as a line across it."""
    drawn: set[tuple[str, float]] = set()
    for point in points:
        for value in equal_rates(point.rows):
            if (point.group, round(value, 9)) not in drawn:
                drawn.add((point.group, round(value, 9)))
                middle = groups.index(point.group)
                ends = [middle - 0.5, middle + 0.5]
                ax.plot(ends, [value, value], color=marks.NEUTRAL, linewidth=0.9, zorder=1.8, gid="ceiling")


def _entries(ax: Axes) -> list[Line2D]:
    """What the key says of lines that belong to no transport."""
    gids = {line.get_gid() for line in ax.lines}
    styles: dict[str, tuple[str, ArtistProperties]] = {
        "replicates": ("thick: range of replicates", {"linestyle": "-", "linewidth": 3, "alpha": 0.4}),
        "flows": ("whiskers: range of flows", {"linestyle": "-", "linewidth": 0.6, "marker": "_", "markersize": 3}),
        "ceiling": ("equal rates for all (mcf)", {"linestyle": "-", "linewidth": 0.9}),
        "fair": ("max-min fair on the paths drawn", {"linestyle": marks.DASHES[3], "linewidth": 1}),
    }
    return [marks.key(name, **style) for gid, (name, style) in styles.items() if gid in gids]
