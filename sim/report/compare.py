# SPDX-License-Identifier: Apache-2.0
"""Comparison of runs: their curves on the same axes, and a table of tested differences.

Differences are tested with Welch's t over replicates, each separately, at the 5 % level.
Source: B. L. Welch, Biometrika 34, 1947, doi:10.1093/biomet/34.1-2.28.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, variance

from scipy.special import stdtrit

from flitlab.models.mappings import JsonObject
from flitlab.sim.experiment.saturation import ceiling_of, compared
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.rows import number
from flitlab.sim.measure.saturation import BACKGROUND, is_probe, saturation
from flitlab.sim.report.figures.draw import figure_of
from flitlab.sim.report.figures.style import save
from flitlab.sim.report.folder.frames import Row, load
from flitlab.sim.report.folder.run import Run

KINDS = ("latency_load", "accepted_load", "throughput", "slowdown")
"""Figures that show several runs together."""

Ends = tuple[float | None, float]
"""Lower and upper end of a certified interval; the lower one None where unknown."""

MORE = "not tested: {} is not known to saturate, so that it may accept more"
TOO_FEW = "too few replicates: a test needs two seeds on either side"


@dataclass(frozen=True)
class Estimate:
    """The replicates of a quantity of a scenario.

    values: of each seed. resolution: error of each value, whatever the number of seeds (distance to the farther end of
    the bracket). note: why it is unknown. single_half: half-width of a single value. untested: why it is not compared.
    """

    values: tuple[float, ...]
    resolution: float = 0.0
    note: str = ""
    single_half: float = math.nan
    untested: str = ""

    @property
    def mean(self) -> float:
        """The mean, NaN without values."""
        return fmean(self.values) if self.values else math.nan

    @property
    def half(self) -> float:
        """Half-width of the 95 % interval (:func:`~flitlab.sim.measure.interval.mean_and_half`); NaN where unknown."""
        return mean_and_half(self.values, self.single_half, self.resolution)[1] if self.values else math.nan


def differ(a: Estimate, b: Estimate) -> bool | None:
    """Whether the means of two scenarios differ at the 5 % level, beyond both resolutions; None with too few seeds.

    >>> differ(Estimate((1.0, 1.1, 0.9)), Estimate((2.0, 2.1, 1.9))), differ(Estimate((1.0,)), Estimate((2.0,)))
    (True, None)
    """
    if min(len(a.values), len(b.values)) < 2:
        return None
    apart = abs(a.mean - b.mean) - a.resolution - b.resolution
    parts = [variance(one.values) / len(one.values) for one in (a, b)]
    error = math.sqrt(sum(parts))
    if error <= 1e-12 * max(abs(a.mean), abs(b.mean)):
        return apart > 1e-9 * max(abs(a.mean), abs(b.mean))
    freedom = sum(parts) ** 2 / sum(part**2 / (len(one.values) - 1) for part, one in zip(parts, (a, b), strict=True))
    return bool(apart > stdtrit(freedom, 0.975) * error)


@dataclass(frozen=True)
class Scenario:
    """A line of the table. estimates: by quantity. ceilings: by name."""

    run: str
    label: str
    name: str
    estimates: dict[str, Estimate]
    ceilings: dict[str, Ends]


@dataclass(frozen=True)
class Comparison:
    """Several runs compared.

    run: all their rows; a scenario's name contains its run. units: of the quantities. at: load at which a quantity was
    measured, where it depends on one.
    """

    run: Run
    scenarios: list[Scenario]
    units: dict[str, str]
    at: dict[str, float]

    def reference(self, scenario: Scenario) -> Scenario | None:
        """Return the scenario that another one is compared with: its equal in the first run, else the first
        scenario.
        """
        first = self.scenarios[0].run
        if scenario.run == first and len({one.run for one in self.scenarios}) > 1:
            return None
        own = [one for one in self.scenarios if one.run == first and one is not scenario]
        alike = [one for one in own if one.label == scenario.label]
        return None if scenario is self.scenarios[0] else [*alike, *own][0]

    def document(self) -> list[JsonObject]:
        """Return the comparison as JSON-able data: one mapping per scenario."""
        return [self._entry(scenario) for scenario in self.scenarios]

    def _entry(self, scenario: Scenario) -> JsonObject:
        reference = self.reference(scenario)
        others = reference.estimates if reference else {}
        return {
            "run": scenario.run, "scenario": scenario.label, "reference": reference and reference.name,
            "quantities": {
                name: self._quantity(name, one, others.get(name))
                for name, one in scenario.estimates.items()
            },
            "ceilings": {
                name: {"lower": ends[0], "upper": ends[1], "differs": _apart(ends, reference, name)}
                for name, ends in scenario.ceilings.items()
            },
        }  # fmt: skip

    def _quantity(self, name: str, one: Estimate, other: Estimate | None) -> JsonObject:
        entry: JsonObject = {
            "value": one.mean, "ci95": one.half, "unit": self.units[name], "replicates": len(one.values),
            "resolution": one.resolution, "at_load": self.at.get(name), "note": one.note,
        }  # fmt: skip
        if other is None or math.isnan(one.mean - other.mean):
            return entry | {"difference": None, "relative": None, "significant": None}
        untested = one.untested or other.untested
        significant = None if untested else differ(one, other)
        difference = one.mean - other.mean
        return entry | {
            "difference": difference, "relative": difference / other.mean if other.mean else None,
            "significant": significant,
            "note": one.note or untested or ("" if significant is not None else TOO_FEW),
        }  # fmt: skip


def _apart(ends: Ends, reference: Scenario | None, name: str) -> bool | None:
    """Whether two certified intervals are disjoint, which proves a difference; None if unknown."""
    other = reference and reference.ceilings.get(name)
    if not other or ends[0] is None or other[0] is None:
        return None
    return ends[0] > other[1] * (1 + 1e-9) or other[0] > ends[1] * (1 + 1e-9)


def compare(runs: Mapping[str, Run]) -> Comparison:
    """Return the comparison of runs. runs: by name; the first is the reference."""
    flit_ns = [run.manifest.get("flit_ns") for run in runs.values()]
    base = flit_ns[0] if all(flit_ns) else None
    parts = [
        _renamed(name, run, (run.manifest["flit_ns"] / base) if base else 1.0, len(runs) > 1)
        for name, run in runs.items()
    ]
    together = Run(
        rows=[row for part in parts for row in part.rows],
        failures=[row for part in parts for row in part.failures],
        ceilings=[ceiling for part in parts for ceiling in part.ceilings],
        manifest={
            "columns": list(dict.fromkeys(["run"] + [key for part in parts for key in part.manifest["columns"]])),
            "flit_ns": base,
            **{
                key: {label: rate for part in parts for label, rate in part.manifest[key].items()}
                for key in ("mean_rate", "background_rate", "flits_per_load")
            },
        },
    )
    at, units, scenarios = _estimates(together)
    labels = {
        _name(name, label, run, len(runs) > 1): (name, label) for name, run in runs.items() for label in run.scenarios
    }
    lines = [Scenario(*labels[name], name, scenarios[name], _ceilings(together, name)) for name in together.scenarios]
    return Comparison(together, sorted(lines, key=lambda line: list(runs).index(line.run)), units, at)


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """Draw every figure of the runs into ``folder/<kind>.{png,svg}``; return the files."""
    drawn = ((kind, figure_of(comparison.run, kind)) for kind in KINDS)
    return [path for kind, figure in drawn if figure for path in save(figure, folder / kind)]


def _name(run: str, label: str, of: Run, several: bool) -> str:
    """The name of a scenario among those of all runs, with ``key=value`` parts as in a legend."""
    if not several:
        return label
    if len(of.scenarios) == 1 and "=" not in label:
        return f"run={run}"
    case, comma, rest = label.partition(", ")
    own = label if "=" in case else f"case={case}{comma}{rest}"
    return f"run={run}, {own}"


def _renamed(name: str, run: Run, slower: float, several: bool) -> Run:
    """Return a run with renamed scenarios.

    slower: duration of its flit over that of the first run, whose ticks are drawn.
    """

    def changed(row: Row) -> Row:
        scaled = {
            key: repr(float(row[key]) * (slower if "latency" in key else 1 / slower))
            for key in row if row[key] and ("latency" in key or key in ("accepted", "offered", BACKGROUND))
        } if slower != 1 else {}  # fmt: skip
        return {**row, **scaled, "run": name, "scenario": _name(name, row.get("scenario") or "", run, several)}

    ceilings = [one.scaled(1 / slower) if one.name == "total" else one for one in run.ceilings]  # in flits per tick
    return replace(
        run,
        rows=[changed(row) for row in run.rows],
        failures=[changed(row) for row in run.failures],
        ceilings=[replace(one, scenario=_name(name, one.scenario, run, several)) for one in ceilings],
        manifest={
            "columns": list(run.manifest.get("columns", ())),
            "mean_rate": {_name(name, label, run, several): run.mean_rate(label) / slower for label in run.scenarios},
            "background_rate": {
                _name(name, label, run, several): run.background_rate(label) / slower for label in run.scenarios
            },
            "flits_per_load": {_name(name, label, run, several): run.flits_per_load(label) for label in run.scenarios},
        },
    )


def _estimates(run: Run) -> tuple[dict[str, float], dict[str, str], dict[str, dict[str, Estimate]]]:
    """Return the load of each quantity that depends on one, the units, and estimates by scenario and quantity."""
    rows: dict[str, list[Row]] = {scenario: [] for scenario in run.scenarios}
    for row in run.rows:
        rows[row["scenario"]].append(row)
    shared = set.intersection(*({load(row) for row in some} for some in rows.values() if some)) if run.rows else set()
    units = run.units()
    if run.of_flows:
        top = max(shared, default=math.nan)
        named = {"host_throughput": "host_throughput", "throughput_min": "throughput_min", "slowdown": "slowdown_mean"}
        named = {name: column for name, column in named.items() if any(row.get(column) for row in run.rows)}
        texts = {name: "" if name == "slowdown" else "of NIC rate" for name in named}
        of_flows = {
            scenario: {name: _at_load(some, top, column) for name, column in named.items()}
            for scenario, some in rows.items()
        }
        return dict.fromkeys(named, top), texts, of_flows
    low = min(shared, default=math.nan)
    texts = {"saturation": "load", "accepted_max": units.rate_name, "latency": units.time_name}
    estimates = {
        scenario: {
            "saturation": _saturation(some, run.limit(scenario)),
            "accepted_max": _most_accepted(some, run.limit(scenario), units.rate),
            "latency": _at_load(some, low, "latency_mean", units.time),
        }
        for scenario, some in rows.items()
    }
    return {"latency": low}, texts, estimates


def _saturation(rows: Sequence[Row], limit: float) -> Estimate:
    point = saturation(rows, limit)
    if point is None:
        return Estimate((), note="not measured")
    brackets = list(point.seeds.values())
    if any(math.isnan(one.value) for one in brackets):
        return Estimate((), note=f"no saturation point, {min(one.lower for one in brackets):.4g} carried")
    return Estimate(tuple(one.value for one in brackets), point.resolution)


def _most_accepted(rows: Sequence[Row], limit: float, factor: float) -> Estimate:
    """The accepted traffic at the load at which its mean is highest, compared only where no load has more.

    Loads count that have as many seeds as any. The searches of seeds have no loads in common: of these the most of each
    seed.
    """
    by_load: dict[float, list[float]] = {}
    by_seed: dict[str, list[float]] = {}
    for row in rows:
        if math.isfinite(accepted := number(row, "accepted")):
            by_load.setdefault(load(row), []).append(accepted * factor)
            by_seed.setdefault(row.get("seed") or "", []).append(accepted * factor)
    if not by_load:
        return Estimate((), note="not measured")
    most = max(map(len, by_load.values()))
    complete = [values for values in by_load.values() if len(values) == most]
    values = map(max, by_seed.values()) if any(map(is_probe, rows)) else max(complete, key=fmean)
    is_most = math.isfinite(_saturation(rows, limit).mean)
    return Estimate(tuple(values), untested="" if is_most else MORE.format(rows[0]["scenario"]))


def _at_load(rows: Sequence[Row], where: float, column: str, factor: float = 1.0) -> Estimate:
    """A column at a load."""
    if math.isnan(where):
        return Estimate((), note="no load that all scenarios have")
    values = [number(row, column) * factor for row in rows if load(row) == where]
    known = tuple(value for value in values if math.isfinite(value))
    single_half = next((number(row, "latency_ci95") * factor for row in rows if load(row) == where), math.nan)
    single_half = single_half if column == "latency_mean" else math.nan
    return Estimate(known, note="" if known else "not measured", single_half=single_half)


def _ceilings(run: Run, scenario: str) -> dict[str, Ends]:
    """Certified intervals, at least the ceiling that efficiency refers to."""
    columns = run.ceiling_columns(scenario)
    lines = [one.name for one in run.ceilings if one.scenario == scenario and one.is_line and one.known]
    of, known = ceiling_of(columns), (ceiling_of(columns, [name]) for name in dict.fromkeys([*compared(), *lines]))
    return {
        one.name: (one.lower if f"{one.name}.upper" in columns else None, one.upper)
        for one in known if one is not None and (one == of or one.name in lines)
    }  # fmt: skip
