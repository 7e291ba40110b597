# SPDX-License-Identifier: Apache-2.0
"""The figure ``slowdown``."""

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import log_axis
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units

SLOWDOWNS = {"slowdown_mean": ("mean", "-"), "slowdown_p99": ("99 %", marks.DASHES[1])}
"""Columns of the slowdown figure: name and dashes."""


@figure("slowdown", "flows", place=7)
def slowdown(ax: Axes, run: Run, units: Units, look: Look) -> list[Line2D]:
    """Slowdown of finite flows over the load: completion time over that of the flow alone, mean and 99th percentile.

    1 is an uncontended flow. The mean is over flows, short and long alike; results.csv has them by size, too. Of two
    loads or more: one load is in the figure ``completion``.
    """
    if len({row.get("load") for row in run.rows if row.get("slowdown_mean")}) < 2:
        return []
    for name, (_, dashes) in SLOWDOWNS.items():
        style = {"linestyle": dashes} | ({} if name == "slowdown_mean" else {"label": "_"})
        marks.draw_curves(ax, run.rows, look, column("load"), column(name), style=style)
    log_axis(ax, "y")
    ax.yaxis.set_major_formatter(marks.THOUSANDS)
    ax.yaxis.set_minor_formatter(marks.THOUSANDS)
    ax.tick_params(axis="y", which="minor", labelsize=6)
    ax.set_xlabel("load (fraction of NIC rate)")
    ax.set_ylabel(units.axis("slowdown_mean"))
    return [marks.key(name, linestyle=dashes) for name, dashes in SLOWDOWNS.values()]
