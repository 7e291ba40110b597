# SPDX-License-Identifier: Apache-2.0
"""Rows of results.csv: their cells, as measured or as read from the file, and what derived columns are functions of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from flitlab.models.layout.energy import EnergyBasis
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.scenario import Scenario


class Status(StrEnum):
    """The outcome of a point, or of the metrics of a topology."""

    OK = "ok"
    PARTIAL = "partial"  # some of the metrics have no meaning for the topology
    LIMIT = "limit"  # measure.max_ticks has ended a trace
    FAILED = "failed"
    CEILING_VIOLATED = "ceiling_violated"
    ENGINE_MISMATCH = "engine_mismatch"


@dataclass(frozen=True)
class MeasuredPoint:
    """A measured point and the ceilings of its scenario. Derived columns are functions of it.

    row: the measured columns. detail: rows of further tables, by name. ceilings: by name; where the name alone is the
    lower end, ``<name>.upper`` is the upper one. ci: ``measure.ci``. flit_ns: duration of a flit; None if unknown.
    searched: of a probe, whether its search has ended; None for other points. energy: of ``outputs.energy``.
    """

    scenario: Scenario[Any, Any]
    row: Row
    detail: JsonObject
    ceilings: Mapping[str, float | None]
    ci: float | None = None
    flit_ns: float | None = None
    searched: bool | None = None
    energy: EnergyBasis | None = None


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
