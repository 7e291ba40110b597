# SPDX-License-Identifier: Apache-2.0
"""The ceilings of a study: each is computed once for all scenarios that share it, and stored with its certificate."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.arrays import Floats
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.scenario import Scenario
from flitlab.models.traffic.traffic import DestinationRule
from flitlab.sim.config.case import Case, Study, swept
from flitlab.sim.config.sections import UntilConfig
from flitlab.sim.config.timeline import ScenarioEpoch
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress
from flitlab.sim.experiment.store import RecordError, Store, read_record, require_cells
from flitlab.sim.experiment.task import Outcome, ceilings_id, solve_ceilings
from flitlab.sim.measure.columns.registry import RATE, columns
from flitlab.sim.measure.interval import mean_and_half

if TYPE_CHECKING:
    from flitlab.fluid.ceiling import Ceiling
    from flitlab.fluid.certificate import Certificate

COLUMNS = tuple(columns("ceilings"))
"""Columns of ceilings.csv."""

ROWS = "ceilings"
"""Key of the rows in ``ceilings/<id>.json``."""


class _Prices(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    network: list[float]
    injection: list[float]
    ejection: list[float]


class _StoredRow(BaseModel):
    """The keys of a stored row that are read."""

    model_config = ConfigDict(extra="allow", strict=True)

    ceiling: str
    load: float | None
    lower: float | None
    upper: float | None
    unit: str | None
    method: str | None
    note: str | None
    seconds: float | None
    certificate: _Prices | None
    channel_load: list[float] | None = None


class _StoredRows(BaseModel):
    """The keys of ``ceilings/<id>.json``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    ceilings: list[_StoredRow]


def _require_rows(record: JsonObject) -> None:
    """Raise :class:`RecordError`, which names the cell, for a record of anything but rows of ceilings."""
    require_cells(record, _StoredRows)


@dataclass
class CeilingJob:
    """Ceilings of one call, for all cases that share them.

    Parameters
    ----------
    id: hash of what they depend on.
    case: one of the cases.
    instance: of the case, or of one of its epochs.
    specs: the ceilings.
    users: indices of the cases.
    rows: one dict per ceiling, None until computed; ``certificate`` has the prices as lists, ``channel_load`` the load
        of every channel, or None.
    problem: why the call failed, or ''.
    """

    id: str
    case: Case
    instance: Instance
    specs: list[CeilingSpec]
    users: list[int] = field(default_factory=list)
    rows: list[Row] | None = None
    problem: str = ""

    @property
    def hashed_instance(self) -> Instance:
        """The instance, with routes (which may be large) only if one of the ceilings depends on them."""
        routed = any(spec.routes != "unused" for spec in self.specs)
        return self.instance if routed else replace(self.instance, routes=None)

    @cached_property
    def bounds(self) -> "list[Bound]":
        """The distinct certificates of the rows, cached with what is derived from them."""
        bounds: dict[str, Bound] = {}
        for row in self.rows or ():
            if (lengths := row["certificate"]) is not None:
                bound = Bound(row["ceiling"], row["load"], _certificate(lengths))
                bounds.setdefault(content_hash(lengths, row["load"]), bound)
        return list(bounds.values())


class Optimum(NamedTuple):
    """A maximum concurrent flow: its bounds, the prices that prove the upper one, and the load of every channel."""

    lower: float
    upper: float
    certificate: "Certificate"
    load: Floats


@dataclass(frozen=True)
class Bound:
    """A certificate that points are checked against. load: None if it holds for every load."""

    name: str
    load: float | None
    certificate: "Certificate"


class CeilingRuns:
    """All ceilings of a study; those in the folder are not computed again.

    Parameters
    ----------
    study, store: the study and its folder.
    save_to: folder for certificates. Only solving gives them, so then all ceilings are computed.

    Attributes
    ----------
    ready: called with the index of a case when all its ceilings are known.
    """

    def __init__(self, study: Study, store: Store, save_to: Path | None = None):
        self.study = study
        self.store = store
        self.save_to = save_to
        self.jobs = _jobs(study.all_cases)
        self.ready: Callable[[int], None] = lambda index: None
        for job in self.jobs:
            if save_to is None:
                self._read(job)
        self._draws = _Draws.of(study)
        known = {job.id: job for job in self.jobs}
        cases = list(enumerate(study.all_cases))
        self._of_case = {index: [known[id] for id in _calls_of_case(case)] for index, case in cases}
        self._of_epoch = {
            (index, epoch.number): [known[id] for id in _calls_of_epoch(case, epoch)]
            for index, case in cases
            for epoch in case.epochs
        }

    @property
    def task_indices(self) -> list[int]:
        """Indices of the jobs without rows."""
        return [place for place, job in enumerate(self.jobs) if job.rows is None]

    def bounds(self, index: int) -> list[Bound] | None:
        """The certificates for the points of a case; None until all its ceilings are known."""
        if any(job.rows is None for job in self._all(index)):
            return None
        return [bound for job in self._of_case[index] for bound in job.bounds]

    def epoch_bounds(self, index: int, epoch: int) -> list[Bound]:
        """The certificates for an epoch of a case. epoch: its number, from 1."""
        return [bound for job in self._of_epoch[index, epoch] for bound in job.bounds]

    def _all(self, index: int) -> list[CeilingJob]:
        """The jobs of a case and of all its epochs."""
        epochs = [self._of_epoch[index, epoch.number] for epoch in self.study.all_cases[index].epochs]
        return [*self._of_case[index], *(job for jobs in epochs for job in jobs)]

    def needed(self, cases: Collection[int]) -> list[int]:
        """Indices of the jobs without rows that any of the cases uses."""
        return [place for place in self.task_indices if not set(self.jobs[place].users).isdisjoint(cases)]

    def tasks(self, bar: Progress) -> Iterator[Task]:
        """Calls for all ceilings that neither the folder nor another process has.

        The longest come first, so that none of them is left for a single process at the end.
        """
        by_draw = sorted(self.task_indices, key=lambda place: -_work(self.jobs[place]))
        by_draw.sort(key=lambda place: min(map(self._draws.number, self.jobs[place].users)))
        in_flight: Counter[str] = Counter()
        for index in by_draw:
            job = self.jobs[index]
            if self._is_idle(job):  # evaluated here, too, since an instance with routes may take 50 MB of disk space
                continue
            case = job.case
            of_program = case.program is not None and job.instance is case.instance
            work = case.program if of_program else job.hashed_instance
            assert work is not None
            file = self.store.scenario(work, work.content_hash)
            in_flight[work.content_hash] += 1

            def done(
                outcome: Outcome, job: CeilingJob = job, name: str = work.content_hash, kept: bool = of_program
            ) -> None:
                self._done(job, outcome)
                in_flight[name] -= 1
                if not (kept or in_flight[name]):  # simulations use the same program
                    self.store.discard_scenario(name)
                bar.advance()

            folder = self.save_to and self.save_to / job.id
            name = f"{job.case.label}: {_kinds(job)}"
            arguments = (file, job.specs, job.case.grid, folder)
            yield Task(solve_ceilings, arguments, done, partial(self._is_idle, job), name, index)

    def _is_idle(self, job: CeilingJob) -> bool:
        """Whether a job need not be computed: it is known, or the draws before it are enough."""
        return self._recall(job) or all(map(self.is_left_out, job.users))

    def is_left_out(self, index: int) -> bool:
        """Whether a case is a draw beyond those that ``until`` needs, as far as is known.

        It depends on the draws before it alone, and so not on which calls end first.
        """
        return self._draws.is_left_out(index, self._values)

    def _values(self, index: int) -> list[float] | None:
        """The ceilings of a case, or None while some are unknown or failed."""
        jobs = self._all(index)
        if any(job.rows is None or job.problem for job in jobs):
            return None
        return [row["upper"] if row["lower"] is None else row["lower"] for job in jobs for row in job.rows or ()]

    def _recall(self, job: CeilingJob) -> bool:
        """Whether the rows of a job are known, or are in the folder by now."""
        if job.rows is None and self.save_to is None:
            self._read(job)
            self._notify_points(job)
        return job.rows is not None

    def _read(self, job: CeilingJob) -> None:
        stored = self.store.record(f"ceilings/{job.id}.json", _require_rows)
        if stored is not None and not _is_complete(stored[ROWS], job.specs):
            self.store.quarantine(f"ceilings/{job.id}.json", "is no result of ceilings")
            stored = None
        job.rows = None if stored is None else stored[ROWS]

    def _done(self, job: CeilingJob, outcome: Outcome) -> None:
        job.problem = outcome.problem
        if outcome.problem:
            job.rows = _failure_rows(job.specs, outcome.problem)
        else:
            job.rows = [_row(ceiling) for ceiling in outcome.result]
            self.store.write_record(f"ceilings/{job.id}.json", {ROWS: job.rows})
        self._notify_points(job)

    def _notify_points(self, job: CeilingJob) -> None:
        for index in job.users:
            if self.bounds(index) is not None:
                self.ready(index)

    def rows(self) -> list[Row]:
        """Rows of ceilings.csv, by case, in the order of its ceilings."""
        return [row for index in range(len(self.study.cases)) for row in self.rows_of(index)]

    def rows_of(self, index: int) -> list[Row]:
        """Rows of ceilings.csv of one case, or of a scenario of a budget; [] of a draw that is left out."""
        return [] if self.is_left_out(index) else list(self._rows_of(index))

    def _rows_of(self, index: int) -> Iterator[Row]:
        case = self.study.all_cases[index]
        order = [spec.kind for spec in case.ceilings]
        rows = [row for job in self._of_case[index] for row in job.rows or ()]
        for epoch in case.epochs:
            rows += [_epoch_row(row, epoch) for job in self._of_epoch[index, epoch.number] for row in job.rows or ()]
        # ``bounds`` has a row for each single bound, ``bounds:<name>``
        rows.sort(key=lambda row: order.index(row["ceiling"].partition(":")[0]))
        for row in rows:
            row = {"scenario": case.label, **{name: row[name] for name in COLUMNS[1:]}}
            yield row | {"unit": _unit(row["unit"], case)}

    def optimum(self, index: int) -> "Optimum | None":
        """The maximum concurrent flow of a case, as far as known; None without ``mcf``."""
        return _optimum(row for job in self._of_case[index] for row in job.rows or ())

    def columns_of(self, index: int) -> tuple[Row, str]:
        """The ceilings of a case as columns, and the errors of failed ones."""
        columns = ceiling_columns(self.rows_of(index))
        failed = [f"{_kinds(job)}: {job.problem}" for job in self._all(index) if job.problem]
        return columns, "; ".join(failed)

    def tables(self) -> dict[str, list[Row]]:
        """ceilings.csv: one row per ceiling."""
        return {"ceilings.csv": self.rows()}

    def epoch_tables(self) -> dict[str, list[Row]]:
        """epochs.csv: the ceilings of networks that change, with their times."""
        rows = [row for index in range(len(self.study.cases)) for row in self._epoch_rows(index)]
        return {"epochs.csv": rows} if rows else {}

    def _epoch_rows(self, index: int) -> Iterator[Row]:
        """Rows of epochs.csv of one case: every epoch with each of its ceilings, or with none."""
        case = self.study.all_cases[index]
        tick_ns = None if case.timeline is None else case.timeline.tick_ns
        us = None if tick_ns is None else tick_ns / 1000
        for epoch in case.epochs:
            until = epoch.until
            head = {
                "scenario": case.label, **case.keys, "epoch": epoch.number, "from_tick": epoch.epoch.tick,
                "to_tick": until, "from_us": None if us is None else epoch.epoch.tick * us,
                "to_us": None if us is None or until is None else until * us, "what": epoch.epoch.description,
            }  # fmt: skip
            rows = [row for job in self._of_epoch[index, epoch.number] for row in job.rows or ()]
            empty: Row = {**dict.fromkeys(COLUMNS[1:]), "note": epoch.problem}
            for row in rows or [empty]:
                known = {name: row[name] for name in COLUMNS[1:] if name != "seconds"}
                known["unit"] = _unit(row["unit"], case)
                yield head | known | {"host_throughput": _per_host(row, epoch.instance)}

    @property
    def problems(self) -> list[str]:
        """One line per failed job."""
        return [f"{job.case.label}, {_kinds(job)}: {job.problem}" for job in self.jobs if job.problem]


@dataclass
class _Series:
    """Scenarios that differ only in the key ``over`` of ``until``: draws of one mean.

    Parameters
    ----------
    until: the precision of the mean.
    cases: indices of the scenarios, in the order of the draws.
    evaluated: the first draws of this number are not enough.
    end: the number of draws that are enough; None while it is not known.
    """

    until: UntilConfig
    cases: list[int] = field(default_factory=list)
    evaluated: int = 0
    end: int | None = None

    def advance(self, values: Callable[[int], list[float] | None]) -> None:
        """Look for the end among the draws that are known by now. values: see :meth:`_Draws.is_left_out`.

        Each number of draws is evaluated once, since the values of a known draw do not change.
        """
        first = max(self.until.least, self.evaluated + 1)
        if self.end is not None or len(self.cases) <= first or values(self.cases[first - 1]) is None:
            return
        known = list(takewhile(lambda one: one is not None, map(values, self.cases)))
        for count in range(first, len(known) + 1):
            if self._is_enough(known[:count]):
                self.end = count
                return
            self.evaluated = count

    def _is_enough(self, draws: Sequence[list[float] | None]) -> bool:
        """Whether the interval of every ceiling is narrow enough."""
        intervals = (mean_and_half(column) for column in zip(*filter(None, draws), strict=True))
        return all(half <= self.until.ci * abs(mean) for mean, half in intervals)


@dataclass(frozen=True)
class _Draws:
    """The draws of a study with ``until``, by the value of ``over`` if it is a number, else in the order of the file.

    series: index of a case -> its series and place in it; {} without ``until``.
    """

    series: dict[int, tuple[_Series, int]]

    @classmethod
    def of(cls, study: Study) -> "_Draws":
        every: dict[str, _Series] = {}
        places: dict[int, tuple[_Series, int]] = {}
        for index, case in enumerate(study.cases if study.until is not None else ()):
            assert study.until is not None
            over = study.until.over
            others = {key: value for key, value in case.keys.items() if key != over and not key.endswith(f".{over}")}
            every.setdefault(content_hash(others), _Series(study.until)).cases.append(index)
        for series in every.values():
            values = {index: swept(study.cases[index], series.until.over) for index in series.cases}
            numbers = {index: value for index, value in values.items() if isinstance(value, int | float)}
            if len(numbers) == len(values):
                series.cases.sort(key=numbers.__getitem__)
            places |= {index: (series, place) for place, index in enumerate(series.cases)}
        return cls(places)

    def number(self, index: int) -> int:
        """How many draws are before a case."""
        return self.series[index][1] if index in self.series else 0

    def is_left_out(self, index: int, values: Callable[[int], list[float] | None]) -> bool:
        """Whether the first n draws before a case are enough, for some n.

        Parameters
        ----------
        index: of the case.
        values: gives the ceilings of a case, None if they are not known.
        """
        if index not in self.series:
            return False
        series, place = self.series[index]
        series.advance(values)
        return series.end is not None and series.end <= place


def _work(job: CeilingJob) -> int:
    """Estimate of the cost: sending pairs times channels; for ceilings without an LP, channels."""
    topology, traffic = job.instance.topology, job.instance.traffic
    if all(spec.growth is None for spec in job.specs):
        return topology.channels
    senders = int((topology.host_count > 0).sum())
    entries = (
        topology.hosts**2
        if traffic.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF)
        else len(traffic.fixed) + len(traffic.column)
    )
    return min(senders**2, entries) * topology.channels


def _unit(unit: str | None, case: Case) -> str | None:
    """The unit of a ceiling: theta is not a load where load 1 is another rate than a flit per tick, but the rate of
    the busiest host, or, if the demand is not scaled so that this is 1, a factor of the demand.
    """
    if unit != "load" or case.flits_per_load == 1 or case.instance is None:
        return unit
    traffic = case.instance.traffic
    return RATE if math.isclose(max(traffic.rate.max(), traffic.column_sums.max()), 1) else "theta"


def _kinds(job: CeilingJob) -> str:
    return ", ".join(spec.kind for spec in job.specs)


def ceiling_columns(rows: Iterable[Row]) -> dict[str, float | None]:
    """Rows of ceilings.csv of one scenario as columns of metrics.csv.

    ``<ceiling>`` is the certified lower end (the upper end if that is unknown), ``<ceiling>.upper`` the upper end if
    both are known; a ceiling at a load is ``<ceiling>@<load>``. Of a ceiling by two methods, the first counts.
    """
    columns: dict[str, float | None] = {}
    for row in rows:
        name = row["ceiling"] if row["load"] is None else f"{row['ceiling']}@{row['load']:g}"
        lower, upper = row["lower"], row["upper"]
        if name not in columns:
            columns |= {name: upper} if lower is None else {name: lower, f"{name}.upper": upper}
    return columns


def _jobs(cases: Sequence[Case]) -> list[CeilingJob]:
    """One job per ceiling of every scenario, except for those that share a flow; equal ones are one job."""
    jobs: dict[str, CeilingJob] = {}
    for index, case in enumerate(cases):
        for key, specs in _calls_of_case(case).items():
            assert case.instance is not None
            jobs.setdefault(key, CeilingJob(key, case, case.instance, specs)).users.append(index)
        for epoch in case.epochs:
            for key, specs in _calls_of_epoch(case, epoch).items():
                assert epoch.instance is not None
                users = jobs.setdefault(key, CeilingJob(key, case, epoch.instance, specs)).users
                users += [index] if index not in users else []
    return list(jobs.values())


def _calls_of_epoch(case: Case, epoch: ScenarioEpoch) -> dict[str, list[CeilingSpec]]:
    """Id -> ceilings of an epoch that share a call; {} if hosts are disconnected. Programs span epochs."""
    specs = [spec for spec in case.ceilings if not spec.of_program]
    return {} if epoch.instance is None else _calls(epoch.instance, specs, case.grid)


def _per_host(row: Row, instance: Instance | None) -> float | None:
    """Mean host throughput at a ceiling, as a share of the host channel; None for other ceilings."""
    if instance is None or row["upper"] is None:
        return None
    upper, nic = float(row["upper"]), instance.topology.host_capacity
    if row["ceiling"] == "mmf:total":
        return upper / instance.topology.physical_hosts / nic
    equal = row["ceiling"] in ("mcf", "mcf_paths", "split")
    return upper * instance.traffic.mean_rate / nic if equal else None


def _epoch_row(row: Row, epoch: ScenarioEpoch) -> Row:
    """A row of ceilings.csv of an epoch, with its number in the name of the ceiling."""
    note = "; ".join(filter(None, (epoch.epoch.description, row["note"])))
    return {**row, "ceiling": f"{row['ceiling']}:epoch_{epoch.number}", "note": note}


def _calls_of_case(case: Case) -> dict[str, list[CeilingSpec]]:
    """Id -> ceilings of a scenario that share a call, for the network without events."""
    return {} if case.instance is None else _calls(case.instance, case.ceilings, case.grid, case.program)


def _calls(
    instance: Instance, specs: Sequence[CeilingSpec], grid: list[float], program: Scenario | None = None
) -> dict[str, list[CeilingSpec]]:
    """Id -> ceilings of an instance that share a call; arguments as for :func:`ceilings_id`."""
    shared = [spec for spec in specs if spec.of_one_flow]
    single = [[spec] for spec in specs if spec not in shared]
    return {ceilings_id(instance, some, grid, program): some for some in [shared, *single] if some}


def _optimum(rows: Iterable[Row]) -> Optimum | None:
    """The optimum with the least gap."""
    known = [
        Optimum(row["lower"], row["upper"], _certificate(row["certificate"]), np.array(row["channel_load"]))
        for row in rows
        if row["ceiling"] == "mcf" and row["certificate"] is not None and row.get("channel_load") is not None
    ]
    return min(known, key=lambda one: one.upper / one.lower, default=None)


def stored_optimum(folder: Path, case: Case) -> Optimum | None:
    """The result of :meth:`CeilingRuns.optimum` from the files of a run folder; None if they are missing."""
    return _optimum(row for name in ceiling_ids(case) for row in stored_rows(folder, name))


def stored_rows(folder: Path, name: str) -> list[Row]:
    """The rows of ``ceilings/<name>.json`` with certificates; [] if the file is missing or damaged."""
    with suppress(RecordError):
        record = read_record(folder, f"ceilings/{name}.json")
        if record is not None:
            _require_rows(record)
            rows: list[Row] = record[ROWS]
            return rows
    return []


def ceiling_ids(case: Case) -> list[str]:
    """Ids of the ceilings of a scenario, stored in ``ceilings/<id>.json``."""
    return list(_calls_of_case(case))


def _row(ceiling: "Ceiling") -> Row:
    """A ``flitlab.fluid.ceilings.Ceiling`` as a dict for JSON."""
    row = {name: getattr(ceiling, name) for name in (*COLUMNS[1:], "certificate")}
    row["channel_load"] = None if ceiling.channel_load is None else ceiling.channel_load.tolist()
    row |= {end: None for end in ("lower", "upper") if math.isnan(row[end])}
    if (z := ceiling.certificate) is not None:
        row["certificate"] = {part.name: getattr(z, part.name).tolist() for part in fields(z)}
    return row


def _is_complete(rows: Sequence[Row], specs: Sequence[CeilingSpec]) -> bool:
    """Whether rows are those of all ceilings. Altered files are computed again."""
    return {spec.kind for spec in specs} <= {row["ceiling"] for row in rows}


def _certificate(lengths: dict[str, list[float]]) -> "Certificate":
    """The ``flitlab.fluid.certificate.Certificate`` of stored prices."""
    from flitlab.fluid.certificate import Certificate

    return Certificate(**{name: np.array(part, float) for name, part in lengths.items()})


def _failure_rows(specs: Sequence[CeilingSpec], problem: str) -> list[Row]:
    """Rows of failed ceilings, with the error."""
    empty = dict.fromkeys((*COLUMNS[1:], "certificate"))
    return [{**empty, "ceiling": spec.kind, "method": "failed", "note": problem} for spec in specs]
