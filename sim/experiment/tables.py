"""The rows and columns of results.csv and metrics.csv."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flitlab.sim.config.study import Case, Study
from flitlab.sim.experiment.application import COLUMNS
from flitlab.sim.measure.status import Status

MEASURED = (
    "offered", "accepted", "accepted_flit_per_ns_per_host", "min_flow_ratio", "jain", "latency_mean", "latency_ci95",
    "latency_p50", "latency_p99", "latency_p999", "network_latency_mean", "hops_mean", "hops_max", "deflections_mean",
    "saturated", "saturated_by", "saturated_from", "deadlocked", "packets", "ticks", "warmup_ticks", "events", "cpu_s",
)  # fmt: skip
"""Columns that every engine fills, in their order; others it may give follow them."""


def result_row(case: Case, load: float, seed: int, record: Mapping[str, Any]) -> dict[str, Any]:
    """One row of results.csv."""
    measured = dict(record["row"])
    if case.flit_ns is not None and measured.get("accepted") is not None:
        measured["accepted_flit_per_ns_per_host"] = measured["accepted"] / case.flit_ns
    tail = {name: record[name] for name in ("engine", "status", "message")}
    return {"scenario": case.label, **case.keys, "load": load, "seed": seed, **measured, **tail}


def result_columns(study: Study, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Columns of results.csv; of flits only if there are any, per ns only if some scenario knows what a flit takes."""
    head = ["scenario", *study.columns, "load", "seed"]
    tail = ["engine", "status", "message"]
    if study.experiment == "application":
        rows = list(rows)
        given = dict.fromkeys(name for row in rows for name in row if name not in {*head, *tail})
        first = [name for name in COLUMNS if name in given]
        return [*head, *first, *(name for name in given if name not in first), *tail]
    in_ns = any(case.flit_ns is not None for case in study.cases)
    rows = list(rows)
    in_flits = any(case.scenario is None or case.scenario.datagram is None for case in study.cases)
    filled = {name for row in rows for name in row}
    measured = [name for name in MEASURED if in_flits or name in filled]
    measured = [name for name in measured if in_ns or name != "accepted_flit_per_ns_per_host"]
    more = [name for row in rows for name in row if name not in {*head, *measured, *tail}]
    return [*head, *measured, *dict.fromkeys(more), *tail]


def metrics_row(case: Case, metrics: Mapping[str, Any], problem: str = "") -> dict[str, Any]:
    """One row of metrics.csv; what is no scalar is written as JSON. partial: some of the metrics have no meaning."""
    flat = {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in metrics.items()}
    status = Status.OK if not problem else Status.PARTIAL if metrics else Status.FAILED
    return {"scenario": case.label, **case.keys, **flat, "status": status, "message": problem}


def metrics_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns of metrics.csv: all keys of the rows in order of appearance, then how it went.

    Upper ends of certified intervals are left out where they are the lower ends in every row.
    """
    tail = ["status", "message"]
    columns = dict.fromkeys(key for row in rows for key in row if key not in tail)
    return [name for name in columns if not _is_twin(name, rows)] + tail


def _is_twin(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    base, upper = name.removesuffix(".upper"), name.endswith(".upper")
    return upper and all(row.get(name) == row.get(base) for row in rows)
