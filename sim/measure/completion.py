# SPDX-License-Identifier: Apache-2.0
"""Completion times of finite flows, as columns of results.csv."""

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Row

SIZE_CLASSES = {"small": 100_000, "medium": 10_000_000, "large": float("inf")}
"""Name -> bytes of the largest flow; customary bounds."""


def completion(size: Ints, fct_ms: Floats, slowdown: Floats) -> Row:
    """Return columns of completion times and slowdowns, of all flows and by size class.

    size: int64 [flows], bytes. fct_ms, slowdown: float64 [flows], NaN for incomplete flows.
    """
    complete = ~np.isnan(fct_ms)
    row: Row = {"flows": len(size), "flows_complete": int(complete.sum())}
    classes, lower = [("", np.ones(len(size), bool))], 0.0
    for name, upper in SIZE_CLASSES.items():
        classes.append((f"_{name}", (size > lower) & (size <= upper)))
        lower = upper
    for name, members in classes:
        some = members & complete
        if name:
            row[f"flows{name}"] = int(members.sum())
        for column, values in (("fct_ms", fct_ms), ("slowdown", slowdown)):
            chosen = values[some]
            row[f"{column}_mean{name}"] = float(chosen.mean()) if len(chosen) else float("nan")
            row[f"{column}_p99{name}"] = float(np.percentile(chosen, 99)) if len(chosen) else float("nan")
    row["fct_ms_max"] = float(fct_ms[complete].max()) if complete.any() else float("nan")
    return row
