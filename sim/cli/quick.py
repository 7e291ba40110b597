# SPDX-License-Identifier: Apache-2.0
"""``simrun quick`` (run): run every scenario for a few hundred ticks, to test that it works."""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flitlab.models.mappings import Row
from flitlab.sim.cli.common import number, print_json, print_table, study_of
from flitlab.sim.cli.options import add_configuration, add_jobs, add_json
from flitlab.sim.cli.run import explain
from flitlab.sim.config.case import Case, Study
from flitlab.sim.config.reporting import OutputsConfig
from flitlab.sim.config.schema import MeasureConfig
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import run as run_study
from flitlab.sim.measure.rows import Status

TICKS = 300
"""Ticks that are measured; at least the zero-load latency of three packets."""

SECONDS = 0.12
"""Seconds of a run of mode datagram: most flows start in its first half, and all send in the second."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    add_jobs(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run every scenario briefly, in a temporary folder, to test that it builds and runs."""
    study = study_of(options)
    if study is None:
        return ExitCode.BAD
    with tempfile.TemporaryDirectory() as folder:
        report = run_study(short_study(study), Path(folder), RunOptions.of(options.jobs))
    lines = [_line(case, report.results, report.ceilings) for case in study.cases]
    if options.json:
        print_json({"name": study.name, "exit_code": report.exit_code, "scenarios": lines, "problems": report.problems})
    else:
        columns = [(key, lambda line, key=key: str(line[key])) for key in lines[0]]
        print_table(f"{study.name}: a moment of every scenario", columns, lines)
    explain(report)
    return report.exit_code


def short_study(study: Study) -> Study:
    """The study with two loads and one seed per scenario, and short runs."""
    no_outputs = OutputsConfig(figures=[], html=False)
    cases = [_short(case) for case in study.cases]
    experiment = study.experiment if study.simulates or study.experiment == "metrics" else "ceilings"
    return replace(study, experiment=experiment, cases=cases, published=[], outputs=no_outputs, budgets=[])


def _short(case: Case) -> Case:
    ceilings = [spec for spec in case.ceilings if spec.quick]
    if not case.simulated or case.scenario is None:
        return replace(case, ceilings=ceilings, metrics=[])
    loads = case.load_grid
    few = sorted({loads[0], loads[len(loads) // 2]})
    seconds = MeasureConfig(seconds=SECONDS, ci=None)
    measure = seconds if case.scenario.counted == "flows" else _ticks(3 * case.scenario.zero_load_latency)
    return replace(case, loads=few, placing=None, seeds=case.seeds[:1], ceilings=ceilings, measure=measure)


def _ticks(least: int) -> MeasureConfig:
    ticks = max(TICKS, least)
    return MeasureConfig(warmup=ticks // 3, ticks=ticks, ci=None)


def _line(case: Case, results: Sequence[Row], ceilings: Sequence[Row]) -> Row:
    """A line for a scenario; values of several loads one after another."""
    rows = [row for row in results if row["scenario"] == case.label]
    quick = {spec.kind for spec in case.ceilings if spec.quick}
    bounds = [row for row in ceilings if row["scenario"] == case.label and row["ceiling"] in quick]
    problems = [row["message"] for row in rows if row["status"] != Status.OK]
    notes = [name for name in ("saturated", "deadlocked") if any(row.get(name) for row in rows)]

    def values(*names: str) -> str:
        row_values = [next((row[name] for name in names if name in row), None) for row in rows]
        return ", ".join(number(value) for value in row_values)

    return {
        "scenario": case.label, "load": values("load"), "accepted": values("accepted", "host_throughput"),
        "latency": values("latency_mean"), "ceilings": ", ".join(_bound(row) for row in bounds),
        "": "; ".join([*notes, *problems]) or ("ok" if rows else "built"),
    }  # fmt: skip


def _bound(row: Row) -> str:
    return f"{row['ceiling']} {number(row['upper'])}"
