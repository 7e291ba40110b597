# SPDX-License-Identifier: Apache-2.0
"""The figure ``transports``."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flitlab.sim.measure.interval import mean_known
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.programs import figure_of, finish
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.names import Longest, shown_names
from flitlab.sim.report.folder.run import Run

LINE, MARGIN = 0.3, 0.6
"""Inches of a bar, and of the axis of x."""

HALF = 0.33
"""Half of the width of a bar, where 1 is the distance of two."""

MOST_BARS = 40
"""Scenarios and loads of a figure; what is left out is said in its key."""

READABLE = 0.1
"""The least part of a bar that has room for its number."""


@figure("transports", "flows", place=6)
def transports(run: Run, size: tuple[float, float]) -> Figure | None:
    """What part of all received bytes flows of each of several transports got, beside what equal ones would have got.

    A bar is a scenario at a load, the mean over its seeds, and its parts are the transports that share the network. The
    ticks beside it stand where its parts would end if every flow got as much as any other; so a transport whose part is
    wider than the ticks allow takes from the others. Where no flow ended before the window did, these are
    shares of the bottlenecks; otherwise also of what there was to send.
    """
    bars = _bars(run.tables.get("transports", []))
    if not bars:
        return None
    names = list(dict.fromkeys(name for rows in bars.values() for name in _names(rows)))
    shown = dict(list(bars.items())[:MOST_BARS])
    drawn, ax = figure_of((size[0], MARGIN + LINE * len(shown)))
    for place, rows in enumerate(shown.values()):
        _draw(ax, place, rows, names)
    ax.set_yticks(range(len(shown)), shown_names([_label(run, *bar) for bar in shown], Longest.ROW))
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    ax.set_xlabel("share of received bytes")
    entries = [marks.key(name, color=_colour(names, name), marker="s", markersize=7) for name in names]
    left_out = f"the first {MOST_BARS} of {len(bars)} bars" if len(shown) < len(bars) else ""
    ticks = marks.key("if all flows got the same", color="black", marker="|", markersize=8, markeredgewidth=1.5)
    finish(drawn, [*entries, ticks], left_out)
    return drawn


def _bars(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by scenario and load, in order of appearance."""
    bars: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        bars.setdefault((row.get("scenario") or "", row.get("load") or ""), []).append(row)
    return bars


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.get("transport") or "" for row in rows))


def _label(run: Run, scenario: str, load: str) -> str:
    """What a bar is called: its scenario where there are several, and its load where that one has several."""
    loads = {of for label, of in _bars(run.tables["transports"]) if label == scenario}
    parts = [scenario] * (len(run.scenarios) > 1) + [f"load {load}"] * (len(loads) > 1)
    return ", ".join(parts)


def _colour(names: Sequence[str], name: str) -> str:
    return marks.colour(names.index(name))


def _draw(ax: Axes, place: int, rows: Sequence[Row], names: Sequence[str]) -> None:
    """A bar of parts with their numbers, and where they would end if all flows got the same."""
    flows = {name: _mean(rows, name, "flows") for name in _names(rows)}
    left = fair = 0.0
    for name in flows:
        share = _mean(rows, name, "share")
        if not math.isfinite(share):
            continue
        ax.barh(
            place, share, 2 * HALF, left=left, color=_colour(names, name), edgecolor="white", linewidth=0.6, gid="share"
        )
        if share >= READABLE:
            ax.text(left + share / 2, place, f"{share:.0%}", ha="center", va="center", fontsize=7, color="white")
        left, fair = left + share, fair + flows[name] / sum(flows.values())
        if fair < 1 - 1e-9:
            ends = [place - 0.5, place - HALF, math.nan, place + HALF, place + 0.5]  # beside numbers, not over them
            ax.plot([fair] * len(ends), ends, color="black", linewidth=1.5, gid="fair")


def _mean(rows: Sequence[Row], name: str, column: str) -> float:
    """The mean of a column over the seeds of a transport; NaN where it has no number."""
    return mean_known(number(row, column) for row in rows if row.get("transport") == name)
