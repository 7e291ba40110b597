# SPDX-License-Identifier: Apache-2.0
"""``simrun budget`` (ask): measure the loss budget: the throughput lost by routing, buffers and crossbar."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from flitlab.models.mappings import JsonObject
from flitlab.sim.cli.common import print_json, run_options, say, study_of
from flitlab.sim.cli.options import add_configuration, add_jobs, add_json, add_threads
from flitlab.sim.cli.run import draw, explain, report_store_error
from flitlab.sim.cli.tables import budget_text, print_budgets
from flitlab.sim.config.draft import BUDGET
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.runner import Report
from flitlab.sim.experiment.runner import run as run_study
from flitlab.sim.experiment.store import StoreError
from flitlab.sim.report.folder.budget import TABLES, LossBudget, loss_budgets_of_files


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: runs/NAME-budget)")
    add_jobs(parser)
    add_threads(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Measure the loss budget of each scenario, and print it."""
    study = study_of(options, experiment=BUDGET)
    if study is None:
        return ExitCode.BAD
    folder = options.out or Path("runs") / study.name
    try:
        report = run_study(study, folder, run_options(options, study))
    except StoreError as error:
        return report_store_error(error, options.file, folder)
    draw(report)
    budgets = loss_budgets_of_files(report.tables)
    if options.json:
        print_json(_document(report, budgets))
    else:
        print_budgets(budgets)
        say(f"results in {report.folder}")
    explain(report)
    return report.exit_code


def _document(report: Report, budgets: Sequence[LossBudget]) -> JsonObject:
    tables = {name: report.tables.get(f"{name}.csv", []) for name in TABLES}
    levels = [row for row in tables["budget"] if row["kind"] != "omitted"]
    out = [
        {"scenario": one.scenario, "rung": level, "why": why} for one in budgets for level, why in one.left_out.items()
    ]
    return {
        "name": report.study.name, "folder": str(report.folder), "exit_code": report.exit_code, "rungs": levels,
        "parts": tables["budget_parts"], "sensitivities": tables["budget_sensitivities"],
        "channels": tables["budget_channels"], "left_out": out,
        "sentences": [{"scenario": one.scenario, "sentence": budget_text(one)} for one in budgets],
        "problems": report.problems,
    }  # fmt: skip
