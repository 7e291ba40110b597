# SPDX-License-Identifier: Apache-2.0
"""Metrics of topologies: each topology is measured once, and results in the folder are reused."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from pydantic import BaseModel, ConfigDict

from flitlab.models.hashing import content_hash
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.case import Case, Study
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress
from flitlab.sim.experiment.store import Store, require_cells
from flitlab.sim.experiment.task import ID_DIGITS, Outcome, failure


class _StoredMetrics(BaseModel):
    """The keys of ``points/<id>.json``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str
    metrics: Row
    problem: str


@dataclass
class MetricRuns:
    """The topologies of a study and their metrics.

    records: label of the case -> content of ``points/<id>.json``.
    """

    study: Study
    store: Store
    records: dict[str, JsonObject] = field(default_factory=dict)

    @property
    def task_indices(self) -> list[int]:
        """Indices of the topologies, one per case."""
        return list(range(len(self.study.cases)))

    def tasks(self, bar: Progress) -> Iterator[Task]:
        """Calls for all missing metrics. Topologies are built one by one, to save memory."""
        waiting: dict[str, list[Case]] = {}
        for index, case in enumerate(self.study.cases):
            topology = case.topology
            id = _id(topology, case.metrics)
            stored = self.store.record(f"points/{id}.json", partial(require_cells, model=_StoredMetrics))
            if stored is not None:
                self._keep(case, stored, bar)
            elif id in waiting:
                waiting[id].append(case)
            else:
                waiting[id] = [case]
                done = self._when_done(id, waiting, bar)
                yield Task(measure, (topology, case.metrics), done, name=f"{case.label}: metrics", task_index=index)

    def _when_done(self, id: str, waiting: dict[str, list[Case]], bar: Progress) -> Callable[[Outcome], None]:
        def done(outcome: Outcome) -> None:
            cases = waiting.pop(id)
            metrics, problems = outcome.result or ({}, [])
            record: JsonObject = {"id": id, "metrics": metrics, "problem": outcome.problem or "; ".join(problems)}
            if not outcome.problem:  # else a resumed run tries again
                self.store.write_record(f"points/{id}.json", record)
            for case in cases:
                self._keep(case, record, bar)

        return done

    def _keep(self, case: Case, record: JsonObject, bar: Progress) -> None:
        self.records[case.label] = record
        bar.advance()

    def columns_of(self, index: int) -> tuple[Row, str]:
        """The metrics of a case, and the undefined ones."""
        record = self.records.get(self.study.cases[index].label, {"metrics": {}, "problem": ""})
        return record["metrics"], record["problem"]

    def tables(self) -> dict[str, list[Row]]:
        """No further tables: metrics.csv has all metrics."""
        return {}


def _id(topology: Topology, metrics: list[MetricSpec]) -> str:
    mappings = [metric.model_dump(mode="json") for metric in metrics]
    notes = repr(topology.notes)  # are printed, too
    return content_hash("metrics", SEMANTICS_VERSION, topology.kind, topology.content_hash, notes, mappings)[:ID_DIGITS]


def measure(topology: Topology, metrics: list[MetricSpec]) -> Outcome:
    """Measure a topology; the result is a dict by column, and the undefined metrics."""
    from flitlab.models.metrics.spec import measure_all

    try:
        return Outcome(measure_all(topology, metrics))
    except ValueError as error:
        return Outcome(problem=str(error))
    except BaseException as error:  # one failing topology must not end the others
        return failure(error)
