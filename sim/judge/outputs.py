"""What other simulators print, as reported numbers: CSV with named columns, and the output of BookSim2."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from flitlab.sim.config.load import read_text

QUANTITIES = ("load", "throughput", "latency")
"""What may be reported; results of a simulator are rows of texts by these names."""

Row = tuple[int, dict[str, str]]
"""A line of a file, and the text of each quantity that it reports."""


class OutputError(ValueError):
    """A file that does not hold what it should; the message says what it lacks."""


EMPTY = ("", "-", "nan", "inf")
"""Cells in which nothing is reported, in small letters."""


def of_csv(path: Path, columns: Mapping[str, str]) -> list[Row]:
    """The rows of a CSV file. columns: quantity -> name of its column; cells that are empty are left out.

    Raises :class:`OutputError`, and :class:`~flitlab.sim.config.errors.ConfigError` where it cannot be read.
    """
    lines = [(i, line) for i, line in enumerate(read_text(path).splitlines(), 1) if line.strip() and line[0] != "#"]
    table = list(csv.reader(line for _, line in lines))
    header = [name.strip() for name in table[0]] if table else []
    for name in columns.values():
        if name not in header:
            raise OutputError(f"has no column {name!r}; it has {', '.join(header) or 'none'}")
    place = {what: header.index(name) for what, name in columns.items()}
    found = []
    for (number, _), row in zip(lines[1:], table[1:], strict=True):
        texts = {what: row[at].strip() if at < len(row) else "" for what, at in place.items()}
        if known := {what: text for what, text in texts.items() if text.lower() not in EMPTY}:
            found.append((number, known))
    if not found:
        raise OutputError("has no row with a number in these columns")
    return found


BOOKSIM = {
    "load": "Injected flit rate average", "throughput": "Accepted flit rate average",
    "latency": "Packet latency average",
}  # fmt: skip
"""Quantity -> how BookSim2 calls it; rates are flits per cycle and node, latencies cycles."""

OVERALL = "Overall Traffic Statistics"
CLASS = re.compile(r"=+ Traffic class (\d+) =+")


def of_booksim2(path: Path) -> list[Row]:
    """The overall statistics at the end of an output of BookSim2; one traffic class, as several share the network.

    Rates are those measured, so that the load is what hosts injected. Raises :class:`OutputError` for an output without
    them, as of a simulation that was unstable, and :class:`~flitlab.sim.config.errors.ConfigError` where it cannot be
    read.
    """
    lines = read_text(path).splitlines()
    starts = [i for i, line in enumerate(lines) if OVERALL in line]
    if not starts:
        unstable = any("unstable" in line for line in lines)
        why = "its simulation was unstable, and so has none" if unstable else "is that the whole output?"
        raise OutputError(f"has no {OVERALL!r}: {why}")
    block = lines[starts[-1] :]
    if len({found[1] for line in block if (found := CLASS.search(line))}) > 1:
        raise OutputError("has several traffic classes, and only one can be judged")
    texts: dict[str, str] = {}
    for what, name in BOOKSIM.items():
        for line in block:
            if found := re.match(rf"\s*{name}\s*=\s*([-+.\deE]+)", line):
                texts[what] = found[1]
                break
    if not texts:
        raise OutputError(f"has no {', '.join(BOOKSIM.values())} after {OVERALL!r}")
    return [(starts[-1] + 1, texts)]
