"""The figure ``completion``."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.flows import Point, messages_of
from flitlab.sim.report.figures.marks import MARKERS, NEUTRAL, OKABE_ITO, Look, key
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units

WIDTH = 0.7
"""Part of the distance between two groups that the marks of one take."""

ROOM = 50
"""Characters of the names of all groups beyond which they stand askew."""


@figure("completion", "flows", place=6, panels=False)
def completion(ax: Axes, run: Run, units: Units, look: Look) -> list[Line2D]:
    """Completion times of messages that begin together: mean, 99 %, longest, and the least possible for the last."""
    points = messages_of(run)
    if not points:
        return []
    groups, series = (list(dict.fromkeys(part)) for part in zip(*((p.group, p.series) for p in points), strict=True))
    labelled: set[str] = set()
    for point in points:
        i = series.index(point.series)
        x = groups.index(point.group) + (i - (len(series) - 1) / 2) * WIDTH / len(series)
        label = "_" if point.series in labelled or not point.series else point.series
        labelled.add(point.series)
        _mark(ax, point, x, label, {"color": OKABE_ITO[i % len(OKABE_ITO)], "marker": MARKERS[i % len(MARKERS)]})
    bounded = _bounds(ax, points, groups)
    askew = max(map(len, groups)) * len(groups) > ROOM
    ax.set_xticks(range(len(groups)), groups, rotation=25 if askew else 0, ha="right" if askew else "center")
    ax.set_xlim(-0.5, len(groups) - 0.5)
    ax.grid(visible=False, axis="x")
    ax.set_ylim(0, 1.08 * max(value for point in points for value in point.values("fct_ms_max")))
    ax.set_ylabel(units.axis("fct_ms_mean").replace("mean ", ""))
    entries = [
        key("thick: mean to 99 %", linestyle="-", linewidth=3, alpha=0.4),
        key("whiskers: mean to longest", linestyle="-", linewidth=0.6, marker="_", markersize=4),
    ]
    return [*entries, key("least time for the last (mcf)", linestyle="-", linewidth=0.9)] if bounded else entries


def _mark(ax: Axes, point: Point, x: float, label: str, style: dict[str, Any]) -> None:
    """The mean of all replicates, a bar up to the 99th percentile and a whisker to the longest time of any."""
    mean, most = fmean(point.values("fct_ms_mean")), max(point.values("fct_ms_max"))
    ends = [mean, fmean(point.values("fct_ms_p99"))]
    ax.plot([x, x], ends, color=style["color"], linewidth=3, alpha=0.4, gid="most")
    ax.plot([x, x], [mean, most], color=style["color"], linewidth=0.6, marker="_", markersize=4, gid="longest")
    ax.plot([x], [mean], linestyle="none", label=label, gid="curve", **style)


def _bounds(ax: Axes, points: Sequence[Point], groups: Sequence[str]) -> bool:
    """A line across each group at what the last message can be no faster than; whether there is any."""
    known: dict[str, list[float]] = {}
    for point in points:
        values = [value for row in point.rows if math.isfinite(value := number(row, "fct_ms_bound"))]
        known.setdefault(point.group, []).extend(values)
    for group, values in known.items():
        if values:
            middle = groups.index(group)
            ends = [middle - 0.46, middle + 0.46]
            ax.plot(ends, [fmean(values)] * 2, color=NEUTRAL, linewidth=0.9, zorder=1.8, gid="ceiling")
    return any(known.values())
