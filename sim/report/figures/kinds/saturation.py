# SPDX-License-Identifier: Apache-2.0
"""The figure ``saturation``."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from flitlab.fluid.kinds.spec import kind_of
from flitlab.sim.experiment.saturation import Efficient, ceiling_of
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.saturation import Saturation
from flitlab.sim.measure.saturation import saturation as saturation_of
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.panels import Panel, layout
from flitlab.sim.report.figures.programs import figure_of, finish
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import ArtistProperties
from flitlab.sim.report.folder.ceilings import Ceiling
from flitlab.sim.report.folder.names import Longest, Names
from flitlab.sim.report.folder.run import Run
from flitlab.sim.terminal import shown_label

LINE, MARGIN = 0.17, 0.6
"""Inches of a bar, or of the heading of a panel, and of the axis of x."""

WIDE = 0.68
"""Part of its line that a bar takes."""

MOST_LINES = 80
"""Bars and headings of a figure; what is left out is said in its key."""

GLYPHS: tuple[ArtistProperties, ...] = (
    {"marker": "|", "markersize": 10, "markeredgewidth": 1.4},
    {"marker": "s", "markersize": 5, "markerfacecolor": "none", "markeredgewidth": 0.9},
    {"marker": "^", "markersize": 3, "markeredgewidth": 0},
    {"marker": "o", "markersize": 6.5, "markerfacecolor": "none", "markeredgewidth": 0.6},
)
"""Markers of ceilings by rank, each to be seen where others stand at the same place; further ones have the last."""


@dataclass(frozen=True)
class Bar:
    """Where a curve's scenarios saturate, in loads, and their ceilings.

    value: NaN without a saturation point; then ``least`` is carried. low, high: of the 95 % interval, or (``bracket``)
    the range of the point where that is unknown; NaN where no load was saturated. of: the ceiling that efficiency is a
    part of, None where it is of none.
    """

    curve: str
    value: float
    low: float
    high: float
    least: float
    chain: Sequence[Ceiling]
    of: Efficient | None
    bracket: bool = False


@figure("saturation", "packets", place=2)
def saturation(run: Run, size: tuple[float, float]) -> Figure | None:
    """The highest load that each scenario carries, with its 95 % interval, against the chain of its ceilings.

    A bar is the saturation point of saturation.csv, with the distance to the farther of the loads around it in its
    interval. Without an interval, of a plain sweep with a single seed, whiskers are these loads.
    Ceilings follow one another: ``split``, what the routing carries if it spreads traffic as it does; ``mcf_paths``,
    with the best use of its paths; ``mcf``, with any. From the end of the bar to the first is what the switches lose,
    and from each to the next what the routing does. The number on the right is the share of the ceiling that is named
    there. A hollow bar has no saturation point (:class:`~flitlab.sim.measure.saturation.Bracket`): it reaches at least
    so far, and where some load was saturated, its whiskers are the range.
    """
    plan = layout(run)
    look = Look(Names(plan.curves))
    groups = [(panel.name, bars) for panel in plan.panels if (bars := bars_of(run, panel))]
    if not any(math.isfinite(bar.value) or bar.bracket for _, bars in groups for bar in bars):
        return None
    lines = [line for name, bars in groups for line in ([name] if len(groups) > 1 else []) + list(bars)]
    shown = lines[:MOST_LINES]
    drawn, ax = figure_of((size[0], MARGIN + LINE * max(len(shown), 3)))
    for place, line in enumerate(shown):
        if isinstance(line, Bar):
            _draw(ax, line, place, look)
    names = [look.names[line.curve] if isinstance(line, Bar) else line for line in shown]
    ax.set_yticks(range(len(shown)), [shown_label(name, Longest.ROW) for name in names])
    for label, line in zip(ax.get_yticklabels(), shown, strict=True):
        label.set_fontweight("normal" if isinstance(line, Bar) else "bold")
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("load at saturation")
    of = {line.of.name for line in shown if isinstance(line, Bar) and line.of is not None}
    if of:
        ax.set_title(f"% of {of.pop() if len(of) == 1 else 'ceiling'}", loc="right", fontsize=6.5, pad=3)
    drawn_bars = [line for line in shown if isinstance(line, Bar)]
    notes = [
        f"bars: simulated{_whiskers(drawn_bars)}",
        plan.averaged, plan.left_out,
        f"the first {len(shown)} of {len(lines)} lines" if len(shown) < len(lines) else "",
    ]  # fmt: skip
    finish(drawn, _key(drawn_bars), " · ".join(filter(None, notes)))
    return drawn


def _whiskers(bars: Sequence[Bar]) -> str:
    """What the whiskers of bars are; '' without any."""
    of = {bar.bracket for bar in bars if math.isfinite(bar.low)}
    names = ["95 % interval"] * (False in of) + ["range from carried to saturated load"] * (True in of)
    return ", with " * bool(of) + " or ".join(names)


def bars_of(run: Run, panel: Panel) -> list[Bar]:
    """The bars of a panel; several draws are one bar, the mean of theirs."""
    bars = []
    for curve in panel.run.scenarios:
        points = [point for scenario in panel.of[curve] if (point := _point(run, scenario)) is not None]
        if not points:
            continue
        value, low, high = points[0].value, points[0].low, points[0].high
        if len(points) > 1:
            value, half = mean_and_half([one.value for one in points], resolution=max(one.resolution for one in points))
            limit = max(run.limit(scenario) for scenario in panel.of[curve])
            low, high = max(value - half, 0.0), min(value + half, limit)
        saturated = any(one.over is not None for one in points[0].seeds.values())
        bracket = len(points) == 1 and saturated and math.isnan(low)
        if bracket:
            low, high = points[0].lower, points[0].upper
        chain = [one for one in panel.run.ceilings if one.scenario == curve and one.known and one.is_line]
        chain.sort(key=lambda one: kind_of(one.name).rank)
        ended = all(one.ended for one in points)
        of = ceiling_of(panel.run.ceiling_columns(curve)) if ended else None
        bars.append(Bar(curve, value, low, high, fmean(one.lower for one in points), chain, of, bracket))
    return bars


def _point(run: Run, scenario: str) -> Saturation | None:
    """The saturation point of a scenario; None where nothing is carried, or known."""
    rows = [row for row in run.rows if row.get("scenario") == scenario and row.get("load") and row.get("seed")]
    point = saturation_of(rows, run.limit(scenario))
    return point if point is not None and point.upper else None


def _draw(ax: Axes, bar: Bar, place: int, look: Look) -> None:
    """A bar, hollow where the scenario has no saturation point, its interval, and its ceilings on a thin line."""
    own, known = look[bar.curve], math.isfinite(bar.value)
    reach = bar.value if known else bar.least
    hatch = marks.hatch(look.names.labels.index(bar.curve))
    face, edge = (own["color"], "white") if known else ("white", own["color"])
    style: ArtistProperties = {"facecolor": face, "edgecolor": edge, "hatch": hatch, "linewidth": 0.6}
    ax.barh(place, reach, WIDE, **style, gid="bar" if known else "carried")
    if math.isfinite(bar.low):
        ax.plot(
            [bar.low, bar.high],
            [place] * 2,
            color="black",
            linewidth=0.9,
            marker="|",
            markersize=4,
            gid="interval",
            zorder=2.6,
        )
    text = f"{reach:.3g}" if known else f"> {reach:.3g}"
    ax.annotate(
        text, (0, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6.5, path_effects=marks.HALO,
        gid="value", zorder=3,
    )  # fmt: skip
    if bar.chain:
        ends = [min(one.lower for one in bar.chain), max(one.upper for one in bar.chain)]
        ax.plot(
            [min(reach, ends[0]), ends[1]], [place] * 2, color=marks.NEUTRAL, linewidth=0.5, zorder=1.4, gid="chain"
        )
    for one in bar.chain:
        ax.plot([one.upper], [place], linestyle="none", **_look(one.name), gid="ceiling", zorder=2.8)
    if bar.of is not None:
        ax.annotate(
            f"{'' if known else '≥ '}{100 * reach / bar.of.upper:.0f}", (1, place), xycoords=ax.get_yaxis_transform(),
            xytext=(3, 0), textcoords="offset points", va="center", fontsize=6.5, gid="share",
        )  # fmt: skip


def _look(ceiling: str) -> ArtistProperties:
    return {"color": "black"} | GLYPHS[min(kind_of(ceiling).rank, len(GLYPHS) - 1)]


def _key(bars: Sequence[Bar]) -> list[Line2D]:
    names = dict.fromkeys(one.name for bar in bars for one in bar.chain)
    handles = [marks.key(name, **_look(name)) for name in sorted(names, key=lambda name: kind_of(name).rank)]
    if any(math.isnan(bar.value) for bar in bars):
        handles.append(marks.key("hollow: load carried, no saturation point"))
    return handles
