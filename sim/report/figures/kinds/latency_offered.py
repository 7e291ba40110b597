# SPDX-License-Identifier: Apache-2.0
"""The figure ``latency_offered``."""

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from flitlab.sim.report.figures.load_curves import draw_latency
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units


@figure("latency_offered", "packets", place=4, usual=False)
def latency_offered(ax: Axes, run: Run, units: Units, look: Look) -> list[Artist]:
    """Latency over offered traffic.

    As ``latency_load``, over what hosts offer. Saturated points do not stand above each other here, so it shows at
    which load latency begins to grow, and not how much is carried.
    """
    return draw_latency(ax, run, units, look, "offered")
