# SPDX-License-Identifier: Apache-2.0
"""Panels by network and curves by algorithm, over size, for the figures of collectives."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from flitlab.models.arrays import Floats
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.metrics.rows import combined
from flitlab.sim.report.figures.programs import finish, in_title, panels_of, unit_of
from flitlab.sim.report.figures.style import ArtistProperties, log_axis
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run

SIZE, ALGORITHM = "collective.size_bytes", "collective.algorithm"
"""Swept keys that are the axis of x, and that make curves."""

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))

MOST_TICKS = 4
"""Sizes that are named on an axis, about."""

BOUNDS = {"time_ns": "bound_ns", "busbw": "busbw_bound"}
"""Column of collectives.csv -> the column of its bound."""

BAR, BAR_SHARE = 0.2, 0.7
"""Inches of a bar with the space around it, and the part that is the bar."""

BAND = "#bdbdbd"
"""Colour of what no algorithm can reach, as far as is known."""


@dataclass(frozen=True)
class BySize:
    """The rows of collectives.csv by panel and algorithm."""

    run: Run

    @cached_property
    def rows(self) -> list[Row]:
        """The usable rows."""
        return [row for row in self.run.tables.get("collectives", []) if math.isfinite(number(row, "time_ns"))]

    @cached_property
    def _panel_keys(self) -> list[str]:
        swept = self.run.manifest.get("columns", ())
        return [
            name for name in swept if name not in (SIZE, ALGORITHM) and len({row.get(name) for row in self.rows}) > 1
        ]

    def panel(self, row: Row) -> str:
        """The panel of a row: the swept keys besides sizes and algorithms."""
        return combined(self._panel_keys, [row.get(name) or "" for name in self._panel_keys])

    @cached_property
    def panels(self) -> list[str]:
        """All panels, in order of appearance."""
        return list(dict.fromkeys(self.panel(row) for row in self.rows))

    @cached_property
    def algorithms(self) -> list[str]:
        """All algorithms, in order of appearance."""
        return list(dict.fromkeys(row.get("algorithm") or "" for row in self.rows))

    def of(self, panel: str, algorithm: str | None = None) -> list[Row]:
        """The rows of a panel, and of one algorithm."""
        return [
            row for row in self.rows
            if self.panel(row) == panel and (algorithm is None or row.get("algorithm") == algorithm)
        ]  # fmt: skip

    def style(self, algorithm: str) -> ArtistProperties:
        """Colour, marker and dashes of an algorithm, the same in all panels."""
        i = self.algorithms.index(algorithm)
        return marks.symbol(i) | {"linestyle": marks.dashes(i)}


def over_size(rows: Sequence[Row], column: str) -> tuple[Floats, Floats]:
    """Return sizes, ascending, and the mean of a column over the rows of each; rows without numbers are left out."""
    by_size: dict[float, list[float]] = {}
    for row in rows:
        value = number(row, column)
        if math.isfinite(value):
            by_size.setdefault(number(row, "size_bytes"), []).append(value)
    sizes = sorted(by_size)
    return np.array(sizes), np.array([fmean(by_size[size]) for size in sizes])


def figure_by_size(
    run: Run, size: tuple[float, float], column: str, label: str, draw: Callable[[Axes, BySize, str], Sequence[Artist]]
) -> Figure | None:
    """Return a figure with a panel for each network: a column over size, with a curve for each algorithm.

    A single size has a bar for each algorithm, and the bound as a line across them.

    Parameters
    ----------
    run : Run
        The run.
    size : tuple of float
        Inches.
    column, label : str
        Column of collectives.csv, and its axis label.
    draw : callable
        Adds further marks to the axes of a panel, and returns entries for the key.

    Returns
    -------
    Figure or None
        None without rows.
    """
    by = BySize(run)
    if not by.rows:
        return None
    if len({row.get("size_bytes") for row in by.rows}) == 1:
        return _bars_of_size(by, size, column, label)
    figure, axes = panels_of(by.panels, size, height=1.9)
    entries: list[Artist] = []
    for ax, panel in zip(axes, by.panels, strict=True):
        entries = [*draw(ax, by, panel)]
        for algorithm in by.algorithms:
            x, y = over_size(by.of(panel, algorithm), column)
            ax.plot(x, y, **by.style(algorithm), markersize=3, gid="curve")
        _size_axis(ax)
        if len(by.panels) > 1:
            in_title(ax, panel)
    below = axes[-1].get_subplotspec()
    columns = below.get_gridspec().ncols if below is not None else 1
    for i, ax in enumerate(axes):
        ax.set_ylabel(label if i % columns == 0 else "")
        ax.set_xlabel("size S" if i >= len(axes) - columns else "")
    finish(figure, [*(marks.key(name, **by.style(name)) for name in by.algorithms), *entries])
    return figure


def _bars_of_size(by: BySize, size: tuple[float, float], column: str, label: str) -> Figure:
    """A panel for each network: a bar for each algorithm, and the bound as a line."""
    bound_of, factor = BOUNDS[column], 1.0
    if column == "time_ns":
        unit, factor = unit_of(max(number(row, column) for row in by.rows))
        label = f"time ({unit})"
    names = [name for name in by.algorithms if name] or by.algorithms
    figure, axes = panels_of(by.panels, size, height=0.55 + BAR * len(names))
    columns = axes[0].get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
    for i, (ax, panel) in enumerate(zip(axes, by.panels, strict=True)):
        for k, name in enumerate(names):
            _, value = over_size(by.of(panel, name), column)
            if len(value):
                ax.barh(k, factor * value[0], BAR_SHARE, color=by.style(name)["color"], gid="bar")
                ax.annotate(
                    f"{factor * value[0]:,.4g}", (0, k), xytext=(2, 0), textcoords="offset points", va="center",
                    fontsize=6, path_effects=marks.HALO,
                )  # fmt: skip
        _, bound = over_size(by.of(panel), bound_of)
        if len(bound):
            ax.axvline(factor * float(bound[0]), color=marks.NEUTRAL, linewidth=1.1, gid="ceiling")
        ax.set_yticks(range(len(names)), names if i % columns == 0 else [""] * len(names), fontsize=6.5)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter(marks.THOUSANDS)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        if len(by.panels) > 1:
            in_title(ax, panel)
        ax.set_xlabel(label if i >= len(axes) - columns else "")
    bytes_ = told_bytes(number(by.rows[0], "size_bytes"))
    finish(figure, [marks.key(f"bound for every algorithm, S = {bytes_}", color=marks.NEUTRAL, linestyle="-")])
    return figure


def _size_axis(ax: Axes) -> None:
    """Sizes as an axis of powers of two, with a few that are named in units."""
    log_axis(ax, "x", base=2)
    low, high = (math.log2(end) for end in ax.get_xlim())
    step = max(1, math.ceil((high - low) / MOST_TICKS))
    ax.xaxis.set_major_locator(FixedLocator([2.0**i for i in range(math.ceil(low), math.floor(high) + 1, step)]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: told_bytes(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.tick_params(axis="x", labelsize=6)


def told_bytes(value: float) -> str:
    """A number of bytes in a unit in which it is small.

    >>> told_bytes(65536), told_bytes(1 << 20), told_bytes(3)
    ('64 KiB', '1 MiB', '3 B')
    """
    factor, unit = next(((factor, unit) for factor, unit in UNITS if value >= factor), UNITS[-1])
    return f"{value / factor:.3g} {unit}"


def shaded(label: str) -> Patch:
    """The entry of the key for the band above what bounds allow."""
    return Patch(facecolor=BAND, edgecolor="none", label=label)
