# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of a run folder as lists of rows."""

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path

from flitlab.models.files import open_text
from flitlab.sim.measure.rows import flag, number

Row = dict[str, str]
Key = Callable[[Row], float]


def failed(row: Row) -> bool:
    """Whether the point has failed."""
    return (row.get("status") or "").lower().startswith(("fail", "error"))


def saturated(row: Row) -> bool:
    """Whether the point is saturated or deadlocked."""
    return flag(row, "saturated") or flag(row, "deadlocked")


def load(row: Row) -> float:
    """The load of a row; its offered traffic where the column is absent."""
    value = number(row, "load")
    return value if math.isfinite(value) else number(row, "offered")


def column(name: str, factor: float = 1.0) -> Callable[[Row], float]:
    """Return the key of a column: its number times a factor."""
    return lambda row: number(row, name) * factor


def read_csv(path: Path) -> list[Row]:
    """Return all rows of a CSV file with a header line; none if there is no such file.

    Raises ``OSError``, and ``ValueError`` for a truncated table or a row with a wrong number of cells.
    """
    if not path.exists():
        return []
    csv.field_size_limit(2**31 - 1)  # a cell may hold a distribution over all channels
    try:
        with open_text(path) as file:
            text = file.read()
            lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: is damaged, or no table of a run: {error}") from None
    if text and not text.endswith("\n"):
        raise ValueError(f"{path}: is damaged: its last line is cut off")
    header, *rows = [row for row in lines if row] or [[]]
    if twice := [name for i, name in enumerate(header) if name in header[:i]]:
        raise ValueError(f"{path}: is damaged: two columns are called {twice[0]!r}")
    for i, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(f"{path}: is damaged: row {i} has {len(row)} cells, and there are {len(header)} columns")
    return [dict(zip(header, row, strict=True)) for row in rows]
