# SPDX-License-Identifier: Apache-2.0
"""``simrun run`` (run): run a configuration and write its results and figures."""

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from flitlab.fluid.kinds.spec import kind_of
from flitlab.models.files import read_text
from flitlab.models.hashing import content_hash
from flitlab.models.jit import source_hash
from flitlab.models.mappings import JsonObject, Row
from flitlab.sim.cli.common import (
    complain,
    error_text,
    number,
    print_json,
    print_table,
    run_options,
    say,
    shown_label,
    study_of,
)
from flitlab.sim.cli.options import add_configuration, add_jobs, add_json, add_out, add_threads
from flitlab.sim.cli.tables import (
    print_answers,
    print_budgets,
    print_ceilings,
    print_classes,
    print_collectives,
    print_energy,
    print_jobs,
    print_metrics,
    print_pauses,
    print_programs,
    print_saturation,
)
from flitlab.sim.config.reporting import OutputsConfig
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.cluster import ClusterError, connected
from flitlab.sim.experiment.early_kernels import compiling_kernels
from flitlab.sim.experiment.folders import digest_of, read_manifest
from flitlab.sim.experiment.progress import stage
from flitlab.sim.experiment.runner import Report
from flitlab.sim.experiment.runner import run as run_study
from flitlab.sim.experiment.store import Store, StoreError, WriteError
from flitlab.sim.measure.columns.registry import columns
from flitlab.sim.measure.interval import MEANING, mean_and_half
from flitlab.sim.measure.rows import Status
from flitlab.sim.measure.saturation import SaturatedBy
from flitlab.sim.report.folder.budget import TABLES as BUDGET_TABLES
from flitlab.sim.report.folder.budget import loss_budgets_of_files

MAX_LISTED_CEILINGS = 4
"""Scenarios with a table of ceilings each; more get one line each in a common table."""

MAX_LISTED_PROBLEMS = 20
"""Problems that are listed; further ones are counted."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    add_out(parser)
    add_jobs(parser)
    add_threads(parser)
    parser.add_argument(
        "--cluster",
        metavar="WHERE",
        help="in place of --jobs: a Dask cluster, tls://host:port, tcp://localhost:port or slurm:key=value,...",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run a configuration and print a summary."""
    is_as_in_file = not options.set and options.engine != "reference"
    with compiling_kernels(options.file, options.jobs) if is_as_in_file else nullcontext():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    study = study_of(options)
    if study is None:
        return ExitCode.BAD
    folder = options.out or Path("runs") / study.name
    processors = run_options(options, study)
    try:
        with connected(options.cluster, study.plugins) if options.cluster else nullcontext() as pool:
            report = run_study(study, folder, replace(processors, pool=pool))
    except ClusterError as error:
        complain(f"--cluster {options.cluster}: {error}")
        return ExitCode.BAD
    except StoreError as error:
        return report_store_error(error, options.file, folder)
    return finish(report, options.json)


def report_store_error(error: StoreError, file: str | Path, folder: Path) -> int:
    """Print why a folder cannot be used; returns the exit code.

    Parameters
    ----------
    error: of the store.
    file: of the configuration.
    folder: of the run.
    """
    complain(f"{file}: output folder = {folder}: {error}")
    if not isinstance(error, WriteError):
        return ExitCode.BAD
    complain("the files written before are complete; the same command resumes")
    return ExitCode.FAILED


def finish(report: Report, as_json: bool) -> int:
    """Draw figures and page, and print the results of a run; returns the exit code."""
    complete(report)
    if as_json:
        print_json(document(report))
    else:
        _print(report)
    explain(report)
    return report.exit_code


def complete(report: Report) -> None:
    """Draw figures and page; a failure becomes the exit code of the report."""
    with stage("drawing figures"):
        is_drawn = draw(report)
    if not is_drawn:
        report.exit_code = report.exit_code or ExitCode.FAILED


TABLES = (
    "results.csv", "ceilings.csv", "metrics.csv", "flows.csv", "steps.csv", "utilisation.csv", "timeline.csv",
    "jobs.csv", "epochs.csv", "throughput_time.csv", "transports.csv", "classes.csv", "pauses.csv",
    "pauses_time.csv",
    *(f"{name}.csv" for name in BUDGET_TABLES), "config.yaml", "config.resolved.yaml",
)  # fmt: skip
"""Files that determine figures and page."""


def draw(report: Report) -> bool:
    """Draw the configured figures and the page, unless the same code has drawn them from the same tables.

    Returns whether all could be written.
    """
    outputs = report.study.outputs
    if not (report.results or report.metrics or report.study.budgets):
        return True
    drawn = read_manifest(report.folder).get("drawn") or {}  # a hash of the input, and hashes of the files
    texts = [read_text(path) for name in TABLES if (path := report.folder / name).exists()]
    stamp = content_hash(source_hash(), outputs.model_dump(mode="json"), *texts)
    if drawn.get("stamp") == stamp and drawn.get("files") == _digests(report.folder, drawn.get("files", ())):
        return True
    from flitlab.sim.report import html
    from flitlab.sim.report.figures import draw as figures

    files: list[Path] = []
    kinds = None if report.metrics else outputs.figures
    try:
        if kinds is None or kinds:
            drawn_now = _draw_or_report(figures.draw, report.folder, kinds, None, outputs.formats, outputs.size)
            files += drawn_now or []
            if kinds and drawn_now is not None and kinds != OutputsConfig().figures:
                complain(*(f"figures: {name} is left out: no data for it" for name in figures.left_out(kinds, files)))
        files += (
            _draw_or_report(figures.draw_networks, report.study, report.folder, outputs.figures, outputs.formats) or []
        )
        if outputs.html:
            page = _draw_or_report(html.write, report.folder)
            files += [page] if page else []
        names = [str(path.relative_to(report.folder)) for path in files]
        _record_figures(report.folder, {"stamp": stamp, "files": _digests(report.folder, names)})
    except OSError as error:
        complain(f"figures: {error_text(error)}")
        return False
    except WriteError as error:
        complain(f"{report.folder}: {error}")
        return False
    return True


def _digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of files, '' for one that cannot be read."""
    return {name: digest_of(folder / name) for name in names}


def _record_figures(folder: Path, drawn: JsonObject) -> None:
    try:
        store = Store(folder)
    except StoreError:  # another run uses the folder
        return
    try:
        store.write_manifest({**read_manifest(folder), "drawn": drawn})
    finally:
        store.close()


def _draw_or_report(draw: Callable[..., object], *arguments: object) -> Any:
    """The return value of a drawing function; None, with a message, if it fails, so that results are kept.

    Raises ``OSError`` if a file cannot be written.
    """
    try:
        return draw(*arguments)
    except OSError:
        raise
    except ValueError as error:
        complain(f"figures: {error}")
    except Exception as error:
        complain(f"figures: {type(error).__name__}: {error}")
    return None


LONG_TABLES = ("packets.csv", "channels.csv")
"""Tables of a row per packet or channel, which the document leaves to their files."""


def document(report: Report) -> JsonObject:
    """The JSON document: every table of the run by its name, empty those that every run has."""
    study = report.study
    more = {name.removesuffix(".csv"): rows for name, rows in report.tables.items() if name not in LONG_TABLES}
    return {
        "name": study.name, "experiment": study.experiment, "folder": str(report.folder),
        "exit_code": report.exit_code, "scenarios": [{"label": case.label, **case.keys} for case in study.cases],
        "results": report.results, "ceilings": report.ceilings, "metrics": report.metrics,
        "saturation": [], "steps": [], "jobs": [], "collectives": [], "classes": [], **more,
        "published": report.published, "problems": report.problems,
    }  # fmt: skip


def _print(report: Report) -> None:
    experiment = report.study.experiment
    if collectives := report.tables.get("collectives.csv"):
        print_collectives(collectives, report.results)
    elif report.study.runs_programs:
        print_programs(report.results)
    if jobs := report.tables.get("jobs.csv"):
        print_jobs(jobs)
    for case in report.study.cases if not report.study.runs_programs else ():
        rows = [row for row in report.results if row["scenario"] == case.label]
        if rows:
            _print_points(case.label, rows)
    if pauses := report.tables.get("pauses.csv"):
        print_pauses(pauses, report.tables.get("flows.csv", []))
    if classes := report.tables.get("classes.csv"):
        print_classes(classes)
    if report.metrics and experiment == "metrics":
        print_metrics(report.metrics)
    elif report.metrics and (experiment != "ceilings" or len(report.metrics) > MAX_LISTED_CEILINGS):
        print_answers(experiment, report.metrics, report.study.columns)
    elif ceilings := [row for row in report.ceilings if not kind_of(row["ceiling"]).of_program]:
        print_ceilings(ceilings)
    if saturation := report.tables.get("saturation.csv"):
        print_saturation(saturation)
    if report.study.budgets:
        print_budgets(loss_budgets_of_files(report.tables))
    if report.published:
        print_published(report.published)
    if report.study.outputs.energy and report.study.simulates:
        print_energy(report.study.outputs.energy)
    if saturation or any("latency_mean" in row for row in report.results):
        say(MEANING)
    say(f"results in {report.folder}")


def _print_points(label: str, rows: Sequence[Row]) -> None:
    """Print one line per load: means over seeds."""
    loads = list(dict.fromkeys(row["load"] for row in rows))
    grouped = [[row for row in rows if row["load"] == load] for load in loads]

    def mean(name: str) -> Callable[[Sequence[Row]], str]:
        def text(group: Sequence[Row]) -> str:
            values = [row[name] for row in group if isinstance(row.get(name), int | float)]
            return number(fmean(values) if values else None)

        return text

    def interval(group: Sequence[Row]) -> str:
        known = [row for row in group if isinstance(row.get("latency_mean"), int | float)]
        if not known:
            return number(None)
        middle, half = mean_and_half([row["latency_mean"] for row in known], known[0].get("latency_ci95", math.nan))
        return number(middle) + (f" ± {number(half, 2)}" if math.isfinite(half) else "")

    def in_runs(name: str, group: Sequence[Row]) -> str:
        known = [bool(row[name]) for row in group if row.get(name) not in (None, "")]
        return name if all(known) else f"{name} in {sum(known)} of {len(known)} runs"

    def state(group: Sequence[Row]) -> str:
        bad = [row["status"] for row in group if row["status"] != Status.OK]
        notes = [in_runs(name, group) for name in ("saturated", "deadlocked") if any(row.get(name) for row in group)]
        notes += ["window too short to tell"] * any(row.get("saturated_by") == SaturatedBy.SHORT for row in group)
        notes += [name.replace("_", " ") for name in NO_DATA_COLUMNS if any(row.get(name) for row in group)]
        return ", ".join(dict.fromkeys([*notes, *bad]))

    def has_numbers(name: str) -> bool:
        return any(isinstance(row.get(name), int | float) and math.isfinite(row[name]) for row in rows)

    of_flows = any("throughput_mean" in row for row in rows)
    table = sorted(columns("flows" if of_flows else "packets").items(), key=lambda item: item[1].derive is not None)
    shown = [
        (one.summary, interval if name == "latency_mean" else mean(name))
        for name, one in table if one.summary and (one.lead or has_numbers(name))
    ]  # fmt: skip
    print_table(shown_label(label), [("load", lambda group: number(group[0]["load"])), *shown, ("", state)], grouped)


def print_published(rows: list[Row]) -> None:
    """Print published and measured values with their verdicts."""
    sign = {"about": "", "at_most": "<= ", "at_least": ">= ", "less_than": "< ", "greater_than": "> "}

    def published(row: Row) -> str:
        return f"{sign[row['compare']]}{row['published']}" + (f" ± {row['tolerance']}" if row["tolerance"] else "")

    columns = [
        ("where", lambda row: row["where"]), ("scenario", lambda row: row["scenario"]),
        ("quantity", lambda row: row["quantity"] if row["quantity"] != row["where"] else ""),
        ("published", published), ("measured", lambda row: number(row["measured"])),
        ("verdict", lambda row: row["verdict"]),
    ]  # fmt: skip
    print_table("published | measured | verdict", columns, rows)


NO_DATA_COLUMNS = {
    "not_begun": "had not begun when the run ended (transport.start_ms, measure.window)",
    "not_opened": "never opened, as a SYN or its answer was dropped (transport.syn_rto_ms)",
}
"""Column of results.csv -> what it counts, with the keys that it depends on."""


def flows_without_data(rows: Sequence[Row]) -> list[str]:
    """A line for each of :data:`NO_DATA_COLUMNS` with flows that received nothing."""
    lines = []
    for name, what in NO_DATA_COLUMNS.items():
        some = [row for row in rows if row.get(name)]
        if some:
            count, all_ = (sum(row[column] for row in some) for column in (name, "subflows"))
            lines.append(
                f"{count:,} of {all_:,} subflows in {len(some)} of {len(rows)} points {what}, and count as 0: "
                f"column {name} of results.csv, state in flows.csv"
            )
    return lines


def explain(report: Report) -> None:
    """Print problems, and what to do about them."""
    complain(*report.problems[:MAX_LISTED_PROBLEMS])
    if len(report.problems) > MAX_LISTED_PROBLEMS:
        table = "results.csv" if report.results else "metrics.csv"
        complain(f"... and {len(report.problems) - MAX_LISTED_PROBLEMS} more, see status and message in {table}")
    if report.compiled_s >= 1 and sys.stderr.isatty():
        complain(f"{report.compiled_s:.0f} s of CPU time compiled and loaded kernels; column cpu_s is without it")
    imprecise = [row for row in report.results if row.get("precise") is False]
    if imprecise:
        saturated = sum(bool(row.get("saturated")) for row in imprecise)
        complain(
            f"{len(imprecise)} of {len(report.results)} points did not reach the precision of measure.ci (column "
            f"precise); {saturated} of them are saturated"
        )
    complain(*flows_without_data(report.results))
    if any(row["status"] == Status.CEILING_VIOLATED for row in report.results):
        complain(
            "A simulation delivered more than a certified bound allows. One of the two is wrong: this is a bug in "
            "flitlab, please report it with the run folder."
        )
    if any(row["status"] == Status.ENGINE_MISMATCH for row in report.results):
        complain("The two engines disagree: this is a bug in flitlab, please report it with the configuration.")
    if report.exit_code == ExitCode.INTERRUPTED:
        complain(f"interrupted; the same command resumes from {report.folder}")
