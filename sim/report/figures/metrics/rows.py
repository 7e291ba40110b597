# SPDX-License-Identifier: Apache-2.0
"""Rows of metrics.csv, by what was swept."""

import math
import re
from collections.abc import Iterable, Sequence

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.metrics.quantity import AMOUNTS, Quantity, end_of, spoken, with_unit
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run

SCENARIO = "scenario"
"""The x of a chart that has no other: one line of the chart per scenario."""
Values = tuple[str, ...]


def numeric(rows: Iterable[Row], column: str) -> bool:
    """Whether a column holds numbers, and nothing else where it is not empty."""
    values = [row[column] for row in rows if row.get(column)]
    return bool(values) and all(math.isfinite(number({column: value}, column)) for value in values)


def is_distribution(run: Run, column: str) -> bool:
    """Whether a column holds lists or mappings."""
    return any((row.get(column) or "")[:1] in ("[", "{") for row in run.metrics)


def is_draw(key: str) -> bool:
    """Whether a swept key is a seed: its values are replicates of one another."""
    return key.rpartition(".")[2] == "seed"


def grouped(rows: Iterable[Row], keys: Sequence[str]) -> dict[Values, list[Row]]:
    """The rows by the values of some columns, in order of appearance."""
    groups: dict[Values, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) or "" for key in keys), []).append(row)
    return groups


def combinations(run: Run, keys: Sequence[str]) -> list[Values]:
    return list(grouped(run.metrics, keys))


def differing(run: Run) -> Values:
    """The swept keys that differ, but for seeds."""
    return tuple(key for key in run.swept if not is_draw(key) and len(combinations(run, [key])) > 1)


def combined(keys: Sequence[str], values: Sequence[str]) -> str:
    """The name of a combination of swept values: words speak for themselves, numbers need their key.

    What is not swept in a case has no value there.

    >>> combined(["topology.kind", "topology.degree", "topology.n"], ["imase", "4", ""])
    'imase, degree=4'
    """
    return ", ".join(_says(key, value) for key, value in zip(keys, values, strict=True) if value)


def axis_title(run: Run, column: str) -> str:
    """What an x axis is called; a swept ``n`` that counts switches says so, and an amount whether it is a share."""
    if end_of(column) in AMOUNTS:
        some = [row[column] for row in run.metrics if number(row, column) > 0]  # none is no share and no number
        shares = ["." in value for value in some]
        what = "share of " if all(shares) else "number of " if not any(shares) else ""
        return what + spoken(column)[0]
    for other, swept in (("switches", "n"), ("degree_max", "degree"), ("hosts", "hosts_total")):
        if column.rpartition(".")[2] == swept:
            same = all(number(row, column) == number(row, other) for row in run.metrics)
            return Quantity(other).title if same else with_unit(*spoken(column))
    return Quantity(column).title


def _says(key: str, value: str) -> str:
    if key == "case" or re.match(r"(?!(?:true|false|none|null)$)[a-z]", value, re.I):
        return value
    return f"{spoken(key)[0]}={value}"
