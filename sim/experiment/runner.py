# SPDX-License-Identifier: Apache-2.0
"""Runs a study into a folder: ceilings, points, checks of points against ceilings, and tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from pathlib import Path
from typing import Protocol

import yaml

from flitlab.models.files import read_file, replacing
from flitlab.models.jit.cache import compilations, record_compilations
from flitlab.models.mappings import JsonObject, Keys, Row
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.models.signals import deferring, interruptible
from flitlab.sim.config.case import Study
from flitlab.sim.config.diagnostics import crash
from flitlab.sim.config.values import changes, read_resolved
from flitlab.sim.exit import ExitCode, RunStatus
from flitlab.sim.experiment import ceilings
from flitlab.sim.experiment.application import relate
from flitlab.sim.experiment.budget import BudgetRuns
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.cluster import ClusterError
from flitlab.sim.experiment.collective import collectives
from flitlab.sim.experiment.compile_order import kernels_to_compile, ordered_tasks
from flitlab.sim.experiment.folders import RESOLVED, ManifestError, read_manifest, text_digest
from flitlab.sim.experiment.jobs import add_slowdowns, job_rows
from flitlab.sim.experiment.manifest import keep_topologies, manifest, now
from flitlab.sim.experiment.metrics import MetricRuns
from flitlab.sim.experiment.points import PointRuns
from flitlab.sim.experiment.pool import IN_PROCESS, RunOptions, Shard, Task, open_pool, run_all
from flitlab.sim.experiment.progress import Compiling, Progress, Quiet, progress, say
from flitlab.sim.experiment.provenance import source, versions
from flitlab.sim.experiment.published import COLUMNS as PUBLISHED
from flitlab.sim.experiment.published import Verdict, compare
from flitlab.sim.experiment.relative import RelativeRuns
from flitlab.sim.experiment.scoreboard.rows import verdicts_at_full_size
from flitlab.sim.experiment.search import SearchRuns
from flitlab.sim.experiment.store import Memory, RecordError, Store, StoreError, WriteError, read_record
from flitlab.sim.experiment.tables import metrics_columns, metrics_row, result_columns, result_row
from flitlab.sim.measure.rows import Status


class Runs(Protocol):
    """One kind of computation for every scenario. Results in the folder are reused."""

    @property
    def task_indices(self) -> list[int]:
        """Indices of the items that are reported to the progress bar."""

    def tasks(self, bar: Progress) -> Iterator[Task | None]:
        """Calls for all missing results; None while the next call depends on one in flight.

        Calls that depend on each other have the same index, so they belong to one shard.
        """

    def columns_of(self, index: int) -> tuple[Row, str]:
        """Columns of metrics.csv of a case, as far as known, and its errors."""

    def tables(self) -> dict[str, list[Row]]:
        """Further files: name -> rows with equal keys."""


@dataclass
class Report:
    """The results of a run. Every table is a list of rows (column -> value); problems are one line each.

    Attributes
    ----------
    tables: further CSV files, by name.
    cpu: CPU seconds of the points (``cpu_s``) and of compiling and loading kernels (``compile_s``).
    compiled_s: the part of ``compile_s`` that belongs to points of this run.
    """

    study: Study
    folder: Path
    results: list[Row] = field(default_factory=list)
    ceilings: list[Row] = field(default_factory=list)
    metrics: list[Row] = field(default_factory=list)
    published: list[Row] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    compiled_s: float = 0.0
    problems: list[str] = field(default_factory=list)
    exit_code: int = ExitCode.OK


Tasks = Callable[[Progress], Iterable[Task | None]]
"""The calls of a run, as a function of the progress bar."""

Work = Callable[[Tasks, int, int], str]
"""(calls, points that they report, processes that they can use) -> why they stopped early, or ''."""


def run(study: Study, folder: Path | Memory, options: RunOptions = IN_PROCESS) -> Report:
    """Run what the folder does not have yet, and write all files.

    Parameters
    ----------
    study: the configuration.
    folder: on disk, or in memory.
    options: processes and threads.

    Raises
    ------
    StoreError: the folder cannot be used.
    WriteError: a file cannot be written.
    """

    def work(tasks: Tasks, count: int, most: int) -> str:
        return carry_out(study, options, [tasks], count, most)

    return _run(study, folder, work, options)


def merge(study: Study, folder: Path, others: Sequence[Path] = ()) -> Report:
    """Write all files of a run from the results in its folder and others; missing results are problems.

    Raises :class:`~flitlab.sim.experiment.store.StoreError` as :func:`run` does.

    Parameters
    ----------
    study: the configuration.
    folder: of the run.
    others: folders with further results.
    """
    missing: list[str] = []

    def list_missing(tasks: Tasks, count: int, most: int) -> str:
        known = takewhile(lambda task: task is not None, tasks(Quiet()))
        missing.extend(f"{task.name}: is missing" for task in known if task is not None and not task.skip())
        return ""

    return _run(study, folder, list_missing, IN_PROCESS, missing, others)


def run_shard(study: Study, folder: Path, shard: Shard, options: RunOptions = IN_PROCESS) -> Report:
    """Run the part of a shard that the folder does not have yet. Writes no tables: see :func:`merge`.

    Other shards may run in the same folder at the same time. Each ceiling belongs to one shard; a ceiling that the
    points of this shard need, and that is not there when they are done, is computed here.

    Parameters
    ----------
    study, folder, options: as for :func:`run`.
    shard: the part.

    Raises
    ------
    StoreError: as for :func:`run`.
    """
    store = Store(folder, shared=True)
    try:
        describe(study, store)
        report = Report(study, folder)
        if study.simulates:
            bounds = CeilingRuns(study, store)
            points = PointRuns(study, store, bounds, options.threads)
            own_points = [point for point in points.missing if shard.takes(point.task_index)]
            placed = {placement.index for placement in points.placements if shard.takes(placement.task_index)}
            needed = set(bounds.needed(placed | {point.index for point in own_points}))

            phases: list[Tasks] = [
                lambda bar: chain(shard.of(bounds.tasks(Quiet())), shard.of(points.tasks(bar))),
                lambda bar: (task for task in bounds.tasks(Quiet()) if task.task_index in needed),
                lambda bar: shard.of(points.tasks(bar)),  # points whose loads depend on ceilings
            ]
            stopped = carry_out(study, options, phases, len(own_points), len(own_points) + len(needed))
            report.results = [result_row(*entry) for entry in points.rows()]
            report.problems = [*bounds.problems, *points.problems]
        else:
            runs = _runs(study, store)
            count = sum(shard.takes(place) for part in runs for place in part.task_indices)
            phases = [lambda bar: chain.from_iterable(shard.of(part.tasks(bar)) for part in runs)]
            stopped = carry_out(study, options, phases, count)
            problems = [
                (case.label, part.columns_of(index)[1]) for index, case in enumerate(study.cases) for part in runs
            ]
            report.problems = [f"{label}: {problem}" for label, problem in problems if problem]
        report.problems += [stopped] if stopped else []
        report.exit_code = _exit_code(report, stopped)
        return report
    finally:
        store.close()


RESULTS = ("points", "ceilings", "draws", "probes")
"""Folders with results that are reused."""


def _copy_results(store: Store, other: Path) -> None:
    """Copy the results of another folder that the store does not have."""
    for name in _names_of_results(other):
        if store.record(name) is None:
            _copy(store, other, name)


def _names_of_results(folder: Path) -> Iterator[str]:
    """The files with results in a folder, by name."""
    return (f"{kind}/{file.name}" for kind in RESULTS for file in sorted((folder / kind).glob("*.json")))


def _reject_contradictions(folders: Sequence[Path]) -> None:
    """Raise :class:`StoreError` if two folders have different results of one point."""
    first: dict[str, Path] = {}
    for folder in folders:
        for name in _names_of_results(folder):
            other = first.setdefault(name, folder)
            if other == folder:
                continue
            one, two = _measured(other, name), _measured(folder, name)
            key = next((key for key in one if key in two and one[key] != two[key]), None)
            if key is not None:
                raise StoreError(
                    f"{other / name} and {folder / name} are results of one point, and {key} is {one[key]} and "
                    f"{two[key]}: one is not as it was computed, or of other sources; remove that file"
                )


def _measured(folder: Path, name: str) -> dict[str, str]:
    """What a result measures, as text, the same in every run of the point; {} if it is damaged or has no row."""
    with suppress(RecordError):
        record = read_record(folder, name) or {}
        row = record.get("row") if record.get("status") == "ok" else None
        if isinstance(row, dict):
            return {key: str(row[key]) for key in sorted(row) if key != "cpu_s" and not key.startswith("saturated")}
    return {}


def _note_other_sources(folder: Path) -> None:
    """Print that results come from another flitlab than this one."""
    there, own = _manifest_of(folder), _provenance({"versions": versions(), "source": source()})
    if there and _provenance(there) != own:
        say(f"{folder}: its results are of {_provenance(there)}, and this is {own}")


def _provenance(described: JsonObject) -> str:
    sources = described.get("source") or {}
    stated = [f", {key} {sources[key]}" for key in ("commit", "modified") if key in sources]
    return f"flitlab {(described.get('versions') or {}).get('flitlab', 'of no known version')}{''.join(stated)}"


def _copy(store: Store, other: Path, name: str) -> None:
    """Copy a result from another folder, if it is undamaged."""
    try:
        record = read_record(other, name)
    except RecordError as error:
        say(f"{other / name} {error}: left out")
        return
    if record is not None:
        store.write_record(name, record)


def _manifest_of(folder: Path) -> JsonObject:
    try:
        return read_manifest(folder)
    except ManifestError as error:
        raise StoreError(str(error)) from None


def _reject_other_semantics(folder: Path) -> None:
    version = _manifest_of(folder).get("semantics_version", SEMANTICS_VERSION)
    if version != SEMANTICS_VERSION:
        raise StoreError(
            f"{folder} holds results of semantics_version {version}, those of this flitlab have {SEMANTICS_VERSION}: "
            "equal configurations may give different results, so the two cannot be mixed; choose another folder"
        )


def describe(study: Study, store: Store) -> JsonObject:
    """Write configuration and manifest of the run; returns the manifest as far as known.

    If the folder has another configuration, the change is printed, and its tables, figures and page are removed. Shards
    must be of the same configuration.
    """
    if isinstance(store, Memory):
        text = yaml_text(study.resolved())
        described = {**manifest(study), "resolved": text_digest(text), "tables": {}}
        store.write_manifest({**described, "status": RunStatus.RUNNING})
        store.write(RESOLVED, text)
        return described
    _reject_other_semantics(store.folder)
    before = _manifest_of(store.folder)
    resolved = study.resolved()
    text = yaml_text(resolved)
    changed = _changed(store.folder, resolved, text)
    if changed and store.shared:
        raise StoreError(f"has another configuration, whose shards may be running: {_difference_text(changed)}")
    if changed:
        _remove_outdated(store, before)
        before = {}
    described = {
        **manifest(study), "resolved": text_digest(text), "drawn": before.get("drawn"),
        "tables": before.get("tables", {}),
    }  # fmt: skip
    store.write_manifest({**described, "status": RunStatus.RUNNING})
    store.write("config.yaml", study.text)
    keep_topologies(study, store)
    store.write(RESOLVED, text)
    if changed:
        say(f"{store.folder}: the configuration has changed: {_difference_text(changed)}; {OLD_RESULTS_NOTE}")
    return described


def yaml_text(value: object) -> str:
    """A mapping as YAML, with its order of keys."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text


OLD_RESULTS_NOTE = "stored results of it are reused; all others stay in their files and are not shown"

MAX_LISTED = 8
"""Differences of configurations that are listed; further ones are counted."""


def _changed(folder: Path, resolved: Keys, text: str) -> list[str]:
    """The differences to the configuration of the folder; [] if it has none."""
    try:
        before = read_file(folder / RESOLVED)
        if before == text.encode():
            return []
        return changes(read_resolved(before), resolved) or ["the names of its scenarios"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return [f"{RESOLVED} there cannot be read"]


def _difference_text(changed: Sequence[str]) -> str:
    more = len(changed) - MAX_LISTED
    return ", ".join(changed[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


PICTURES = (".png", ".svg", ".pdf")


def _remove_outdated(store: Store, manifest: JsonObject) -> None:
    """Remove tables, figures and page of another configuration."""
    figures = (file for file in store.folder.glob("figures/*") if file.suffix in PICTURES)
    tables = (store.folder / name for name in manifest.get("tables", ()))
    for file in (*tables, *figures, store.folder / "report.html"):
        store.remove(str(file.relative_to(store.folder)))


def _run(
    study: Study,
    folder: Path | Memory,
    work: Work,
    options: RunOptions,
    missing: Sequence[str] = (),
    others: Sequence[Path] = (),
) -> Report:
    """Do the work and write all files. missing: filled by the work. others: folders with more results."""
    for other in others:
        _reject_other_semantics(other)
        _note_other_sources(other)
    if others and not isinstance(folder, Memory):
        _reject_contradictions([*([folder] if folder.is_dir() else []), *others])
    store = folder if isinstance(folder, Memory) else Store(folder)
    try:
        described = describe(study, store)
        for other in others:
            _copy_results(store, other)
        report = _simulate(study, store, work, options) if study.simulates else _compute(study, store, work)
        if missing:
            report.problems += missing
            report.exit_code = report.exit_code or ExitCode.FAILED
        with deferring():
            tables = list(_tables(report))
            described["tables"] |= dict.fromkeys(tables, "")
            store.write_manifest({**described, "status": RunStatus.RUNNING})
            _save(report, store)
            described["tables"] |= {name: store.digest(name) for name in tables}
            outcome = {
                "status": RunStatus.of(report.exit_code), "finished": now(), "results": len(report.results),
                "ceilings": len(report.ceilings), "problems": report.problems, "published": report.published,
                **report.cpu,
            }  # fmt: skip
            store.write_manifest({**described, **outcome})
        return report
    finally:
        store.close()


def _compute(study: Study, store: Store, work: Work) -> Report:
    """Run an experiment without simulations."""
    runs = _runs(study, store)
    count = sum(len(part.task_indices) for part in runs)
    most = UNLIMITED if study.experiment == "search" else count  # a search makes many calls per scenario
    stopped = work(lambda bar: chain.from_iterable(part.tasks(bar) for part in runs), count, most)
    report = Report(study, store.folder)
    ceiling_runs = [part for part in runs if isinstance(part, CeilingRuns)]
    left_out = {i for i in range(len(study.cases)) if any(part.is_left_out(i) for part in ceiling_runs)}
    for index, case in enumerate(study.cases):
        if index in left_out:
            continue
        columns, problems = zip(*(part.columns_of(index) for part in runs), strict=True)
        values = {key: value for part in columns for key, value in part.items()}
        problem = "; ".join(filter(None, problems))
        if values or problem:
            report.metrics.append(metrics_row(case, values, problem))
        if problem:
            report.problems.append(f"{case.label}: {problem}")
    report.tables = {name: rows for part in runs for name, rows in part.tables().items()}
    report.ceilings = report.tables.pop("ceilings.csv", [])
    report.problems += [stopped] if stopped else []
    report.exit_code = _exit_code(report, stopped)
    if not stopped:
        compared = replace(study, cases=[case for index, case in enumerate(study.cases) if index not in left_out])
        report.published = compare(compared, report.metrics, report.ceilings, _full_size(study))
    return report


def _full_size(study: Study) -> dict[str, Verdict]:
    """Of the quick version of a row, the verdicts at full size by ``where``."""
    changes = [change for change in study.changes if not change.startswith("--network ")]
    return verdicts_at_full_size(Path(study.file)) if study.published and changes == ["--quick"] else {}


def _runs(study: Study, store: Store) -> list[Runs]:
    """The computations of an experiment without simulations."""
    topologies = MetricRuns(study, store)
    if study.experiment == "metrics":
        return [topologies]
    if study.experiment == "search":
        return [SearchRuns(study, store)]
    bounds = CeilingRuns(study, store)
    if study.experiment == "relative":
        return [topologies, bounds, RelativeRuns(study, store, bounds)]
    return [topologies, bounds]


UNLIMITED = 1_000_000
"""More processes than any machine has."""


def carry_out(study: Study, options: RunOptions, phases: Sequence[Tasks], count: int, calls: int | None = None) -> str:
    """Make all calls; returns why it stopped early, or ''.

    Parameters
    ----------
    study: has the plugins.
    options: processes and threads.
    phases: the calls, which report to a progress bar; each list after the one before has completed.
    count: points for the progress bar.
    calls: their number, if known.
    """
    try:
        compiling = {} if study.engine == "reference" else kernels_to_compile(study.cases)
        before = compilations()
        with interruptible(), progress(count, Compiling.of(compiling)) as bar:
            run_all(open_pool(options, study.plugins, calls), *(phase(bar) for phase in phases))
        if len(compiling) == 1 and (functions := compilations() - before):
            record_compilations(next(iter(compiling)), functions)
    except KeyboardInterrupt:
        return RunStatus.INTERRUPTED
    except BrokenExecutor as error:
        return f"a worker process died (out of memory?): {crash(error)}; the same command resumes"
    except ClusterError as error:
        return f"the cluster: {error}; the same command resumes"
    return ""


def _simulate(study: Study, store: Store, work: Work, options: RunOptions) -> Report:
    """Run an experiment with simulations."""
    bounds = CeilingRuns(study, store)
    points = PointRuns(study, store, bounds, options.threads)
    prepare = options.pool is None and options.jobs > 1
    todo = points.count
    if done := len(points.points) - len(points.missing):
        say(f"{done} of {len(points.points)} points are in {store.folder} already")
    stopped = work(
        lambda bar: ordered_tasks(bounds, points, bar, prepare),
        todo,
        todo + len(bounds.task_indices),
    )
    report = Report(study, store.folder, ceilings=bounds.rows())
    report.results = [result_row(*entry) for entry in points.rows()]
    wrong: list[str] = []
    if study.runs_programs:
        relate(study, report.results)
        report.tables |= points.program_tables()
        if jobs := job_rows(study, points, bounds):
            report.tables["jobs.csv"] = jobs
            add_slowdowns(report.results, jobs)
        if study.experiment == "collective":
            report.tables["collectives.csv"], wrong = collectives(study, report.results)
    report.tables |= points.tables() | bounds.epoch_tables() | points.saturation_tables()
    report.tables |= BudgetRuns(study.budgets, points, bounds).tables()
    report.cpu, report.compiled_s = points.cpu, points.compiled_s
    report.problems = [*bounds.problems, *points.problems, *wrong, *([stopped] if stopped else [])]
    report.exit_code = _exit_code(report, stopped)
    if not stopped:
        report.published = compare(study, report.results, report.ceilings, _full_size(study))
    return report


def _exit_code(report: Report, stopped: str) -> int:
    if stopped == RunStatus.INTERRUPTED:
        return ExitCode.INTERRUPTED
    states = {row["status"] for row in [*report.results, *report.tables.get("jobs.csv", ())]}
    if states & {Status.CEILING_VIOLATED, Status.ENGINE_MISMATCH}:
        return ExitCode.CHECK_FAILED
    return ExitCode.FAILED if report.problems else ExitCode.OK


Table = tuple[Sequence[str], list[Row]]
"""Columns and rows."""


def _tables(report: Report) -> dict[str, Table]:
    """File name -> table, of all tables of a run."""
    study = report.study
    tables: dict[str, Table] = {
        name: (list(dict.fromkeys(key for row in rows for key in row)), rows) for name, rows in report.tables.items()
    }
    if study.experiment not in ("metrics", "search"):
        tables["ceilings.csv"] = ceilings.COLUMNS, report.ceilings
    if not study.simulates:
        tables["metrics.csv"] = metrics_columns(report.metrics), report.metrics
    else:
        tables["results.csv"] = result_columns(study, report.results), report.results
        if study.outputs.parquet:
            tables["results.parquet"] = tables["results.csv"]
    if study.published:
        tables["published.csv"] = PUBLISHED, report.published
    return tables


def _save(report: Report, store: Store) -> None:
    for name, (columns, rows) in _tables(report).items():
        if name.endswith(".parquet"):
            if isinstance(store, Memory):
                continue
            _write_parquet(store.folder / name, list(columns), rows)
        else:
            store.write_csv(name, columns, rows)


def _write_parquet(path: Path, columns: list[str], rows: list[Row]) -> None:
    try:
        import pandas as pd

        with replacing(path) as file:
            pd.DataFrame(rows, columns=columns).to_parquet(file)
    except ImportError:
        say("outputs.parquet: pyarrow is not installed (pip install flitlab[parquet]); results.csv has it all")
    except OSError as error:
        raise WriteError(f"{path.name} cannot be written: {error.strerror or error}") from None
