"""Figures of programs: how fast each scenario runs them, and what ranks, collectives and channels do meanwhile."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from flitlab.sim.measure.rows import number
from flitlab.sim.report import plots
from flitlab.sim.report.frames import Row, Run
from flitlab.sim.report.metric_frames import combined
from flitlab.sim.report.plots import DASHES, HALO, NEUTRAL, OKABE_ITO, THOUSANDS

WIDTH = 0.82
"""Part of the distance between two groups of bars that the bars of one take."""

PALE = 0.45
"""How much of its colour is left where a bar is more than its bound's share."""

HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx")
"""Of the pale part of a bar, so that series are told apart in grey, too."""

MEAN = "mean"

MOST_STEPS = 24
"""Kinds of steps of which the efficiency is drawn, those that take longest."""

MOST_PANELS = 24

DOINGS = {"compute": "#0b4f80", "overhead": "#D55E00", "message": "#f2c14e"}
"""What a rank does, as columns of timeline.csv; white where it does none of these."""

NAMED = {"compute": "computes", "overhead": "sends or receives (overhead)", "message": "waits for messages"}


@dataclass(frozen=True)
class Study:
    """The scenarios of a run by program and by what else is swept."""

    run: Run

    @cached_property
    def _of(self) -> dict[str, tuple[str, str]]:
        """Scenario -> (program, the rest of its keys)."""
        swept = [name for name in self.run.manifest.get("columns", ()) if any(row.get(name) for row in self.run.rows)]
        program = [name for name in swept if name.partition(".")[0] == "application"]
        rest = [name for name in swept if name not in program]
        if not program and len(rest) > 1 and rest[0] == "case":
            program, rest = rest[:1], rest[1:]
        found = {}
        for row in self.run.rows:
            parts = (combined(names, [row.get(name) or "" for name in names]) for names in (program, rest))
            found[row.get("scenario") or ""] = tuple(parts)
        return found  # type: ignore[return-value]

    @cached_property
    def programs(self) -> list[str]:
        """In order of appearance."""
        return list(dict.fromkeys(program for program, _ in self._of.values()))

    @cached_property
    def series(self) -> list[str]:
        """What is compared, in order of appearance."""
        return list(dict.fromkeys(rest for _, rest in self._of.values()))

    def rows(self, rows: Sequence[Row], program: str, series: str) -> list[Row]:
        """Those of a scenario."""
        return [row for row in rows if self._of.get(row.get("scenario") or "") == (program, series)]

    def mean(self, column: str, program: str, series: str) -> float:
        """Over replicates; NaN where there is none."""
        values = [number(row, column) for row in self.rows(self.run.rows, program, series)]
        known = [value for value in values if math.isfinite(value)]
        return fmean(known) if known else math.nan

    def colour(self, series: str) -> str:
        """Of a series."""
        return OKABE_ITO[self.series.index(series) % len(OKABE_ITO)]


def performance(run: Run, size: tuple[float, float]) -> Figure | None:
    """How fast each program runs: relative performance, or its time; the dark part of a bar is the bound's share."""
    study = Study(run)
    if not run.rows:
        return None
    relative = any(row.get("relative_performance") for row in run.rows)
    column = "relative_performance" if relative else "total_ns"
    groups = [*study.programs, *([MEAN] if relative and len(study.programs) > 1 else [])]
    figure, ax = _figure(size, max(size[0], 0.35 + 0.11 * len(groups) * (len(study.series) + 1)))
    step = WIDTH / len(study.series)
    bounded = any(row.get("efficiency") for row in run.rows)
    for s, series in enumerate(study.series):
        values = [study.mean(column, program, series) for program in study.programs]
        shares = [study.mean("efficiency", program, series) for program in study.programs]
        if len(groups) > len(study.programs):
            values, shares = [*values, _mean(values)], [*shares, math.nan]
        scale = 1.0 if relative else 1e-6
        for g, (value, share) in enumerate(zip(values, shares, strict=True)):
            if math.isfinite(value):
                _bar(ax, g + (s - (len(study.series) - 1) / 2) * step, value * scale, share, step, study, series)
    if not ax.patches:
        return None
    if relative:
        ax.axhline(1, color=NEUTRAL, linewidth=0.7, zorder=2.6)
    if len(groups) > len(study.programs):
        ax.axvline(len(groups) - 1.5, color="#bbbbbb", linewidth=0.6)
    _groups(ax, groups)
    ax.set_ylim(0, 1.16 * max(patch.get_y() + patch.get_height() for patch in ax.patches))  # type: ignore[attr-defined]
    ax.set_ylabel(f"performance relative to\n{_reference(run, study)}" if relative else "time (ms)")
    ax.yaxis.set_major_formatter(THOUSANDS)
    hatched = {s: HATCHES[i % len(HATCHES)] for i, s in enumerate(study.series)}
    handles = [
        Patch(facecolor=study.colour(s), edgecolor="white", linewidth=0, hatch=hatched[s], label=s)
        for s in study.series if len(study.series) > 1
    ]  # fmt: skip
    if bounded:
        handles += [
            Patch(facecolor="#555555", label="dark: the bound's share of the time"),
        ]
    _finish(figure, handles)
    return figure


def _bar(ax: Axes, x: float, value: float, share: float, width: float, study: Study, series: str) -> None:
    """A bar, dark up to the share of its time that the lower bound explains; all of it where there is none."""
    colour, i = study.colour(series), study.series.index(series)
    dark = value if math.isnan(share) else value * min(share, 1.0)
    ax.bar(x, dark, 0.92 * width, color=colour, linewidth=0, gid="bar")
    style: dict[str, Any] = {"facecolor": _pale(colour), "edgecolor": colour, "linewidth": 0.4}
    style["hatch"] = HATCHES[i % len(HATCHES)]
    ax.bar(x, value - dark, 0.92 * width, bottom=dark, **style, gid="rest")
    if len(study.programs) * len(study.series) <= 30:
        ax.annotate(
            f"{value:.3g}", (x, value), xytext=(0, 1.5), textcoords="offset points", ha="center", va="bottom",
            rotation=90, fontsize=5.5, path_effects=HALO, gid="value",
        )  # fmt: skip


def _pale(colour: str) -> tuple[float, ...]:
    return tuple(1 - PALE * (1 - part) for part in to_rgb(colour))


def _reference(run: Run, study: Study) -> str:
    """What the series have in common to which others are compared: those with 1 everywhere."""
    found = []
    for series in study.series:
        values = [study.mean("relative_performance", program, series) for program in study.programs]
        if all(math.isnan(value) or abs(value - 1) < 1e-12 for value in values):
            found.append(series.split(", "))
    return ", ".join(part for part in found[0] if all(part in other for other in found)) if found else "the reference"


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return fmean(known) if known else math.nan


def _groups(ax: Axes, names: Sequence[str]) -> None:
    askew = max(map(len, names)) * len(names) > 60
    ax.set_xticks(range(len(names)), names, rotation=30 if askew else 0, ha="right" if askew else "center")
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.55, len(names) - 0.45)
    ax.grid(visible=False, axis="x")


def steps(run: Run, size: tuple[float, float]) -> Figure | None:
    """How near steps come to the lower bounds on their times: those that take longest, by program."""
    study, rows = Study(run), run.tables.get("steps", [])
    total: dict[tuple[str, str], float] = {}
    for row in rows:
        program = study._of.get(row.get("scenario") or "", ("", ""))[0]
        took = number(row, "time_ns") * number(row, "occurrences")
        if number(row, "messages") > 0 and math.isfinite(number(row, "efficiency")):
            total[program, row["label"]] = max(total.get((program, row["label"]), 0.0), took)
    longest = sorted(total, key=lambda key: -total[key])[:MOST_STEPS]
    chosen = [key for key in total if key in longest]
    if not chosen:
        return None
    figure, ax = _figure((size[0], 0.5 + 0.19 * max(len(chosen), 3)))
    names = [f"{program}: {label}" if program else label for program, label in (_plain(*key) for key in chosen)]
    step = 0.7 / len(study.series)
    for s, series in enumerate(study.series):
        for i, (program, label) in enumerate(chosen):
            mine = [row for row in study.rows(rows, program, series) if row["label"] == label]
            value = _mean([number(row, "efficiency") for row in mine])
            if math.isfinite(value):
                marker = plots.MARKERS[s % len(plots.MARKERS)]
                style: dict[str, Any] = {"color": study.colour(series), "marker": marker}
                place = i + (s - (len(study.series) - 1) / 2) * step
                ax.plot(100 * value, place, linestyle="none", **style, gid="curve")
    ax.set_yticks(range(len(names)), [_short(name) for name in names], fontsize=6)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, 104)
    ax.set_xlabel("bound / time (%)")
    handles = [
        plots.key(series, color=study.colour(series), marker=plots.MARKERS[s % len(plots.MARKERS)])
        for s, series in enumerate(study.series) if len(study.series) > 1
    ]  # fmt: skip
    _finish(figure, handles)
    return figure


def _plain(program: str, label: str) -> tuple[str, str]:
    """Without the number of ranks, which most steps of a program share."""
    return program, re.sub(r"(, )?\d+ ranks\)", ")", label).replace(" ()", "")


def _short(text: str, most: int = 36) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def utilisation(run: Run, size: tuple[float, float]) -> Figure | None:
    """Use of the channels between switches over time: mean of all (thick) and the busiest (thin), by program."""
    study, rows = Study(run), run.tables.get("utilisation", [])
    programs = [p for p in study.programs if any(study.rows(rows, p, s) for s in study.series)][:MOST_PANELS]
    if not programs:
        return None
    figure, panels = _panels(programs, size)
    for ax, program in zip(panels, programs, strict=True):
        ends = [number(row, "to_ns") for s in study.series for row in study.rows(rows, program, s)]
        unit, factor = _unit(max(ends))
        for s, series in enumerate(study.series):
            mine = _first_seed(study.rows(rows, program, series))
            if not mine:
                continue
            edges = np.array([number(mine[0], "from_ns"), *(number(row, "to_ns") for row in mine)]) * factor
            for column, width in (("max", 0.5), ("mean", 1.2)):
                values = np.array([100 * number(row, column) for row in mine])
                dashes = DASHES[s % len(DASHES)]
                style: dict[str, Any] = {"color": study.colour(series), "linestyle": dashes, "linewidth": width}
                ax.plot(edges, np.append(values, values[-1]), drawstyle="steps-post", **style, gid="curve")
        ax.set_xlim(0, max(ends) * factor)
        ax.set_ylim(0, 104)
        ax.set_title(f"{program} ({unit})".strip() if program else f"time ({unit})", fontsize=7, pad=2)
        ax.xaxis.set_major_locator(MaxNLocator(4))
    figure.supylabel("channel use (%)", fontsize=7.5)
    handles = [
        plots.key(series, color=study.colour(series), linestyle=DASHES[s % len(DASHES)], linewidth=1.2)
        for s, series in enumerate(study.series) if len(study.series) > 1
    ]  # fmt: skip
    handles += [plots.key("mean of all channels", linestyle="-", linewidth=1.2)]
    handles += [plots.key("busiest channel of the moment", linestyle="-", linewidth=0.5)]
    _finish(figure, handles)
    return figure


def timeline(run: Run, size: tuple[float, float]) -> Figure | None:
    """What some of the ranks do over time: compute, spend overhead on messages, wait for messages, or nothing."""
    study, rows = Study(run), run.tables.get("timeline", [])
    wanted = [(p, s) for p in study.programs for s in study.series if study.rows(rows, p, s)][:MOST_PANELS]
    if not wanted:
        return None
    figure, panels = _panels(wanted, size, 0.75)
    for ax, (program, series) in zip(panels, wanted, strict=True):
        mine = _first_seed(study.rows(rows, program, series))
        ranks = list(dict.fromkeys(row["rank"] for row in mine))
        picture = np.ones((len(ranks), len(mine) // len(ranks), 3))
        for name, colour in DOINGS.items():
            part = np.array([number(row, name) for row in mine]).reshape(picture.shape[:2])
            picture -= part[:, :, None] * (1 - np.array(to_rgb(colour)))
        unit, factor = _unit(number(mine[-1], "to_ns"))
        extent = (0, number(mine[-1], "to_ns") * factor, len(ranks) - 0.5, -0.5)
        ax.imshow(np.clip(picture, 0, 1), extent=extent, aspect="auto", interpolation="nearest")
        ax.grid(visible=False)
        shown = [0, len(ranks) - 1] if len(ranks) > 1 else [0]
        ax.set_yticks(shown, [ranks[i] for i in shown], fontsize=6)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        title = ", ".join(filter(None, (program, series if len(study.series) > 1 else "")))
        ax.set_title(f"{_short(title, 27)} ({unit})".strip(), fontsize=6.5, pad=2)
    figure.supylabel("rank", fontsize=7.5)
    used = [name for name in DOINGS if any(number(row, name) > 0 for row in rows)]
    handles: list[Any] = [Patch(facecolor=DOINGS[name], label=NAMED[name]) for name in used]
    handles.append(Patch(facecolor="white", edgecolor="#999999", linewidth=0.5, label="nothing"))
    _finish(figure, handles)
    return figure


def _first_seed(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.get("seed") == rows[0].get("seed")]


def _unit(ns: float) -> tuple[str, float]:
    """The unit in which a time is a number of few digits, and its factor."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 2 * size:
            return unit, 1 / size
    return "ns", 1.0


def _figure(size: tuple[float, float], width: float | None = None) -> tuple[Figure, Axes]:
    figure = Figure(layout="constrained", figsize=(width or size[0], size[1]))
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _panels(items: Sequence[Any], size: tuple[float, float], height: float = 0.95) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each item."""
    columns = min(len(items), 2 if size[0] < 5 else 4)
    rows = -(-len(items) // columns)
    figure = Figure(layout="constrained", figsize=(size[0], max(height * rows, 1.6 if rows == 1 else 0.0)))
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(len(items))]


def _finish(figure: Figure, handles: Sequence[Any]) -> None:
    renderer = RendererAgg(figure.bbox.width, figure.bbox.height, figure.dpi)
    plots.legend_below(figure, handles, "", renderer)


PROGRAM_KINDS: dict[str, Callable[[Run, tuple[float, float]], Figure | None]] = {
    kind.__name__: kind for kind in (performance, steps, utilisation, timeline)
}
"""Figures of programs, by name."""
