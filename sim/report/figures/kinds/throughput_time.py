# SPDX-License-Identifier: Apache-2.0
"""The figure ``throughput_time``."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from flitlab.models.arrays import Floats
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.programs import unit_of
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import ArtistProperties
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units

Steps = tuple[tuple[float, ...], tuple[float, ...]]
"""Times at which epochs begin, and what hosts get on average at a ceiling in each, NaN where that is unknown."""


LETTER = 0.045
"""Inches that a letter of an event's words takes at the most, on average."""

ROW = 9
"""Points between two rows of words."""

DOTS = (0, (1, 2))
"""Of the lines of events."""

LEADER = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0}
"""The rest of the line of an event, from the axes to its words."""

NAMED = {"mcf": "equal rates (mcf)", "mcf_paths": "equal rates, paths", "mmf:total": "max-min fair"}
"""Ceiling -> what it gives to hosts."""


@figure("throughput_time", "flows", "packets", "programs", place=8)
def throughput_time(ax: Axes, run: Run, units: Units, look: Look) -> list[Line2D]:
    """Throughput per host over time while the network changes, with the ceilings of every epoch as steps.

    Of several loads the highest is shown, and of several seeds their mean.
    """
    rows = run.tables.get("throughput_time", [])
    if not rows:
        return []
    clock = Clock.of(rows)
    end = max(number(row, clock.end) for row in rows)
    entries: list[Line2D] = []
    for scenario in run.scenarios:
        edges, mean = _mean([row for row in rows if row.get("scenario") == scenario], clock)
        if len(mean):
            colour = look[scenario]["color"]
            ax.stairs(mean, edges * clock.factor, baseline=None, linewidth=0.9, color=colour, gid="curve")
            entries.append(marks.key(look.names[scenario], color=colour, linestyle="-"))
    entries += _ceilings(ax, run, look, end, clock)
    _events(ax, run, end, clock)
    ax.set_xlim(0, end * clock.factor)
    ax.set_ylim(bottom=0)
    ax.grid(visible=False, axis="x")
    ax.set_xlabel(f"time ({clock.unit})")
    ax.set_ylabel(units.axis("host_throughput"))
    return entries


@dataclass(frozen=True)
class Clock:
    """The columns that say when something begins and ends, the unit to draw them in, and the factor to it."""

    start: str
    end: str
    unit: str
    factor: float

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Clock":
        """Microseconds, or what suits better, where rows say so; else ticks."""
        us = [number(row, "to_us") for row in rows]
        if not all(map(math.isfinite, us)):
            return cls("from_tick", "to_tick", "ticks", 1.0)
        unit, factor = unit_of(1000 * max(us))
        return cls("from_us", "to_us", unit, 1000 * factor)


def _mean(rows: Sequence[Row], clock: Clock) -> tuple[Floats, Floats]:
    """The edges of the intervals, and the throughput in each on average over loads and seeds.

    Runs may have other intervals than each other, and end at other times; after its end a run has a throughput of 0.
    """
    runs: dict[tuple[str | None, str | None], list[tuple[float, float, float]]] = defaultdict(list)
    for row in rows:
        span = number(row, clock.start), number(row, clock.end), number(row, "host_throughput")
        runs[row.get("load"), row.get("seed")].append(span)
    edges = np.unique([edge for spans in runs.values() for start, end, _ in spans for edge in (start, end)])
    total = np.zeros(max(0, len(edges) - 1))
    for spans in runs.values():
        start, end, got = np.array(sorted(spans)).T
        place = np.searchsorted(start, edges[:-1], side="right") - 1
        total += np.where(edges[:-1] < end[place], got[place], 0.0)
    return edges, total / max(1, len(runs))


def _ceilings(ax: Axes, run: Run, look: Look, end: float, clock: Clock) -> list[Line2D]:
    """Draws ceilings as steps, once where scenarios share them; what the key says of them."""
    shared: dict[tuple[str, Steps], list[str]] = defaultdict(list)
    for scenario in run.scenarios:
        for name, steps in _steps(run, scenario, clock).items():
            shared[name, steps].append(scenario)
    entries: dict[str, Line2D] = {}
    names = list(dict.fromkeys(name for name, _ in shared))
    for (name, (starts, values)), scenarios in shared.items():
        dashes = marks.THETA_DASHES[min(names.index(name), len(marks.THETA_DASHES) - 1)]
        colour = look.colour(scenarios)
        edges = np.minimum(np.array([*starts, end]), end) * clock.factor
        ax.stairs(np.array(values), edges, baseline=None, color=colour, linestyle=dashes, linewidth=1, gid="ceiling")
        text = f"{NAMED.get(name, name)} of each epoch"
        entries[name] = marks.key(text, color=marks.NEUTRAL, linestyle=dashes, linewidth=1)
    return list(entries.values())


def _steps(run: Run, scenario: str, clock: Clock) -> dict[str, Steps]:
    """The ceilings of a scenario that say what hosts get, by name."""
    rows = [row for row in run.tables.get("epochs", []) if row.get("scenario") == scenario]
    starts = tuple(dict.fromkeys(number(row, clock.start) for row in rows))
    known: dict[str, dict[float, float]] = defaultdict(dict)
    for row in rows:
        if math.isfinite(value := number(row, "host_throughput")):
            known[row.get("ceiling") or ""][number(row, clock.start)] = value
    return {name: (starts, tuple(values.get(start, math.nan) for start in starts)) for name, values in known.items()}


def _events(ax: Axes, run: Run, end: float, clock: Clock) -> None:
    """Draws what happens as a line across the axes, with its words, unless scenarios differ in it."""
    told: dict[str, dict[float, str]] = defaultdict(dict)
    for row in run.tables.get("epochs", []):
        if row.get("what") and number(row, clock.start) < end:
            told[row.get("scenario") or ""][number(row, clock.start)] = row["what"] or ""
    stories = list(told.values())
    if not stories or any(story != stories[0] for story in stories):
        return
    _named_above(ax, {start * clock.factor: words for start, words in stories[0].items()}, end * clock.factor)


def _named_above(ax: Axes, events: Mapping[float, str], end: float) -> None:
    """Draws a line at every event, which leads to its words above the axes, in as many rows as keep these apart."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    frame = ax.get_position()
    letter = LETTER * end / (frame.width * figure.get_figwidth())
    lengths = {at: letter * len(words) for at, words in events.items()}
    rightwards = _rightwards(lengths, -end * frame.x0 / frame.width, end)
    placed: list[tuple[float, float, int]] = []
    # what begins farther on is nearer to the axes, so that no line crosses words on the same side of theirs
    for at in [*sorted(rightwards, reverse=True), *sorted(set(events) - rightwards)]:
        side = 1 if at in rightwards else -1
        low, high = sorted((at, at + side * lengths[at]))
        row = 1 + max((row for start, stop, row in placed if low < stop and start < high), default=-1)
        placed.append((low, high, row))
        place: ArtistProperties = {"xy": (at, 1), "xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        ax.axvline(at, color=marks.NEUTRAL, linewidth=0.5, linestyle=DOTS, zorder=1, gid="event")
        ax.annotate(
            "", xytext=(0, ROW * (row + 1)), arrowprops={**LEADER, "color": marks.NEUTRAL, "linestyle": DOTS}, **place
        )
        ax.annotate(
            events[at], xytext=(2 * side, 2 + ROW * row), va="bottom", ha="left" if side > 0 else "right", fontsize=7,
            path_effects=marks.HALO, **place,
        )  # fmt: skip
    rows = 1 + max(row for _, _, row in placed)
    ax.set_title(ax.get_title(), pad=4 + ROW * rows)


def _rightwards(lengths: Mapping[float, float], begin: float, end: float) -> set[float]:
    """The events with words to the right of their line: all if they fit there, none if to the left, else the first."""
    if all(at + length <= end for at, length in lengths.items()):
        return set(lengths)
    if all(at - length >= begin for at, length in lengths.items()):
        return set()
    return {at for at in lengths if at < end / 2}
