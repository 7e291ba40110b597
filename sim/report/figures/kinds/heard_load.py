# SPDX-License-Identifier: Apache-2.0
"""A figure of that column."""

from matplotlib.axes import Axes

from flitlab.sim.report.figures.marks import Look, draw_curves
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units


@figure("heard_load", "packets")
def heard_load(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Hosts that are heard over offered traffic."""
    draw_curves(ax, run.rows, look, column("offered", units.rate), column("hosts_heard"))
    ax.set_xlabel(units.axis("offered"))
    ax.set_ylabel(units.axis("hosts_heard"))
