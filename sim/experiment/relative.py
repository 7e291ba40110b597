# SPDX-License-Identifier: Apache-2.0
"""The experiment ``relative``: throughput relative to random graphs of the same equipment.

Every switch of a random graph has as many links and hosts as in the compared network, and the demand is built for the
random graph by the same specification: a longest matching is that of the random graph. Source: MUT, section IV.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.sim.config.case import Case, Study
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.network import Network, StoredInterval, network_of, theta_of
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress
from flitlab.sim.experiment.store import Store, require_cells
from flitlab.sim.experiment.task import ID_DIGITS, Outcome
from flitlab.sim.measure.interval import mean_and_half

COLUMNS = ("scenario", "draw", "theta_random", "theta_random.upper", "relative", "method", "seconds", "note")
"""Columns of draws.csv."""


@dataclass
class Draw:
    """A random graph that a scenario is compared with; equal ones are one draw.

    label: of one of the scenarios. record: None until solved.
    """

    id: str
    label: str
    network: Network
    spec: CeilingSpec
    record: JsonObject | None = None
    problem: str = ""


@dataclass
class RelativeRuns:
    """The random graphs of all scenarios. draws: id -> draw. ceilings: have the throughput of the scenarios."""

    study: Study
    store: Store
    ceilings: CeilingRuns
    draws: dict[str, Draw] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for case in self.study.cases:
            for draw in _draws(case):
                self.draws.setdefault(draw.id, draw)
        for draw in self.draws.values():
            draw.record = self.store.record(f"draws/{draw.id}.json", partial(require_cells, model=StoredInterval))

    @property
    def task_indices(self) -> list[int]:
        """Indices of the draws that are not solved."""
        return [place for place, draw in enumerate(self.draws.values()) if draw.record is None]

    def tasks(self, bar: Progress) -> Iterator[Task]:
        """Calls for all missing draws."""
        draws = list(self.draws.values())
        for index in self.task_indices:
            draw = draws[index]
            done = self._when_done(draw, bar)
            yield Task(
                theta_of, (draw.network, draw.spec), done, name=f"{draw.label}: a random graph", task_index=index
            )

    def _when_done(self, draw: Draw, bar: Progress) -> Callable[[Outcome], None]:
        def done(outcome: Outcome) -> None:
            draw.problem, draw.record = outcome.problem, outcome.result
            if draw.record is not None:
                self.store.write_record(f"draws/{draw.id}.json", draw.record)
            bar.advance()

        return done

    def columns_of(self, index: int) -> tuple[Row, str]:
        """theta of a case, mean theta of its random graphs, and their ratio: mean and 95 % half-width."""
        theta, by = self.ceilings.columns_of(index)[0], self.study.cases[index].relative.by
        draws = self._draws_of(index)
        problems = [f"random graph {i + 1}: {draw.problem}" for i, draw in enumerate(draws) if draw.problem]
        known = [draw.record for draw in draws if draw.record is not None]
        if theta.get(by) is None or len(known) < len(draws):
            return {}, "; ".join(problems)
        random = [mean_and_half([record[end] for record in known])[0] for end in ("lower", "upper")]
        mean, half = mean_and_half([theta[by] / record["lower"] for record in known])
        columns = {
            "theta": theta[by], "theta.upper": theta[f"{by}.upper"], "theta_random": random[0],
            "theta_random.upper": random[1], "relative": mean, "relative_ci95": half,
        }  # fmt: skip
        return columns, ""

    def _draws_of(self, index: int) -> list[Draw]:
        return [self.draws[draw.id] for draw in _draws(self.study.cases[index])]

    def tables(self) -> dict[str, list[Row]]:
        """draws.csv: one row per random graph of every scenario."""
        rows = []
        for index, case in enumerate(self.study.cases):
            theta = self.ceilings.columns_of(index)[0].get(case.relative.by)
            for number, draw in enumerate(self._draws_of(index), 1):
                record = draw.record or {"lower": None, "upper": None, "method": "failed", "note": draw.problem}
                ratio = theta / record["lower"] if theta is not None and record["lower"] else None
                row = (case.label, number, record["lower"], record["upper"], ratio)
                rest = (record["method"], record.get("seconds"), record["note"])
                rows.append(dict(zip(COLUMNS, row + rest, strict=True)))
        return {"draws.csv": rows}


def _draws(case: Case) -> list[Draw]:
    """The random graphs of a scenario, with seeds 1, 2, ..., and the demand of its specification."""
    assert case.instance is not None
    by = case.relative.by
    network, spec = network_of(case), next(spec for spec in case.ceilings if spec.kind == by)
    routing = {"routing": case.resolved["routing"]} if spec.routes != "unused" and case.resolved.get("routing") else {}
    identity = (case.instance.topology.content_hash, case.instance.traffic.content_hash, network["traffic"])
    draws = []
    for seed in range(1, case.relative.draws + 1):
        random = {"kind": "same_equipment", "as": network["topology"], "seed": seed}
        id = content_hash("relative", SEMANTICS_VERSION, *identity, seed, spec.plain(), *routing.values())
        draws.append(
            Draw(id[:ID_DIGITS], case.label, {"topology": random, "traffic": network["traffic"], **routing}, spec)
        )
    return draws
