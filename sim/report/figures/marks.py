# SPDX-License-Identifier: Apache-2.0
"""Marks on axes: curves over replicates, ceilings, and labels that avoid other marks.

Every function takes rows (or ceilings) and key functions.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Any

import matplotlib.patheffects as patheffects
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox, ScaledTranslation

from flitlab.fluid.kinds.spec import kind_of
from flitlab.models.arrays import Floats
from flitlab.sim.report.figures.style import ArtistProperties
from flitlab.sim.report.folder.ceilings import Mark, Total
from flitlab.sim.report.folder.curves import Curve, curves
from flitlab.sim.report.folder.frames import Key, Row
from flitlab.sim.report.folder.names import Longest, Names
from flitlab.sim.report.folder.run import Run
from flitlab.sim.terminal import shown_label

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")

GLYPHS = {"o": "⚫", "s": "▪", "^": "▴", "D": "◆", "v": "▾", "P": "✚", "X": "✖", "<": "◂"}

UPRIGHT = str.maketrans("▴▾◂", "▸◂▴")
"""What a triangle must be so that it looks right in a text that is turned by 90 degrees."""

DASHES = ("-", (0, (4, 1.2)), (0, (5, 1.2, 1, 1.2)), (0, (1.5, 1)), (0, (7, 1.5)))

HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx")
"""Of bars, so that they are told apart in grey, too."""

NEUTRAL = "#444444"

THETA_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (8, 1.5, 1, 1.5, 1, 1.5)))
"""Of the lines of ceilings, by rank; further ones have the last."""

TOTAL_DASHES = (0, (6, 1.5, 1, 1.5))
"""Of the curve of the ceiling ``total``."""

LETTERS = 19
"""Letters of the title of a key in an inch."""

HALO = (patheffects.withStroke(linewidth=1.5, foreground="white"),)

THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.12g}")
"""Tick labels such as 10,000."""

COLLIDES = 10_000.0
"""What a place of a name costs that covers a text, a marker or a curve."""

MARKER = 3.0
"""Pixels around the middle of a marker that no name may cover."""

Place = tuple[tuple[float, float], tuple[float, float], str, str]
"""Where a name may stand: the point it belongs to, an offset in points, ha, va."""


def colour(i: int) -> str:
    """The colour of the i-th of several things; further ones begin anew."""
    return OKABE_ITO[i % len(OKABE_ITO)]


def dashes(i: int) -> Any:
    """The dashes of the i-th line."""
    return DASHES[i % len(DASHES)]


def hatch(i: int) -> str:
    """The hatch of the i-th bar."""
    return HATCHES[i % len(HATCHES)]


def symbol(i: int) -> ArtistProperties:
    """Colour and marker of the i-th of several things."""
    return {"color": colour(i), "marker": MARKERS[i % len(MARKERS)]}


@dataclass(frozen=True)
class Look:
    """Colour, marker, dashes and short name of every curve, the same in all panels and figures of a run.

    here: labels of the curves on the current axes; None for all. whole: the run of all panels together.
    """

    names: Names
    here: Sequence[str] | None = None
    whole: Run | None = None

    def __getitem__(self, scenario: str) -> ArtistProperties:
        i = self.names.labels.index(scenario)
        return symbol(i) | {"linestyle": dashes(i)}

    @property
    def shown(self) -> Sequence[str]:
        """The labels of the curves on these axes."""
        return self.names.labels if self.here is None else self.here

    @property
    def is_single(self) -> bool:
        """Whether there is a single panel."""
        return self.whole is None

    def colour(self, scenarios: Sequence[str]) -> str:
        """Colour of a mark of these scenarios: the curve's if it belongs to only one of several."""
        single = len(scenarios) == 1 and len(self.shown) > 1
        return self[scenarios[0]]["color"] if single else NEUTRAL

    def named(self, what: str, scenarios: Sequence[str]) -> str:
        """``what`` with the markers of its scenarios, unless these are all."""
        if set(scenarios) >= set(self.shown):
            return what
        if len(scenarios) > 4:
            return f"{what} ({len(scenarios)} of {len(self.shown)})"
        glyphs = "".join(GLYPHS[self[s]["marker"]] for s in scenarios)
        return f"{what} (\u200a{glyphs}\u200a)"


class Name(Annotation):
    """A label with several candidate places; :func:`settle` picks the emptiest.

    instead: its entry in the key, if no place is free of other texts, markers and curves.
    """

    instead: Any = None

    def __init__(self, ax: Axes, text: str, places: Sequence[Place], xycoords: Any = "data", **style: Any):
        xy, offset, ha, va = places[0]
        super().__init__(
            text, xy, xytext=offset, xycoords=xycoords, textcoords="offset points", ha=ha, va=va,
            fontsize=7, path_effects=HALO, zorder=1.9, **style,
        )  # fmt: skip
        self.places = places
        self.set_in_layout(False)
        ax.add_artist(self)

    def move(self, place: Place) -> None:
        """Takes a place."""
        self.xy, offset, ha, va = place
        self.set(position=offset, ha=ha, va=va)


def draw_curves(
    ax: Axes, rows: Iterable[Row], look: Look, x: Key, y: Key, half: Key | None = None, style: Any = (),
    over_load: bool = False,
) -> None:  # fmt: skip
    """One line per scenario through the means over replicates, with its 95 % confidence band.

    Points past saturation have hollow markers; probes of a search are joined by a thin line at most, and have no band.
    Of several draws thin whiskers reach from the least to the greatest. style: overrides the look of the lines.
    over_load: whether probes are joined, as x is what was offered.
    """
    for curve in curves(rows, x, y, half):
        own, past = look[curve.scenario], curve.saturated
        line = own | {"label": entry_name(look.names[curve.scenario]), "markevery": np.flatnonzero(~past).tolist()}
        line |= dict(style) | ({} if curve.joined else {"linestyle": "none"})
        ax.plot(curve.x, curve.y, **line, gid="curve" if curve.joined else "probes")
        if over_load and not curve.joined:
            ax.plot(curve.x, curve.y, color=own["color"], linewidth=0.6, gid="between")
        band(ax, curve, own["color"])
        spread(ax, curve, own["color"])
        hollow = {"markerfacecolor": "white", "markeredgecolor": own["color"], "marker": own["marker"]}
        ax.plot(curve.x[past], curve.y[past], linestyle="none", gid="saturated", **hollow)


def spread(ax: Axes, curve: Curve, colour: str) -> None:
    """Thin whiskers from the least to the greatest of several draws."""
    known = np.isfinite(curve.low)
    if known.any():
        x, ends = np.repeat(curve.x[known], 2), np.column_stack([curve.low, curve.high])[known].ravel()
        ax.vlines(x[::2], ends[::2], ends[1::2], color=colour, linewidth=0.5, gid="spread", zorder=1.7)
        ax.plot(x, ends, color=colour, linestyle="none", marker="_", markersize=3, markeredgewidth=0.5, gid="spread")


def band(ax: Axes, curve: Curve, colour: str) -> None:
    """The 95 % confidence band of a curve, where it is known."""
    known = np.isfinite(curve.half)
    if not known.any():
        return
    half = np.where(known, curve.half, 0.0)
    low, high = np.maximum(curve.y - half, 0.0), curve.y + half
    ax.fill_between(curve.x, low, high, color=colour, alpha=0.2, linewidth=0, gid="band", zorder=1.5)


def whiskers(ax: Axes, curve: Curve, colour: str) -> None:
    """The 95 % confidence interval of every point that has one, where points are not joined."""
    known = np.isfinite(curve.half)
    low, high = np.maximum(curve.y - curve.half, 0.0)[known], (curve.y + curve.half)[known]
    ax.vlines(curve.x[known], low, high, color=colour, linewidth=0.9, gid="band")


def draw_thetas(ax: Axes, marks: Iterable[Mark], look: Look, rate: float = 1.0) -> None:
    """Ceilings as vertical lines, each with its name; the certified interval is a thin band.

    rate: factor from flits/tick/host to the unit of the x axis.
    """
    for mark in marks:
        lower, upper, colour = mark.lower * rate, mark.upper * rate, look.colour(mark.scenarios)
        stroke = theta_dashes(mark.name)
        ax.axvline(upper, color=colour, linestyle=stroke, linewidth=0.8, zorder=1.8, gid="ceiling")
        if mark.range is not None:
            ax.axvspan(
                mark.range[0] * rate,
                mark.range[1] * rate,
                color=colour,
                alpha=0.1,
                linewidth=0,
                zorder=1.1,
                gid="range",
            )
        if upper > lower:
            ax.axvspan(lower, upper, color=colour, alpha=0.15, linewidth=0, zorder=1.2, gid="interval")
        sides: list[tuple[float, float, str]] = [(lower, -1.5, "right"), (upper, 1.5, "left")]
        places: list[Place] = [
            ((x, height), (offset, 0), ha, "bottom") for height in np.arange(0.02, 0.9, 0.04) for x, offset, ha in sides
        ]
        text = look.named(mark.name, mark.scenarios).translate(UPRIGHT)
        name = Name(ax, text, places, xycoords=ax.get_xaxis_transform(), rotation=90, color=colour, gid="theta")
        name.instead = key(mark.name, color=NEUTRAL, linestyle=stroke, linewidth=0.8)


def theta_dashes(name: str) -> Any:
    """The dashes of the line of a ceiling, by its rank."""
    return THETA_DASHES[min(kind_of(name).rank, len(THETA_DASHES) - 1)]


def draw_totals(ax: Axes, totals: Iterable[Total], look: Look, rate: float = 1.0) -> None:
    """The ``total`` ceiling as a curve over offered traffic, named on the curve."""
    for total in totals:
        colour = look.colour(total.scenarios)
        x, y = total.offered * rate, total.accepted * rate
        ax.plot(x, y, color=colour, linestyle=TOTAL_DASHES, linewidth=0.9, zorder=1.8, gid="total")
        apart = y < x * (1 - 1e-6)
        ends = [(x[-1], y[-1]), *zip(x[apart][::-1], y[apart][::-1], strict=True)]
        places: list[Place] = [((x[-1], y[-1]), (3, 0), "left", "center")]
        places += [(end, (0, dy), "right", va) for end in ends for dy, va in ((2, "bottom"), (-3, "top"))]
        name = Name(ax, look.named("total", total.scenarios), places, color=colour, gid="total")
        name.instead = key("total", color=NEUTRAL, linestyle=TOTAL_DASHES, linewidth=0.9)


def draw_diagonal(ax: Axes, reach: float) -> None:
    """The line where everything offered is accepted."""
    ax.plot([0, reach], [0, reach], color="#999999", linewidth=0.7, zorder=1.1, gid="diagonal")
    figure, low = ax.get_figure(root=True), 0.08 * reach
    assert figure is not None
    above = ax.transData + ScaledTranslation(-2 / 72, 4 / 72, figure.dpi_scale_trans)
    ax.text(
        low, low, "accepted = offered", rotation=45, rotation_mode="anchor", transform=above,
        transform_rotates_text=True, fontsize=7, color="#777777",
    )  # fmt: skip


def finish(ax: Axes, handles: Sequence[Artist], title: str, single: bool) -> None:
    """Add the key, below axes that are single in their figure, and place every label."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    if single:
        finish_panels(figure, [ax], handles, title)
        return
    renderer = _renderer(figure)
    if handles:
        ax.legend(handles=handles, title=title or None)
    figure.draw_without_rendering()
    if break_labels(ax, renderer):
        figure.draw_without_rendering()
    settle(ax, renderer)


def finish_panels(figure: Figure, axes: Sequence[Axes], handles: Sequence[Artist], title: str) -> None:
    """Add the key of all panels below them, and place every label.

    A label without a free place in a panel goes into the key instead, for all panels.
    """
    renderer, height = _renderer(figure), figure.get_figheight()
    entries = list(handles)
    for _ in range(len(axes) * 8):
        legend_below(figure, entries, title, renderer)
        figure.draw_without_rendering()
        if any([break_labels(ax, renderer) for ax in axes]):
            figure.draw_without_rendering()
        crowded = [name for ax in axes for name in settle(ax, renderer) if name.instead is not None]
        if not crowded:
            return
        named = {name.instead.get_label(): name.instead for name in crowded}
        for text in [text for ax in axes for text in ax.texts if isinstance(text, Name)]:
            if text.instead is not None and text.instead.get_label() in named:
                text.remove()
        entries += [entry for label, entry in named.items() if label not in {one.get_label() for one in entries}]
        for legend in list(figure.legends):
            legend.remove()
        figure.set_figheight(height)


def _renderer(figure: Figure) -> RendererAgg:
    """Measures texts, whatever the figure's own canvas is."""
    return RendererAgg(figure.bbox.width, figure.bbox.height, figure.dpi)


def break_labels(ax: Axes, renderer: RendererAgg) -> bool:
    """Break axis labels that do not fit into the figure; return whether any did not, which changes the layout."""
    figure, broken = ax.get_figure(root=True), False
    assert figure is not None
    frame, whole = ax.get_window_extent(renderer), figure.bbox
    for side, label in enumerate((ax.xaxis.label, ax.yaxis.label)):
        middle = (frame.min[side] + frame.max[side]) / 2
        available = 2 * min(middle, whole.size[side] - middle)
        text, length = label.get_text(), label.get_window_extent(renderer).size[side]
        if length > available:
            label.set_text(in_lines(text, math.ceil((text.count("\n") + 1) * length / available)))
            broken = True
    return broken


def in_lines(text: str, lines: int) -> str:
    """Break a text into lines of about equal length."""
    return "\n".join(wrap(text, len(text) // lines + 5, break_on_hyphens=False))


def put_label(put: Callable[[str], object], text: str, width: int = 35) -> None:
    """A label on as few lines of a width as it takes, all about as long. put: sets it."""
    put(in_lines(text, -(-len(text) // width) or 1))


def settle(ax: Axes, renderer: RendererAgg) -> list[Name]:
    """Move every :class:`Name` to the place where it covers least; call it when the layout is final.

    Returns those that cover a text, a marker or a curve even there, or reach out of the axes.
    """
    lines = [line for line in ax.lines if np.size(line.get_xdata())]
    obstacles = np.concatenate([np.empty((0, 2)), *map(_along, lines)])
    curves = np.concatenate([np.empty((0, 2)), *(_along(line) for line in lines if line.get_gid() == "curve")])
    points = np.concatenate([np.empty((0, 2)), *map(_marked, lines)])
    frame = ax.get_window_extent(renderer)
    names = [text for text in ax.texts if isinstance(text, Name)]
    taken = [text.get_window_extent(renderer) for text in ax.texts if text not in names]
    crowded = []
    for name in names:
        costs = []
        for rank, place in enumerate(name.places):
            name.move(place)
            costs.append(rank + _cost(name.get_window_extent(renderer), frame, taken, obstacles, points, curves))
        name.move(name.places[int(np.argmin(costs))])
        taken.append(name.get_window_extent(renderer))
        if min(costs) >= COLLIDES:
            crowded.append(name)
    return crowded


def _along(line: Line2D) -> Floats:
    """Points along a line, two pixels apart."""
    points = line.get_transform().transform(np.asarray(line.get_xydata()))
    if line.get_linestyle() in ("None", "none", ""):
        return points
    pieces = []
    for a, b in pairwise(points):
        count = int(min(np.hypot(*(b - a)) / 2, 5000)) + 1
        pieces.append(a + np.linspace(0, 1, count)[:, None] * (b - a))
    return np.concatenate([*pieces, points[-1:]])


def _marked(line: Line2D) -> Floats:
    """Places of the markers of a line."""
    if line.get_marker() in ("None", "none", "", None):
        return np.empty((0, 2))
    positions: Floats = line.get_transform().transform(np.asarray(line.get_xydata()))
    return positions


def _cost(
    box: Bbox, frame: Bbox, taken: Sequence[Bbox], obstacles: Floats, points: Floats, curves: Floats
) -> float:  # fmt: skip
    outside = not (frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)
    covered = sum(box.overlaps(other) for other in taken)
    marked = _inside(points, box.padded(MARKER))
    hidden = _inside(curves, box) > 0
    return COLLIDES * (10 * outside + covered + marked + hidden) + 2.0 * _inside(obstacles, box)


def _inside(points: Floats, box: Bbox) -> int:
    within = (points > (box.x0, box.y0)) & (points < (box.x1, box.y1))
    return int(within.all(axis=1).sum())


def entry_name(name: str) -> str:
    """A name as an entry of a legend, cut; with a thin space before an underscore, which legends leave out."""
    name = shown_label(name, Longest.NAME)
    return f"\u2009{name}" if name.startswith("_") else name


def key(label: str, **style: Any) -> Line2D:
    """An entry for a legend that stands for no line on the axes."""
    return Line2D([], [], label=entry_name(label), **{"color": NEUTRAL, "linestyle": "none", **style})


def legend_below(figure: Figure, handles: Sequence[Artist], title: str, renderer: RendererAgg) -> None:
    """A key below the axes, where it hides nothing, in as many columns as fit; the figure grows by its height."""
    if not handles and not title:
        return
    title = "\n".join(wrap(title, max(30, int(LETTERS * figure.get_figwidth()))))
    for columns in range(max(1, len(handles)), 0, -1):
        legend = figure.legend(handles=handles, title=title, loc="outside lower center", ncols=columns)
        extent = legend.get_window_extent(renderer)
        if columns == 1 or extent.width <= figure.bbox.width:
            figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)
            return
        legend.remove()
