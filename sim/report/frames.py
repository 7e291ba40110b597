"""Reads a run folder and groups its rows: replicates into curves, equal ceilings into one mark."""

import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np

from flitlab.fluid.ceiling import THETA_UNITS
from flitlab.fluid.kinds.spec import kind_of
from flitlab.sim.experiment.folders import altered, read_manifest, refuse_pipes
from flitlab.sim.experiment.saturation import limits
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.rows import flag, number
from flitlab.sim.report import stored

Row = dict[str, str]
Key = Callable[[Row], float]

PROGRAM_TABLES = ("steps", "utilisation", "timeline")
"""Tables of the experiment ``application`` that figures are made of."""

SAME = 1e-9
"""Two ceilings closer than this (relative) are the same ceiling."""


def _of_programs(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("experiment") == "application"


def failed(row: Row) -> bool:
    """Whether the point was tried and gave no result."""
    return (row.get("status") or "").lower().startswith(("fail", "error"))


def saturated(row: Row) -> bool:
    """Whether the network did not carry what was offered."""
    return flag(row, "saturated") or flag(row, "deadlocked")


def load(row: Row) -> float:
    """The load of a row; what was offered where the column is absent."""
    value = number(row, "load")
    return value if math.isfinite(value) else number(row, "offered")


@dataclass(frozen=True)
class Units:
    """What to print: ticks, or nanoseconds when the duration of a flit is known."""

    flit_ns: float | None = None

    @property
    def time(self) -> float:
        """Factor from ticks to the printed unit of time."""
        return self.flit_ns or 1.0

    @property
    def rate(self) -> float:
        """Factor from flits/tick/host to the printed unit of traffic."""
        return 1.0 / self.time

    @property
    def time_name(self) -> str:
        """Unit of time, for an axis label."""
        return "ns" if self.flit_ns else "ticks"

    @property
    def rate_name(self) -> str:
        """Unit of traffic, for an axis label."""
        return "flit/ns/host" if self.flit_ns else "flit/tick/host"


@dataclass(frozen=True)
class Ceiling:
    """One row of ceilings.csv, as a certified interval; both ends NaN when it was omitted.

    load: NaN except for ceilings that depend on it (``total``). given: which ends the row has; where one is missing,
    both are the other.
    """

    scenario: str
    name: str
    load: float
    lower: float
    upper: float
    unit: str
    method: str
    note: str
    given: Literal["both", "lower", "upper"] = "both"

    @classmethod
    def from_row(cls, row: Row) -> "Ceiling":
        """Reads a row; an end that is missing is taken from the other."""
        lower, upper = number(row, "lower"), number(row, "upper")
        text = {column: row.get(column) or "" for column in ("unit", "method", "note")}
        return cls(
            scenario=row.get("scenario") or "",
            name=row.get("ceiling") or "",
            load=number(row, "load"),
            lower=upper if math.isnan(lower) else lower,
            upper=lower if math.isnan(upper) else upper,
            given="both" if math.isnan(lower) == math.isnan(upper) else "upper" if math.isnan(lower) else "lower",
            **text,
        )

    @property
    def known(self) -> bool:
        """Whether there is a value to draw."""
        return math.isfinite(self.upper) and math.isfinite(self.lower)

    @property
    def is_line(self) -> bool:
        """Whether figures over loads show it as a line: one number, in the unit of the loads, that a kind is about."""
        single = ":" not in self.name and math.isnan(self.load) and self.unit in (*THETA_UNITS, "")
        return single and kind_of(self.name).line

    def scaled(self, factor: float, beside: float = 0.0) -> "Ceiling":
        """The same ceiling in another unit, with what is there ``beside`` it."""
        return replace(self, lower=self.lower * factor + beside, upper=self.upper * factor + beside)


@dataclass(frozen=True)
class Run:
    """A run folder: usable rows, failed ones, ceilings, manifest, usable rows of metrics.csv, published values.

    tables: further tables of the experiment ``application``, by name. saturation: rows of saturation.csv. altered:
    names of files that are not as the run wrote them.
    """

    rows: list[Row]
    failures: list[Row]
    ceilings: list[Ceiling]
    manifest: dict[str, Any]
    metrics: list[Row] = field(default_factory=list)
    published: list[Row] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    saturation: list[Row] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> "Run":
        """Reads the tables and manifest.json; what is absent counts as empty.

        Of a run that is under way, or was killed, the points and ceilings it has are read. Raises ``ValueError`` for
        a manifest that no run has written and for what is no table, ``OSError`` for what cannot be read.
        """
        refuse_pipes(folder)
        rows, metrics = read_csv(folder / "results.csv"), read_csv(folder / "metrics.csv")
        ceilings = read_csv(folder / "ceilings.csv")
        manifest = read_manifest(folder)
        _refuse_loads(rows, folder / "results.csv")
        if manifest.get("status") == "running":
            rows, ceilings = stored.results(folder, manifest), stored.ceilings(folder, manifest)
        return cls(
            rows=[row for row in rows if not failed(row)],
            failures=[row for row in rows + metrics if failed(row)],
            ceilings=[Ceiling.from_row(row) for row in ceilings],
            manifest=manifest,
            metrics=[row for row in metrics if not failed(row)],
            published=read_csv(folder / "published.csv"),
            saturation=read_csv(folder / "saturation.csv"),
            tables={name: read_csv(folder / f"{name}.csv") for name in PROGRAM_TABLES if _of_programs(manifest)},
            altered=altered(folder, manifest),
        )

    @cached_property
    def scenarios(self) -> list[str]:
        """Labels of all scenarios, in order of appearance."""
        seen = [row.get("scenario") or "" for row in self.rows + self.metrics]
        return list(dict.fromkeys([*seen, *(ceiling.scenario for ceiling in self.ceilings)]))

    @property
    def of_programs(self) -> bool:
        """Whether its results are of programs."""
        return _of_programs(self.manifest)

    @property
    def of_flows(self) -> bool:
        """Whether its results are of the datagram discipline."""
        return any("host_throughput" in row for row in self.rows)

    @property
    def columns(self) -> list[str]:
        """Columns of metrics.csv."""
        return list(self.metrics[0]) if self.metrics else []

    @cached_property
    def swept(self) -> list[str]:
        """Columns of metrics.csv for the case label and the swept keys."""
        given = self.manifest.get("columns")
        if given is None and "kind" in self.columns:
            given = self.columns[1 : self.columns.index("kind")]
        return [key for key in given or [] if key in self.columns]

    def where(self, columns: Mapping[str, Sequence[str]]) -> "Run":
        """The same run with those rows of metrics.csv only that have one of the given texts in each column."""
        kept = [row for row in self.metrics if all(row.get(key) in texts for key, texts in columns.items())]
        return replace(self, metrics=kept)

    def units(self, flit_ns: float | None = None) -> Units:
        """Units of the figures: from the argument, the manifest or the columns, else ticks."""
        return Units(flit_ns or self.manifest.get("flit_ns") or self._flit_ns_of_columns())

    def _flit_ns_of_columns(self) -> float | None:
        for row in self.rows:
            ratio = number(row, "accepted") / (number(row, "accepted_flit_per_ns_per_host") or math.nan)
            if math.isfinite(ratio) and ratio > 0:
                return ratio
        return None

    def mean_rate(self, scenario: str) -> float:
        """Mean row sum of the traffic matrix: flits/tick/host offered on average at load 1.

        The manifest holds one number for all scenarios, or a number by scenario.
        """
        given = self.manifest.get("mean_rate", 1.0)
        return float(given.get(scenario, 1.0) if isinstance(given, dict) else given)

    def background_rate(self, scenario: str) -> float:
        """What is offered besides and does not grow with the load, in flits/tick/host; mostly 0."""
        return float(self.manifest.get("background_rate", {}).get(scenario, 0.0))

    def limit(self, scenario: str) -> float:
        """The load from which on a scenario cannot carry what is offered, as its ceilings say; inf if none does."""
        names = limits()
        known = (one.upper for one in self.ceilings if one.scenario == scenario and one.name in names and one.known)
        return min(known, default=math.inf)

    def thetas(self) -> "list[Mark]":
        """Ceilings that are lines, in accepted units (flits/tick/host), by falling rank; equal ones are one mark."""
        marks: dict[str, list[Mark]] = {}
        for one in self.ceilings:
            if one.known and one.is_line:
                scaled = one.scaled(self.mean_rate(one.scenario), self.background_rate(one.scenario))
                _join(marks.setdefault(one.name, []), scaled)
        return [mark for name in sorted(marks, key=lambda name: -kind_of(name).rank) for mark in marks[name]]

    def totals(self) -> "list[Total]":
        """The ``total`` ceiling as curves over offered traffic; equal ones are one curve."""
        totals: list[Total] = []
        for scenario in self.scenarios:
            rate, beside = self.mean_rate(scenario), self.background_rate(scenario)
            points = sorted(
                (c.load * rate + beside, c.upper if "flit" in c.unit else c.upper * rate)
                for c in self.ceilings
                if (c.scenario, c.name) == (scenario, "total") and c.known and math.isfinite(c.load)
            )
            if points:
                _join_total(totals, Total((scenario,), *np.array(points).T))
        return totals


@dataclass(frozen=True)
class Mark:
    """A ceiling that one or several scenarios share, in flits/tick/host of accepted traffic."""

    name: str
    scenarios: tuple[str, ...]
    lower: float
    upper: float
    method: str


@dataclass(frozen=True, eq=False)
class Total:
    """Largest total accepted traffic over offered traffic (flits/tick/host), for some scenarios."""

    scenarios: tuple[str, ...]
    offered: np.ndarray
    accepted: np.ndarray


def _same(mark: Mark, ceiling: Ceiling) -> bool:
    near = SAME * max(1.0, abs(mark.upper))
    if abs(mark.lower - ceiling.lower) <= near and abs(mark.upper - ceiling.upper) <= near:
        return True
    overlap = ceiling.lower <= mark.upper and mark.lower <= ceiling.upper
    return overlap and mark.method == ceiling.method


def _join(marks: list[Mark], ceiling: Ceiling) -> None:
    """Adds a ceiling to the mark it equals (which widens to hold both), or as a new mark."""
    for i, mark in enumerate(marks):
        if _same(mark, ceiling):
            scenarios = tuple(dict.fromkeys((*mark.scenarios, ceiling.scenario)))
            lower, upper = min(mark.lower, ceiling.lower), max(mark.upper, ceiling.upper)
            marks[i] = replace(mark, scenarios=scenarios, lower=lower, upper=upper)
            return
    marks.append(Mark(ceiling.name, (ceiling.scenario,), ceiling.lower, ceiling.upper, ceiling.method))


def _join_total(totals: list[Total], new: Total) -> None:
    for i, total in enumerate(totals):
        equal = len(total.offered) == len(new.offered) and np.allclose(
            (total.offered, total.accepted), (new.offered, new.accepted), rtol=SAME, atol=SAME
        )
        if equal:
            totals[i] = replace(total, scenarios=total.scenarios + new.scenarios)
            return
    totals.append(new)


def _refuse_loads(rows: Sequence[Row], path: Path) -> None:
    """Raises ``ValueError`` where the load of a row, which all else follows from, is none."""
    for i, row in enumerate(rows):
        if row.get("load") and math.isnan(number(row, "load")):
            raise ValueError(f"{path}: row {i + 1}: load = {row['load']}: must be a number")


def read_csv(path: Path) -> list[Row]:
    """All rows of a CSV file with a header line; none if there is no such file. Raises ``ValueError``, ``OSError``."""
    if not path.exists():
        return []
    csv.field_size_limit(2**31 - 1)  # a cell may hold a distribution over all channels
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: is damaged, or no table of a run: {error}") from None


@dataclass(frozen=True, eq=False)
class Curve:
    """Means over replicates, by increasing load.

    load, x, y: float64 [points]. half: half-width of the 95 % interval of y, NaN where unknown.
    saturated: bool [points], whether any replicate was. replicates: int64 [points].
    """

    scenario: str
    load: np.ndarray
    x: np.ndarray
    y: np.ndarray
    half: np.ndarray
    saturated: np.ndarray
    replicates: np.ndarray


def curves(rows: Iterable[Row], x: Key, y: Key, half: Key | None = None) -> list[Curve]:
    """One curve per scenario in order of appearance; rows without a finite x and y are left out.

    half: the half-width that a single replicate states for itself.
    """
    groups: dict[str, dict[float, list[Row]]] = {}
    for row in rows:
        if math.isfinite(load(row)) and math.isfinite(x(row)) and math.isfinite(y(row)):
            groups.setdefault(row.get("scenario") or "", {}).setdefault(load(row), []).append(row)
    return [_curve(scenario, points, x, y, half) for scenario, points in groups.items()]


def _curve(scenario: str, points: dict[float, list[Row]], x: Key, y: Key, half: Key | None) -> Curve:
    loads = sorted(points)
    replicates = [points[value] for value in loads]
    alone = half or (lambda row: math.nan)
    means, halves = np.array([mean_and_half([y(r) for r in rows], alone(rows[0])) for rows in replicates]).T
    return Curve(
        scenario=scenario,
        load=np.array(loads),
        x=np.array([fmean(map(x, rows)) for rows in replicates]),
        y=means,
        half=halves,
        saturated=np.array([any(map(saturated, rows)) for rows in replicates]),
        replicates=np.array([len(rows) for rows in replicates]),
    )


class Names:
    """Short names of scenarios for a legend: what all labels share is left out.

    >>> names = Names(["routing=minimal, vcs=4", "routing=deflection, vcs=4"])
    >>> names.title, names["routing=minimal, vcs=4"]
    ('routing', 'minimal')
    """

    def __init__(self, labels: Sequence[str]):
        self.labels = tuple(labels)
        self._parts = {label: _parts(label) for label in labels}
        shared = set.intersection(*map(set, self._parts.values())) if len(labels) > 1 else set()
        self._own = {label: [p for p in parts if p not in shared] for label, parts in self._parts.items()}
        keys = {part.partition("=")[0] for parts in self._own.values() for part in parts}
        one_key = len(keys) == 1 and all("=" in p for parts in self._own.values() for p in parts)
        self.title = next(iter(keys)) if one_key else ""

    def __getitem__(self, label: str) -> str:
        return ", ".join(map(self._plain, self._own[label])) or label

    def _plain(self, part: str) -> str:
        """The value alone where it speaks for itself: under a title, or if it is a word."""
        key, _, value = part.partition("=")
        if not re.fullmatch(r"[\w.]+", key):
            return part
        return value if self.title or re.match(r"(?!(?:true|false|none|null)$)[a-z]", value, re.I) else part


def _parts(label: str) -> list[str]:
    """The ``key=value`` parts of a label (keys without their path), or the label itself."""
    parts = re.split(r"[,;\s]+(?=[\w.]+=)", label)
    if not all(re.match(r"[\w.]+=", part) for part in parts):
        return [label]
    return [re.sub(r"^[\w.]*\.", "", part) for part in parts]
