# SPDX-License-Identifier: Apache-2.0
"""Reads cells of a row, as measured or as read from its CSV file."""

import math
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def number(row: Row, column: str) -> float:
    """Return the number in a column; NaN if it is absent, empty or no number."""
    value = row.get(column)
    try:
        return math.nan if value in (None, "") else float(value)
    except ValueError:
        return math.nan


def flag(row: Row, column: str) -> bool:
    """Whether a column is true (``True``, ``true``, ``1``)."""
    return str(row.get(column) or "").strip().lower() in ("true", "1", "1.0", "yes")
