"""Draws the figures of the experiment ``metrics``: curves over a swept parameter, charts, distributions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from flitlab.sim.measure.rows import number
from flitlab.sim.report import plots
from flitlab.sim.report.columns import STEPS, Quantity, spoken
from flitlab.sim.report.frames import Curve, Names, Run
from flitlab.sim.report.metric_frames import (
    SCENARIO,
    Plot,
    Series,
    Values,
    axis_title,
    categories,
    chart,
    combined,
    distributions,
    is_distribution,
    numeric,
    series,
)
from flitlab.sim.report.plots import DASHES, NEUTRAL, Look

MOST_MARKED = 60
"""Curves of more points than this are lines without markers."""

MOST_LINES = 150
"""A chart with more lines than this is not drawn: nobody could read it."""

LEAST_GAP = 0.0005
"""Certified intervals narrower than this (relative) are not mentioned."""

MORE_DASHES = (*DASHES, (0, (3, 1, 1, 1, 1, 1)), (0, (1, 2.5)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "||||")
BOUND_DASHES = ((0, (6, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)))


def figure_of(run: Run, plot: Plot, size: tuple[float, float] | None = None) -> Figure | None:
    """One figure, laid out and ready to save; None if there is nothing to show in it. size: inches."""
    figure = Figure(layout="constrained", figsize=size)
    FigureCanvasAgg(figure)
    return figure if draw_on(figure.add_subplot(), run, plot, alone=True) else None


def draw_on(ax: Axes, run: Run, plot: Plot, alone: bool) -> bool:
    """Draws a plot on axes, if there is anything to show. alone: they have their figure for themselves."""
    run = run.where(plot.where)
    if is_distribution(run, plot.y[0].expression):
        handles = _distributions(ax, run, plot)
    elif plot.x != SCENARIO and numeric(run.metrics, plot.x):
        handles = _curves(ax, run, plot)
    else:
        handles = _chart(ax, run, plot)
    if handles is None:
        return False
    count = len(run.failures)
    failures = f"{count} failed point{'s' * (count > 1)} left out" if count else ""
    plots.finish(ax, handles, " · ".join(filter(None, (_certified(run, plot), failures))), alone)
    return True


def _certified(run: Run, plot: Plot) -> str:
    """How wide the certified intervals are whose lower ends are drawn, at most; '' if nobody would see it."""
    columns = {column for quantity in plot.y for column in quantity.columns}
    ends = [(number(row, column), number(row, f"{column}.upper")) for column in columns for row in run.metrics]
    gaps = [upper / lower - 1 for lower, upper in ends if lower]
    widest = max(filter(math.isfinite, gaps), default=0.0)
    return f"certified to {100 * widest:.2g} %" if widest >= LEAST_GAP else ""


def caption(run: Run, plot: Plot) -> str:
    """What a figure shows, in words."""
    run = run.where(plot.where)
    what = ", ".join(quantity.name for quantity in plot.y if not quantity.bound) or plot.y[0].name
    if is_distribution(run, plot.y[0].expression):
        along = " by " + STEPS.get(plot.y[0].expression, "rank or key")
    else:
        along = " by scenario" if plot.x == SCENARIO else f" against {axis_title(run, plot.x)}"
    return what[:1].upper() + what[1:] + along


@dataclass(frozen=True, eq=False)
class Strokes:
    """Colour, marker and dashes of the curves of a plot.

    Of two things that tell curves apart, one has colour and marker, the other the dashes, so that the key
    holds their sum and not their product; not so where there are no lines that could have dashes.
    """

    by: Values
    curves: Sequence[tuple[Quantity, Values]]
    dashed: bool = True

    @cached_property
    def _quantities(self) -> list[Quantity]:
        return list(dict.fromkeys(quantity for quantity, _ in self.curves))

    @cached_property
    def _values(self) -> list[Values]:
        return list(dict.fromkeys(values for _, values in self.curves))

    @cached_property
    def _split(self) -> int | None:
        """Which of two keys has the dashes: a number if one is; None if that does not suit."""
        columns = [list(dict.fromkeys(column)) for column in zip(*self._values, strict=True)]
        if not self.dashed or len(self._quantities) > 1 or len(columns) != 2 or len(self._values) <= 4:
            return None
        counts = [len(column) for column in columns]
        texts = [not all(value.replace(".", "", 1).isdigit() for value in column) for column in columns]
        dashed = min((0, 1), key=lambda i: (texts[i], counts[i]))
        return dashed if 1 < counts[dashed] <= len(MORE_DASHES) and counts[1 - dashed] > 1 else None

    def major(self, quantity: Quantity, values: Values) -> str:
        """What has colour and marker."""
        if self._split is not None:
            keep = 1 - self._split
            return combined(self.by[keep : keep + 1], values[keep : keep + 1])
        parts = [combined(self.by, values)] * (len(self._values) > 1)
        if not parts or (len(self._quantities) > 1 and not self.dashed):
            parts.append(quantity.name)
        return ", ".join(parts)

    def minor(self, quantity: Quantity, values: Values) -> str:
        """What has the dashes; '' if they go with the colour."""
        if self._split is not None:
            return combined(self.by[self._split : self._split + 1], values[self._split : self._split + 1])
        several = self.dashed and len(self._values) > 1 and len(self._quantities) > 1
        return quantity.name if several else ""

    @cached_property
    def look(self) -> Look:
        """Of the majors."""
        return Look(Names(list(dict.fromkeys(self.major(*curve) for curve in self.curves))))

    @cached_property
    def _minors(self) -> list[str]:
        return list(dict.fromkeys(self.minor(*curve) for curve in self.curves))

    def __call__(self, quantity: Quantity, values: Values) -> dict[str, Any]:
        own, minor = self.look[self.major(quantity, values)], self.minor(quantity, values)
        return own | ({"linestyle": self._dashes(minor)} if minor else {})

    def shared(self, group: Sequence[Values]) -> dict[str, Any]:
        """What curves have in common: their colour, or their dashes if these say what they stand for."""
        curves = [curve for curve in self.curves if curve[1] in group]
        majors, minors = ({tell(*curve) for curve in curves} for tell in (self.major, self.minor))
        found = {"color": self.look[majors.pop()]["color"]} if len(majors) == 1 else {}
        if self._split is not None and len(minors) == 1:
            found["linestyle"] = self._dashes(minors.pop())
        return found

    def handles(self, **style: Any) -> list[Any]:
        """The key: all majors, then all minors. style: overrides that of the entries."""
        majors = self.look.names.labels
        dashed = self._minors != [""]
        line = {"linestyle": "-"} if dashed else {}
        found = [plots.key(label, **self.look[label] | line | style) for label in majors]
        return found + [plots.key(name, linestyle=self._dashes(name)) for name in self._minors if name]

    def _dashes(self, minor: str) -> Any:
        return MORE_DASHES[self._minors.index(minor) % len(MORE_DASHES)]


def _curves(ax: Axes, run: Run, plot: Plot) -> list[Any] | None:
    """Curves over a numeric x, bounds as thin named lines."""
    found = series(run, plot)
    drawn = [entry for entry in found if not entry.quantity.bound] or found
    bounds = [entry for entry in found if entry not in drawn]
    if not drawn:
        return None
    joined = plot.style == "lines"
    strokes = Strokes(plot.by, [(entry.quantity, entry.values) for entry in drawn], dashed=joined)
    marked = not joined or max(len(entry.curve.x) for entry in drawn) <= MOST_MARKED
    style: dict[str, Any] = {} if marked else {"marker": "", "linewidth": 0.8}
    if not joined:
        style = {"linestyle": "none"}
    for entry in drawn:
        own = strokes(entry.quantity, entry.values) | style
        ax.plot(entry.curve.x, entry.curve.y, **own, gid="curve")
        plots.band(ax, entry.curve, own["color"])
    _scales(ax, plot, np.unique(np.concatenate([entry.curve.x for entry in drawn])), found)
    keys = []
    for i, quantity in enumerate(dict.fromkeys(entry.quantity for entry in bounds)):
        dashes = BOUND_DASHES[i % len(BOUND_DASHES)]
        keys += _bound(ax, strokes, [entry for entry in bounds if entry.quantity == quantity], dashes)
    _label(ax.set_xlabel, plot.x_label or axis_title(run, plot.x), 60)
    _label(ax.set_ylabel, plot.y_label or _title(plot))
    return (strokes.handles(**style) if len(drawn) > 1 else []) + keys


def _scales(ax: Axes, plot: Plot, x: np.ndarray, drawn: Sequence[Series]) -> None:
    """Logarithmic axes where asked for, or where x grows by a factor; from 0 unless that wastes half the axis."""
    log = plot.log if plot.log is not None else "x" * _geometric(x)
    y = np.concatenate([entry.curve.y for entry in drawn])
    if "x" in log:
        ax.set_xscale("log")
        if len(x) <= 8:
            ax.xaxis.set_major_locator(FixedLocator(x.tolist()))
            ax.xaxis.set_minor_locator(NullLocator())
    if "y" in log:
        ax.set_yscale("log")
    elif 0 <= y.min() < 0.3 * y.max():
        ax.set_ylim(0, 1.05 * max(y.max(), ax.dataLim.y1))
    _plain_numbers(ax)


def _plain_numbers(ax: Axes) -> None:
    """Ticks such as 10,000, and enough of them where a logarithmic axis spans little."""
    for axis, fixed in ((ax.xaxis, isinstance(ax.xaxis.get_major_locator(), FixedLocator)), (ax.yaxis, False)):
        axis.set_major_formatter(plots.THOUSANDS)
        if axis.get_scale() == "log" and not fixed:
            low, high = axis.get_view_interval()
            decades = np.log10(high / low)
            if decades < 2.5:
                axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if decades > 0.8 else range(1, 10)))
            axis.set_minor_formatter(NullFormatter())


def _geometric(x: np.ndarray) -> bool:
    """Whether values grow by a factor rather than by a step.

    >>> _geometric(np.array([16, 32, 64])), _geometric(np.array([16, 32, 48])), _geometric(np.array([1, 2]))
    (True, False, False)
    """
    if len(x) < 3 or x[0] <= 0:
        return False
    factors = x[1:] / x[:-1]
    return bool(factors.min() > 1.4 and factors.max() < 1.5 * factors.min() and x[-1] >= 4 * x[0])


def _bound(ax: Axes, strokes: Strokes, entries: Sequence[Series], dashes: Any) -> list[Any]:
    """A bound of one sort: one thin line for all curves that share it. Entries of the key.

    A single line has its name on it; of several, each has the dashes or the colour of its curves.
    """
    groups = _equal(entries)
    for group in groups:
        curve = max((entry.curve for entry in group), key=lambda curve: len(curve.x))
        style = {"color": NEUTRAL, "linestyle": dashes}
        if len(groups) > 1:
            style |= strokes.shared([entry.values for entry in group])
        ax.plot(curve.x, curve.y, **style, linewidth=0.6, zorder=1.8, gid="bound")
        if len(groups) == 1:
            points = list(zip(curve.x, curve.y, strict=True))[:: -max(1, len(curve.x) // 12)]
            places: list[plots.Place] = [
                (point, (0, dy), ha, va)
                for point in points
                for dy, va in ((-3, "top"), (3, "bottom"))
                for ha in ("right", "center")
            ]
            plots.Name(ax, group[0].quantity.name, places, color=NEUTRAL, gid="bound")
    if len(groups) == 1:
        return []
    return [plots.key(f"{entries[0].quantity.name} (thin)", linestyle=dashes, linewidth=0.6)]


def _equal(entries: Sequence[Series]) -> list[list[Series]]:
    """Groups of curves that agree wherever two of them have a point."""
    groups: list[list[Series]] = []
    for entry in entries:
        group = next((group for group in groups if all(_agree(entry.curve, other.curve) for other in group)), None)
        if group is None:
            groups.append([entry])
        else:
            group.append(entry)
    return groups


def _agree(a: Curve, b: Curve) -> bool:
    _, i, j = np.intersect1d(a.x, b.x, return_indices=True)
    return len(i) > 0 and bool(np.allclose(a.y[i], b.y[j], rtol=1e-9))


def _title(plot: Plot) -> str:
    """Of the axis of y: the quantity, or the unit if all share it."""
    own = [quantity for quantity in plot.y if not quantity.bound] or list(plot.y)
    if len(own) == 1:
        return own[0].title
    units = {quantity.unit for quantity in own}
    return units.pop() if len(units) == 1 else ""


def _label(put: Any, text: str, width: int = 35) -> None:
    """A label on as few lines as it takes, all about as long."""
    lines = -(-len(text) // width) or 1
    put("\n".join(wrap(text, len(text) // lines + 5)))


def _chart(ax: Axes, run: Run, plot: Plot) -> list[Any] | None:
    """One line per category: a bar, or a marker for each of several quantities or curves."""
    names = [name for name, _ in categories(run, plot)]
    found = chart(run, plot)
    drawn = [entry for entry in found if not entry.quantity.bound] or found
    if not drawn or len(names) > MOST_LINES:
        return None
    strokes = Strokes(plot.by, [(entry.quantity, entry.values) for entry in drawn], dashed=False)
    log = plot.log or ""
    _room(ax, len(names) * (1 + 0.3 * (len(drawn) - 1)) + bool(plot.x_label))
    for i, entry in enumerate(drawn):
        own = strokes(entry.quantity, entry.values)
        if len(drawn) == 1 and not log:
            _bars(ax, entry.curve, own["color"])
        else:
            shift = 0.5 * (i - (len(drawn) - 1) / 2) / len(drawn)
            _dots(ax, entry.curve, shift, own | {"linestyle": "none"})
    bounds = [entry for entry in found if entry not in drawn]
    style: dict[str, Any] = {"color": "black", "marker": "|", "markersize": 9, "path_effects": plots.HALO}
    for entry in bounds:
        ax.plot(entry.curve.y, entry.curve.x, linestyle="none", **style, zorder=3, gid="bound")
    _chart_axes(ax, names, bool(log), len(drawn) > 1)
    _label(ax.set_xlabel, plot.y_label or _title(plot), 45)
    if plot.x_label:  # on top: beside a few names there is no room for a rotated line
        ax.set_title(plot.x_label, loc="left", fontsize=ax.xaxis.label.get_fontsize(), pad=3)
    keys = [plots.key(quantity.name, **style) for quantity in dict.fromkeys(entry.quantity for entry in bounds)]
    return (strokes.handles(linestyle="none") if len(drawn) > 1 else []) + keys


def _chart_axes(ax: Axes, names: Sequence[str], log: bool, several: bool) -> None:
    """Names from top to bottom; values from 0, with room for the number behind each bar."""
    if log:
        ax.set_xscale("log")
    else:
        low, high = min(0.0, *ax.get_xlim()), max(0.0, *ax.get_xlim())
        ax.set_xlim(low and 1.05 * low, high * (1.02 if several else 1.15))
    ax.xaxis.set_major_formatter(plots.THOUSANDS)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="y", visible=several)
    ax.tick_params(axis="y", length=0)


def _room(ax: Axes, lines: float) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.set_figheight(0.45 + 0.2 * max(lines, 2))


def _bars(ax: Axes, curve: Curve, colour: str) -> None:
    ax.barh(curve.x, curve.y, height=0.62, color=colour, gid="bar")
    _whiskers(ax, curve, 0.0, "#222222")
    ends = curve.y + np.where(np.isfinite(curve.half), curve.half, 0.0)
    for place, end, value in zip(curve.x, ends, curve.y, strict=True):
        ax.annotate(
            f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}", (max(end, 0.0), place), va="center",
            xytext=(3, 0), textcoords="offset points", fontsize=7, gid="value",
        )  # fmt: skip


def _dots(ax: Axes, curve: Curve, shift: float, style: dict[str, Any]) -> None:
    ax.plot(curve.y, curve.x + shift, **style, gid="curve", zorder=2.5)
    _whiskers(ax, curve, shift, style["color"])


def _whiskers(ax: Axes, curve: Curve, shift: float, colour: str) -> None:
    """The 95 % confidence intervals, where they are known."""
    known = np.isfinite(curve.half)
    low, high = (curve.y - curve.half)[known], (curve.y + curve.half)[known]
    ax.hlines(curve.x[known] + shift, low, high, color=colour, linewidth=0.9, gid="band")


def _distributions(ax: Axes, run: Run, plot: Plot) -> list[Any] | None:
    """Mappings as grouped bars or cumulative curves; lists as curves over the rank."""
    found = distributions(run, plot)
    if not found:
        return None
    first, ranked = plot.y[0].expression, isinstance(found[0][2][0], list)
    strokes = Strokes(plot.by, [entry[:2] for entry in found], dashed=ranked or plot.cumulative)
    handles = _ranks(ax, found, strokes) if ranked else _shares(ax, found, strokes, plot.cumulative)
    log = plot.log or ""
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0)
    _label(ax.set_xlabel, plot.x_label or STEPS.get(first) or "rank" * ranked, 60)
    _label(ax.set_ylabel, plot.y_label or ("cumulative " * plot.cumulative + spoken(first)[0]))
    return handles if len(found) > 1 else []


def _ranks(ax: Axes, found: Sequence[tuple[Quantity, Values, list[Any]]], strokes: Strokes) -> list[Any]:
    """Ascending values; those of several draws are pooled, and the ranks divided by their number."""
    for quantity, values, draws in found:
        pooled = np.sort(np.concatenate([np.asarray(draw, float) for draw in draws]))
        ends = np.flatnonzero(np.diff(pooled, append=np.inf))  # the last of each run of equal values
        starts = np.concatenate([[0], ends[:-1] + 1])
        corners = np.stack([starts, ends + 1], axis=1).ravel() / len(draws)
        style = strokes(quantity, values) | {"marker": ""}
        ax.plot(corners, pooled[ends].repeat(2), **style, gid="curve")
    ax.set_xlim(0)
    ax.xaxis.set_major_formatter(plots.THOUSANDS)
    return strokes.handles(marker="")


def _shares(
    ax: Axes, found: Sequence[tuple[Quantity, Values, list[Any]]], strokes: Strokes, cumulative: bool
) -> list[Any]:
    """Values by key, the mean over draws: keys in numeric order, or as they come."""
    keys = _steps([draw for _, _, draws in found for draw in draws])
    places = np.arange(len(keys))
    width, handles = 0.8 / len(found), []
    for i, (quantity, values, draws) in enumerate(found):
        heights = np.mean([[draw.get(key) or 0.0 for key in keys] for draw in draws], axis=0)
        style = strokes(quantity, values)
        if cumulative:
            ax.plot(places, np.cumsum(heights), **style, drawstyle="steps-post", gid="curve")
            continue
        bar = {"facecolor": style["color"], "edgecolor": "white", "linewidth": 0.0, "hatch": HATCHES[i % len(HATCHES)]}
        ax.bar(places + (i - (len(found) - 1) / 2) * width, heights, width, **bar, gid="bar")
        handles.append(Patch(**bar, label=strokes.major(quantity, values)))
    step = -(-len(keys) // 16)
    ax.xaxis.set_major_locator(FixedLocator(places[::step].tolist()))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda place, _: keys[int(place)]))
    ax.yaxis.set_major_formatter(plots.THOUSANDS)
    ax.grid(axis="x", visible=cumulative)
    return strokes.handles() if cumulative else handles


def _steps(mappings: Sequence[dict[str, float]]) -> list[str]:
    """The keys of all, in their order; of whole numbers also those in between that none has."""
    keys = list(dict.fromkeys(key for mapping in mappings for key in mapping))
    if not all(key.isdigit() for key in keys):
        return keys
    low, high = min(map(int, keys)), max(map(int, keys))
    dense = high - low < 3 * len(keys) + 10
    return [str(key) for key in range(low, high + 1)] if dense else sorted(keys, key=int)
