# SPDX-License-Identifier: Apache-2.0
"""The ceilings of a study: each computed once for all scenarios it applies to, stored with its certificate."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.arrays import Floats
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.scenario import Scenario
from flitlab.models.traffic.traffic import UNIFORM, UNIFORM_SELF
from flitlab.sim.config.study import Case, Study
from flitlab.sim.config.timeline import EpochOf
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress
from flitlab.sim.experiment.store import RecordError, Store, read_record
from flitlab.sim.experiment.task import Outcome, ceilings_id, solve_ceilings
from flitlab.sim.measure.columns.registry import columns

if TYPE_CHECKING:
    from flitlab.fluid.certificate import Certificate

COLUMNS = tuple(columns("ceilings"))
"""Columns of ceilings.csv."""

ROWS = "ceilings"
"""Key of ``ceilings/<id>.json`` under which the rows are."""


@dataclass
class Job:
    """Ceilings that one call computes, for all cases to which they apply.

    case: any of them. instance: of the case, or of an epoch of it. users: their indices. rows: one dict per ceiling,
    None until computed; its ``certificate`` holds the lengths z as lists, its ``channel_load`` the load of every
    channel, or None.
    """

    id: str
    case: Case
    instance: Instance
    specs: list[CeilingSpec]
    users: list[int] = field(default_factory=list)
    rows: list[dict[str, Any]] | None = None
    problem: str = ""

    @property
    def asked_of(self) -> Instance:
        """The instance with what these ceilings depend on: routes, which may be large, only where one of them does."""
        routed = any(spec.routes != "unused" for spec in self.specs)
        return self.instance if routed else replace(self.instance, routes=None)

    @cached_property
    def bounds(self) -> "list[Bound]":
        """The distinct certificates among the rows. Made once, so that what is derived from them can be kept."""
        found: dict[str, Bound] = {}
        for row in self.rows or ():
            if (lengths := row["certificate"]) is not None:
                bound = Bound(row["ceiling"], row["load"], _certificate(lengths))
                found.setdefault(content_hash(lengths, row["load"]), bound)
        return list(found.values())


class Optimum(NamedTuple):
    """A maximum concurrent flow: its bounds, the lengths of the upper one, and the load of every channel."""

    lower: float
    upper: float
    certificate: Any
    load: Floats


@dataclass(frozen=True)
class Bound:
    """A certificate to check points against. load: None if it holds for every load."""

    name: str
    load: float | None
    certificate: Any


class CeilingRuns:
    """All ceilings of a study. What the folder holds already is not computed again.

    ready: called with the index of a case once all its ceilings are known. save_to: folder for certificates, which
    only solving gives: then all is computed.
    """

    def __init__(self, study: Study, store: Store, save_to: Path | None = None):
        self.study = study
        self.store = store
        self.save_to = save_to
        self.jobs = _jobs(study.every)
        self.ready: Callable[[int], None] = lambda index: None
        for job in self.jobs:
            if save_to is None:
                self._read(job)
        known = {job.id: job for job in self.jobs}
        cases = list(enumerate(study.every))
        self._of_case = {index: [known[id] for id in _parts(case)] for index, case in cases}
        self._of_epoch = {
            (index, epoch.number): [known[id] for id in _epoch_parts(case, epoch)]
            for index, case in cases
            for epoch in case.epochs
        }

    @property
    def places(self) -> list[int]:
        """Places of the jobs that have no rows yet."""
        return [place for place, job in enumerate(self.jobs) if job.rows is None]

    def bounds(self, index: int) -> list[Bound] | None:
        """What the points of a case are checked against; None while some of its ceilings are not known."""
        if any(job.rows is None for job in self._all(index)):
            return None
        return [bound for job in self._of_case[index] for bound in job.bounds]

    def epoch_bounds(self, index: int, epoch: int) -> list[Bound]:
        """What is delivered in an epoch of a case is checked against these; epoch: its number, from 1."""
        return [bound for job in self._of_epoch[index, epoch] for bound in job.bounds]

    def _all(self, index: int) -> list[Job]:
        """The jobs of a case and of all its epochs."""
        epochs = [self._of_epoch[index, epoch.number] for epoch in self.study.every[index].epochs]
        return [*self._of_case[index], *(job for jobs in epochs for job in jobs)]

    def needed(self, cases: Collection[int]) -> list[int]:
        """Places of the jobs without rows that any of these cases has."""
        return [place for place in self.places if not set(self.jobs[place].users).isdisjoint(cases)]

    def tasks(self, bar: Progress) -> Iterator[Task]:
        """Calls for everything that is missing, and that no other process has put into the folder meanwhile.

        Those that will take longest come first: otherwise one of them may be all that is left for many processes.
        """
        for place in sorted(self.places, key=lambda place: -_work(self.jobs[place])):
            job = self.jobs[place]
            case = job.case
            of_program = case.program is not None and job.instance is case.instance
            given = case.program if of_program else job.asked_of
            assert given is not None
            file = self.store.scenario(given, given.content_hash)

            def done(outcome: Outcome, job: Job = job) -> None:
                self._done(job, outcome)
                bar.advance()

            folder = self.save_to and self.save_to / job.id
            name = f"{job.case.label}: {_kinds(job)}"
            arguments = (file, job.specs, job.case.grid, folder)
            yield Task(solve_ceilings, arguments, done, partial(self._recall, job), name, place)

    def _recall(self, job: Job) -> bool:
        """Whether the rows of a job are known, or are in the folder by now."""
        if job.rows is None and self.save_to is None:
            self._read(job)
            self._tell(job)
        return job.rows is not None

    def _read(self, job: Job) -> None:
        stored = self.store.record(f"ceilings/{job.id}.json")
        if stored is not None and not _is_whole(stored.get(ROWS), job.specs):
            self.store.quarantine(f"ceilings/{job.id}.json", "is no result of ceilings")
            stored = None
        job.rows = None if stored is None else stored[ROWS]

    def _done(self, job: Job, outcome: Outcome) -> None:
        job.problem = outcome.problem
        if outcome.problem:
            job.rows = _failure_rows(job.specs, outcome.problem)
        else:
            job.rows = [_row(ceiling) for ceiling in outcome.result]
            self.store.write_record(f"ceilings/{job.id}.json", {ROWS: job.rows})
        self._tell(job)

    def _tell(self, job: Job) -> None:
        for index in job.users:
            if self.bounds(index) is not None:
                self.ready(index)

    def rows(self) -> list[dict[str, Any]]:
        """Rows of ceilings.csv: of every case, in the order in which it asks for them."""
        return [row for index in range(len(self.study.cases)) for row in self.rows_of(index)]

    def rows_of(self, index: int) -> list[dict[str, Any]]:
        """Rows as those of ceilings.csv of one case, or of what is measured for a budget."""
        case = self.study.every[index]
        order = [spec.kind for spec in case.ceilings]
        found = [row for job in self._of_case[index] for row in job.rows or ()]
        for epoch in case.epochs:
            found += [_of_epoch(row, epoch) for job in self._of_epoch[index, epoch.number] for row in job.rows or ()]
        # ``bounds`` has a row for each single bound, ``bounds:<name>``
        found.sort(key=lambda row: order.index(row["ceiling"].partition(":")[0]))
        return [{"scenario": case.label, **{name: row[name] for name in COLUMNS[1:]}} for row in found]

    def optimum(self, index: int) -> "Optimum | None":
        """The maximum concurrent flow of a case as far as it is known; None if it was not asked for."""
        return _optimum(row for job in self._of_case[index] for row in job.rows or ())

    def found(self, index: int) -> tuple[dict[str, Any], str]:
        """The ceilings of a case as columns, and which of them failed."""
        columns = ceiling_columns(self.rows_of(index))
        failed = [f"{_kinds(job)}: {job.problem}" for job in self._all(index) if job.problem]
        return columns, "; ".join(failed)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """ceilings.csv: every single ceiling."""
        return {"ceilings.csv": self.rows()}

    def epoch_tables(self) -> dict[str, list[dict[str, Any]]]:
        """epochs.csv: the ceilings of networks that change, with the times at which they hold."""
        rows = [row for index in range(len(self.study.cases)) for row in self._epoch_rows(index)]
        return {"epochs.csv": rows} if rows else {}

    def _epoch_rows(self, index: int) -> Iterator[dict[str, Any]]:
        """Rows of epochs.csv of one case: every epoch with each of its ceilings, or with none."""
        case = self.study.every[index]
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
            empty: dict[str, Any] = {**dict.fromkeys(COLUMNS[1:]), "note": epoch.problem}
            for row in rows or [empty]:
                known = {name: row[name] for name in COLUMNS[1:] if name != "seconds"}
                yield head | known | {"host_throughput": _per_host(row, epoch.instance)}

    @property
    def problems(self) -> list[str]:
        """One line per failed job."""
        return [f"{job.case.label}, {_kinds(job)}: {job.problem}" for job in self.jobs if job.problem]


def _work(job: Job) -> int:
    """About how much there is to compute: pairs that send times channels, of what is no linear program next to none."""
    topology, traffic = job.instance.topology, job.instance.traffic
    if all(spec.growth is None for spec in job.specs):
        return topology.channels
    senders = int((topology.host_count > 0).sum())
    entries = topology.hosts**2 if traffic.law in (UNIFORM, UNIFORM_SELF) else len(traffic.fixed) + len(traffic.column)
    return min(senders**2, entries) * topology.channels


def _kinds(job: Job) -> str:
    return ", ".join(spec.kind for spec in job.specs)


def ceiling_columns(rows: Iterable[dict[str, Any]]) -> dict[str, float | None]:
    """Rows of ceilings.csv of one scenario as columns of metrics.csv.

    ``<ceiling>`` is what is certified to be reachable (the upper end where that is not known), ``<ceiling>.upper`` the
    upper end of what is known at both; of a ceiling at a load the name is ``<ceiling>@<load>``. Of a ceiling that is
    asked for twice, by two methods, the first counts.
    """
    found: dict[str, float | None] = {}
    for row in rows:
        name = row["ceiling"] if row["load"] is None else f"{row['ceiling']}@{row['load']:g}"
        lower, upper = row["lower"], row["upper"]
        if name not in found:
            found |= {name: upper} if lower is None else {name: lower, f"{name}.upper": upper}
    return found


def _jobs(cases: Sequence[Case]) -> list[Job]:
    """One job for every ceiling of every scenario, but for those that share a flow; equal ones are one job."""
    jobs: dict[str, Job] = {}
    for index, case in enumerate(cases):
        for key, specs in _parts(case).items():
            assert case.instance is not None
            jobs.setdefault(key, Job(key, case, case.instance, specs)).users.append(index)
        for epoch in case.epochs:
            for key, specs in _epoch_parts(case, epoch).items():
                assert epoch.instance is not None
                users = jobs.setdefault(key, Job(key, case, epoch.instance, specs)).users
                users += [index] if index not in users else []
    return list(jobs.values())


def _epoch_parts(case: Case, epoch: EpochOf) -> dict[str, list[CeilingSpec]]:
    """The ceilings of an epoch that are one call each, by id; none where hosts are cut off. No program is as long."""
    specs = [spec for spec in case.ceilings if not spec.of_program]
    return {} if epoch.instance is None else _calls(epoch.instance, specs, case.grid)


def _per_host(row: dict[str, Any], instance: Instance | None) -> float | None:
    """What hosts get on average at a ceiling that says so, as a part of what their channel carries."""
    if instance is None or row["upper"] is None:
        return None
    upper, nic = float(row["upper"]), instance.topology.host_capacity
    if row["ceiling"] == "mmf:total":
        return upper / instance.topology.hosts / nic
    equal = row["ceiling"] in ("mcf", "mcf_paths", "split")
    return upper * float(instance.traffic.rate.mean()) / nic if equal else None


def _of_epoch(row: dict[str, Any], epoch: EpochOf) -> dict[str, Any]:
    """A row of ceilings.csv of an epoch, whose number ends its name."""
    note = "; ".join(filter(None, (epoch.epoch.description, row["note"])))
    return {**row, "ceiling": f"{row['ceiling']}:epoch_{epoch.number}", "note": note}


def _parts(case: Case) -> dict[str, list[CeilingSpec]]:
    """The ceilings of a scenario, as it was built, that are one call each, by id."""
    return {} if case.instance is None else _calls(case.instance, case.ceilings, case.grid, case.program)


def _calls(
    instance: Instance, specs: Sequence[CeilingSpec], grid: list[float], program: Scenario | None = None
) -> dict[str, list[CeilingSpec]]:
    """Ceilings of an instance that are one call each, by id; arguments as of :func:`ceilings_id`."""
    together = [spec for spec in specs if spec.of_one_flow]
    alone = [[spec] for spec in specs if spec not in together]
    return {ceilings_id(instance, some, grid, program): some for some in [together, *alone] if some}


def _optimum(rows: Iterable[dict[str, Any]]) -> Optimum | None:
    """Of the row with the least gap."""
    known = [
        Optimum(row["lower"], row["upper"], _certificate(row["certificate"]), np.array(row["channel_load"]))
        for row in rows
        if row["ceiling"] == "mcf" and row["certificate"] is not None and row.get("channel_load") is not None
    ]
    return min(known, key=lambda one: one.upper / one.lower, default=None)


def stored_optimum(folder: Path, case: Case) -> Optimum | None:
    """The result of :meth:`CeilingRuns.optimum`, from the files of a run folder; None also where they are not there."""
    return _optimum(row for name in names_of(case) for row in stored_rows(folder, name))


def stored_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of ``ceilings/<name>.json``, with what certifies them; none if there is no such file that is whole."""
    try:
        found = read_record(folder, f"ceilings/{name}.json")
    except RecordError:
        return []
    return [] if found is None else found[ROWS]


def names_of(case: Case) -> list[str]:
    """Ids of the ceilings of a scenario: ``ceilings/<id>.json`` holds them with what certifies them."""
    return list(_parts(case))


def _row(ceiling: Any) -> dict[str, Any]:
    """A ``flitlab.fluid.ceilings.Ceiling`` as a JSON-able dict."""
    row = {name: getattr(ceiling, name) for name in (*COLUMNS[1:], "certificate")}
    row["channel_load"] = None if ceiling.channel_load is None else ceiling.channel_load.tolist()
    row |= {end: None for end in ("lower", "upper") if math.isnan(row[end])}
    if (z := ceiling.certificate) is not None:
        row["certificate"] = {part.name: getattr(z, part.name).tolist() for part in fields(z)}
    return row


def _is_whole(rows: Any, specs: Sequence[CeilingSpec]) -> bool:
    """Whether these are rows of all ceilings asked for: a file that somebody has changed is as good as none."""
    names = {*COLUMNS[1:], "certificate"}
    if not isinstance(rows, list) or not all(isinstance(row, dict) and names <= row.keys() for row in rows):
        return False
    return {spec.kind for spec in specs} <= {row["ceiling"] for row in rows}


def _certificate(lengths: dict[str, list[float]]) -> "Certificate":
    """The ``flitlab.fluid.certificate.Certificate`` of stored lengths."""
    from flitlab.fluid.certificate import Certificate

    return Certificate(**{name: np.array(part, float) for name, part in lengths.items()})


def _failure_rows(specs: Sequence[CeilingSpec], problem: str) -> list[dict[str, Any]]:
    """Rows that say why there is no ceiling."""
    empty = dict.fromkeys((*COLUMNS[1:], "certificate"))
    return [{**empty, "ceiling": spec.kind, "method": "failed", "note": problem} for spec in specs]
