# SPDX-License-Identifier: Apache-2.0
"""Results of programs: relative performance, and further tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from flitlab.models.mappings import Keys, Row
from flitlab.sim.config.case import Case, Study, labels_of
from flitlab.sim.config.reporting import Which
from flitlab.sim.experiment.tables import PROGRAM_TABLES, PointRecord, with_names

STEP = "makespan:step "
"""Prefix of ceilings that bound a kind of step; its label follows."""


def relate(study: Study, rows: Sequence[Row]) -> None:
    """Add ``relative_performance`` to rows of results.csv: the time of ``outputs.relative_to`` over that of the row."""
    which = study.outputs.relative_to
    if which is None or study.experiment != "application":
        return
    times: dict[str, list[float]] = {}
    for row in rows:
        if (total := row.get("total_ns")) is not None:
            times.setdefault(row["scenario"], []).append(total)
    references = references_of(which, study.cases)
    for row in rows:
        reference = times.get(references.get(row["scenario"], ""))
        if reference and row.get("total_ns"):
            row["relative_performance"] = fmean(reference) / row["total_ns"]


def references_of(which: Which, cases: Sequence[Case]) -> dict[str, str]:
    """Label of each scenario -> label of its reference: the candidate that is equal in all other swept keys."""
    candidates = set(labels_of(which, cases))
    swept_keys = set() if isinstance(which, str) else _columns(which, cases)
    references = {}
    for case in cases:
        alike = [
            other.label for other in cases
            if other.label in candidates
            and (len(candidates) == 1 or _rest(other, swept_keys) == _rest(case, swept_keys))
        ]  # fmt: skip
        if len(alike) == 1:
            references[case.label] = alike[0]
    return references


def _columns(which: Keys, cases: Sequence[Case]) -> set[str]:
    """Paths of the swept keys that a mapping names."""
    swept_keys = {key for case in cases for key in case.keys}
    return {key for key in swept_keys for name in which if key == name or key.endswith("." + name)}


def _rest(case: Case, swept_keys: set[str]) -> Keys:
    return {key: value for key, value in case.keys.items() if key not in swept_keys}


def tables(
    entries: Iterable[tuple[Case, PointRecord]], ceilings: Mapping[str, Mapping[str, float | None]]
) -> dict[str, list[Row]]:
    """File name -> rows, of the points of a study. ceilings: by label of the scenario."""
    rows_by_file: dict[str, list[Row]] = {}
    for case, record in entries:
        head = {"scenario": case.label, **case.keys, "seed": record.seed}
        for name in PROGRAM_TABLES:
            for row in record.detail.get(name, ()):
                columns = _step_columns(row, ceilings.get(case.label, {})) if name == "steps" else {}
                columns |= _rank_columns(row["rank"], case) if name == "ranks" else {}
                rows_by_file.setdefault(f"{name}.csv", []).append({**head, **with_names(row, case.topology), **columns})
    return rows_by_file


def _rank_columns(rank: int, case: Case) -> dict[str, str]:
    """The job of a rank, if there are several jobs."""
    names = [one.job.name for one in case.jobs if one.job.ranks.start <= rank < one.job.ranks.stop]
    return {"job": names[0]} if names else {}


def _step_columns(row: Row, ceilings: Mapping[str, float | None]) -> Row:
    bound, time_ns = ceilings.get(STEP + row["label"]), row["time_ns"]
    return {"bound_ns": bound, "efficiency": math.nan if bound is None or not time_ns else bound / time_ns}
