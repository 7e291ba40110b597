# SPDX-License-Identifier: Apache-2.0
"""The table of jobs: the time of each, with the other jobs and isolated."""

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from statistics import fmean

from flitlab.models.mappings import Row
from flitlab.sim.config.case import Case, JobCase, Study
from flitlab.sim.config.programs import Job
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.points import PointRuns
from flitlab.sim.experiment.tables import PointRecord
from flitlab.sim.measure.rows import Status


def job_rows(study: Study, points: PointRuns, ceilings: CeilingRuns) -> list[Row]:
    """The rows of jobs.csv: one per scenario, seed and job, as far as both runs are done.

    Parameters
    ----------
    study: has the jobs.
    points: the runs with all jobs, and of each isolated job.
    ceilings: lower bounds of the isolated jobs.
    """
    index_of = {id(case): index for index, case in enumerate(points.cases)}

    def records(case: Case) -> dict[int, PointRecord]:
        return {record.seed: record for record in points.rows_of(index_of[id(case)])}

    rows = []
    for case in study.cases:
        if not case.jobs:
            continue
        shared = records(case)
        runs = [(one, records(one.isolated), ceilings.columns_of(index_of[id(one.isolated)])[0]) for one in case.jobs]
        for seed, record in shared.items():
            for one, isolated, bounds in runs:
                if seed in isolated:
                    head = {"scenario": case.label, **case.keys, "seed": seed}
                    rows.append({**head, **dict(_row(one, record, isolated[seed], bounds))})
    return rows


def _row(
    one: JobCase, shared: PointRecord, isolated: PointRecord, bounds: Mapping[str, float | None]
) -> Iterator[tuple[str, object]]:
    """The columns of a row and their values."""
    job = one.job
    shared_ranks = shared.detail.get("ranks", [])[job.ranks]  # [] if a run failed
    time, isolated_time = _time(job, shared_ranks), _time(job, isolated.detail.get("ranks", []))
    bound = bounds.get("makespan")
    bound = None if bound is None else bound - job.start_ns
    yield from {"job": job.name, "kind": job.kind, "ranks": job.program.ranks, "start_ns": job.start_ns}.items()
    yield from {"time_ns": time, "alone_ns": isolated_time, "slowdown": _ratio(time, isolated_time)}.items()
    yield from {"bound_ns": bound, "efficiency": _ratio(bound, time)}.items()
    yield from {name: sum(row[name] for row in shared_ranks) for name in ("messages", "bytes")}.items()
    yield "status", isolated.status if isolated.status != Status.OK else shared.status


def _time(job: Job, ranks: Sequence[Row]) -> float:
    """Nanoseconds from the arrival of a job to the end of its last rank; NaN if unknown."""
    return max((row["finish_ns"] for row in ranks), default=nan) - job.start_ns


def _ratio(one: float | None, other: float) -> float:
    """The ratio; NaN if a value is unknown, 1 if both are 0."""
    if one is None:
        return nan
    return one / other if other else 1.0 if one == other else nan


def add_slowdowns(results: Sequence[Row], rows: Sequence[Row]) -> None:
    """Add the mean and the largest slowdown of jobs to rows of results.csv. rows: of jobs.csv."""
    by_point: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        by_point.setdefault((row["scenario"], row["seed"]), []).append(row["slowdown"])
    for result in results:
        slowdowns = by_point.get((result["scenario"], result["seed"]))
        if slowdowns:
            result |= {"job_slowdown_mean": fmean(slowdowns), "job_slowdown_max": max(slowdowns)}
