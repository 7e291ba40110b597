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

    @property
    def deviation(self) -> float:
        """The greatest distance of a value from the median, relative to it."""
        return max(abs(value / self.median - 1) for value in self.values)


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


def table(rows: Iterable[Row], spreads: bool = True) -> str:
    """Rows as a table in Markdown; the unit and the number of runs that all rows share stand in its head.

    ``spreads``: whether it has the least and the greatest value of each row.
    """
    rows = list(rows)
    units, runs = {row.unit for row in rows}, {len(row.values) for row in rows}
    measured = sorted(units) if len(units) == 1 else []
    if runs != {1}:
        measured.append(f"median of {max(runs)}" if len(runs) == 1 else "median")
    columns = {"work": [row.work for row in rows]}
    if len(units) > 1:
        columns["unit"] = [row.unit for row in rows]
    columns[", ".join(measured) or "value"] = [digits(row.median) for row in rows]
    if spreads and runs != {1}:
        columns["least to most"] = [spread(row.values) for row in rows]
    if len(runs) > 1:
        columns["runs"] = [str(len(row.values)) for row in rows]
    if any(row.note for row in rows):
        columns[""] = [row.note for row in rows]
    lines = [columns, ["---"] * len(columns), *zip(*columns.values(), strict=True)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def spread(values: list[float]) -> str:
    """The least and the greatest value; nothing for one."""
    return f"{digits(min(values))} to {digits(max(values))}" if len(values) > 1 else ""


def digits(value: float) -> str:
    """A number with three digits, of a large one all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def command(about: str, rows: Callable[[int], Iterable[Row]], runs: int) -> None:
    """The command line of a benchmark: measures, and prints the table."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs, help="how often each work is measured (default: %(default)s)")
    print(table(rows(parser.parse_args().runs)))
