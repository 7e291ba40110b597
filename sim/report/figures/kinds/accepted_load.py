# SPDX-License-Identifier: Apache-2.0
"""The figure ``accepted_load``."""

from matplotlib.axes import Axes

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.load_curves import largest, traffic_axis
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units


@figure("accepted_load", "packets", place=2)
def accepted_load(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Accepted over offered traffic, with the ceilings and the most that any network could accept.

    On the grey diagonal everything is accepted. Where a curve leaves it the network saturates; whether it stays
    level beyond, or falls, shows how the network bears overload. Vertical lines are ceilings on what all pairs can
    get at the same rate; the curve ``total`` bounds the sum over pairs that need not be served alike, so a curve
    may lie above its ``mcf`` past saturation, at the cost of some pairs, and never above ``total``. Thin lines join the
    probes of a search.
    """
    x, y = (column(name, units.rate) for name in ("offered", "accepted"))
    marks.draw_curves(ax, run.rows, look, x, y, over_load=True)
    marks.draw_totals(ax, run.totals(), look, units.rate)
    traffic_axis(ax, run, units, look, "offered")
    if not ax.lines:
        return
    marks.draw_diagonal(ax, ax.get_xlim()[1])
    ax.set_ylim(0, 1.12 * largest(ax, "y") or None)
    ax.set_ylabel(units.axis("accepted"))
