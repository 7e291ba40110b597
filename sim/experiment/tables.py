# SPDX-License-Identifier: Apache-2.0
"""Rows and columns of results.csv and metrics.csv."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flitlab.models.switching.switching_mode import FLOWS
from flitlab.sim.config.study import Case, Study
from flitlab.sim.measure.columns.registry import columns
from flitlab.sim.measure.status import Status

FIRST_COLUMNS, LAST_COLUMNS = ("load", "seed"), ("engine", "status", "message")
"""Columns of every results.csv: after the swept keys, and at the end."""

IN_NS = "accepted_flit_per_ns_per_host"


def result_row(case: Case, load: float, seed: int, record: Mapping[str, Any]) -> dict[str, Any]:
    """A row of results.csv.

    Parameters
    ----------
    case: the scenario.
    load, seed: of the point.
    record: of the point.
    """
    measured = dict(record["row"])
    if case.flit_ns is not None and measured.get("accepted") is not None:
        measured[IN_NS] = measured["accepted"] / case.flit_ns
    tail = {name: record[name] for name in LAST_COLUMNS}
    return {"scenario": case.label, **case.keys, "load": load, "seed": seed, **measured, **tail}


def result_columns(study: Study, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns of results.csv: first those with ``leading`` in the table of columns, then further ones in order of
    appearance.

    Packet simulations always have all leading columns; those per ns only if a scenario defines the time of a flit.
    """
    filled = dict.fromkeys(name for row in rows for name in row)
    if study.runs_programs:
        leading = [name for name, one in columns("programs").items() if one.lead and name in filled]
    else:
        in_ns = any(case.flit_ns is not None for case in study.cases)
        in_flits = any(case.scenario is None or case.scenario.counted != FLOWS for case in study.cases)
        leading = [name for name, one in columns("packets").items() if one.lead and (in_flits or name in filled)]
        leading = [name for name in leading if in_ns or name != IN_NS]
    head = ["scenario", *study.columns, *FIRST_COLUMNS]
    further = [name for name in filled if name not in {*head, *leading, *LAST_COLUMNS}]
    return [*head, *leading, *further, *LAST_COLUMNS]


def metrics_row(case: Case, metrics: Mapping[str, Any], problem: str = "") -> dict[str, Any]:
    """A row of metrics.csv; lists and mappings become JSON. The status is partial if some metrics are undefined.

    Parameters
    ----------
    case: the scenario.
    metrics: column -> value.
    problem: errors of metrics.
    """
    flat = {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in metrics.items()}
    status = Status.OK if not problem else Status.PARTIAL if metrics else Status.FAILED
    return {"scenario": case.label, **case.keys, **flat, "status": status, "message": problem}


def metrics_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns of metrics.csv: all keys of the rows in order of appearance, then the status.

    Upper ends of certified intervals are omitted if they equal the lower ends in every row.
    """
    tail = ["status", "message"]
    names = dict.fromkeys(key for row in rows for key in row if key not in tail)
    return [name for name in names if not _repeats_lower_end(name, rows)] + tail


def _repeats_lower_end(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    base, upper = name.removesuffix(".upper"), name.endswith(".upper")
    return upper and all(row.get(name) == row.get(base) for row in rows)
