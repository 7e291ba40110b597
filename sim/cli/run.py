"""``simrun run FILE``."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from sim.cli.common import BAD, complain, number, print_json, print_table, study_of
from sim.cli.tables import print_answers, print_ceilings, print_metrics
from sim.experiment.pool import cores
from sim.experiment.runner import INTERRUPTED, Report
from sim.experiment.runner import run as run_study
from sim.experiment.store import StoreError

Row = Mapping[str, Any]

MOST_CEILINGS = 4
"""The ceilings of more scenarios than this are one table, with a line for each scenario."""

MOST_PROBLEMS = 20
"""More failures than this are counted, not listed."""


def run(options: argparse.Namespace) -> int:
    """Runs a configuration and prints a summary."""
    study = study_of(options)
    if study is None:
        return BAD
    folder = options.out or Path("runs") / study.name
    try:
        report = run_study(study, folder, options.jobs or cores())
    except StoreError as error:
        complain(f"{options.file}: output folder = {folder}: {error}")
        return BAD
    _draw(report)
    if options.json:
        print_json(_document(report))
    else:
        _print(report)
    _explain(report)
    return report.exit_code


def _draw(report: Report) -> None:
    """Draws the figures and the page asked for."""
    outputs = report.study.outputs
    if not report.results and not report.metrics:
        return
    from sim.report import figures, html

    kinds = None if report.metrics else list(outputs.figures)
    if kinds is None or kinds:
        _attempt(figures.draw, report.folder, kinds)
    if outputs.html:
        _attempt(html.write, report.folder)


def _attempt(draw: Callable[..., Any], *arguments: Any) -> None:
    """A figure that fails is no reason to lose the results."""
    try:
        draw(*arguments)
    except ValueError as error:
        complain(f"figures: {error}")
    except Exception as error:
        complain(f"figures: {type(error).__name__}: {error}")


def _document(report: Report) -> dict[str, Any]:
    study = report.study
    return {
        "name": study.name, "experiment": study.experiment, "folder": str(report.folder),
        "exit_code": report.exit_code, "scenarios": [{"label": case.label, **case.keys} for case in study.cases],
        "results": report.results, "ceilings": report.ceilings, "metrics": report.metrics,
        "published": report.published, "problems": report.problems,
    }  # fmt: skip


def _print(report: Report) -> None:
    for case in report.study.cases:
        rows = [row for row in report.results if row["scenario"] == case.label]
        if rows:
            _print_points(case.label, rows)
    experiment = report.study.experiment
    if report.metrics and experiment == "metrics":
        print_metrics(report.metrics)
    elif report.metrics and (experiment != "ceilings" or len(report.metrics) > MOST_CEILINGS):
        print_answers(experiment, report.metrics, report.study.columns)
    elif report.ceilings:
        print_ceilings(report.ceilings)
    if report.published:
        print_published(report.published)
    print(f"results in {report.folder}")


def _print_points(label: str, rows: Sequence[Row]) -> None:
    """One line per load: means over seeds; the confidence interval is the widest of them."""
    loads = list(dict.fromkeys(row["load"] for row in rows))
    grouped = [[row for row in rows if row["load"] == load] for load in loads]

    def mean(name: str) -> Any:
        def text(group: Sequence[Row]) -> str:
            values = [row[name] for row in group if isinstance(row.get(name), int | float)]
            return number(fmean(values) if values else None)

        return text

    def interval(group: Sequence[Row]) -> str:
        values = [row["latency_ci95"] for row in group if isinstance(row.get("latency_ci95"), int | float)]
        return mean("latency_mean")(group) + (f" ± {number(max(values), 2)}" if values else "")

    def state(group: Sequence[Row]) -> str:
        bad = [row["status"] for row in group if row["status"] != "ok"]
        notes = [name for name in ("saturated", "deadlocked") if any(row.get(name) for row in group)]
        return ", ".join(dict.fromkeys([*notes, *bad]))

    if any("throughput_mean" in row for row in rows):
        shown = [("throughput", "throughput_mean"), ("least", "throughput_min"), ("Jain", "jain"), ("drops", "drops")]
        shown += [("completion (ms)", "fct_ms_mean"), ("slowdown", "slowdown_mean")] * ("fct_ms_mean" in rows[0])
        flows = [("load", lambda group: number(group[0]["load"])), *((text, mean(name)) for text, name in shown)]
        print_table(label, [*flows, ("", state)], grouped)
        return
    columns = [
        ("load", lambda group: number(group[0]["load"])), ("accepted", mean("accepted")),
        ("latency (ticks)", interval), ("hops", mean("hops_mean")), ("", state),
    ]  # fmt: skip
    print_table(label, columns, grouped)


def print_published(rows: list[dict[str, Any]]) -> None:
    """*published | measured | verdict*."""
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


def _explain(report: Report) -> None:
    """What went wrong, and what to do about it."""
    complain(*report.problems[:MOST_PROBLEMS])
    if len(report.problems) > MOST_PROBLEMS:
        table = "results.csv" if report.results else "metrics.csv"
        complain(f"... and {len(report.problems) - MOST_PROBLEMS} more, see status and message in {table}")
    if any(row["status"] == "ceiling_violated" for row in report.results):
        complain(
            "A simulation delivered more than a certified bound allows. One of the two is wrong: this is a bug in "
            "flitlab, please report it with the run folder."
        )
    if any(row["status"] == "engine_mismatch" for row in report.results):
        complain("The two engines disagree: this is a bug in flitlab, please report it with the configuration.")
    if report.exit_code == INTERRUPTED:
        complain(f"interrupted; the same command goes on from what is in {report.folder}")
