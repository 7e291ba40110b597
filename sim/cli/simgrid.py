# SPDX-License-Identifier: Apache-2.0
"""``simrun simgrid`` (convert): run a program in mode flow and in SimGrid, and compare the times."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flitlab.models.mappings import Row
from flitlab.models.registry import SpecError
from flitlab.models.switching.flow import Flow
from flitlab.sim.cli.common import cases_of, complain, error_text, number, print_json, print_table, study_of
from flitlab.sim.cli.options import add_configuration, add_json, natural
from flitlab.sim.config.case import Case
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import UnrelatedFolder, reject_unrelated_folder
from flitlab.sim.measure.application import UnfinishedError
from flitlab.sim.simgrid.compare import SimGridFailed, SimGridMissing, by_flow, by_simgrid, python_with_simgrid


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    parser.add_argument("--seed", metavar="S", type=natural, help="default: the first of the file")
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: all)")
    parser.add_argument("--python", metavar="PATH", help="a Python that has SimGrid (default: searched for)")
    parser.add_argument(
        "--by-latency", action="store_true", help="let flows share links in inverse proportion to their latencies"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="keep what SimGrid reads and writes")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the times of a program's scenarios in mode ``flow`` and in SimGrid side by side."""
    study = study_of(options, experiment="application")
    cases = [] if study is None else cases_of(study, options.scenario)
    if study is None or not cases or not _are_flows(cases):
        return ExitCode.BAD
    try:
        python = python_with_simgrid(options.python)
    except SimGridMissing as error:
        complain(f"simrun simgrid: {error}")
        return ExitCode.BAD
    try:
        if options.out is not None:
            reject_unrelated_folder(options.out, "0/plan.json")
    except (UnrelatedFolder, OSError) as error:
        complain(f"simrun simgrid: --out {options.out}: {error_text(error)}")
        return ExitCode.BAD
    rows = []
    for k, case in enumerate(cases):
        seed = case.seeds[0] if options.seed is None else options.seed
        folder = None if options.out is None else options.out / str(k)
        try:
            rows.append(_row(case, seed, python, options.by_latency, folder))
        except SpecError as error:
            complain(f"{case.label}: {error}")
            return ExitCode.BAD
        except (SimGridFailed, UnfinishedError) as error:
            complain(f"{case.label}: {error}")
            return ExitCode.FAILED
        except OSError as error:
            complain(f"simrun simgrid: {error_text(error)}")
            return ExitCode.FAILED
    _show(study.name, rows, options.json)
    return 0


def _are_flows(cases: list[Case]) -> bool:
    """Whether all scenarios are of mode flow; prints the first that is not."""
    for case in cases:
        if case.scenario is None or not isinstance(case.scenario.switching, Flow):
            complain(f"{case.label}: SimGrid simulates flows; use --set switching.mode=flow")
            return False
    return True


def _row(case: Case, seed: int, python: str, by_latency: bool, folder: Path | None) -> Row:
    scenario: Any = case.program
    theirs = by_simgrid(scenario, seed, python, by_latency, folder)
    ours = by_flow(scenario, seed)
    busy = theirs.ranks > 0
    deviation = abs(ours.ranks[busy] / theirs.ranks[busy] - 1)
    return {
        "scenario": case.label, "seed": seed, "operations": scenario.work.program.operations,
        "flow_ns": ours.makespan, "simgrid_ns": theirs.makespan,
        "difference_percent": 100 * (ours.makespan / theirs.makespan - 1) if theirs.makespan else 0.0,
        "ranks_mean_percent": 100 * float(deviation.mean()) if busy.any() else 0.0,
        "flow_s": ours.wall_s, "simgrid_s": theirs.wall_s,
    }  # fmt: skip


def _show(name: str, rows: list[Row], as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "rows": rows})
        return
    columns = {
        "scenario": "scenario", "operations": "operations", "flow_ns": "flow, ns", "simgrid_ns": "SimGrid, ns",
        "difference_percent": "difference, %", "ranks_mean_percent": "of ranks, mean, %",
        "simgrid_s": "SimGrid took, s",
    }  # fmt: skip
    print_table(name, [(title, _cell(key)) for key, title in columns.items()], rows)


def _cell(key: str) -> Callable[[Row], str]:
    return lambda row: number(row[key], 7 if key.endswith("_ns") else 3)
