# SPDX-License-Identifier: Apache-2.0
"""What is made of runs of programs: their times beside the bounds on them and beside each other, and further tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from flitlab.sim.config.reporting import Which
from flitlab.sim.config.study import Case, Study, labels_of
from flitlab.sim.experiment.named import with_names

TABLES = ("ranks", "steps", "utilisation", "messages", "critical_path", "timeline")
"""Names of the tables besides results.csv; each has columns for the scenario and the seed in front."""

AT_CEILINGS = ("mcf", "mcf_paths", "split")
"""Ceilings of the load at which all bytes of the program flow at once; each says how long that takes at least."""

STEP = "makespan:step "
"""How the ceilings begin that bound a kind of step; its label follows."""


def beside_bounds(case: Case, row: Mapping[str, Any], found: Mapping[str, float | None]) -> dict[str, Any]:
    """Columns that say how near a program came to the lower bound on its time. found: ceilings of the case."""
    bound, measured = found.get("makespan"), row.get("makespan_ns")
    if case.workload is None or measured is None:
        return {}
    more: dict[str, Any] = {}
    if bound is not None:
        parts = {name: found.get(f"makespan:{name}") or 0.0 for name in ("volume", "path", "processor", "phases")}
        by = max(parts, key=lambda name: parts[name])
        more |= {"bound_ns": bound, "efficiency": bound / measured if measured else 1.0, "bound_by": by}
    for name in AT_CEILINGS:
        theta = found.get(f"{name}.upper") if name == "mcf" else found.get(name)
        if theta:
            more[f"{name}_ns"] = _busiest_ns(case) / theta
    return more


def _busiest_ns(case: Case) -> float:
    """Nanoseconds for which the busiest host channel has to send, or receive, all of a program's bytes."""
    import numpy as np

    from flitlab.models.application.messages import total_flits
    from flitlab.models.application.program import SEND

    scenario = case.program
    assert scenario is not None
    program, host, messages = scenario.work.program, scenario.work.host, scenario.work.messages
    send = np.flatnonzero(program.kind == SEND)
    source, target = host[program.rank[send]], host[program.peer[send]]
    apart = source != target
    flits = total_flits(program.amount[send][apart], messages)
    most = max(float(np.bincount(ends[apart], flits).max(initial=0.0)) for ends in (source, target))
    discipline = scenario.switching
    return most * discipline.weight(messages) * float(messages.tick_ns) * discipline.flits_per_tick(scenario.topology)


def slack_of_bound(row: Mapping[str, Any], found: Mapping[str, float | None]) -> dict[str, float]:
    """How far a program stayed above the lower bound on its time, relative to it; negative only if one is wrong."""
    bound, measured = found.get("makespan"), row.get("makespan_ns")
    return {} if not bound or measured is None else {"makespan": measured / bound - 1}


def relate(study: Study, rows: Sequence[dict[str, Any]]) -> None:
    """Adds ``relative_performance`` to rows of results.csv: the time of ``outputs.relative_to`` over their own."""
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
    """The scenario that each one is compared with: of those meant, the one that is like it in all else."""
    meant = set(labels_of(which, cases))
    named = set() if isinstance(which, str) else _columns(which, cases)
    found = {}
    for case in cases:
        alike = [
            other.label for other in cases
            if other.label in meant and (len(meant) == 1 or _rest(other, named) == _rest(case, named))
        ]  # fmt: skip
        if len(alike) == 1:
            found[case.label] = alike[0]
    return found


def _columns(which: Mapping[str, Any], cases: Sequence[Case]) -> set[str]:
    """The swept keys that a mapping names, by whole paths."""
    keys = {key for case in cases for key in case.keys}
    return {key for key in keys for name in which if key == name or key.endswith("." + name)}


def _rest(case: Case, named: set[str]) -> dict[str, Any]:
    return {key: value for key, value in case.keys.items() if key not in named}


def tables(
    entries: Iterable[tuple[Case, float, int, Mapping[str, Any]]], found: Mapping[str, Mapping[str, float | None]]
) -> dict[str, list[dict[str, Any]]]:
    """File name -> rows, of the points of a study. found: ceilings by label of the scenario."""
    made: dict[str, list[dict[str, Any]]] = {}
    for case, _, seed, record in entries:
        head = {"scenario": case.label, **case.keys, "seed": seed}
        for name in TABLES:
            for row in record.get("detail", {}).get(name, ()):
                more = _of_step(row, found.get(case.label, {})) if name == "steps" else {}
                more |= _of_rank(row["rank"], case) if name == "ranks" else {}
                made.setdefault(f"{name}.csv", []).append({**head, **with_names(row, case.topology), **more})
    return made


def _of_rank(rank: int, case: Case) -> dict[str, str]:
    """The job of a rank, where there are several."""
    names = [one.job.name for one in case.jobs if one.job.ranks.start <= rank < one.job.ranks.stop]
    return {"job": names[0]} if names else {}


def _of_step(row: Mapping[str, Any], found: Mapping[str, float | None]) -> dict[str, Any]:
    bound, took = found.get(STEP + row["label"]), row["time_ns"]
    return {"bound_ns": bound, "efficiency": math.nan if bound is None or not took else bound / took}
