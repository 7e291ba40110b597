# SPDX-License-Identifier: Apache-2.0
"""Shared by commands: read a configuration, print tables and JSON."""

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from flitlab.models.mappings import JsonObject, Row
from flitlab.models.threads import cores
from flitlab.sim.config.case import Case, Study
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.table import single_thread_reason
from flitlab.sim.experiment.folders import NOT_AS_WRITTEN, altered, read_manifest, run_problem
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.progress import stage
from flitlab.sim.terminal import complain, printable, say, shown_label

__all__ = ["complain", "say", "shown_label"]


def error_text(error: Exception) -> str:
    """The message of an exception; for a file, its name and the reason.

    >>> error_text(IsADirectoryError(21, "Is a directory", "r/results.csv")), error_text(ValueError("no"))
    ('r/results.csv: Is a directory', 'no')
    """
    if isinstance(error, OSError) and error.strerror:
        return ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    return str(error)


def study_of(options: argparse.Namespace, experiment: str | None = None) -> Study | None:
    """The configuration of the options; None, with errors printed, if it is invalid."""
    try:
        with stage(f"reading {options.file}"):
            study = read(options.file, options.set, options.quick, getattr(options, "engine", None), experiment)
    except ConfigError as error:
        complain(*map(str, [*error.warnings, *error.errors]))
        return None
    if study.file != str(options.file):
        complain(f"{options.file}: no such file here; using {study.file} of flitlab")
    if options.quick and not study.name.endswith("-quick"):
        complain(f"{options.file}: has no quick variant: using the full configuration")
    complain(*study.warnings)
    return study


def case_of(study: Study, label: str | None) -> Case | None:
    """The chosen scenario, by default the first; None, with an error printed, if there is none."""
    if label is None:
        if len(study.cases) > 1:
            first = study.cases[0].label
            complain(f"scenario {first!r}, the first of {len(study.cases)}; --scenario LABEL takes another")
        return study.cases[0]
    chosen = cases_of(study, label)
    return chosen[0] if chosen else None


def cases_of(study: Study, label: str | None) -> list[Case]:
    """The scenarios of a label, by default all; [], with an error printed, if there are none."""
    chosen = [case for case in study.cases if label in (None, case.label)]
    if not chosen:
        choices = "; ".join(case.label for case in study.cases)
        complain(f"--scenario {label}: no such scenario; choices: {choices}")
    return chosen


def run_options(options: argparse.Namespace, study: Study) -> RunOptions:
    """Processes and threads by ``--jobs`` and ``--threads``; prints where threads have no effect."""
    processors = RunOptions.of(options.jobs, options.threads)
    if options.threads > 1:
        is_cluster = bool(getattr(options, "cluster", None))  # it has processors of its own
        complain(*(f"--threads {options.threads}: {note}" for note in _thread_notes(study, processors, is_cluster)))
    return processors


def _thread_notes(study: Study, processors: RunOptions, is_cluster: bool) -> Iterator[str]:
    """A line for each reason why ``--threads`` has no, or little, effect."""
    if not is_cluster and processors.jobs * processors.threads > cores():
        yield f"with --jobs {processors.jobs} these are more threads than the {cores()} processors of this machine"
    if not study.simulates:
        yield f"nothing is simulated in experiment: {study.experiment}"
        return
    scenarios = [case.scenario for case in study.all_cases if case.scenario is not None]
    reasons = Counter(single_thread_reason(study.engine, scenario) for scenario in scenarios)
    for reason, count in reasons.items():
        if reason:
            yield reason + ("" if count == len(scenarios) else f" ({count} of {len(scenarios)} scenarios)")


def run_folder_problem(folder: Path) -> str:
    """Why a folder is no run folder, or ''. Prints which of its tables were changed."""
    problem = run_problem(folder)
    if problem:
        return f"{folder}: not a run folder: {problem}"
    for name in altered(folder, read_manifest(folder)):
        complain(f"{folder / name}: {NOT_AS_WRITTEN}")
    return ""


def is_input(path: Path, file: str | Path) -> bool:
    """Whether an output file is the input file; prints an error if so."""
    if not (path.exists() and Path(file).exists() and path.samefile(file)):
        return False
    complain(f"{path}: is the input file; choose another name for the output")
    return True


def print_json(value: object) -> None:
    """Print one JSON document to stdout."""
    print(json_text(value))


def print_summary(summary: JsonObject, width: int, as_json: bool) -> None:
    """Print names and values, a line for each, or as JSON. width: of the names."""
    if as_json:
        print_json(summary)
        return
    for name, value in summary.items():
        say(f"{name:<{width}}{number(value, 7) if isinstance(value, int) else value}")


def json_text(value: object) -> str:
    """A JSON document. NaN becomes null, infinity a string, control characters escapes."""
    text = json.dumps(_finite(value), indent=1, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028-\u202e\u200e\u200f\u2066-\u2069]", lambda one: f"\\u{ord(one[0]):04x}", text)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


Column = tuple[str, Callable[[Any], str]]
"""Heading, and the text of a row's cell."""


LABELS = ("scenario", "run", "job", "case")
"""Headings of columns with labels."""


def print_table(title: str, columns: Sequence[Column], rows: Sequence[object]) -> None:
    """Print an aligned table to stdout; labels are truncated.

    Parameters
    ----------
    title: the line above.
    columns: heading and text of a cell.
    rows: one per line.
    """
    shown = [shown_label if heading in LABELS else printable for heading, _ in columns]
    cells = [[show(text(row)) for show, (_, text) in zip(shown, columns, strict=True)] for row in rows]
    headings = [printable(heading) for heading, _ in columns]
    say(title)
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for line in [headings, *cells]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_rows(title: str, names: Sequence[str], rows: Sequence[Row], digits: int = 5) -> None:
    """Print a table of some columns of rows to stdout.

    Parameters
    ----------
    title: the line above.
    names: of the columns.
    rows: column -> value.
    digits: significant digits of numbers.
    """

    def column(name: str) -> Column:
        return name, lambda row: number(row.get(name), digits)

    print_table(title, [column(name) for name in names], rows)


MAX_PLAIN_NUMBER = 1e15
"""Larger numbers are printed with an exponent."""


def number(value: object, digits: int = 4) -> str:
    """A number with few digits, '-' for None and NaN.

    >>> number(0.123456), number(None), number(12), number(123456.7), number(99.7, 2), number(2e90)
    ('0.1235', '-', '12', '123457', '100', '2e+90')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if not isinstance(value, float):
        return str(value)
    if 10**digits <= abs(value) < MAX_PLAIN_NUMBER:
        return f"{value:.0f}"
    return f"{float(f'{value:.{digits}g}'):g}"


def duration(seconds: float) -> str:
    """A duration with a suitable unit.

    >>> duration(0.4), duration(12.3), duration(600), duration(86400)
    ('under 1 s', '12 s', '10 min', '24.0 h')
    """
    if seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
