# SPDX-License-Identifier: Apache-2.0
"""The figure ``percentiles``."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from flitlab.sim.measure.rows import flag
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.load_curves import traffic_axis
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import log_axis
from flitlab.sim.report.folder.curves import PROBE
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units

PERCENTILES: dict[str, tuple[str, Any]] = {
    "latency_p50": ("median", "-"),
    "latency_p99": ("99 %", (0, (4, 1.2))),
    "latency_p999": ("99.9 %", (0, (1.5, 1))),
}
"""Columns of the percentile figure: name and dashes."""


@figure("percentiles", "packets", place=5, usual=False)
def percentiles(ax: Axes, run: Run, units: Units, look: Look) -> list[Line2D]:
    """Median and tails of the latency over accepted traffic; of probes of a search, the 99th percentile alone.

    Solid lines are medians; 99 % and 99.9 % of packets are faster than the dashed and the dotted ones. Each is the
    mean over seeds of what each seed has; of few packets (``packets`` in results.csv) the last is the slowest few
    alone.
    """
    x = column("accepted", units.rate)
    shown = {"latency_p99": PERCENTILES["latency_p99"]} if any(flag(row, PROBE) for row in run.rows) else PERCENTILES
    for i, (name, (_, dashes)) in enumerate(shown.items()):
        style = {"linestyle": dashes} | ({"label": "_"} if i else {})
        marks.draw_curves(ax, run.rows, look, x, column(name, units.time), style=style)
    if not ax.lines:
        return []
    log_axis(ax, "y")
    ax.yaxis.set_major_formatter(marks.THOUSANDS)
    traffic_axis(ax, run, units, look, "accepted", ceilings=False)
    ax.set_ylabel(f"packet latency ({units.time_name})")
    return [marks.key(name, linestyle=dashes) for name, dashes in shown.values()]
