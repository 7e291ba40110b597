# SPDX-License-Identifier: Apache-2.0
"""Axes of traffic, with ceilings, and of latency, of the figures of load sweeps."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, Locator, MaxNLocator, NullFormatter

from flitlab.models.arrays import Floats
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.style import log_axis
from flitlab.sim.report.folder.ceilings import Mark
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units

Scale = Literal["linear", "log", "both"]

HEADROOM = 3.0
"""The axis breaks at the first round number from so many times the latency at zero load."""

LINEAR_SHARE = 2.0
"""Height of the linear part, in heights of the logarithmic one."""

SHADE = "#f3f3f3"
"""Colour of the logarithmic part."""

ROUND = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""First digits of round numbers."""

FAR = 2.5
"""Ceilings beyond this multiple of the largest measured traffic are named at the edge."""


def draw_latency(ax: Axes, run: Run, units: Units, look: Look, x: str) -> list[Artist]:
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


def zero_load(run: Run) -> float:
    """Return the least zero-load latency of all scenarios in ticks; as measured where the manifest has none."""
    noted = [number(one, "zero_load_latency") for one in run.manifest.get("scenarios", ())]
    known = [value for value in noted if value > 0]
    measured = (number(row, "latency_mean") for row in run.rows)
    return min(known or [value for value in measured if value > 0], default=math.nan)


def round_up(value: float) -> float:
    """The first round number from a value on.

    >>> round_up(33.0), round_up(1080.0), round_up(4.0)
    (40.0, 1500.0, 4.0)
    """
    power = 10.0 ** math.floor(math.log10(value))
    return next(digit * power for digit in ROUND if digit * power >= value * (1 - 1e-9))


def scale_latency(ax: Axes, values: Sequence[float], zero: float, how: Scale) -> list[Artist]:
    """Scale the latency axis; return entries of the key for values beyond it.

    values: of all panels, so that their axes are the same. zero: zero-load latency. ``both`` is linear from 0 to a
    break and logarithmic above, shaded, if there are values; the break and its position depend only on ``zero``.
    ``linear`` ends at the break; the key says how many values are above.
    """
    lowest, highest = min(values), max(values)
    if how == "log" and lowest > 0:
        log_axis(ax, "y")
        ax.set_ylim(lowest / 1.3, 1.3 * highest)
        ax.yaxis.set_major_formatter(marks.THOUSANDS)
        ax.yaxis.set_minor_formatter(marks.THOUSANDS if highest < 8 * lowest else NullFormatter())
        ax.tick_params(axis="y", which="minor", labelsize=6)
        return []
    knee = round_up(HEADROOM * zero) if zero > 0 else 1.08 * highest or 1.0
    if lowest > knee:  # nothing would be in the linear part
        knee = round_up(1.2 * lowest)
    above = [value for value in values if value > knee]
    if how == "linear" or not above or lowest <= 0:
        ax.set_ylim(0, knee)
        note = f"{len(above)} points above the axis, up to {max(above, default=0):,.4g}".replace("1 points", "1 point")
        return [marks.key(note)] if above else []
    top = max(2 * knee, 1.6 * highest)
    ax.set_yscale("symlog", linthresh=knee, linscale=LINEAR_SHARE * math.log10(top / knee))
    ax.set_ylim(0, top)
    ticks = _ticks(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]), 0, knee)
    upper = _round(2.5 * knee, top, (1,)) if top / knee > 10 else _round(1.9 * knee, top, (1, 2, 5))
    ax.yaxis.set_major_locator(FixedLocator([*ticks[ticks <= knee], *upper]))
    ax.yaxis.set_major_formatter(marks.THOUSANDS)
    ax.yaxis.set_minor_locator(FixedLocator(_round(knee, top, range(2, 10))))
    ax.axhspan(knee, top, color=SHADE, linewidth=0, zorder=0)
    places: list[marks.Place] = [
        ((x, height), (offset, dy), ha, va)
        for height, dy, va in ((knee, 2, "bottom"), (top, -2, "top"))
        for x, offset, ha in ((0.0, 3, "left"), (1.0, -3, "right"))
    ]
    name = marks.Name(ax, "log scale", places, xycoords=ax.get_yaxis_transform(), color="#777777", gid="log")
    name.instead = Patch(facecolor=SHADE, edgecolor="none", label="log scale")
    return []


def _round(start: float, end: float, digits: Iterable[int]) -> list[float]:
    """The numbers from ``start`` to ``end`` that are one of the digits with zeros behind it.

    >>> _round(30, 600, (1, 2, 5))
    [50.0, 100.0, 200.0, 500.0]
    """
    decades = range(math.floor(math.log10(start)), math.ceil(math.log10(end)) + 1)
    numbers = [float(digit) * 10.0**decade for decade in decades for digit in digits]
    return [number for number in numbers if start <= number <= end]


def _ticks(locator: Locator, start: float, end: float) -> Floats:
    ticks = np.asarray(locator.tick_values(start, end))
    return ticks[ticks >= start]
