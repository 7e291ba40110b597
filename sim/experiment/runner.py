"""Runs a study into a folder: ceilings, points, the check of one against the other, and the tables."""

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import yaml

from sim.config.check import crash
from sim.config.study import Study
from sim.experiment import ceilings
from sim.experiment.ceilings import CeilingRuns
from sim.experiment.manifest import manifest, now
from sim.experiment.metrics import MetricRuns
from sim.experiment.points import PointRuns
from sim.experiment.pool import Task, run_all
from sim.experiment.progress import Progress, Quiet, progress
from sim.experiment.published import COLUMNS as PUBLISHED
from sim.experiment.published import compare
from sim.experiment.relative import RelativeRuns
from sim.experiment.runs import Runs
from sim.experiment.search import SearchRuns
from sim.experiment.store import Store
from sim.experiment.tables import metrics_columns, metrics_row, result_columns, result_row

OK, SOME_FAILED, BAD_CONFIG, CHECK_FAILED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes."""

STATUS = {OK: "done", SOME_FAILED: "some failed", CHECK_FAILED: "check failed", INTERRUPTED: "interrupted"}
"""Exit code -> ``status`` in the manifest."""


@dataclass
class Report:
    """What a run came to. Every table is a list of rows (column -> value); problems are one line each.

    tables: of further CSV files, by name.
    """

    study: Study
    folder: Path
    results: list[dict[str, Any]] = field(default_factory=list)
    ceilings: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    exit_code: int = OK


def run(study: Study, folder: Path, jobs: int) -> Report:
    """Runs what is not in the folder yet and writes all its files.

    Raises :class:`~sim.experiment.store.StoreError` if the folder cannot be used, at the beginning or later on.
    """
    store = Store(folder)
    try:
        described = manifest(study)
        store.write_json("manifest.json", {**described, "status": "running"})
        store.write("config.yaml", study.given)
        store.write("config.resolved.yaml", yaml.safe_dump(study.resolved(), sort_keys=False, allow_unicode=True))
        report = _simulate(study, store, jobs) if study.experiment == "load_sweep" else _ask(study, store, jobs)
        with _uninterrupted():
            _save(report, store)
            counts = {
                "results": len(report.results),
                "ceilings": len(report.ceilings),
                "problems": report.problems,
            }
            outcome = {
                "status": STATUS[report.exit_code],
                "finished": now(),
                **counts,
                "published": report.published,
            }
            store.write_json("manifest.json", {**described, **outcome})
        return report
    finally:
        store.close()


def _ask(study: Study, store: Store, jobs: int) -> Report:
    """The experiments that simulate nothing."""
    runs = _runs(study, store)
    count = sum(part.count for part in runs)
    if study.experiment != "search":  # where one scenario is many calls
        jobs = min(jobs, count)
    stopped = carry_out(study, lambda bar: chain.from_iterable(part.tasks(bar) for part in runs), count, jobs)
    report = Report(study, store.folder)
    for index, case in enumerate(study.cases):
        columns, problems = zip(*(part.found(index) for part in runs), strict=True)
        found = {key: value for part in columns for key, value in part.items()}
        problem = "; ".join(filter(None, problems))
        if found or problem:
            report.metrics.append(metrics_row(case, found, problem))
        if problem:
            report.problems.append(f"{case.label}: {problem}")
    report.tables = {name: rows for part in runs for name, rows in part.tables().items()}
    report.ceilings = report.tables.pop("ceilings.csv", [])
    report.problems += [stopped] if stopped else []
    report.exit_code = _exit_code(report, stopped)
    if not stopped:
        report.published = compare(study, report.metrics, report.ceilings)
    return report


def _runs(study: Study, store: Store) -> list[Runs]:
    """What an experiment asks of every scenario."""
    topologies = MetricRuns(study, store)
    if study.experiment == "metrics":
        return [topologies]
    if study.experiment == "search":
        return [SearchRuns(study, store)]
    bounds = CeilingRuns(study, store)
    if study.experiment == "relative":
        return [topologies, bounds, RelativeRuns(study, store, bounds)]
    return [topologies, bounds]


def carry_out(study: Study, tasks: Callable[[Progress], Iterable[Task | None]], count: int, jobs: int) -> str:
    """Makes all calls; says why it stopped early, '' if it did not. tasks: the calls, for a report on ``count``."""
    try:
        with _interruptible(), progress(count) as bar:
            run_all(tasks(bar), max(1, jobs), study.plugins)
    except KeyboardInterrupt:
        return "interrupted"
    except BrokenExecutor as error:
        return f"a worker process died (out of memory?): {crash(error)}; the same command goes on from here"
    return ""


def _simulate(study: Study, store: Store, jobs: int) -> Report:
    """The experiment ``load_sweep``."""
    bounds = CeilingRuns(study, store)
    points = PointRuns(study, store, bounds)
    todo = len(points.missing)
    if done := len(points.points) - todo:
        say(f"{done} of {len(points.points)} points are in {store.folder} already")
    stopped = carry_out(
        study,
        lambda bar: _spread(bounds.tasks(Quiet()), points.tasks(bar), len(points.disciplines)),
        todo,
        min(jobs, todo + len(bounds.missing)),
    )
    report = Report(study, store.folder, ceilings=bounds.rows())
    report.results = [result_row(*entry) for entry in points.rows()]
    if any(point.scenario.datagram is not None for point in points.points.values()):
        report.tables["flows.csv"] = points.flows()
    report.problems = [*bounds.problems, *points.problems, *([stopped] if stopped else [])]
    report.exit_code = _exit_code(report, stopped)
    if not stopped:
        report.published = compare(study, report.results, report.ceilings)
    return report


def _spread(bounds: Iterator[Task], points: Iterator[Task], disciplines: int) -> Iterator[Task]:
    """Ceilings before points, but first one task for each set of kernels that may have to be compiled."""
    return chain(islice(bounds, 1), islice(points, disciplines), bounds, points)


def _exit_code(report: Report, stopped: str) -> int:
    if stopped == "interrupted":
        return INTERRUPTED
    states = {row["status"] for row in report.results}
    if states & {"ceiling_violated", "engine_mismatch"}:
        return CHECK_FAILED
    return SOME_FAILED if report.problems else OK


def _save(report: Report, store: Store) -> None:
    study = report.study
    for name, rows in report.tables.items():
        store.write_csv(name, list(dict.fromkeys(key for row in rows for key in row)), rows)
    if study.experiment not in ("metrics", "search"):
        store.write_csv("ceilings.csv", ceilings.COLUMNS, report.ceilings)
    if study.experiment != "load_sweep":
        store.write_csv("metrics.csv", metrics_columns(report.metrics), report.metrics)
    else:
        columns = result_columns(study, report.results)
        store.write_csv("results.csv", columns, report.results)
        if study.outputs.parquet:
            _write_parquet(store.folder / "results.parquet", columns, report.results)
    if study.published:
        store.write_csv("published.csv", PUBLISHED, report.published)


def _write_parquet(path: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    try:
        import pandas as pd

        pd.DataFrame(rows, columns=columns).to_parquet(path)
    except ImportError:
        say("outputs.parquet: pyarrow is not installed (pip install flitlab[parquet]); results.csv has it all")


def say(text: str) -> None:
    """A line for the user, on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _handling(action: Any) -> Iterator[None]:
    """Answers Ctrl-C and SIGTERM with ``action``; outside the main thread they cannot arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, action) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interruptible() -> AbstractContextManager[None]:
    """SIGTERM (a batch system's time limit) is like Ctrl-C, also where a script started this in the background."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    return _handling(interrupt)


def _uninterrupted() -> AbstractContextManager[None]:
    """Lets the last files be written in peace."""
    return _handling(signal.SIG_IGN)
