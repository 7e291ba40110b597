# SPDX-License-Identifier: Apache-2.0
"""The figure ``pauses``."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.programs import first_seed, in_title, unit_of
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import new_figure
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.names import Longest, Names, shown_names
from flitlab.sim.report.folder.run import Run

MOST_PANELS, MOST_ROWS, DEEPEST = 6, 16, 6
"""Scenarios of a figure, channels of each, and steps by which one is indented."""

ALIKE = 4
"""How much longer the longest run may be than the shortest for a common axis of time."""

ROW, HEAD, BELOW = 0.115, 0.34, 0.3
"""Inches of a channel, of what is around a panel, and of the axis of time below all."""

BAR, LETTER = 0.07, 3.5
"""Inches of the width of the bar of colours, and points of a letter of a channel's name."""

GREYS = "Greys"
"""White: never paused, black: paused all the time."""


@figure("pauses", "flows", "programs", "collectives", place=9)
def pauses(run: Run, size: tuple[float, float]) -> Figure | None:
    """Which channels of lossless queues are paused, over time, below the queue that caused it.

    A row is a channel, indented below the one that paused it; the root of each tree comes first. The darker a cell, the
    larger the part of its interval for which the channel is paused. The first load and the first seed are shown.
    """
    shown = _panels(run)
    if not shown:
        return None
    panels = dict(list(shown.items())[:MOST_PANELS])
    ends = [_end(run, rows) for _, rows in panels.values()]
    shares = max(ends) <= ALIKE * min(ends)
    heights = [HEAD + ROW * len(channels) + (0 if shares else BELOW) for channels, _ in panels.values()]
    drawn = new_figure((size[0], sum(heights) + (BELOW if shares else 0)))
    grid = drawn.add_gridspec(len(panels), 1, height_ratios=heights)
    names = Names(list(panels))
    letters = max(len(label) for channels, _ in panels.values() for label in _labels(channels))
    axes = []
    for place, (scenario, (channels, rows)) in enumerate(panels.items()):
        ax = drawn.add_subplot(grid[place])
        end = max(ends) if shares else ends[place]
        unit, factor = unit_of(1000 * end)
        _draw(ax, channels, rows, 1000 * factor, letters)
        if len(run.scenarios) > 1:
            in_title(ax, names[scenario] + _fate(run, scenario))
        ax.set_xlim(0, 1000 * factor * end)
        if shares and place < len(panels) - 1:
            ax.tick_params(labelbottom=False)
        else:
            ax.set_xlabel(f"time ({unit})", labelpad=1)
        axes.append(ax)
    bar = drawn.colorbar(
        ScalarMappable(Normalize(0, 100), GREYS), ax=axes, aspect=sum(heights) / BAR, pad=0.02, shrink=0.98
    )
    bar.set_label("paused (% of the interval)")
    left_out = len(shown) - len(panels)
    if left_out:
        drawn.suptitle(f"the first {len(panels)} of {len(shown)} scenarios with pauses", fontsize=7)
    return drawn


def _end(run: Run, rows: Sequence[Row]) -> float:
    """Microseconds of the run that has these rows of pauses_time.csv."""
    mine = [one for one in run.rows if all(one.get(key) == rows[0].get(key) for key in ("scenario", "load", "seed"))]
    return max(1e6 * number(mine[0], "seconds") if mine else 0.0, *(number(row, "to_us") for row in rows))


def _fate(run: Run, scenario: str) -> str:
    """What the title says of a run that ended in a deadlock."""
    deadlocked = any(row.get("deadlocked") == "True" for row in run.rows if row.get("scenario") == scenario)
    return ": deadlock" if deadlocked else ""


def _panels(run: Run) -> dict[str, tuple[list[Row], list[Row]]]:
    """Scenario -> the first channels of its trees, and its rows of pauses_time.csv."""
    by: dict[str, tuple[list[Row], list[Row]]] = {}
    tables = [run.tables.get(name, []) for name in ("pauses", "pauses_time")]
    for scenario in run.scenarios:
        trees, times = ([row for row in rows if row.get("scenario") == scenario] for rows in tables)
        if not times:
            continue
        first = first_seed([row for row in times if row.get("load") == times[0].get("load")])
        same = [row for row in trees if all(row.get(key) == first[0].get(key) for key in ("load", "seed"))]
        by[scenario] = same[:MOST_ROWS], first
    return by


def _draw(ax: Axes, channels: Sequence[Row], rows: Sequence[Row], factor: float, letters: int) -> None:
    """A cell for each interval in which a channel is paused, as dark as the part of it.

    letters: of the longest label.
    """
    paused: Mapping[str, list[Row]] = defaultdict(list)
    for row in rows:
        paused[row.get("channel") or ""].append(row)
    cells = ScalarMappable(Normalize(0, 1), GREYS)
    for place, channel in enumerate(channels):
        mine = paused.get(_name(channel), [])
        start, end, ticks = (np.array([number(row, key) for row in mine]) for key in ("from_us", "to_us", "paused_us"))
        if len(mine):
            colours = cells.to_rgba(ticks / (end - start))
            ax.barh(place, (end - start) * factor, 0.9, left=start * factor, color=colours, linewidth=0, gid="paused")
    depths = [_depth(channel) for channel in channels]
    ax.set_yticks(range(len(channels)), _labels(channels), fontsize=6)
    for label, depth in zip(ax.get_yticklabels(), depths, strict=True):
        label.set(fontweight="bold" if depth == 0 else "normal", ha="left")
    ax.set_ylim(len(channels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0, pad=LETTER * letters)
    ax.grid(visible=False, axis="y")
    for place, depth in enumerate(depths):
        if place and depth == 0:
            ax.axhline(place - 0.5, color=marks.NEUTRAL, linewidth=0.4)


def _labels(channels: Sequence[Row]) -> list[str]:
    """Names of channels, indented by their depth."""
    names = shown_names([_name(channel) for channel in channels], Longest.ROW)
    return ["· " * _depth(channel) + name for channel, name in zip(channels, names, strict=True)]


def _depth(channel: Row) -> int:
    depth = number(channel, "depth")
    return int(min(depth, DEEPEST)) if math.isfinite(depth) else 0


def _name(channel: Row) -> str:
    of_class = f" ({channel['class']})" if channel.get("class") else ""
    return f"{channel.get('from')}->{channel.get('to')}{of_class}"
