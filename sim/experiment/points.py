"""The points of a study: one simulation for each scenario, load and seed, checked against the ceilings."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from models.scenario import SEMANTICS_VERSION, Scenario
from sim.config.study import Case, Study
from sim.experiment.ceilings import Bound, CeilingRuns
from sim.experiment.pool import Task
from sim.experiment.progress import Progress
from sim.experiment.store import Store
from sim.experiment.task import Outcome, measure_of, point_id, solve_point

ROUNDING = -1e-9
"""Relative slack below which a point exceeds a ceiling; above it is rounding."""

NEVER = 2.0
"""A load that no point reaches."""


@dataclass
class Point:
    """One simulation. case: any of those that have it. stop: whether saturation at a lower load makes it needless."""

    id: str
    case: Case
    index: int
    load: float
    seed: int
    stop: bool

    @property
    def scenario(self) -> Scenario:
        """What is simulated."""
        assert self.case.scenario is not None
        return self.case.scenario


class PointRuns:
    """All points of a study (none for the experiment ``ceilings``, whose loads are those of ``total``).

    Those the folder holds are not run again, if the same engine did them.

    records: id -> what is in ``points/<id>.json``.
    """

    def __init__(self, study: Study, store: Store, ceilings: CeilingRuns):
        self.study = study
        self.store = store
        self.ceilings = ceilings
        self.cases = study.cases if study.experiment == "load_sweep" else []
        self.points = _points(self.cases)
        self.records: dict[str, dict[str, Any]] = {}
        self._saturated: dict[tuple[str, int], float] = {}
        self._waiting: dict[int, list[tuple[Point, Any]]] = defaultdict(list)
        ceilings.ready = self._ceilings_ready
        for point in self.points.values():
            record = store.read_json(f"points/{point.id}.json")
            if _is_whole(record) and record["engine"] == study.engine and _was_checked(point, record):
                self._keep(point, record)

    @property
    def missing(self) -> list[Point]:
        """Points without a result, first one of each discipline."""
        todo = [point for point in self.points.values() if point.id not in self.records]
        first = {point.scenario.switching.mode: point for point in reversed(todo)}
        return sorted(todo, key=lambda point: first[point.scenario.switching.mode] is not point)

    @property
    def disciplines(self) -> set[str]:
        """Switching modes of what is missing."""
        return {point.scenario.switching.mode for point in self.missing}

    def tasks(self, bar: Progress) -> Iterator[Task]:
        """Calls for everything that is missing."""
        for point in self.missing:
            path = self.store.scenario(point.scenario, point.scenario.content_hash)
            measure = measure_of(point.case.measure, point.scenario)
            arguments = (path, self.study.engine, point.load, point.seed, measure, _kinds(point.case))

            def done(outcome: Outcome, point: Point = point) -> None:
                self._done(point, outcome)
                bar.advance(self.records[point.id]["row"].get("ticks") or 0)

            def skip(point: Point = point) -> bool:
                needless = (
                    point.stop and self._saturated.get((point.scenario.content_hash, point.seed), NEVER) < point.load
                )
                if needless:
                    bar.advance()
                return needless

            yield Task(solve_point, arguments, done, skip)

    def _done(self, point: Point, outcome: Outcome) -> None:
        record = {
            "id": point.id, "scenario": point.scenario.content_hash, "load": point.load, "seed": point.seed,
            "measure": measure_of(point.case.measure, point.scenario), "engine": self.study.engine,
            "semantics_version": SEMANTICS_VERSION, "status": "ok", "message": "", "checked": None, "row": {},
        }  # fmt: skip
        if outcome.problem:
            record["status"] = "engine_mismatch" if outcome.mismatch else "failed"
            record["message"] = outcome.problem
            self._keep(point, record)  # but not written: a resumed run tries again
            return
        record |= {"row": outcome.result.row, "detail": outcome.result.detail}
        self._keep(point, record)
        bounds = self.ceilings.bounds(point.index)
        if bounds is None:
            self._waiting[point.index].append((point, outcome.result))
            self._write(record)
        else:
            self._check(point, outcome.result, bounds)

    def _keep(self, point: Point, record: dict[str, Any]) -> None:
        self.records[point.id] = record
        if record["row"].get("saturated"):
            key = (point.scenario.content_hash, point.seed)
            self._saturated[key] = min(point.load, self._saturated.get(key, NEVER))

    def _ceilings_ready(self, index: int) -> None:
        bounds = self.ceilings.bounds(index)
        for point, result in self._waiting.pop(index, []):
            self._check(point, result, bounds or [])

    def _check(self, point: Point, result: Any, bounds: list[Bound]) -> None:
        """Compares a point with all certificates of its scenario, and writes it."""
        record = self.records[point.id]
        slacks = _slacks(point, result, bounds)
        broken = [f"{name} by {-slack:.3g} of it" for name, slack in slacks.items() if slack < ROUNDING]
        if broken:
            record["status"] = "ceiling_violated"
            record["message"] = "delivered more than certified lengths allow: " + ", ".join(broken)
        record |= {"checked": list(_kinds(point.case)), "slack": slacks}
        self._write(record)

    def _write(self, record: dict[str, Any]) -> None:
        self.store.write_json(f"points/{record['id']}.json", record)

    def rows(self) -> Iterator[tuple[Case, float, int, dict[str, Any]]]:
        """(case, load, seed, record) in this order; where saturation is enough, none past the first saturated load."""
        for index, case in enumerate(self.cases):
            ended: set[int] = set()
            optimum = self.ceilings.found(index)[0].get("mcf")
            for load in case.loads:
                for seed in case.seeds:
                    record = self.records.get(_id(case, load, seed))
                    if record is None or seed in ended:
                        continue
                    yield case, load, seed, record | {"row": record["row"] | _efficiency(case, record["row"], optimum)}
                    if case.measure.stop_when_saturated and record["row"].get("saturated"):
                        ended.add(seed)

    def flows(self) -> list[dict[str, Any]]:
        """Rows of flows.csv (datagram)."""
        return [
            {"scenario": case.label, **case.keys, "load": load, "seed": seed, **flow}
            for case, load, seed, record in self.rows()
            for flow in record.get("detail", {}).get("flows", ())
        ]

    @property
    def problems(self) -> list[str]:
        """One line per point that is not ok."""
        return [
            f"{case.label}, load {load}, seed {seed}: {record['status']}: {record['message']}"
            for case, load, seed, record in self.rows() if record["status"] != "ok"
        ]  # fmt: skip


def _kinds(case: Case) -> tuple[str, ...]:
    return tuple(sorted({spec.kind for spec in case.ceilings}))


def _is_whole(record: Any) -> bool:
    """Whether this is what a run writes: a file that somebody has changed is as good as none."""
    whole = isinstance(record, dict) and all(key in record for key in ("engine", "status", "message", "row"))
    return whole and isinstance(record["row"], dict) and bool(record["row"])


def _was_checked(point: Point, record: dict[str, Any]) -> bool:
    """Whether a stored point was compared with every kind of ceiling that is asked for now."""
    checked = record.get("checked")
    return isinstance(checked, list) and set(_kinds(point.case)) <= set(checked)


def _id(case: Case, load: float, seed: int) -> str:
    assert case.scenario is not None
    return point_id(case.scenario, load, seed, measure_of(case.measure, case.scenario))


def _points(cases: Sequence[Case]) -> dict[str, Point]:
    """All distinct points by id: high loads first (they take long) unless saturation may end them."""
    found: list[tuple[tuple[float, int, int], Point]] = []
    for index, case in enumerate(cases):
        stop = case.measure.stop_when_saturated
        for load in case.loads:
            for turn, seed in enumerate(case.seeds):
                point = Point(_id(case, load, seed), case, index, load, seed, stop)
                found.append(((load if stop else -load, turn, index), point))
    points: dict[str, Point] = {}
    for _, point in sorted(found, key=lambda pair: pair[0]):
        points.setdefault(point.id, point).stop &= point.stop
    return points


def _efficiency(case: Case, row: dict[str, Any], optimum: float | None) -> dict[str, float]:
    """Throughput of endless flows as a part of the maximum concurrent flow on the same network, if both are known."""
    scenario, throughput = case.scenario, row.get("host_throughput")
    if scenario is None or scenario.datagram is None or scenario.datagram.sizes is not None:
        return {}
    if throughput is None or not optimum:
        return {}
    nic = scenario.topology.host_capacity
    return {"efficiency": throughput * nic / (optimum * float(scenario.traffic.rate.mean()))}


def _slacks(point: Point, result: Any, bounds: list[Bound]) -> dict[str, float]:
    """Ceiling -> relative slack; of ceilings that belong to a load, the point's own."""
    from fluid.crosscheck import slack

    return {
        bound.name: slack(point.case.topology, bound.certificate, result.window, result.delivered, result.present)
        for bound in bounds
        if bound.load is None or bound.load == point.load
    }
