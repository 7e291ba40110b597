# SPDX-License-Identifier: Apache-2.0
"""The points of a study: one simulation per scenario, load and seed, checked against the ceilings."""

import math
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from flitlab.models.mappings import Keys, Row
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import SEMANTICS_VERSION, Scenario
from flitlab.models.timeline.surviving import SurvivingNetwork
from flitlab.sim.config.case import Case, Study
from flitlab.sim.engines.base import Flows
from flitlab.sim.engines.table import kernel_key
from flitlab.sim.experiment.application import tables as tables_of_programs
from flitlab.sim.experiment.ceilings import Bound, CeilingRuns
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress
from flitlab.sim.experiment.saturation import (
    Placement,
    Question,
    in_loads,
    is_search,
    limit_of,
    placements,
    probe_of,
    seed_rows,
    table,
    task_index_of,
)
from flitlab.sim.experiment.store import Store
from flitlab.sim.experiment.tables import FLOW_TABLES, PointRecord, channel_rows, with_names
from flitlab.sim.experiment.task import Outcome, measure_of, point_id, solve_point
from flitlab.sim.measure.columns.registry import added, derived_columns, third_party_columns
from flitlab.sim.measure.rows import MeasuredPoint, Status
from flitlab.sim.measure.saturation import limited, saturation

if TYPE_CHECKING:
    from flitlab.fluid.crosscheck import FlowCount
    from flitlab.sim.measure.result import Result

ALWAYS = ("flows.csv", "packets.csv", "channels.csv")
"""Tables that are written without rows, too, where they are asked for."""

ROUNDING = -1e-9
"""Relative slack below which a point violates a ceiling; larger values are rounding."""

BELOW_BOUND = "ended sooner than its lower bound"
"""Error of a program that is faster than its lower bound."""

UNREACHABLE_LOAD = 2.0
"""A load above every load of a point."""


@dataclass
class Point:
    """One simulation: scenario, load and seed.

    Parameters
    ----------
    id: hash of what the result depends on.
    case, index: one of the cases that have it, and its index.
    load, seed: of the point.
    stop: whether saturation at a lower load makes it superfluous.
    task_index: its number, or a common one for points that depend on each other.
    question: of a search, else None.
    """

    id: str
    case: Case
    index: int
    load: float
    seed: int
    stop: bool
    task_index: int = 0
    question: Question | None = None

    @property
    def measure(self) -> Keys:
        """The measurement settings (``measure_of``)."""
        probe = None if self.question is None else probe_of(self.case, self.question)
        return measure_of(self.case.measure, self.scenario, probe, self.case.channels)

    @property
    def scenario(self) -> Scenario:
        """The scenario that is simulated."""
        assert self.case.scenario is not None
        return self.case.scenario


class PointRuns:
    """All points of a study; none if it does not simulate.

    Points in the folder are reused if the same engine computed them.

    Parameters
    ----------
    study, store: the study and its folder.
    ceilings: for checks of points, and limits of searches.
    threads: that may share a run.

    Attributes
    ----------
    points: by id; those of searches are added as their loads become known.
    placements: the searches for loads.
    records: id -> result.
    compiled_s: CPU seconds for compiling and loading kernels of the points of this run.
    """

    def __init__(self, study: Study, store: Store, ceilings: CeilingRuns, threads: int = 1):
        self.study = study
        self.store = store
        self.ceilings = ceilings
        self.threads = threads
        self.cases = study.all_cases if study.simulates else []
        self.points = _points(self.cases)
        self.records: dict[str, PointRecord] = {}
        self.compiled_s = 0.0
        self._saturated: dict[tuple[str, int], float] = {}
        self._waiting: dict[int, list[tuple[Point, Result]]] = defaultdict(list)
        ceilings.ready = self._ceilings_ready
        for point in self.points.values():
            self._load_stored(point)
        self._placed: dict[tuple[int, Question, int], Point] = {}
        self.placements = placements(self.cases)
        for placement in self.placements:
            self._advance(placement)

    def _load_stored(self, point: Point) -> None:
        """Use the record in the folder, if it has all that a new one would have."""
        stored = self.store.record(f"points/{point.id}.json", PointRecord.read)
        if stored is not None and self._is_as_good(point, record := PointRecord(**stored)):
            self._keep(point, record)

    def _is_as_good(self, point: Point, record: PointRecord) -> bool:
        """Whether a record has all that a new simulation of the point would give."""
        if record.engine != self.study.engine or record.checked is None:
            return False
        checked = set(_kinds(point.case)) <= set(record.checked)
        return checked and self._added(point).items() <= record.added.items()

    def _added(self, point: Point) -> dict[str, str]:
        """Columns that plugins add to a point, and the hashes of their code."""
        return added(point.scenario.counted, self.study.plugins)

    @property
    def count(self) -> int:
        """Points to simulate, as far as known."""
        return len(self.missing) + sum(placement.left for placement in self.placements)

    @property
    def missing(self) -> list[Point]:
        """Known points without a result, first one for each set of kernels."""
        todo = [point for point in self.points.values() if point.id not in self.records]
        first = {kernel_key(point.scenario): point for point in reversed(todo)}
        return sorted(todo, key=lambda point: first[kernel_key(point.scenario)] is not point)

    def tasks(self, bar: Progress) -> Iterator[Task | None]:
        """Calls for all missing points; None while the next one depends on a call in flight."""
        known = self.missing
        submitted = {point.id for point in known}
        yield from (self._task(point, bar) for point in known)
        while searching := [placement for placement in self.placements if not placement.ended]:
            point = next(
                (point for placement in searching for point in self._missing_points(placement, submitted)), None
            )
            if point is not None:
                submitted.add(point.id)
                yield self._task(point, bar)
            elif any(not placement.ended for placement in searching):
                yield None

    def _task(self, point: Point, bar: Progress) -> Task:
        file = self.store.scenario(point.scenario, point.scenario.content_hash)
        arguments = (file, self.study.engine, point.load, point.seed, point.measure, _kinds(point.case), self.threads)

        def done(outcome: Outcome) -> None:
            self._done(point, outcome)
            row = self.records[point.id].row
            bar.advance(row.get("ticks") or 0, point.case.label, {**row, "load": point.load, "seed": point.seed})

        def skip() -> bool:
            needless = (
                point.stop
                and self._saturated.get((point.scenario.content_hash, point.seed), UNREACHABLE_LOAD) < point.load
            )
            if needless:
                bar.advance()
            return needless

        name = f"{point.case.label}, load {point.load}, seed {point.seed}"
        return Task(solve_point, arguments, done, skip, name, point.task_index)

    def _advance(self, placement: Placement) -> None:
        """Let a placement find its next load, once the ceilings of its case are known."""
        if not placement.ended and self.ceilings.bounds(placement.index) is not None:
            placement.go_on(
                lambda: self.limit(placement.index),
                lambda question, seed: self.records.get(self._point(placement, question, seed).id),
            )

    def _point(self, placement: Placement, question: Question, seed: int) -> Point:
        """The point of a question of a placement."""
        key = (placement.index, question, seed)
        if key not in self._placed:
            case, index = placement.case, placement.index
            id = _id(case, question, seed)
            point = Point(id, case, index, question.load, seed, False, placement.task_index, question)
            self._placed[key] = self.points.setdefault(point.id, point)
            if self._placed[key] is point:
                self._load_stored(point)
        return self._placed[key]

    def _missing_points(self, placement: Placement, submitted: Container[str]) -> Iterator[Point]:
        """Points that a placement needs next, and that are not submitted yet."""
        self._advance(placement)
        if placement.question is not None:
            points = (self._point(placement, placement.question, seed) for seed in placement.seeds)
            yield from (point for point in points if point.id not in self.records and point.id not in submitted)

    def limit(self, index: int) -> float:
        """The certified limit of a case: a load from which on its routing cannot carry the offered load."""
        case = self.cases[index]
        if case.scenario is None or case.scenario.counted != "packets" or case.scenario.timeline is not None:
            return math.inf
        if case.scenario.follows_trace:
            return math.inf
        from flitlab.fluid.split import certified_limit

        limit = min(limit_of(self.ceilings.columns_of(index)[0]), certified_limit(case.scenario.instance))
        return limit / case.flits_per_load

    def _done(self, point: Point, outcome: Outcome) -> None:
        record = PointRecord(
            point.id, point.scenario.content_hash, point.load, point.seed, point.measure, self.study.engine,
            SEMANTICS_VERSION,
        )  # fmt: skip
        if outcome.problem:
            status = Status.ENGINE_MISMATCH if outcome.mismatch else Status.FAILED
            self._keep(point, replace(record, status=status, message=outcome.problem))
            return  # it is not written, so that a resumed run retries
        plugin_columns = self._added(point)
        # the process may have plugins of another study
        others = third_party_columns(point.scenario.counted) - plugin_columns.keys()
        row = {name: value for name, value in outcome.result.row.items() if name not in others}
        record = replace(record, row=row, detail=outcome.result.detail, added=plugin_columns)
        if outcome.result.limited:
            record = replace(record, status=Status.LIMIT, message="not all packets were delivered in measure.max_ticks")
        self.compiled_s += outcome.result.detail.get("compile_s", 0.0)
        self._keep(point, record)
        bounds = self.ceilings.bounds(point.index)
        if bounds is None:
            self._waiting[point.index].append((point, outcome.result))
            self._write(record)
        else:
            self._check(point, outcome.result, bounds)

    def _keep(self, point: Point, record: PointRecord) -> None:
        self.records[point.id] = record
        if record.row.get("saturated"):
            key = (point.scenario.content_hash, point.seed)
            self._saturated[key] = min(point.load, self._saturated.get(key, UNREACHABLE_LOAD))

    def _ceilings_ready(self, index: int) -> None:
        bounds = self.ceilings.bounds(index)
        for point, result in self._waiting.pop(index, []):
            self._check(point, result, bounds or [])

    def _check(self, point: Point, result: Any, bounds: list[Bound]) -> None:
        """Check a point against all certificates of its scenario, and write it."""
        record = self.records[point.id]
        slacks = _slacks(point, result, bounds) | self._epoch_slacks(point, result)
        slacks |= slack_of_bound(result.row, self.ceilings.columns_of(point.index)[0])
        broken = [f"{name} by {-slack:.3g} of it" for name, slack in slacks.items() if not slack >= ROUNDING]
        if broken:
            what = BELOW_BOUND if "makespan" in slacks else "delivered more than the certified ceilings allow"
            record = replace(record, status=Status.CEILING_VIOLATED, message=f"{what}: " + ", ".join(broken))
        self.records[point.id] = replace(record, checked=list(_kinds(point.case)), slack=slacks)
        self._write(self.records[point.id])

    def _epoch_slacks(self, point: Point, result: Any) -> dict[str, float]:
        """Ceiling of an epoch -> relative slack of its deliveries."""
        from flitlab.fluid.crosscheck import slack

        slacks = {}
        for part in result.parts:
            epoch = point.case.epochs[part.epoch]
            for bound in self.ceilings.epoch_bounds(point.index, epoch.number):
                if epoch.surviving is None or bound.load not in (None, point.load * point.case.flits_per_load):
                    continue
                delivered, present = (_renumbered(count, epoch.surviving) for count in (part.delivered, part.present))
                slacks[f"{bound.name}:epoch_{epoch.number}"] = slack(
                    epoch.surviving.topology, bound.certificate, part.window, delivered, present
                )
        return slacks

    def _write(self, record: PointRecord) -> None:
        self.store.write_record(f"points/{record.id}.json", record.stored())

    def rows(self) -> Iterator[tuple[Case, PointRecord]]:
        """The records of all cases, with derived columns, by case, load and seed.

        With ``stop_when_saturated``, none beyond the first saturated load.
        """
        for index, case in enumerate(self.study.cases if self.cases else ()):
            yield from ((case, record) for record in self.rows_of(index))

    def rows_of(self, index: int) -> Iterator[PointRecord]:
        """The records of one case, or of a scenario of a budget, as in :meth:`rows`."""
        case = self.cases[index]
        if case.scenario is None:
            return
        ended: set[int] = set()
        ceilings, limit = self.ceilings.columns_of(index)[0], self.limit(index)
        plugin_columns = added(case.scenario.counted, self.study.plugins)
        searched = self._searched(index)
        for question, seed in self._questions(index):
            record = self.records.get(_id(case, question, seed))
            if record is None or seed in ended:
                continue
            others = record.added.keys() - plugin_columns.keys()
            row = {name: value for name, value in record.row.items() if name not in others}
            has_ended = None if question.resolution is None else searched.get(seed)
            measured = MeasuredPoint(
                case.scenario, record.row, record.detail, ceilings, case.measure.ci, case.flit_ns, has_ended,
                self.study.energy_basis(case),
            )  # fmt: skip
            certain = {} if case.scenario.follows_trace else limited(record.row, question.load, limit)
            columns = certain | derived_columns(measured)
            yield replace(record, load=question.load, seed=seed, row=row | columns)
            if case.placing is None and case.measure.stop_when_saturated and record.row.get("saturated"):
                ended.add(seed)

    def _searched(self, index: int) -> dict[int, bool]:
        """Seed -> whether its saturation search has succeeded; {} without a search."""
        if not is_search(self.cases[index]):
            return {}
        return {one.seeds[0]: one.has_succeeded for one in self.placements if one.index == index}

    def _questions(self, index: int) -> Iterator[tuple[Question, int]]:
        """(question, seed) of the points of a case, by load and seed; of several at a load, the last probe."""
        case = self.cases[index]
        questions = {(load, seed): Question(load) for load in case.loads for seed in case.seeds}
        for placement in (one for one in self.placements if one.index == index):
            for question in placement.requests:
                for key in ((question.load, seed) for seed in placement.seeds):
                    questions[key] = questions.get(key, question) if question.resolution is None else question
        order = {seed: number for number, seed in enumerate(case.seeds)}
        for load, seed in sorted(questions, key=lambda key: (key[0], order[key[1]])):
            yield questions[load, seed], seed

    def saturation_tables(self) -> dict[str, list[Row]]:
        """saturation.csv and saturation_seeds.csv, from the current points."""
        rows: dict[str, list[Row]] = defaultdict(list)
        for case, record in self.rows():
            rows[case.label].append({"load": record.load, "seed": record.seed, **record.row})
        tables: dict[str, list[Row]] = {}
        for index, case in enumerate(self.study.cases if self.cases else ()):
            point = saturation(rows[case.label], self.limit(index))
            if point is not None:
                ceilings = in_loads(self.ceilings.columns_of(index)[0], case.flits_per_load)
                row = table(case, point, rows[case.label], ceilings)
                tables.setdefault("saturation.csv", []).append(row)
                tables.setdefault("saturation_seeds.csv", []).extend(seed_rows(case, point))
        return tables

    def program_tables(self) -> dict[str, list[Row]]:
        """Further tables of programs, by file name."""
        ceilings = {case.label: self.ceilings.columns_of(index)[0] for index, case in enumerate(self.study.cases)}
        return tables_of_programs(self.rows(), ceilings)

    def tables(self) -> dict[str, list[Row]]:
        """Further tables of flows, and of all kinds of traffic, by file name."""
        scenarios = [point.scenario for point in self.points.values()]
        of_flows = not self.study.runs_programs and any(one.switching.counts == "flows" for one in scenarios)
        names = [*(FLOW_TABLES if of_flows else ()), "throughput_time"]
        tables = {f"{name}.csv": self._details(name) for name in names}
        if any(one.follows_trace for one in scenarios):
            tables["packets.csv"] = list(self._packets())
        tables["classes.csv"] = self._details("classes")
        if self.study.outputs.channels:
            tables["channels.csv"] = list(self._channels())
        return {name: rows for name, rows in tables.items() if rows or name in ALWAYS}

    def _channels(self) -> Iterator[Row]:
        """Rows of channels.csv, of the points that count the traffic of channels."""
        for case, record in self.rows():
            head = {"scenario": case.label, **case.keys, "load": record.load, "seed": record.seed}
            yield from channel_rows(head, case.topology, record.detail.get("channels", {}))

    def _packets(self) -> Iterator[Row]:
        """Rows of packets.csv, of the points that follow a trace."""
        for case, record in self.rows():
            columns = record.detail.get("packets", {})
            head = {"scenario": case.label, **case.keys, "seed": record.seed}
            for number, values in enumerate(zip(*columns.values(), strict=True)):
                row = dict(zip(columns, values, strict=True))
                yield {**head, "row": number, **with_names(row, case.topology)}

    def _details(self, name: str) -> list[Row]:
        """Rows of a table that the records of points have."""
        rows = []
        for case, record in self.rows():
            head = {"scenario": case.label, **case.keys, "load": record.load, "seed": record.seed}
            rows += [{**head, **with_names(row, case.topology)} for row in record.detail.get(name, ())]
        return rows

    @property
    def cpu(self) -> dict[str, float]:
        """CPU seconds of all points, and, separately, of compiling and loading their kernels."""
        records = [record for index in range(len(self.cases)) for record in self.rows_of(index)]
        return {
            "cpu_s": sum(record.row.get("cpu_s", 0.0) for record in records),
            "compile_s": sum(record.detail.get("compile_s", 0.0) for record in records),
        }

    @property
    def problems(self) -> list[str]:
        """One line per point with an error."""
        return [
            f"{case.label}, load {record.load}, seed {record.seed}: {record.status}: {record.message}"
            for index, case in enumerate(self.cases)
            for record in self.rows_of(index) if record.status not in (Status.OK, Status.LIMIT)
        ]  # fmt: skip


def _kinds(case: Case) -> tuple[str, ...]:
    return tuple(sorted({spec.kind for spec in case.ceilings}))


@lru_cache(maxsize=100_000)
def _id(case: Case, question: Question, seed: int) -> str:
    assert case.scenario is not None
    measure = measure_of(case.measure, case.scenario, probe_of(case, question), case.channels)
    return point_id(case.scenario, question.load, seed, measure)


def _points(cases: Sequence[Case]) -> dict[str, Point]:
    """All distinct points by id: high loads first, as they take long, unless saturation may make them superfluous."""
    keyed: list[tuple[tuple[float, int, int], Point]] = []
    for index, case in enumerate(cases):
        stop = case.measure.stop_when_saturated and case.placing is None
        for load in case.loads:
            for seed_index, seed in enumerate(case.seeds):
                point = Point(_id(case, Question(load), seed), case, index, load, seed, stop)
                keyed.append(((load if stop else -load, seed_index, index), point))
    points: dict[str, Point] = {}
    for _, point in sorted(keyed, key=lambda pair: pair[0]):
        points.setdefault(point.id, point).stop &= point.stop
    curves: dict[tuple[str, int], int] = {}
    for number, point in enumerate(points.values()):
        curve = (point.scenario.content_hash, point.seed)
        point.task_index = curves.setdefault(curve, len(curves)) if point.stop else number
        if point.case.placing is not None:
            point.task_index = task_index_of(point.case, point.index, point.seed)
    return points


def slack_of_bound(row: Row, ceilings: Mapping[str, float | None]) -> dict[str, float]:
    """The time of a program over its lower bound, minus 1; negative only if one of them is wrong."""
    bound, measured = ceilings.get("makespan"), row.get("makespan_ns")
    return {} if not bound or measured is None else {"makespan": measured / bound - 1}


def _slacks(point: Point, result: Any, bounds: list[Bound]) -> dict[str, float]:
    """Ceiling -> relative slack; ceilings of a load only at this load."""
    from flitlab.fluid.crosscheck import slack

    topology = point.case.topology
    if result.capacity is not None:
        topology = replace(topology, capacity=result.capacity)
    return {
        bound.name: slack(topology, bound.certificate, result.window, result.delivered, result.present)
        for bound in bounds
        if bound.load is None or bound.load == point.load * point.case.flits_per_load
    }


def _renumbered(count: Flows, left: SurvivingNetwork) -> "FlowCount":
    """Deliveries by pair, with the switch numbers of the reduced network of an epoch."""
    from flitlab.fluid.crosscheck import FlowCount

    pairs, number = count.pairs, np.full(count.pairs.switches, -1, np.int64)
    number[left.switch] = np.arange(len(left.switch))
    src_switch, dst_switch = np.divmod(pairs.place.astype(np.int64), pairs.switches)
    pair = number[src_switch] * left.topology.switches + number[dst_switch]
    renumbered = PairCounts.of(left.topology.switches, pair, pairs.amount.astype(np.int64))
    return FlowCount(renumbered, count.sources, count.destinations)
