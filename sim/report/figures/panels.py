# SPDX-License-Identifier: Apache-2.0
"""Panels of a figure: which scenarios share axes, which have panels of their own, which are averaged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from flitlab.sim.experiment.store import cell
from flitlab.sim.measure.rows import flag
from flitlab.sim.report.figures.metrics.rows import combined, is_draw
from flitlab.sim.report.folder.ceilings import Ceiling, averaged
from flitlab.sim.report.folder.curves import DRAW, PROBE
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run

MOST_CURVES = 12
"""The most curves on one pair of axes; beyond, further swept keys make panels."""

MOST_PANELS = 24
"""The most panels of a figure; its key says what is left out."""

BESIDE = ("topology", "traffic")
"""First parts of swept keys that make panels."""

LAST = "routing"
"""First part of the keys that make panels last: colours distinguish routings."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a run whose scenarios have the names of their curves, and its title.

    of: curve -> its scenarios, several if these are draws.
    """

    name: str
    run: Run
    of: Mapping[str, Sequence[str]]

    @property
    def searched(self) -> bool:
        """Whether its points are probes of a search for saturation."""
        return any(flag(row, PROBE) for row in self.run.rows)


@dataclass(frozen=True)
class Layout:
    """The panels of the figures of a run.

    curves: labels of all curves, in order of appearance, which fix their styles. across: panels per row that align
    alike ones; 0 for any. draws: the most draws of topology or traffic behind a curve. left_out: what no panel shows,
    in words.
    """

    panels: Sequence[Panel]
    curves: Sequence[str]
    across: int = 0
    draws: int = 1
    left_out: str = ""

    @property
    def averaged(self) -> str:
        """What curves are means of, in words; '' where they are of one network each."""
        return f"means over {self.draws} draws" if self.draws > 1 else ""


@dataclass(frozen=True)
class _Place:
    """The panel, curve and draw of a scenario."""

    panel: str
    curve: str
    draw: str


def layout(run: Run, beside: bool = True) -> Layout:
    """Return the panels of a run: sweeps over topologies or traffic make panels, all other keys make curves.

    Scenarios that differ only in the seed of topology or traffic are draws; a curve is their mean. Beyond
    :data:`MOST_CURVES` curves, further keys make panels. beside: whether there may be panels.
    """
    keys = _keys(run)
    swept = [key for key in run.manifest.get("columns", ()) if len({keys[s].get(key) for s in keys}) > 1]
    if len({tuple(keys[s].get(key) for key in swept) for s in keys}) < len(keys):
        swept = []  # what is swept does not tell the scenarios apart, so their labels do
    draws = [key for key in swept if is_draw(key)]
    rest = [key for key in swept if key not in draws]
    apart = [key for key in rest if beside and key.partition(".")[0] in BESIDE]
    while beside and (more := _next_panel_key(keys, rest, apart)):
        apart = [key for key in rest if key in apart or key == more]
    within = [key for key in rest if key not in apart]
    places = {
        scenario: _Place(
            combined(apart, _values(keys[scenario], apart)),
            _label(run, scenario, keys[scenario], within) if apart or draws else scenario,
            combined(draws, _values(keys[scenario], draws)),
        )
        for scenario in keys
    }
    across = len({keys[s].get(apart[-1]) for s in keys}) if len(apart) > 1 else 0
    return _laid_out(run, places, across, beside)


def _laid_out(run: Run, places: dict[str, _Place], across: int, beside: bool) -> Layout:
    curves = list(dict.fromkeys(place.curve for place in places.values()))
    panels = []
    for name in dict.fromkeys(place.panel for place in places.values()):
        here = {scenario: place for scenario, place in places.items() if place.panel == name}
        own = list(dict.fromkeys(place.curve for place in here.values()))
        parts = [own[i : i + MOST_CURVES] for i in range(0, len(own), MOST_CURVES)] if beside else [own]
        for i, part in enumerate(parts):
            title = f"{name} {i + 1}/{len(parts)}".strip() if len(parts) > 1 else name
            some = {scenario: place for scenario, place in here.items() if place.curve in part}
            panels.append(_panel(title, run, some))
            across = 0 if len(parts) > 1 else across
    rest = f"the first {MOST_PANELS} of {len(panels)} panels" if len(panels) > MOST_PANELS else ""
    alike = [(place.panel, place.curve) for place in places.values()]
    draws = max((alike.count(one) for one in set(alike)), default=1)
    return Layout(panels[:MOST_PANELS], curves, across, draws, rest)


def _keys(run: Run) -> dict[str, dict[str, str]]:
    """Scenario -> its value of every swept key that it has, as tables write it; in the order of the configuration."""
    named = {one["label"]: one.get("keys", {}) for one in run.manifest.get("scenarios", ()) if "label" in one}
    order = {label: i for i, label in enumerate(named)}
    rows: dict[str, Row] = {}
    for row in run.rows:
        rows.setdefault(row.get("scenario") or "", row)
    return {
        scenario: {
            key: (rows.get(scenario, {}).get(key) or cell(named.get(scenario, {}).get(key)) or "")
            for key in run.manifest.get("columns", ())
        }
        for scenario in sorted(run.scenarios, key=lambda one: order.get(one, len(order)))
    }  # fmt: skip


def _next_panel_key(keys: dict[str, dict[str, str]], rest: Sequence[str], apart: Sequence[str]) -> str | None:
    """The key that makes panels next, if a panel has too many curves; None otherwise."""
    within = [key for key in rest if key not in apart]
    curves_by_panel: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for own in keys.values():
        curves_by_panel.setdefault(_values(own, apart), set()).add(_values(own, within))
    if len(within) < 2 or max(map(len, curves_by_panel.values()), default=0) <= MOST_CURVES:
        return None
    return next((key for key in within if key.partition(".")[0] != LAST), within[0])


def _values(own: dict[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(own.get(key, "") for key in keys)


def _label(run: Run, scenario: str, own: dict[str, str], within: Sequence[str]) -> str:
    """The label of a curve, ``key=value`` parts as scenarios have them; its routing where no key differs."""
    parts = [f"{key}={own[key]}" for key in within if own.get(key)]
    if parts:
        return ", ".join(parts)
    known = [one for one in run.manifest.get("scenarios", ()) if one.get("label") == scenario]
    kind = known[0].get("routing", {}).get("kind") if known else None
    return f"routing={kind}" if kind and not within else str(run.manifest.get("name") or "all")


def _panel(name: str, run: Run, places: dict[str, _Place]) -> Panel:
    """Scenarios by the names of their curves, with ceilings and rates averaged over draws."""
    searched = {one.get("label") for one in run.manifest.get("scenarios", ()) if one.get("searched")}

    def renamed(row: Row) -> Row:
        scenario = row.get("scenario") or ""
        place = places[scenario]
        marks = {DRAW: place.draw} | ({PROBE: "True"} if scenario in searched else {})
        return {**row, "scenario": place.curve, **marks}

    scenarios: dict[str, list[str]] = {}
    for scenario, place in places.items():
        scenarios.setdefault(place.curve, []).append(scenario)
    manifest = run.manifest | {
        "mean_rate": {curve: fmean(map(run.mean_rate, some)) for curve, some in scenarios.items()},
        "background_rate": {curve: fmean(map(run.background_rate, some)) for curve, some in scenarios.items()},
        "flits_per_load": {curve: fmean(map(run.flits_per_load, some)) for curve, some in scenarios.items()},
    }
    part = replace(
        run,
        rows=[renamed(row) for row in run.rows if (row.get("scenario") or "") in places],
        ceilings=_ceilings(run, {scenario: place.curve for scenario, place in places.items()}),
        manifest=manifest,
    )
    return Panel(name, part, scenarios)


def _ceilings(run: Run, curve_of: dict[str, str]) -> list[Ceiling]:
    """The ceilings of some scenarios, those of draws averaged in units of traffic."""
    alike: dict[tuple[str, str, float | None], list[Ceiling]] = {}
    for one in run.ceilings:
        if one.scenario in curve_of:
            alike.setdefault((curve_of[one.scenario], one.name, one.row["load"]), []).append(one)
    return [
        averaged(some, curve, [run.mean_rate(one.scenario) for one in some]) for (curve, _, _), some in alike.items()
    ]  # fmt: skip
