# SPDX-License-Identifier: Apache-2.0
"""What benchmarks hand over: rows of measured values, the machine that they were measured on, and tables of both."""

import argparse
import importlib.metadata
import os
import platform
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """What was measured of one work: a value for each run, in a unit, and what else is to be known."""

    work: str
    unit: str
    values: list[float]
    note: str = ""

    @property
    def median(self) -> float:
        """The middle of the values."""
        return statistics.median(self.values)


def machine() -> str:
    """The processor, how many cores of it and how much memory there are, and the versions of Python and Numba."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = f"Python {platform.python_version()}, Numba {importlib.metadata.version('numba')}"
    return f"{os.cpu_count()} cores, {_processor()}, {memory:.0f} GiB; {versions}"


def _processor() -> str:
    """What Linux calls the processor, with its family and model, which tell virtual ones apart."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    if "model name" not in said:
        return platform.machine()
    return f"{said['model name']} (family {said['cpu family']}, model {said['model']}, {said['cache size']} cache)"


def table(rows: Iterable[Row]) -> str:
    """Rows as a table in Markdown."""
    lines = ["| work | unit | median | least to most | runs | |", "|---|---|---|---|---|---|"]
    for row in rows:
        least, most = digits(min(row.values)), digits(max(row.values))
        spread = f"{least} to {most}" if len(row.values) > 1 else ""
        lines.append(f"| {row.work} | {row.unit} | {digits(row.median)} | {spread} | {len(row.values)} | {row.note} |")
    return "\n".join(lines) + "\n"


def digits(value: float) -> str:
    """A number with three digits, of a large one all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def command(about: str, rows: Callable[[int], Iterable[Row]], runs: int) -> None:
    """The command line of a benchmark: measures, and prints the table."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs, help="how often each work is measured (default: %(default)s)")
    print(table(rows(parser.parse_args().runs)))
