# SPDX-License-Identifier: Apache-2.0
"""The figure ``hops_load``."""

from matplotlib.axes import Axes

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.load_curves import largest, traffic_axis
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units


@figure("hops_load", "packets", place=3)
def hops_load(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Mean number of hops (channels between switches) over accepted traffic.

    Routings of shortest paths keep a level line; deflections and detours show as a rise. A mean over delivered
    packets alone falls past saturation where short paths are served first.
    """
    marks.draw_curves(ax, run.rows, look, column("accepted", units.rate), column("hops_mean"))
    traffic_axis(ax, run, units, look, "accepted", ceilings=False)
    ax.set_ylim(0, 1.15 * largest(ax, "y") or None)
    ax.set_ylabel(units.axis("hops_mean"))
