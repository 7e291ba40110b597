# SPDX-License-Identifier: Apache-2.0
"""Axes of traffic and latency, with ceilings, of the figures of load sweeps."""

import math
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.scale import Scale, scale_latency, zero_load
from flitlab.sim.report.folder.ceilings import Mark
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units

FAR = 2.5
"""Ceilings beyond this multiple of the largest measured traffic are named at the edge."""


def draw_latency(ax: Axes, run: Run, units: Units, look: Look, x: str) -> list[Any]:
    """Mean latency over accepted or offered traffic, with its intervals and the ceilings. x: the column."""
    latency, half = column("latency_mean", units.time), column("latency_ci95", units.time)
    marks.draw_curves(ax, run.rows, look, column(x, units.rate), latency, half)
    if not ax.lines:
        return []
    whole = look.whole or run
    values = [value for row in whole.rows if math.isfinite(value := latency(row)) and math.isfinite(number(row, x))]
    how: Scale = run.manifest.get("y") or "both"
    entries = scale_latency(ax, values, zero_load(whole) * units.time, how)
    traffic_axis(ax, run, units, look, x)
    ax.set_ylabel(units.axis("latency_mean") + (", log scale" if how == "log" else ""))
    return entries


def traffic_axis(ax: Axes, run: Run, units: Units, look: Look, what: str, ceilings: bool = True) -> None:
    """An x axis from 0 in the printed unit, with flit/tick/host on top where that is another one."""
    thetas = run.thetas() if ceilings else []
    measured = largest(ax, "x")
    near = [mark for mark in thetas if not measured or mark.upper * units.rate <= FAR * measured]
    marks.draw_thetas(ax, near, look, units.rate)
    _far_note(ax, [mark for mark in thetas if mark not in near], units, look)
    ax.set_xlim(0, 1.05 * max([measured, *(mark.upper * units.rate for mark in near)]) or None)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.set_xlabel(units.axis(what))
    if units.flit_ns and look.is_single:
        there, back = partial(np.multiply, units.time), partial(np.multiply, units.rate)
        top = ax.secondary_xaxis("top", functions=(there, back))
        top.set_xlabel("flit/tick/host")


def _far_note(ax: Axes, far: list[Mark], units: Units, look: Look) -> None:
    if far:
        names = [look.named(mark.name, mark.scenarios) for mark in far]
        values = [f"{mark.upper * units.rate:.3g}" for mark in far]
        text = "\n".join(f"{name} at {value} →" for name, value in zip(names, values, strict=True))
        places: list[marks.Place] = [((0.98, y), (0, 0), "right", "top") for y in (0.98, 0.85, 0.6, 0.3)]
        marks.Name(ax, text, places, xycoords="axes fraction", color=marks.NEUTRAL, gid="far")


def largest(ax: Axes, axis: str) -> float:
    """The largest coordinate of the curves and totals on an ax; 0 if there are none."""
    lines = [line for line in ax.lines if line.get_gid() in ("curve", "probes", "total")]
    return max((float(max(getattr(line, f"get_{axis}data")())) for line in lines), default=0.0)
