# SPDX-License-Identifier: Apache-2.0
"""A run folder, read as a whole."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from flitlab.fluid.kinds.spec import kind_of
from flitlab.models.mappings import JsonObject
from flitlab.sim.config.draft import PROGRAMS
from flitlab.sim.exit import RunStatus
from flitlab.sim.experiment.ceilings import ceiling_columns
from flitlab.sim.experiment.folders import altered, read_manifest, reject_special_files
from flitlab.sim.experiment.saturation import in_loads, limit_of
from flitlab.sim.measure.rows import number
from flitlab.sim.report.folder import stored
from flitlab.sim.report.folder.budget import TABLES as BUDGET_TABLES
from flitlab.sim.report.folder.ceilings import Ceiling, Mark, Total, join, join_total
from flitlab.sim.report.folder.frames import Row, failed, read_csv
from flitlab.sim.report.folder.units import Units

PROGRAM_TABLES = ("steps", "utilisation", "timeline", "collectives", "jobs")
"""Tables of programs that figures show."""


def _of_programs(manifest: JsonObject) -> bool:
    return manifest.get("experiment") in PROGRAMS


FURTHER = ("epochs", "throughput_time", "transports", "classes", "pauses", "pauses_time")
"""Tables of runs with a timeline, of several transports, of classes of traffic, and of lossless queues."""


def _tables_of(manifest: JsonObject) -> tuple[str, ...]:
    """The further tables that a run may have."""
    return (*FURTHER, *(PROGRAM_TABLES if _of_programs(manifest) else BUDGET_TABLES))


@dataclass(frozen=True)
class Run:
    """A run folder: usable rows, failed ones, ceilings, manifest, usable rows of metrics.csv, published values.

    tables: further tables by name. saturation: rows of saturation.csv. altered: files that differ from what the run
    wrote.
    """

    rows: list[Row]
    failures: list[Row]
    ceilings: list[Ceiling]
    manifest: JsonObject
    metrics: list[Row] = field(default_factory=list)
    published: list[Row] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    saturation: list[Row] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> "Run":
        """Read the tables and manifest.json of a folder; absent files count as empty.

        For an unfinished run, the stored points and ceilings are read. Raises ``ValueError`` for files that no run has
        written, ``OSError`` for files that cannot be read.
        """
        reject_special_files(folder)
        rows, metrics = read_csv(folder / "results.csv"), read_csv(folder / "metrics.csv")
        ceilings = read_csv(folder / "ceilings.csv")
        manifest = read_manifest(folder)
        _check_numbers(rows, folder / "results.csv")
        _check_numbers(ceilings, folder / "ceilings.csv")
        if manifest.get("status") == RunStatus.RUNNING:
            rows, ceilings = stored.results(folder, manifest), stored.ceilings(folder, manifest)
        return cls(
            rows=[row for row in rows if not failed(row)],
            failures=[row for row in rows + metrics if failed(row)],
            ceilings=[Ceiling.from_row(row) for row in ceilings],
            manifest=manifest,
            metrics=[row for row in metrics if not failed(row)],
            published=read_csv(folder / "published.csv"),
            saturation=read_csv(folder / "saturation.csv"),
            tables={name: read_csv(folder / f"{name}.csv") for name in _tables_of(manifest)},
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
    def of_collectives(self) -> bool:
        """Whether its programs are collectives of given sizes."""
        return bool(self.manifest.get("experiment") == "collective")

    @property
    def of_flows(self) -> bool:
        """Whether its results are of flows (modes datagram and spray)."""
        return any("host_throughput" in row for row in self.rows)

    @property
    def columns(self) -> list[str]:
        """Columns of metrics.csv."""
        return list(self.metrics[0]) if self.metrics else []

    @cached_property
    def swept(self) -> list[str]:
        """Columns of metrics.csv for the case label and the swept keys."""
        keys = self.manifest.get("columns")
        if keys is None and "kind" in self.columns:
            keys = self.columns[1 : self.columns.index("kind")]
        return [key for key in keys or [] if key in self.columns]

    def where(self, columns: Mapping[str, Sequence[str]]) -> "Run":
        """Return the run with the rows of metrics.csv that have one of the texts in each column."""
        kept = [row for row in self.metrics if all(row.get(key) in texts for key, texts in columns.items())]
        return replace(self, metrics=kept)

    def units(self, flit_ns: float | None = None) -> Units:
        """Units of the figures: by the argument, the manifest or the columns, else ticks."""
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
        rates = self.manifest.get("mean_rate", 1.0)
        return float(rates.get(scenario, 1.0) if isinstance(rates, dict) else rates)

    def background_rate(self, scenario: str) -> float:
        """Offered background traffic, which does not grow with the load, in flits/tick/host; mostly 0."""
        return float(self.manifest.get("background_rate", {}).get(scenario, 0.0))

    def limit(self, scenario: str) -> float:
        """The load from which on a scenario is certainly saturated, by its ceilings; inf without."""
        return limit_of(self.ceiling_columns(scenario))

    def ceiling_columns(self, scenario: str) -> dict[str, float | None]:
        """The ceilings of a scenario by name, as :func:`~flitlab.sim.experiment.ceilings.ceiling_columns` has them, in
        units of load.
        """
        columns = ceiling_columns(one.row for one in self.ceilings if one.scenario == scenario and one.known)
        return in_loads(columns, self.flits_per_load(scenario))

    def flits_per_load(self, scenario: str) -> float:
        """Flits per tick of a host of rate 1 at load 1: 1, unless host channels are slower than a flit per tick."""
        return float(self.manifest.get("flits_per_load", {}).get(scenario, 1.0))

    def thetas(self) -> "list[Mark]":
        """Ceilings that are vertical lines, in flits/tick/host of accepted traffic, by falling rank; equal ones are
        merged.
        """
        marks: dict[str, list[Mark]] = {}
        for one in self.ceilings:
            if one.known and one.is_line:
                scaled = one.scaled(self.mean_rate(one.scenario), self.background_rate(one.scenario))
                join(marks.setdefault(one.name, []), scaled)
        return [mark for name in sorted(marks, key=lambda name: -kind_of(name).rank) for mark in marks[name]]

    def totals(self) -> "list[Total]":
        """The ceiling ``total`` as curves over offered traffic; equal ones are merged."""
        totals: list[Total] = []
        for scenario in self.scenarios:
            rate, beside = self.mean_rate(scenario), self.background_rate(scenario)
            points = sorted(
                (c.load * rate + beside, c.upper if "flit" in c.unit else c.upper * rate)
                for c in self.ceilings
                if (c.scenario, c.name) == (scenario, "total") and c.known and math.isfinite(c.load)
            )
            if points:
                join_total(totals, Total((scenario,), *np.array(points).T))
        return totals


NUMBERS = {
    "results.csv": (
        "load", "seed", "offered", "accepted", "latency_mean", "latency_ci95", "host_throughput", "throughput_min",
        "slowdown_mean", "total_ns",
    ),
    "ceilings.csv": ("load", "lower", "upper"),
}  # fmt: skip
"""Table -> columns whose cells must be numbers, or empty."""


def _check_numbers(rows: Sequence[Row], path: Path) -> None:
    """Raise ``ValueError`` for a cell that must be a number and is not."""
    for column in NUMBERS[path.name]:
        for i, row in enumerate(rows, 1):
            if row.get(column) and math.isnan(number(row, column)):
                raise ValueError(f"{path}: row {i}: {column} = {row[column]}: must be a number")
