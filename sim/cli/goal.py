# SPDX-License-Identifier: Apache-2.0
"""``simrun goal`` (convert): describe a program (GOAL, NAME.program, a configuration), and write it in another form."""

import argparse
from pathlib import Path

import numpy as np

from flitlab.models.application.goal import read_goal, write_goal
from flitlab.models.application.program import Op, Program
from flitlab.models.application.stored import SUFFIX, read_program, write_program
from flitlab.models.mappings import JsonObject
from flitlab.models.registry import SpecError
from flitlab.sim.cli.common import case_of, complain, is_input, print_summary, study_of
from flitlab.sim.cli.options import add_convertible
from flitlab.sim.exit import ExitCode

TEXT = ".goal"
"""Suffix of GOAL text."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    what = "GOAL text, a folder NAME.program, or a configuration (YAML)"
    add_convertible(parser, what, "a folder NAME.program, or text, NAME.goal")


def run(options: argparse.Namespace) -> int:
    """Describe a program (GOAL text, a stored program, or a configuration), and write it in another form."""
    file = Path(options.file)
    if options.out is not None and options.out.suffix not in (SUFFIX, TEXT):
        complain(f"--out = {options.out}: must end in {SUFFIX} (a folder) or {TEXT} (text)")
        return ExitCode.BAD
    if options.out is not None and is_input(options.out, file):
        return ExitCode.BAD
    try:
        program = _program(file, options)
    except SpecError as error:
        complain(f"simrun goal: {error}")
        return ExitCode.BAD
    if program is None or (options.out is not None and not _write(program, options.out)):
        return ExitCode.BAD
    print_summary({"program": str(file)} | describe(program), 22, options.json)
    return 0


def _program(file: Path, options: argparse.Namespace) -> Program | None:
    if file.suffix in (".yaml", ".yml"):
        study = study_of(options)
        case = None if study is None else case_of(study, options.scenario)
        if case is not None and case.workload is None:
            complain(f"simrun goal: {file}: has no program; see experiment: application")
        return None if case is None or case.workload is None else case.workload.program
    return read_program(file) if file.is_dir() or file.suffix == SUFFIX else read_goal(file)


def _write(program: Program, path: Path) -> bool:
    """Write a program; returns whether that succeeded, and prints an error if not."""
    try:
        (write_program if path.suffix == SUFFIX else write_goal)(program, path)
    except (SpecError, OSError) as error:
        complain(f"--out = {path}: {error.strerror if isinstance(error, OSError) else error}")
        return False
    return True


def describe(program: Program) -> JsonObject:
    """The size of a program in a few numbers."""
    sends = program.kind == Op.SEND
    return {
        "ranks": program.ranks,
        "operations": program.operations,
        "calculations": int(np.count_nonzero(program.kind == Op.CALC)),
        "messages": int(np.count_nonzero(sends)),
        "dependencies": len(program.successor),
        "bytes": int(np.sum(program.amount, where=sends)),
        "longest message": int(np.max(program.amount, where=sends, initial=0)),
        "nanoseconds of all": int(np.sum(program.amount, where=program.kind == Op.CALC)),
        "processors of a rank": program.cpus,
        "iterations": f"{program.simulated} of {program.iterations}",
    } | program.notes
