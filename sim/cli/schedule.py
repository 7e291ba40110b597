# SPDX-License-Identifier: Apache-2.0
"""``simrun schedule`` (convert): describe the schedule of a collective, from a file or configuration, as JSON."""

import argparse
from pathlib import Path

from flitlab.models.collective.schedule import Schedule, ScheduleError
from flitlab.models.collective.schedule_file import SUFFIX, read_schedule, schedule_summary, write_schedule
from flitlab.sim.cli.common import case_of, complain, error_text, is_input, print_summary, study_of
from flitlab.sim.cli.options import add_convertible
from flitlab.sim.exit import ExitCode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_convertible(parser, "a schedule (JSON), or a configuration (YAML)", "NAME.schedule.json")


def run(options: argparse.Namespace) -> int:
    """Describe a schedule of a collective, from JSON or of a scenario, and write it as JSON."""
    file = Path(options.file)
    if options.out is not None and (not options.out.name.endswith(SUFFIX) or is_input(options.out, file)):
        if not options.out.name.endswith(SUFFIX):
            complain(f"--out = {options.out}: must end in {SUFFIX}")
        return ExitCode.BAD
    schedule = _schedule(file, options)
    if schedule is None or (options.out is not None and not _write(schedule, options.out)):
        return ExitCode.BAD
    print_summary({"schedule": str(file)} | schedule_summary(schedule), 12, options.json)
    return ExitCode.OK


def _schedule(file: Path, options: argparse.Namespace) -> Schedule | None:
    """The schedule of a file or scenario; None, with an error printed, if there is none."""
    if file.suffix in (".yaml", ".yml"):
        study = study_of(options)
        case = None if study is None else case_of(study, options.scenario)
        if case is None:
            return None
        if case.collective is None or case.collective.plan.schedule is None:
            complain(f"simrun schedule: {case.label}: has no schedule; see experiment: collective, algorithm: trees")
            return None
        return case.collective.plan.schedule
    try:
        return read_schedule(file)
    except (ScheduleError, OSError) as error:
        complain(f"simrun schedule: {file}: {error_text(error) if isinstance(error, OSError) else error}")
        return None


def _write(schedule: Schedule, path: Path) -> bool:
    """Write a schedule; returns whether that succeeded, and prints an error if not."""
    try:
        write_schedule(schedule, path)
    except OSError as error:
        complain(f"--out = {path}: {error_text(error)}")
        return False
    return True
