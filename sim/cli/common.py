# SPDX-License-Identifier: Apache-2.0
"""What several commands do: read a configuration, print tables and JSON."""

import argparse
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.study import Study, read
from flitlab.sim.experiment.folders import altered, read_manifest, run_problem
from flitlab.sim.terminal import complain, printable, say, shown_label

__all__ = ["complain", "say", "shown_label"]


def error_text(error: Exception) -> str:
    """An exception as a user reads it; of a file, which it is and what is wrong with it.

    >>> why(IsADirectoryError(21, "Is a directory", "r/results.csv")), why(ValueError("no"))
    ('r/results.csv: Is a directory', 'no')
    """
    if isinstance(error, OSError) and error.strerror:
        return ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    return str(error)


def study_of(options: argparse.Namespace, experiment: str | None = None) -> Study | None:
    """The configuration that the options name, or None after its mistakes have been printed."""
    try:
        study = read(options.file, options.set, options.quick, getattr(options, "engine", None), experiment)
    except ConfigError as error:
        complain(*map(str, [*error.warnings, *error.errors]))
        return None
    if options.quick and not study.name.endswith("-quick"):
        complain(f"{options.file}: has no quick variant; this is the whole thing")
    complain(*study.warnings)
    return study


def run_folder_problem(folder: Path) -> str:
    """Why figures and pages cannot be made of a folder, or ''. Says which of its tables somebody has changed."""
    problem = run_problem(folder)
    if problem:
        return f"{folder}: no run folder: {problem}"
    complain_of_altered(folder)
    return ""


def complain_of_altered(folder: Path) -> None:
    """Says which tables of a run folder are not as the run wrote them."""
    for name in altered(folder, read_manifest(folder)):
        complain(f"{folder / name}: is not as the run wrote it; the command of the run writes it again")


def is_input(path: Path, file: str | Path) -> bool:
    """Whether a file that is to be written is the one that is read; says so."""
    if not (path.exists() and Path(file).exists() and path.samefile(file)):
        return False
    complain(f"{path}: is the file that is read; choose another name for what is written")
    return True


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(json_text(value))


def json_text(value: Any) -> str:
    """A JSON document. NaN becomes null, infinity a string (JSON has neither); control characters are escaped."""
    text = json.dumps(_finite(value), indent=1, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028-\u202e\u200e\u200f\u2066-\u2069]", lambda one: f"\\u{ord(one[0]):04x}", text)


def _finite(value: Any) -> Any:
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


def print_table(title: str, columns: Sequence[Column], rows: Sequence[Any]) -> None:
    """A table on stdout, as aligned text; labels are cut to what is shown of them."""
    shown = [shown_label if heading in LABELS else printable for heading, _ in columns]
    cells = [[show(text(row)) for show, (_, text) in zip(shown, columns, strict=True)] for row in rows]
    headings = [printable(heading) for heading, _ in columns]
    say(title)
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for line in [headings, *cells]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_rows(title: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]], digits: int = 5) -> None:
    """A table on stdout of some columns of rows."""

    def column(name: str) -> Column:
        return name, lambda row: number(row.get(name), digits)

    print_table(title, [column(name) for name in names], rows)


MAX_PLAIN_NUMBER = 1e15
"""Numbers from this on are printed with an exponent: they have no more digits."""


def number(value: Any, digits: int = 4) -> str:
    """A number as a person wants it, '-' for none.

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
    """Seconds as a person says them.

    >>> duration(0.4), duration(12.3), duration(600), duration(86400)
    ('under 1 s', '12 s', '10 min', '24.0 h')
    """
    if seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
