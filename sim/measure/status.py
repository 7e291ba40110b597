# SPDX-License-Identifier: Apache-2.0
"""The column ``status`` of results.csv and metrics.csv."""

from enum import StrEnum


class Status(StrEnum):
    """The outcome of a point, or of the metrics of a topology."""

    OK = "ok"
    PARTIAL = "partial"  # some of the metrics have no meaning for the topology
    FAILED = "failed"
    CEILING_VIOLATED = "ceiling_violated"
    ENGINE_MISMATCH = "engine_mismatch"
