# SPDX-License-Identifier: Apache-2.0
"""The interactive charts of the page, as data for its script: curves, ceilings and axes."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.files import open_text
from flitlab.models.mappings import JsonObject
from flitlab.sim.measure.columns.registry import RATE, RESULTS, TICKS, columns
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.kinds.slowdown import SLOWDOWNS
from flitlab.sim.report.figures.load_curves import FAR, zero_load
from flitlab.sim.report.figures.metrics import rows as metrics
from flitlab.sim.report.figures.metrics.figure import caption
from flitlab.sim.report.figures.metrics.series import series
from flitlab.sim.report.figures.metrics.specification import plots_of
from flitlab.sim.report.figures.panels import Layout, Panel, layout
from flitlab.sim.report.folder.curves import Curve, curves
from flitlab.sim.report.folder.frames import column, load
from flitlab.sim.report.folder.names import Names
from flitlab.sim.report.folder.run import Run

Chart = JsonObject
"""The data of a chart. name: of the static figure it replaces. x, y: label, unit ('rate', 'time' or '') and scale
('linear', 'log' or 'knee'). panel: its title among panels of the same kind, which share ``ends``. series, marks
(vertical lines), totals (dashed curves): see below. diagonal: whether y = x is drawn.
"""

DIGITS = 5
"""Significant digits of a coordinate."""

REACH = 1.3
"""The axis shows bands up to this multiple of the greatest value."""

MOST_FLOWS = 400
"""The most points of a curve of flows by rank; of more flows, evenly spaced ranks are shown."""


def charts(run: Run, folder: Path) -> list[Chart]:
    """Return all charts of a run."""
    if run.metrics:
        return _metric_charts(run)
    if run.of_programs:
        return []
    if run.of_flows:
        return list(filter(None, (_slowdown(run), _flows(run, folder))))
    return [chart for chart in _sweep(run) if chart["series"]]


def _sweep(run: Run) -> Iterable[Chart]:
    """The charts of a load sweep, each once for every panel."""
    plan = layout(run)
    look = Names(plan.curves)
    yield from _panels(plan, "latency_load", [_latency(run, panel, look) for panel in plan.panels])
    yield from _panels(plan, "accepted_load", [_accepted(panel, look) for panel in plan.panels])
    yield from _panels(plan, "percentiles", [_percentiles(panel, look) for panel in plan.panels])
    hops = "Path length over accepted traffic", "hops_mean", _axis("mean hops"), "Channels between switches."
    yield from _panels(plan, "hops_load", [_plain(panel, look, "accepted", *hops) for panel in plan.panels])
    note = "Of the host that gets the least of what it creates; below saturation about 1, less packets in flight."
    fairness = "Fairness between sources", "min_flow_ratio", _axis_of("min_flow_ratio"), note
    yield from _panels(plan, "fairness", [_plain(panel, look, "offered", *fairness) for panel in plan.panels])


def _panels(plan: Layout, name: str, by_panel: Sequence[Chart]) -> Iterable[Chart]:
    """Yield the charts of one name with shared axes, distinguished by their panels."""
    kept = [(panel, chart) for panel, chart in zip(plan.panels, by_panel, strict=True) if chart["series"]]
    ends = _ends([chart for _, chart in kept])
    for i, (panel, chart) in enumerate(kept):
        notes = (
            chart["note"],
            _sentence(plan.averaged),
            _sentence(f"{plan.left_out} are shown" if plan.left_out else ""),
        )
        several = {"panel": panel.name, "ends": ends} if len(kept) > 1 else {}
        yield chart | {"name": f"{name}.{i + 1}" if i else name, "note": " ".join(filter(None, notes))} | several


def _ends(alike: Sequence[Chart]) -> dict[str, list[float]]:
    """Least and greatest coordinates of charts with shared axes, nearby bands and ceilings included."""
    lines = [line for chart in alike for line in chart["series"]]
    ends = {}
    for axis in "xy":
        values = [value for line in lines for value in line[axis] if value is not None]
        if values:
            ends[axis] = [min(values), max(values)]
    if not ends:
        return {}
    marks = [mark["upper"] for chart in alike for mark in chart.get("marks", ())]
    near = [value for value in marks if value <= FAR * ends["x"][1]]
    ends["x"][1] = max([ends["x"][1], *near])
    if alike[0]["y"]["scale"] == "linear":
        bands = [y + half for line in lines for y, half in zip(line["y"], line["half"], strict=False) if y and half]
        ends["y"][1] = max(ends["y"][1], min(max(bands, default=0.0), REACH * ends["y"][1]))
    return ends


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _latency(run: Run, panel: Panel, look: Names) -> Chart:
    latency = curves(panel.run.rows, column("accepted"), column("latency_mean"), column("latency_ci95"))
    ceilings = _marks(panel.run, look)
    notes = {
        "Markers are probes of a search, which are not joined.": panel.searched,
        "Bands are 95 % intervals.": any(np.isfinite(curve.half).any() for curve in latency),
        "Hollow markers are past saturation.": any(curve.saturated.any() for curve in latency),
        "Vertical lines are certified ceilings.": bool(ceilings),
    }
    chart = _chart(
        "latency_load", "Latency over accepted traffic", _axis_of("accepted"), _axis_of("latency_mean", "knee"),
        _series(look, latency), marks=ceilings, note=" ".join(text for text, shown in notes.items() if shown),
    )  # fmt: skip
    zero = zero_load(run)
    how = {"linear": "linear", "log": "log"}.get(run.manifest.get("y") or "both", "knee")
    chart["y"] |= {"scale": how, "zero": zero if math.isfinite(zero) else None}
    return chart


def _accepted(panel: Panel, look: Names) -> Chart:
    totals = _totals(panel.run, look)
    accepted = curves(panel.run.rows, column("offered"), column("accepted"))
    return _chart(
        "accepted_load", "Accepted over offered traffic", _axis_of("offered"), _axis_of("accepted"),
        _series(look, [replace(curve, joined=True) for curve in accepted]),
        marks=_marks(panel.run, look), totals=totals, diagonal=True,
        note="On the grey diagonal all offered traffic is accepted."
        + " “total” bounds the accepted traffic of any routing." * bool(totals),
    )  # fmt: skip


def _percentiles(panel: Panel, look: Names) -> Chart:
    """Median and tails, distinguished by dashes; for probes only the tail."""
    tails = [("latency_p50", "median", 0), ("latency_p99", "99 %", 1), ("latency_p999", "99.9 %", 2)]
    note = "Solid: median; dashed: 99 % and 99.9 % of packets are faster."
    if panel.searched:
        tails, note = tails[1:2], "99 % of packets are faster; probes of a search."
    lines = [
        line for name, what, dash in tails
        for line in _series(look, curves(panel.run.rows, column("accepted"), column(name)), what, dash)
    ]  # fmt: skip
    axes = _axis_of("accepted"), _axis("packet latency", "time", "log")
    return _chart("percentiles", "Median and tails of the latency", *axes, lines, note=note)


def _plain(panel: Panel, look: Names, over: str, title: str, name: str, axis: Chart, note: str) -> Chart:
    """A column over accepted or offered traffic."""
    lines = _series(look, curves(panel.run.rows, column(over), column(name)))
    return _chart(name, title, _axis_of(over), axis, lines, note=note)


def _slowdown(run: Run) -> Chart | None:
    lines = [
        line for dash, (name, (what, _)) in enumerate(SLOWDOWNS.items())
        for line in _series(Names(run.scenarios), curves(run.rows, load, column(name)), what, dash)
    ]  # fmt: skip
    axes = _axis("load (fraction of NIC rate)"), _axis_of("slowdown_mean", "log")
    note = "Solid: mean over flows; dashed: 99th percentile."
    return _chart("slowdown", "Slowdown of finite flows", *axes, lines, note=note) if lines else None


def _flows(run: Run, folder: Path) -> Chart | None:
    """Throughput of flows by rank, over all loads and seeds of a scenario."""
    by_scenario: dict[str, list[float]] = {}
    file = folder / "flows.csv"
    if file.exists():
        with open_text(file) as lines:
            for row in csv.DictReader(lines):
                value = number(row, "throughput")
                if not row.get("subflow") and math.isfinite(value):
                    by_scenario.setdefault(row.get("scenario") or "", []).append(value)
    lines_of = []
    for scenario in run.scenarios:
        values = np.sort(by_scenario.get(scenario, []))[::-1]
        if len(values) > 1:
            rank = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_FLOWS)).astype(int))
            share = rank / (len(values) - 1)
            lines_of.append(_plain_line(run, scenario, share, values[rank]))
    axes = _axis("share of flows"), _axis("throughput of a flow (fraction of NIC rate)")
    note = "Flows from the fastest to the slowest; a level line is a fair network."
    return _chart("flows", "Throughput of flows by rank", *axes, lines_of, lines=True, note=note) if lines_of else None


def _metric_charts(run: Run) -> list[Chart]:
    """Curves of the plots of metrics.csv with a numeric x; the others are static figures only."""
    drawn = []
    for plot in plots_of(run)[0]:
        part = run.where(plot.where)
        if plot.x == metrics.SCENARIO or not metrics.numeric(part.metrics, plot.x):
            continue
        if metrics.is_distribution(part, plot.y[0].expression):
            continue
        entries = series(part, plot)
        single = len({entry.quantity for entry in entries}) == 1
        lines = []
        for i, entry in enumerate(entries):
            by = metrics.combined(plot.by, entry.values)
            name = ", ".join(filter(None, (by, "" if single and by else entry.quantity.name)))
            lines.append(_line(entry.curve, name, i, 1 if entry.quantity.bound else 0))
        titles = dict.fromkeys(quantity.title for quantity in plot.y if not quantity.bound)
        y = plot.y_label or next(iter(titles), plot.y[0].title)
        x = plot.x_label or metrics.axis_title(part, plot.x)
        log = plot.log or ""
        axes = _axis(x, scale="log" if "x" in log else "linear"), _axis(y, scale="log" if "y" in log else "linear")
        drawn.append(_chart(plot.name, caption(run, plot), *axes, lines, shared=False))
    return [chart for chart in drawn if any(len(line["x"]) > 1 for line in chart["series"])]


def _chart(name: str, title: str, x: Chart, y: Chart, series: Sequence[Chart], **more: object) -> Chart:
    return {"name": name, "title": title, "x": x, "y": y, "series": list(series), **more}


def _axis(label: str, unit: str = "", scale: str = "linear") -> Chart:
    return {"label": label, "unit": unit, "scale": scale}


def _axis_of(name: str, scale: str = "linear") -> Chart:
    """The axis of a column of results.csv; the script writes units that depend on the duration of a flit."""
    one = columns(*RESULTS)[name]
    unit = {TICKS: "time", RATE: "rate"}.get(one.unit, "")
    return _axis(one.label if unit else one.axis, unit, scale)


def _series(names: Names, scenario_curves: Iterable[Curve], what: str = "", dash: int | None = None) -> list[Chart]:
    """Curves of scenarios, with the same style in all charts. dash: of ``what``, else the scenario's."""
    lines = []
    for curve in scenario_curves:
        i = names.labels.index(curve.scenario)
        name = ", ".join(filter(None, (names[curve.scenario], what)))
        lines.append(_line(curve, name, i, i if dash is None else dash))
    return lines


def _line(curve: Curve, name: str, look: int, dash: int) -> Chart:
    """A curve as data.

    key: shared by the legends of all charts. hollow: points past saturation. low, high: over draws.
    """
    half = curve.half if np.isfinite(curve.half).any() else np.zeros(0)
    draws = {"low": numbers(curve.low), "high": numbers(curve.high)} if np.isfinite(curve.low).any() else {}
    more = draws | ({} if curve.joined else {"apart": True})
    return more | {
        "key": look, "name": name, "look": look, "dash": dash, "x": numbers(curve.x), "y": numbers(curve.y),
        "half": numbers(half), "hollow": np.flatnonzero(curve.saturated).tolist(), "load": numbers(curve.load),
        "seeds": curve.replicates.tolist(),
    }  # fmt: skip


def _plain_line(run: Run, scenario: str, x: Floats, y: Floats) -> Chart:
    i = run.scenarios.index(scenario)
    name = Names(run.scenarios)[scenario]
    return {"key": i, "name": name, "look": i, "dash": i, "x": numbers(x), "y": numbers(y), "half": [], "hollow": []}


def _marks(run: Run, names: Names) -> list[Chart]:
    """Ceilings that are one number. keys: their curves; none if these are all curves."""
    return [
        {
            "name": mark.name, "lower": _short(mark.lower), "upper": _short(mark.upper), "method": mark.method,
            "range": mark.range and numbers(mark.range), "keys": _belongs(run, names, mark.scenarios),
        }
        for mark in run.thetas() if math.isfinite(mark.upper)
    ]  # fmt: skip


def _totals(run: Run, names: Names) -> list[Chart]:
    return [
        {
            "name": "total", "x": numbers(total.offered), "y": numbers(total.accepted),
            "keys": _belongs(run, names, total.scenarios),
        }
        for total in run.totals()
    ]  # fmt: skip


def _belongs(run: Run, names: Names, scenarios: Sequence[str]) -> list[int]:
    return [] if len(scenarios) == len(run.scenarios) else [names.labels.index(one) for one in scenarios]


def numbers(values: Iterable[float]) -> list[float | None]:
    """Numbers with few digits, None for those that are not finite, as JSON can hold them."""
    return [_short(value) if math.isfinite(value) else None for value in map(float, values)]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
