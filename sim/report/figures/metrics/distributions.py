# SPDX-License-Identifier: Apache-2.0
"""Distributions: lists as curves over the rank, mappings as bars by key."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.metrics.quantity import STEPS, Quantity, spoken
from flitlab.sim.report.figures.metrics.rows import Values
from flitlab.sim.report.figures.metrics.series import distributions
from flitlab.sim.report.figures.metrics.specification import Plot
from flitlab.sim.report.figures.metrics.strokes import Strokes
from flitlab.sim.report.figures.style import log_axis
from flitlab.sim.report.folder.run import Run

HATCHES = (*marks.HATCHES, "||||")


def draw_distributions(ax: Axes, run: Run, plot: Plot) -> list[Artist] | None:
    """Mappings as grouped bars or cumulative curves; lists as curves over the rank."""
    entries = distributions(run, plot)
    if not entries:
        return None
    first, ranked = plot.y[0].expression, isinstance(entries[0][2][0], list)
    strokes = Strokes(plot.by, [entry[:2] for entry in entries], dashed=ranked or plot.cumulative)
    handles = _ranks(ax, entries, strokes) if ranked else _shares(ax, entries, strokes, plot.cumulative)
    log = plot.log or ""
    if "x" in log:
        log_axis(ax, "x")
    if "y" in log:
        log_axis(ax, "y")
    else:
        ax.set_ylim(0)
    marks.put_label(ax.set_xlabel, plot.x_label or STEPS.get(first) or "rank" * ranked, 60)
    marks.put_label(ax.set_ylabel, plot.y_label or ("cumulative " * plot.cumulative + spoken(first)[0]))
    return handles if len(entries) > 1 else []


def _ranks(ax: Axes, entries: Sequence[tuple[Quantity, Values, list[Any]]], strokes: Strokes) -> list[Artist]:
    """Ascending values; those of several draws are pooled, and the ranks divided by their number."""
    for quantity, values, draws in entries:
        pooled = np.sort(np.concatenate([np.asarray(draw, float) for draw in draws]))
        ends = np.flatnonzero(np.diff(pooled, append=np.inf))  # the last of each run of equal values
        starts = np.concatenate([[0], ends[:-1] + 1])
        corners = np.stack([starts, ends + 1], axis=1).ravel() / len(draws)
        style = strokes(quantity, values) | {"marker": ""}
        ax.plot(corners, pooled[ends].repeat(2), **style, gid="curve")
    ax.set_xlim(0)
    ax.xaxis.set_major_formatter(marks.THOUSANDS)
    return strokes.handles(marker="")


def _shares(
    ax: Axes, entries: Sequence[tuple[Quantity, Values, list[Any]]], strokes: Strokes, cumulative: bool
) -> list[Artist]:
    """Values by key, the mean over draws: keys in numeric order, or as they come."""
    keys = _steps([draw for _, _, draws in entries for draw in draws])
    places = np.arange(len(keys))
    width = 0.8 / len(entries)
    handles: list[Artist] = []
    for i, (quantity, values, draws) in enumerate(entries):
        heights = np.mean([[draw.get(key) or 0.0 for key in keys] for draw in draws], axis=0)
        style = strokes(quantity, values)
        if cumulative:
            ax.plot(places, np.cumsum(heights), **style, drawstyle="steps-post", gid="curve")
            continue
        bar = {"facecolor": style["color"], "edgecolor": "white", "linewidth": 0.0, "hatch": HATCHES[i % len(HATCHES)]}
        ax.bar(places + (i - (len(entries) - 1) / 2) * width, heights, width, **bar, gid="bar")
        handles.append(Patch(**bar, label=marks.entry_name(strokes.major(quantity, values))))
    step = -(-len(keys) // 16)
    ax.xaxis.set_major_locator(FixedLocator(places[::step].tolist()))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda place, _: keys[int(place)]))
    ax.yaxis.set_major_formatter(marks.THOUSANDS)
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
