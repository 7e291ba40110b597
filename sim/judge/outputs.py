# SPDX-License-Identifier: Apache-2.0
"""Readers of reported numbers: CSV with named columns, and outputs of BookSim2 and htsim."""

import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from flitlab.sim.config.text import read_text

QUANTITIES = ("load", "throughput", "latency")
"""Quantities that can be reported; results of a simulator are rows of texts by these names."""

Row = tuple[int, dict[str, str]]
"""Line of a file, and the text of each quantity on it."""


class OutputError(ValueError):
    """A file without the expected contents; the message says what is missing."""


EMPTY = ("", "-", "nan")
"""Empty cells, in lower case; an infinite latency, of a saturated network, counts as empty, too."""

INFINITE = ("inf", "+inf", "infinity")


def read_csv_rows(path: Path, columns: Mapping[str, str]) -> tuple[list[Row], int]:
    """The rows of a CSV file with some number, and the count of the others.

    Parameters
    ----------
    path : Path
        The file.
    columns : mapping
        Quantity -> name of its column; empty cells are skipped.

    Returns
    -------
    list of Row
        With the line on which each row ends.
    int
        Rows without a number.

    Raises
    ------
    OutputError
        A column is missing, or no row has a number.
    ConfigError
        The file cannot be read.
    """
    every = enumerate(read_text(path).splitlines(keepends=True), 1)
    lines = [(i, line) for i, line in every if line.strip() and line[0] != "#"]
    reader = csv.reader(line for _, line in lines)
    try:
        table = [(lines[reader.line_num - 1][0], row) for row in reader]
    except csv.Error as error:
        raise OutputError(f"is no CSV: {error} (line {lines[reader.line_num - 1][0]})") from None
    header = [name.strip() for name in table[0][1]] if table else []
    for name in columns.values():
        if name not in header:
            raise OutputError(f"has no column {name!r}; it has {', '.join(header) or 'none'}")
    column_index = {what: header.index(name) for what, name in columns.items()}
    rows = []
    for number, row in table[1:]:
        texts = {what: row[index].strip() if index < len(row) else "" for what, index in column_index.items()}
        if known := {what: text for what, text in texts.items() if not _is_empty(what, text.lower())}:
            rows.append((number, known))
    if not rows:
        raise OutputError("has no row with a number in these columns")
    return rows, len(table) - 1 - len(rows)


def _is_empty(what: str, text: str) -> bool:
    """Whether a cell has no number for a quantity."""
    return text in EMPTY or (what == "latency" and text in INFINITE)


BOOKSIM = {
    "load": "Injected flit rate average", "throughput": "Accepted flit rate average",
    "latency": "Packet latency average",
}  # fmt: skip
"""Quantity -> its name in BookSim2; rates are flits per cycle and node, latencies cycles."""

OVERALL = "Overall Traffic Statistics"
CLASS = re.compile(r"=+ Traffic class (\d+) =+")


def read_booksim2(path: Path) -> list[Row]:
    """The overall statistics at the end of an output of BookSim2, with a single traffic class.

    Rates are the measured ones, so the load is what hosts injected. Raises :class:`OutputError` for an output without
    statistics, such as that of an unstable simulation, and :class:`~flitlab.sim.config.diagnostics.ConfigError` where
    it cannot be read.
    """
    lines = read_text(path).splitlines()
    starts = [i for i, line in enumerate(lines) if OVERALL in line]
    if not starts:
        unstable = any("unstable" in line for line in lines)
        why = "its simulation was unstable, and so has none" if unstable else "is that the whole output?"
        raise OutputError(f"has no {OVERALL!r}: {why}")
    block = lines[starts[-1] :]
    if len({match[1] for line in block if (match := CLASS.search(line))}) > 1:
        raise OutputError("has several traffic classes, and only one can be judged")
    texts: dict[str, str] = {}
    for what, name in BOOKSIM.items():
        for line in block:
            if match := re.match(rf"\s*{name}\s*=\s*([-+]?[.\d][-+.\deE]*)", line):
                texts[what] = match[1]
                break
    if not texts:
        raise OutputError(f"has no {', '.join(BOOKSIM.values())} after {OVERALL!r}")
    return [(starts[-1] + 1, texts)]


FINISHED = re.compile(
    r"Flow \S+ flowId \d+ .*finished at (?P<us>\d{1,18}(?:\.\d+)?(?:e[-+]?\d{1,2})?) "
    r"(?:total messages (?P<messages>\d{1,18}) )?total packets (?P<packets>\d{1,18}) RTS (?P<rts>\d{1,18}) "
    r"total bytes (?P<bytes>\d{1,18})"
)
"""Line of htsim at the end of a flow of its UEC or EQDS transport: microseconds, full packets and their bytes."""


def read_htsim(path: Path) -> list[Row]:
    """The throughput of an output of htsim: the bytes of all completed flows over the completion time of the last one.

    It is a lower bound on the average, in Gbit/s of the whole network: flows may start later than at 0, and incomplete
    ones are ignored. htsim counts the last packet of a message as a full one, so one packet per message is subtracted.
    Raises :class:`OutputError` for an output without completed flows, and
    :class:`~flitlab.sim.config.diagnostics.ConfigError` where it cannot be read.

    Source: the README of htsim (github.com/Broadcom/csg-htsim), which shows such lines, and the function
    ``checkFinished`` of its ``uec.cpp``.
    """
    ends = [(i, match) for i, line in enumerate(read_text(path).splitlines(), 1) if (match := FINISHED.search(line))]
    if not ends:
        raise OutputError("has no line 'Flow ... finished at ... total packets ... total bytes ...'")
    line, last = max(ends, key=lambda end: float(end[1]["us"]))
    carried = 0.0
    for _, end in ends:
        full = int(end["packets"]) - int(end["rts"])
        carried += max(0.0, int(end["bytes"]) * (1 - int(end["messages"] or 1) / full)) if full > 0 else 0.0
    if not carried or not float(last["us"]):
        raise OutputError("has no flow of more than one packet")
    return [(line, {"throughput": f"{8 * carried / float(last['us']) / 1000:.9g}"})]


NATIVE: dict[str, Callable[[Path], list[Row]]] = {"booksim2": read_booksim2, "htsim": read_htsim}
"""Key of a simulator's output -> its reader."""

UNITS = {"htsim": {"throughput": "Gbps per network"}}
"""Units of outputs other than flits per cycle and node, and cycles."""
