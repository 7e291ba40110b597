# SPDX-License-Identifier: Apache-2.0
"""Tests by layer; ``ROOT`` is the folder of the project."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def long_after(few: int, values: Iterable[Any]) -> list[Any]:
    """Values of a parameter of which the first ``few`` are tried by ``pytest``, the others by ``pytest -m long``."""
    return [value if i < few else pytest.param(value, marks=pytest.mark.long) for i, value in enumerate(values)]


def long_rows_after(few: int, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Rows of several parameters, as :func:`long_after` has values of one."""
    return [row if i < few else pytest.param(*row, marks=pytest.mark.long) for i, row in enumerate(rows)]
