# SPDX-License-Identifier: Apache-2.0
"""The figure ``latency_load``."""

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from flitlab.sim.report.figures.load_curves import draw_latency
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units


@figure("latency_load", "packets", place=1)
def latency_load(ax: Axes, run: Run, units: Units, look: Look) -> list[Artist]:
    """Latency over accepted traffic: the latency-load curve of the field, with the ceilings.

    Each marker is a load, offered by all hosts together: its mean packet latency over what was accepted. A network
    that is not saturated accepts what is offered; past saturation markers are hollow, and a curve goes up or even
    back, since offering more gains nothing. Latencies there grow with the length of the run and are no property of
    the network. Bands are 95 % intervals. Vertical lines are certified ceilings: no curve crosses that of its own
    scenario, and the gap between its last full marker and the line is what the routing and the switches lose.
    Points of a search for saturation are markers that are not joined, since neighbours may be of different seeds.
    The axis is linear to a break and logarithmic above (``outputs.y``); the break follows from the latency at zero
    load alone.
    """
    return draw_latency(ax, run, units, look, "accepted")
