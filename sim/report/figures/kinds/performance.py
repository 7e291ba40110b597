# SPDX-License-Identifier: Apache-2.0
"""The figure ``performance``."""

import math

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from flitlab.sim.measure.interval import mean_known
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.programs import ByProgram, figure_of, finish, label_groups
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import ArtistProperties
from flitlab.sim.report.folder.run import Run

WIDTH = 0.82
"""Part of the distance between two groups of bars that the bars of one take."""

PALE = 0.45
"""How much of its colour is left where a bar is more than its bound's share."""

MEAN, ACROSS = "mean", "-----"
"""Name of the group of bars that are means over programs, and their hatch."""


@figure("performance", "programs", place=8)
def performance(run: Run, size: tuple[float, float]) -> Figure | None:
    """How fast each program runs: relative performance, or its time; the dark part of a bar is the bound's share.

    Relative performance is the time of the reference over that of the scenario: above 1 is faster. The dark part is
    the share of the time that the lower bound explains, which no routing could save. Bars hatched across are means
    over programs, of which there is no bound.
    """
    by = ByProgram(run)
    if not run.rows:
        return None
    relative = any(row.get("relative_performance") for row in run.rows)
    column = "relative_performance" if relative else "total_ns"
    groups = [*by.programs, *([MEAN] if relative and len(by.programs) > 1 else [])]
    figure, ax = figure_of(size, max(size[0], 0.35 + 0.11 * len(groups) * (len(by.series) + 1)))
    step = WIDTH / len(by.series)
    bounded = any(row.get("efficiency") for row in run.rows)
    for s, series in enumerate(by.series):
        values = [by.mean(column, program, series) for program in by.programs]
        shares = [by.mean("efficiency", program, series) for program in by.programs]
        if len(groups) > len(by.programs):
            values, shares = [*values, mean_known(values)], [*shares, 0.0]
        scale = 1.0 if relative else 1e-6
        for g, (value, share) in enumerate(zip(values, shares, strict=True)):
            if math.isfinite(value):
                place = g + (s - (len(by.series) - 1) / 2) * step
                _bar(ax, place, value * scale, share, step, by, series, mean=g == len(by.programs))
    if not ax.patches:
        return None
    if relative:
        ax.axhline(1, color=marks.NEUTRAL, linewidth=0.7, zorder=2.6)
    if len(groups) > len(by.programs):
        ax.axvline(len(groups) - 1.5, color="#bbbbbb", linewidth=0.6)
    label_groups(ax, groups)
    ax.set_ylim(0, 1.16 * max(patch.get_y() + patch.get_height() for patch in ax.patches))  # type: ignore[attr-defined]
    ax.set_ylabel(f"performance relative to\n{_reference(run, by)}" if relative else "time (ms)")
    ax.yaxis.set_major_formatter(marks.THOUSANDS)
    hatched = {s: marks.hatch(i) for i, s in enumerate(by.series)}
    handles = [
        Patch(facecolor=by.colour(s), edgecolor="white", linewidth=0, hatch=hatched[s], label=marks.entry_name(s))
        for s in by.series if len(by.series) > 1
    ]  # fmt: skip
    if bounded:
        handles += [
            Patch(facecolor="#555555", label="dark: the bound's share of the time"),
        ]
    if len(groups) > len(by.programs):
        handles.append(
            Patch(facecolor="white", edgecolor="#555555", hatch=ACROSS, linewidth=0, label="mean over programs")
        )
    finish(figure, handles)
    return figure


def _bar(
    ax: Axes, x: float, value: float, share: float, width: float, by: ByProgram, series: str, mean: bool
) -> None:  # fmt: skip
    """A bar, dark up to the share of its time that the lower bound explains; all of it where there is none.

    mean: of all programs, of which no bound is known: hatched across, and nowhere dark.
    """
    colour, i = by.colour(series), by.series.index(series)
    dark = value if math.isnan(share) else value * min(share, 1.0)
    ax.bar(x, dark, 0.92 * width, color=colour, linewidth=0, gid="bar")
    style: ArtistProperties = {"facecolor": _pale(colour), "edgecolor": colour, "linewidth": 0.4}
    style["hatch"] = marks.hatch(i) + (ACROSS if mean else "")
    ax.bar(x, value - dark, 0.92 * width, bottom=dark, **style, gid="rest")
    if len(by.programs) * len(by.series) <= 30:
        ax.annotate(
            f"{value:.3g}", (x, value), xytext=(0, 1.5), textcoords="offset points", ha="center", va="bottom",
            rotation=90, fontsize=5.5, path_effects=marks.HALO, gid="value",
        )  # fmt: skip


def _pale(colour: str) -> tuple[float, ...]:
    return tuple(1 - PALE * (1 - part) for part in to_rgb(colour))


def _reference(run: Run, by: ByProgram) -> str:
    """What the series have in common to which others are compared: those with 1 everywhere."""
    candidates = []
    for series in by.series:
        values = [by.mean("relative_performance", program, series) for program in by.programs]
        if all(math.isnan(value) or abs(value - 1) < 1e-12 for value in values):
            candidates.append(series.split(", "))
    return (
        ", ".join(part for part in candidates[0] if all(part in other for other in candidates))
        if candidates
        else "the reference"
    )
