# SPDX-License-Identifier: Apache-2.0
"""Scenarios by program, panels and units of time, for the figures of programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure

from flitlab.sim.measure.interval import mean_known
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.metrics.rows import combined
from flitlab.sim.report.figures.style import new_figure
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.names import Longest, shown_names
from flitlab.sim.report.folder.run import Run
from flitlab.sim.terminal import shown_label

MOST_PANELS = 24
"""The most panels of a figure; its key says what is left out."""

PER_INCH = 17.0
"""Letters of the title of a panel in an inch."""

TICK_PER_INCH, MARGIN = 13.0, 0.7
"""Letters of a name below an axis in an inch; inches of a figure beside its axes."""

MOST_LINES, SLANTED_LINE = 3, 0.28
"""The most lines of a name below an axis, and inches between groups that a line of a rotated name takes."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class ByProgram:
    """The scenarios of a run by program and by other swept keys."""

    run: Run

    @cached_property
    def program_of(self) -> dict[str, tuple[str, str]]:
        """Scenario -> (program, the rest of its keys)."""
        swept = [name for name in self.run.manifest.get("columns", ()) if any(row.get(name) for row in self.run.rows)]
        program = [name for name in swept if name.partition(".")[0] == "application"]
        rest = [name for name in swept if name not in program]
        if not program and len(rest) > 1 and rest[0] == "case":
            program, rest = rest[:1], rest[1:]
        keys_of = {}
        for row in self.run.rows:
            parts = [combined(names, [row.get(name) or "" for name in names]) for names in (program, rest)]
            keys_of[row.get("scenario") or ""] = (parts[0], parts[1])
        return keys_of

    @cached_property
    def programs(self) -> list[str]:
        """The programs of the run, in order of appearance."""
        return list(dict.fromkeys(program for program, _ in self.program_of.values()))

    @cached_property
    def series(self) -> list[str]:
        """Combinations of other swept keys, in order of appearance."""
        return list(dict.fromkeys(rest for _, rest in self.program_of.values()))

    def rows(self, rows: Sequence[Row], program: str, series: str) -> list[Row]:
        """The rows, of those given, that belong to a program and a series, in their order."""
        return [row for row in rows if self.program_of.get(row.get("scenario") or "") == (program, series)]

    def mean(self, column: str, program: str, series: str) -> float:
        """The mean of a column over the replicates of a program and a series; NaN where it has no number."""
        return mean_known(number(row, column) for row in self.rows(self.run.rows, program, series))

    def colour(self, series: str) -> str:
        """The colour of a series, the same in all panels."""
        return marks.colour(self.series.index(series))


def label_groups(ax: Axes, names: Sequence[str]) -> None:
    """Name groups of bars below the x axis, on lines as wide as a group, or rotated if they need more space."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    inches = (figure.get_figwidth() - MARGIN) / len(names)
    letters = int(TICK_PER_INCH * inches)
    lines = [_lines(name, letters) for name in shown_names(names)]
    askew = any(len(of) > MOST_LINES or max(map(len, of)) > letters for of in lines)
    if askew:
        most = min(max(1, int(inches / SLANTED_LINE)), MOST_LINES)
        lines = [_lines(name, Longest.ROW) for name in shown_names(names, Longest.ROW * most)]
    texts = ["\n".join(of) for of in lines]
    to = "right" if askew else "center"
    ax.set_xticks(range(len(names)), texts, rotation=30 if askew else 0, ha=to, multialignment=to)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.55, len(names) - 0.45)
    ax.grid(visible=False, axis="x")


def _lines(name: str, letters: int) -> list[str]:
    """A name on lines of at most ``letters`` letters, longer only where a word is."""
    return wrap(name, max(1, letters), break_long_words=False, break_on_hyphens=False) or [""]


def in_title(ax: Axes, text: str) -> None:
    """The title of a panel, on as many lines as it takes."""
    text = shown_label(text, Longest.TITLE)
    figure, place = ax.get_figure(root=True), ax.get_subplotspec()
    assert figure is not None
    columns = 1 if place is None else place.get_gridspec().ncols
    letters_per_line = PER_INCH * figure.get_figwidth() / columns
    ax.set_title(marks.in_lines(text, 1 + int(len(text) / letters_per_line)), fontsize=6.5, pad=2)


def first_of(items: Sequence[Item], what: str) -> tuple[Sequence[Item], str]:
    """Return the items that fit into a figure, and a note on those left out."""
    left_out = f"the first {MOST_PANELS} of {len(items)} {what} are shown" if len(items) > MOST_PANELS else ""
    return items[:MOST_PANELS], left_out


def first_seed(rows: Sequence[Row]) -> list[Row]:
    """Rows of the replicate that comes first."""
    return [row for row in rows if row.get("seed") == rows[0].get("seed")]


def unit_of(ns: float) -> tuple[str, float]:
    """The unit in which a time is a number of few digits, and its factor."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 2 * size:
            return unit, 1 / size
    return "ns", 1.0


def figure_of(size: tuple[float, float], width: float | None = None) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes. size, width: inches."""
    figure = new_figure((width or size[0], size[1]))
    return figure, figure.add_subplot()


def panels_of(items: Sequence[object], size: tuple[float, float], height: float = 0.95) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each item."""
    columns = min(len(items), 2 if size[0] < 5 else 4)
    rows = -(-len(items) // columns)
    figure = new_figure((size[0], max(height * rows, 1.6 if rows == 1 else 0.0)))
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(len(items))]


def finish(figure: Figure, handles: Sequence[Artist], title: str = "") -> None:
    """Put the key below the axes."""
    renderer = RendererAgg(figure.bbox.width, figure.bbox.height, figure.dpi)
    marks.legend_below(figure, handles, title, renderer)
