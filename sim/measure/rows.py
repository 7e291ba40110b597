# SPDX-License-Identifier: Apache-2.0
"""Reading a row of a table, as it was measured or as it was read from its CSV file."""

import math
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def number(row: Row, column: str) -> float:
    """The number in a column; NaN where the column is absent, empty or no number."""
    value = row.get(column)
    try:
        return math.nan if value in (None, "") else float(value)
    except ValueError:
        return math.nan


def flag(row: Row, column: str) -> bool:
    """Whether a column says yes (``True``, ``true``, ``1``)."""
    return str(row.get(column) or "").strip().lower() in ("true", "1", "1.0", "yes")
