"""Figures of the datagram discipline: throughput of endless flows, slowdown of finite ones."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from flitlab.sim.measure.rows import number
from flitlab.sim.report.frames import Row, Run, Units
from flitlab.sim.report.plots import (
    DASHES,
    HALO,
    MARKERS,
    NEUTRAL,
    OKABE_ITO,
    THOUSANDS,
    Look,
    column,
    key,
    plot_curves,
)

WIDTH = 0.7
"""Part of the distance between two groups that the points of one take."""

ROOM = 50
"""Characters of the names of all groups beyond which they stand askew."""


Maker = Callable[[Axes, Run, Units, Look], None]
"""Draws a figure on an ax."""


@dataclass(frozen=True)
class Point:
    """One scenario. rows: its replicates. group, series: the values of its swept keys that say where it stands."""

    scenario: str
    group: str
    series: str
    rows: list[Row]

    def values(self, name: str) -> list[float]:
        """A column, where it has numbers."""
        return [value for row in self.rows if math.isfinite(value := number(row, name))]


def points_of(run: Run) -> list[Point]:
    """Scenarios with endless flows: transports are series, what else is swept makes the groups."""
    rows = [row for row in run.rows if row.get("host_throughput") and not row.get("flows")]
    swept = [name for name in run.manifest.get("columns", ()) if any(row.get(name) for row in rows)]
    series = [name for name in swept if name.partition(".")[0] == "transport"] or swept[-1:]
    groups = [name for name in swept if name not in series]
    found: dict[str, Point] = {}
    for row in rows:
        label = row.get("scenario") or ""
        group, one = (", ".join(row.get(name) or "" for name in part) for part in (groups, series))
        found.setdefault(label, Point(label, group, one, [])).rows.append(row)
    return list(found.values())


def throughput(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Throughput per host by transport and routing, with what equal rates and fair sharing would give."""
    points = points_of(run)
    if not points:
        return
    groups, series = (list(dict.fromkeys(part)) for part in zip(*((p.group, p.series) for p in points), strict=True))
    step = WIDTH / max(1, len(series))
    labelled: set[str] = set()
    for point in points:
        i = series.index(point.series)
        x = groups.index(point.group) + (i - (len(series) - 1) / 2) * step
        look_of: dict[str, Any] = {"color": OKABE_ITO[i % len(OKABE_ITO)], "marker": MARKERS[i % len(MARKERS)]}
        label = "_" if point.series in labelled or not point.series else point.series
        labelled.add(point.series)
        _spread(ax, point, x, look_of["color"])
        mean = fmean(point.values("host_throughput"))
        ax.plot([x], [mean], linestyle="none", label=label, gid="curve", **look_of)
        ax.annotate(
            f"{mean:.2f}", (x, mean), xytext=(3, 0), textcoords="offset points", va="center", rotation=90,
            fontsize=6.5, path_effects=HALO, zorder=1.9,
        )  # fmt: skip
        if fair := point.values("mmf_drawn"):
            ends = [x - 0.42 * step, x + 0.42 * step]
            ax.plot(ends, [fmean(fair)] * 2, color=NEUTRAL, linestyle=DASHES[3], linewidth=1, gid="fair")
    _equal(ax, run, points, groups)
    askew = max(map(len, groups)) * len(groups) > ROOM
    ax.set_xticks(range(len(groups)), groups, rotation=25 if askew else 0, ha="right" if askew else "center")
    ax.set_xlim(-0.5, len(groups) - 0.5)
    ax.grid(visible=False, axis="x")
    ax.set_ylim(0, 1.06 * max(float(np.max(line.get_ydata())) for line in ax.lines))
    ax.set_ylabel("host throughput (fraction of NIC rate)")


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
                ax.plot(ends, [value, value], color=NEUTRAL, linewidth=0.9, zorder=1.8, gid="ceiling")


def equal_rates(rows: Iterable[Row]) -> list[float]:
    """Throughput per host in the maximum concurrent flow, at most one value."""
    known = (number(row, "host_throughput_mcf") for row in rows)
    return [value for value in known if math.isfinite(value)][:1]


def slowdown(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Slowdown of finite flows over the load: completion time over that of the flow alone, mean and 99th percentile."""
    if not any(row.get("slowdown_mean") for row in run.rows):
        return
    ax.set_gid("slowdown")
    for name, (_, dashes) in SLOWDOWNS.items():
        style = {"linestyle": dashes} | ({} if name == "slowdown_mean" else {"label": "_"})
        plot_curves(ax, run.rows, look, column("load"), column(name), style=style)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(THOUSANDS)
    ax.yaxis.set_minor_formatter(THOUSANDS)
    ax.tick_params(axis="y", which="minor", labelsize=6)
    ax.set_xlabel("load (fraction of NIC rate)")
    ax.set_ylabel("slowdown (completion time / alone)")


SLOWDOWNS = {"slowdown_mean": ("mean", "-"), "slowdown_p99": ("99 %", DASHES[1])}
"""Columns of the slowdown figure: name and dashes."""


def entries(ax: Axes) -> list[Line2D]:
    """What a legend says besides the names of curves."""
    if ax.get_gid() == "slowdown":
        return [key(name, linestyle=dashes) for name, dashes in SLOWDOWNS.values()]
    gids = {line.get_gid() for line in ax.lines}
    looks: dict[str, tuple[str, dict[str, Any]]] = {
        "replicates": ("range of replicates", {"linestyle": "-", "linewidth": 3, "alpha": 0.4}),
        "flows": ("range of flows", {"linestyle": "-", "linewidth": 0.6}),
        "ceiling": ("equal rates for all (mcf)", {"linestyle": "-", "linewidth": 0.9}),
        "fair": ("max-min fair on the paths drawn", {"linestyle": DASHES[3], "linewidth": 1}),
    }
    return [key(name, **style) for gid, (name, style) in looks.items() if gid in gids]


FLOW_KINDS: dict[str, Maker] = {kind.__name__: kind for kind in (throughput, slowdown)}
"""Figures of flows, by name."""
