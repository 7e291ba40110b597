"""The figure ``latency_load``."""

from typing import Any

from matplotlib.axes import Axes

from flitlab.sim.report.figures.load_curves import draw_latency
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units


@figure("latency_load", "packets", place=1)
def latency_load(ax: Axes, run: Run, units: Units, look: Look) -> list[Any]:
    """Latency over accepted traffic: the latency-load curve of the field, with the ceilings."""
    return draw_latency(ax, run, units, look, "accepted")
