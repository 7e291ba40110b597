# SPDX-License-Identifier: Apache-2.0
"""The figure ``jobs``."""

import math

from matplotlib.figure import Figure

from flitlab.sim.measure.interval import mean_known
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.programs import figure_of, finish, label_groups
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.names import Names
from flitlab.sim.report.folder.run import Run

MOST_VALUES = 24
"""More marks than this bear no numbers."""


@figure("jobs", "programs", place=8, usual=False)
def jobs(run: Run, size: tuple[float, float]) -> Figure | None:
    """How much longer each job takes beside the others than alone: its slowdown, 1 where they do not disturb it."""
    rows = run.tables.get("jobs", [])
    labels = list(dict.fromkeys(row["scenario"] or "" for row in rows))
    groups = list(dict.fromkeys(row["job"] or "" for row in rows))
    names = Names(labels)
    if not rows:
        return None
    figure, ax = figure_of(size, max(size[0], 0.6 + 0.14 * len(groups) * len(labels)))
    step = 0.7 / len(labels)
    for s, label in enumerate(labels):
        style = marks.symbol(s)
        for g, job in enumerate(groups):
            of = [number(row, "slowdown") for row in rows if (row["scenario"], row["job"]) == (label, job)]
            value, x = mean_known(of), g + (s - (len(labels) - 1) / 2) * step
            if not math.isfinite(value):
                continue
            ax.vlines(x, 1, value, color=style["color"], linewidth=1.2, alpha=0.5)
            ax.plot(x, value, linestyle="none", **style, gid="curve")
            text = f"{value:.3g}"
            if len(groups) * len(labels) <= MOST_VALUES and text != "1":  # which the line says
                ax.annotate(
                    text, (x, value), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=6,
                    path_effects=marks.HALO, gid="value",
                )  # fmt: skip
    ax.axhline(1, color=marks.NEUTRAL, linewidth=0.8, zorder=1)
    label_groups(ax, groups)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 0.95), high + 0.12 * (high - min(low, 0.95)))
    ax.set_ylabel("time beside others / alone")
    ax.yaxis.set_major_formatter(marks.THOUSANDS)
    several = len(labels) > 1
    finish(figure, [marks.key(names[label], **marks.symbol(s)) for s, label in enumerate(labels) if several])
    return figure
