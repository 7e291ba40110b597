# SPDX-License-Identifier: Apache-2.0
"""``simrun budget FILE``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flitlab.sim.cli.budgets import print_budgets, said
from flitlab.sim.cli.common import print_json, say, study_of
from flitlab.sim.cli.processors import jobs_of
from flitlab.sim.cli.run import draw, explain, refused
from flitlab.sim.config.draft import BUDGET
from flitlab.sim.exit import BAD
from flitlab.sim.experiment.runner import Report
from flitlab.sim.experiment.runner import run as run_study
from flitlab.sim.experiment.store import StoreError
from flitlab.sim.report.folder.budget import TABLES, LossBudget, loss_budgets_of_files


def run(options: argparse.Namespace) -> int:
    """Measures where the throughput of each scenario goes, and prints it."""
    study = study_of(options, experiment=BUDGET)
    if study is None:
        return BAD
    folder = options.out or Path("runs") / study.name
    try:
        report = run_study(study, folder, jobs_of(options, study), threads=options.threads)
    except StoreError as error:
        return refused(error, options.file, folder)
    draw(report)
    found = loss_budgets_of_files(report.tables)
    if options.json:
        print_json(_document(report, found))
    else:
        print_budgets(found)
        say(f"results in {report.folder}")
    explain(report)
    return report.exit_code


def _document(report: Report, found: Sequence[LossBudget]) -> dict[str, Any]:
    tables = {name: report.tables.get(f"{name}.csv", []) for name in TABLES}
    rungs = [row for row in tables["budget"] if row["kind"] != "omitted"]
    out = [{"scenario": one.scenario, "rung": rung, "why": why} for one in found for rung, why in one.left_out.items()]
    return {
        "name": report.study.name, "folder": str(report.folder), "exit_code": report.exit_code, "rungs": rungs,
        "parts": tables["budget_parts"], "sensitivities": tables["budget_sensitivities"],
        "channels": tables["budget_channels"], "left_out": out,
        "sentences": [{"scenario": one.scenario, "sentence": said(one)} for one in found], "problems": report.problems,
    }  # fmt: skip
