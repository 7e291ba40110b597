# SPDX-License-Identifier: Apache-2.0
"""Loads that are found as a run goes: by bisection for the saturation point, or where a curve bends.

No load can be carried from the least certified upper end on that holds for the routing, and a search begins with that
and nothing else, so that its result does not depend on other loads of the study. Every load asked for becomes a point,
so a search that is repeated finds its answers in the folder. What counts as saturated is said in
``flitlab.sim.measure.saturation``, how a probe decides it in ``flitlab.sim.measure.probe``.

*Saturation* of each seed by itself: the bracket [highest load carried, lowest load saturated] is halved until it is
narrower than the tolerance, or than what the longest windows can tell; where throughput collapses, runs with fresh
draws confirm both ends; then one more point at half of it says what latency is there. *Budget*: the same without that
point, and the tolerance is a part of the limit, so that different switches are asked the same loads. *Adaptive*, all
seeds together: the bracket is narrowed to a tenth; then, load by load, the longest piece of the curve is halved, of the
polygon through (load / upper end, least latency / latency). Both coordinates stay below 1, wherever latency goes.
"""

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flitlab.fluid.kinds.spec import kinds
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys, Row
from flitlab.sim.config.case import Case
from flitlab.sim.config.sections import AdaptiveConfig, BudgetConfig, SaturationConfig
from flitlab.sim.experiment.tables import PointRecord
from flitlab.sim.measure.interval import mean_known
from flitlab.sim.measure.rows import number
from flitlab.sim.measure.saturation import SEARCHED, SaturatedBy, Saturation, bracket, is_saturated, is_unclear
from flitlab.sim.measure.saturation import carried as delivered


class Question(NamedTuple):
    """A load that is asked for. resolution: of a probe, the relative overload that it has to show; None for others.

    draws: of a probe that confirms another, the number of runs with fresh draws that have to agree; else 0.
    """

    load: float
    resolution: float | None = None
    draws: int = 0


Steps = Generator[Question, Sequence[Row], Any]
"""Yields questions, and is sent the rows of every seed at each."""

FLOOR = 1e-4
"""A scenario that is saturated at this load is taken to be so at every load."""

BEYOND = 0.1
"""How far past saturation, at most, an adaptive curve goes."""

DRAWS, COLLAPSE_DRAWS = 2, 4
"""Runs with fresh draws that confirm an end of a bracket; the second where throughput collapses, for the upper end. The
lower one is further from where verdicts differ, by the resolution of its probe."""

ROUNDING = 1e-9
"""What two loads differ by that are the same."""

HALF = 0.5
"""Part of the saturation point at which latency is reported."""

LOWEST = 0.1
"""Part of the saturation point at which an adaptive curve begins."""

FAIRNESS = ("min_flow_ratio", "jain")
"""Columns that say how evenly a saturated network treats sources."""


def limits() -> list[str]:
    """Ceilings that a routing cannot exceed, if they are known for it: of all routings, or of those over its paths."""
    return [name for name, kind in kinds().items() if kind.limit]


def compared() -> list[str]:
    """Ceilings that efficiency may be a part of; the first that is known is."""
    return [name for name, kind in kinds().items() if kind.share]


def rounded(load: float) -> float:
    """A load that can be read and typed: five digits, finer than any tolerance."""
    return float(f"{load:.5g}")


def bisect(top: float, tolerance: float, width: float = 0.0, probing: bool = True) -> Steps:
    """Halves the bracket (0, ``top``) until it is narrower than ``tolerance`` x its upper end, or ``width``.

    It ends earlier where the longest windows cannot tell more. Loads at which they were too short to tell are left
    inside the bracket, which is then narrowed on either side of them. The upper end is confirmed, and where the lowest
    saturated load delivers less than the highest carried one, so that throughput collapses, the lower end too; not in a
    budget, which has a ``width``, since it compares switches by the same draws. probing: whether it asks for probes.
    Returns (highest load carried, lowest saturated).
    """
    carried, over, shown = 0.0, top, 0.0  # shown: the resolution at the load carried
    finest = 0.0  # the resolution of the longest windows, once they were too short
    unclear: list[float] = []
    held, saturated, least = {0.0}, {top}, math.inf  # loads; what the lowest saturated one delivers
    while over > FLOOR:
        goal = max(tolerance * over, width)
        below, above = (carried, min(unclear, default=over)), (max(unclear, default=carried), over)
        low, high = max(below, above, key=lambda side: side[1] - side[0])
        load = rounded((low + high) / 2)
        if over - carried * (1 - shown) <= goal:
            break
        if high - low <= max(goal, finest * over) / 2:
            if not carried or finest or shown <= goal / (2 * carried):
                break
            load = carried  # which was seen to be carried as long as the bracket was wide
        resolution = _halved(max((high - low) / 2, goal) / (2 * load)) if probing else None
        rows = yield Question(load, resolution)
        reached = max((one for row in rows if not math.isnan(one := number(row, "resolution"))), default=0.0)
        if any(is_saturated(row) for row in rows):
            over, unclear = load, [one for one in unclear if one < load]
            held, saturated = {one for one in held if one < load}, saturated | {load}
            least = max(delivered(row) for row in rows)
            if load == carried:
                carried = shown = 0.0  # a longer window has refuted a shorter one
        elif any(is_unclear(row) for row in rows):
            unclear, finest = [*unclear, load], max(finest, reached)
        else:
            carried, shown, unclear = load, reached, [one for one in unclear if one > load]
            held.add(load)
            finest = max(finest, reached if resolution is not None and reached > resolution else 0.0)
    if probing and not width:
        return (yield from _confirm(held, saturated, tolerance * over, least < carried * (1 - ROUNDING)))
    return carried, over


def _confirm(carried: set[float], saturated: set[float], step: float, collapses: bool) -> Steps:
    """Move the ends of a bracket outwards until runs with fresh draws agree on each.

    Near saturation backlogs rise and fall for longer than arrivals alone would explain, and a network that is bistable
    carries a load for a random time, then throughput collapses: there the verdict of one run is that of its draws.
    Loads at which draws differ stay inside the bracket, as those without a verdict do. carried, saturated: all such
    loads. step: by which an end moves first, where no other such load is nearer, then twice as far each time.
    collapses: whether the lower end needs to be confirmed. Returns the ends.
    """
    top, move = max(saturated), step
    while collapses and (load := max(carried)):
        rows = yield _confirming(load, step, DRAWS)
        over = any(is_saturated(row) for row in rows)
        if not over and not any(is_unclear(row) for row in rows):
            break
        carried, move = {*(carried - {load}), max(rounded(load - move), 0.0)}, 2 * move
        saturated = saturated | {load} if over else saturated
    move = step
    while (load := min(saturated)) < top:
        rows = yield _confirming(load, step, COLLAPSE_DRAWS if collapses else DRAWS)
        if any(is_saturated(row) for row in rows):
            break
        saturated, move = {*(saturated - {load}), min(rounded(load + move), top)}, 2 * move
        carried = carried if any(is_unclear(row) for row in rows) else carried | {load}
    return max(carried), min(saturated)


def _confirming(load: float, step: float, draws: int) -> Question:
    return Question(load, _halved(step / (2 * load)), draws)


def _halved(resolution: float) -> float:
    """The greatest power of 1/2 up to ``resolution``: searches of different tolerance share their first probes."""
    return float(2.0 ** math.floor(math.log2(min(resolution, 0.5))))


def questions(tolerance: float) -> int:
    """About how many loads a search takes."""
    return math.ceil(math.log2(1 / tolerance)) + 2


def search(answers: Mapping[float, Sequence[Row]], limit: float, highest: float, tolerance: float) -> Steps:
    """The loads that the saturation point takes.

    answers: load -> rows, to which every answer is added. limit: the load from which on everything counts as saturated.
    highest: the highest load there is.
    """
    top = min(limit, highest)
    _, over = yield from bisect(top, tolerance)
    if over == top:
        yield Question(over)  # nothing below is saturated: fairness is that of this load
    known = bracket([{**row, "load": load} for load, rows in answers.items() for row in rows], limit)
    yield Question(rounded(HALF * (known.lower if math.isnan(known.value) else known.value)))


def stable(limit: float, highest: float, tolerance: float) -> Steps:
    """The loads that the stable load takes: those of :func:`search` without its last two.

    tolerance: width of the bracket at the end, as a part of the greatest load that it may hold.
    """
    top = min(limit, highest)
    yield from bisect(top, 0.0, tolerance * top)


def curve(answers: Mapping[float, Sequence[Row]], limit: float, highest: float, points: int) -> Steps:
    """Loads, ``points`` of them, from :data:`LOWEST` of the saturation point to the first load past it.

    answers: load -> rows, to which every answer is added.
    """
    _, upper = yield from bisect(min(limit, highest), BEYOND, probing=False)
    for load in (upper, rounded(LOWEST * upper)):
        if load not in answers:
            yield Question(load)
    while sum(load <= upper for load in answers) < points:
        load = _longest_piece(answers, upper)
        if load is None or load in answers:
            return
        yield Question(load)


def _longest_piece(answers: Mapping[float, Sequence[Row]], upper: float) -> float | None:
    """The load in the middle of the longest piece of the curve; None if it has no pieces."""
    loads = [load for load in sorted(answers) if load <= upper]
    latency = [mean_known(number(row, "latency_mean") for row in answers[load]) for load in loads]
    known = [(load, value) for load, value in zip(loads, latency, strict=True) if value > 0]
    if len(known) < 2:
        return None
    least = min(value for _, value in known)
    at = [(load / upper, least / value) for load, value in known]
    lengths = [math.dist(a, b) for a, b in pairwise(at)]
    longest = lengths.index(max(lengths))
    return rounded((known[longest][0] + known[longest + 1][0]) / 2)


Lookup = Callable[[Question, int], PointRecord | None]
"""(question, seed) -> the record of the point, None if there is none yet."""


@dataclass
class Placement:
    """The loads of a case that are found one after another, for one seed or for several together.

    place: of all its points (see ``Task``). asked: all that it asked for, in this order. question: what is asked for
    now; None before it has begun, and after it has ended. found: whether it has ended with all that it asked for, no
    point of which failed.
    """

    case: Case
    index: int
    seeds: tuple[int, ...]
    task_index: int
    requests: list[Question] = field(default_factory=list)
    question: Question | None = None
    ended: bool = False
    has_succeeded: bool = False
    _steps: Steps | None = None
    _answers: dict[float, Sequence[Row]] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """About how many points are still to come."""
        placing, count = self.case.placing, len(self.requests)
        if self.ended or placing is None:
            return 0
        if isinstance(placing, AdaptiveConfig):
            return max(placing.points - count, 1) * len(self.seeds)
        return max(questions(placing.tolerance) - count, 1)

    def go_on(self, limit: Callable[[], float], lookup: Lookup) -> None:
        """Answers questions as long as what is known suffices.

        limit: the load from which on everything counts as saturated.

        It ends early at a point that failed: the rest would depend on it.
        """
        if self._steps is None and not self._begin(limit, lookup):
            return
        while self.question is not None and (rows := self._rows(self.question, lookup)) is not None:
            if rows:
                self._answers[self.question.load] = rows
                self._take(rows)
            else:
                self._end()

    def _begin(self, limit: Callable[[], float], lookup: Lookup) -> bool:
        """Whether all is known that the first question depends on: of a curve, the points at the loads given."""
        at_loads: dict[float, list[Row] | None] = {}
        if isinstance(self.case.placing, AdaptiveConfig):
            at_loads = {load: self._rows(Question(load), lookup) for load in self.case.loads}
        if any(rows is None for rows in at_loads.values()):
            return False
        self._answers |= {load: rows for load, rows in at_loads.items() if rows}
        self._steps = self._asking(limit())
        if all(at_loads.values()):
            self._take(None)
        else:
            self._end()
        return True

    def _asking(self, limit: float) -> Steps:
        placing = self.case.placing
        assert placing is not None
        if isinstance(placing, AdaptiveConfig):
            return curve(self._answers, limit, highest_load(self.case), placing.points)
        if isinstance(placing, BudgetConfig):
            return stable(limit, highest_load(self.case), placing.tolerance)
        return search(self._answers, limit, highest_load(self.case), placing.tolerance)

    def _take(self, rows: Any) -> None:
        """Makes the next step; what it asks for is the question."""
        assert self._steps is not None
        try:
            self.question = self._steps.send(rows)
            self.requests.append(self.question)
        except StopIteration:
            self._end()
            self.has_succeeded = True

    def _end(self) -> None:
        self.question, self.ended = None, True

    def _rows(self, question: Question, lookup: Lookup) -> list[Row] | None:
        """What was measured with every seed; None while that is not known, empty if a point failed."""
        records = [lookup(question, seed) for seed in self.seeds]
        known = [record.row for record in records if record is not None]
        if len(known) < len(records):
            return None
        probes = {SEARCHED: True} if is_search(self.case) and question.resolution is not None else {}
        return [{"load": question.load, **row, **probes} for row in known] if all(known) else []


def is_search(case: Case) -> bool:
    """Whether saturation points of a case are searched for."""
    return isinstance(case.placing, SaturationConfig | BudgetConfig)


def probe_of(case: Case, question: Question) -> Keys | None:
    """What a probe of a case is measured by, besides the window of its points; None for a point that is no probe."""
    if question.resolution is None or not isinstance(case.placing, SaturationConfig | BudgetConfig):
        return None
    probe = {"resolution": question.resolution, "longest": case.placing.longest}
    return probe | {"draws": question.draws} if question.draws else probe


def placements(cases: Sequence[Case]) -> list[Placement]:
    """The placements of all cases."""
    all_placements: list[Placement] = []
    for index, case in enumerate(cases):
        if case.placing is not None:
            groups = [tuple(case.seeds)] if _together(case) else [(seed,) for seed in case.seeds]
            all_placements += (Placement(case, index, seeds, task_index_of(case, index, seeds[0])) for seeds in groups)
    return all_placements


def task_index_of(case: Case, index: int, seed: int) -> int:
    """What points have in common that depend on each other (``Task.task_index``)."""
    return index if _together(case) else index * len(case.seeds) + case.seeds.index(seed)


def _together(case: Case) -> bool:
    """Whether all seeds have the same loads."""
    return isinstance(case.placing, AdaptiveConfig)


def highest_load(case: Case) -> float:
    """1, or the load at which the busiest host creates a packet in every tick."""
    assert case.scenario is not None
    traffic = case.scenario.traffic
    left = case.scenario.source.mean_flits - traffic.sent(0)
    load: float = min([1.0, *(left[traffic.rate > 0] / traffic.rate[traffic.rate > 0])])
    return load


def limit_of(ceilings: Mapping[str, float | None]) -> float:
    """The load from which on the routing cannot carry all that is offered; inf where no ceiling says so.

    ceilings: by name, the upper end as ``<name>.upper`` where the name alone is its lower end.
    """
    upper = (ceilings.get(f"{name}.upper", ceilings.get(name)) for name in limits())
    return min((value for value in upper if value is not None), default=math.inf)


def in_loads(ceilings: Mapping[str, float | None], flits_per_load: float) -> dict[str, float | None]:
    """Ceilings in units of load. ceilings: by name, in flits per tick of a host of rate 1."""
    return {name: None if value is None else value / flits_per_load for name, value in ceilings.items()}


class Efficient(NamedTuple):
    """The ceiling of which efficiency is a part. lower, upper: its certified ends, equal where only one is known."""

    name: str
    lower: float
    upper: float


def ceiling_of(ceilings: Mapping[str, float | None], names: Sequence[str] = ()) -> Efficient | None:
    """The first of these ceilings that is known of a scenario; by default, of those that efficiency may be a part of.

    ceilings: as in :func:`limit_of`.
    """
    for name in names or compared():
        if (lower := ceilings.get(name)) is not None:
            upper = ceilings.get(f"{name}.upper", lower)
            return Efficient(name, lower, lower if upper is None else upper)
    return None


def table(case: Case, point: Saturation, rows: Sequence[Row], ceilings: Mapping[str, float | None]) -> Row:
    """A row of saturation.csv. rows: of results.csv, all of this scenario. ceilings: as in :func:`limit_of`."""
    name, lower, upper = ceiling_of(ceilings) or (None, None, None)
    return {
        "scenario": case.label, **case.keys, "saturation": point.value, "ci95": point.plus_minus,
        "ci95_low": point.low, "ci95_high": point.high, "lower": point.lower, "upper": point.upper,
        "seeds": len(point.seeds), "accepted": point.at("accepted"),
        "ceiling": name, "ceiling_lower": lower, "ceiling_upper": upper,
        "efficiency": point.value / upper if upper and point.ended else None,
        **{column: point.at(column) for column in FAIRNESS},
        "latency_half": latency_half(point, rows),
        "note": _note(case, point, rows, upper),
    }  # fmt: skip


def _note(case: Case, point: Saturation, rows: Iterable[Row], ceiling: float | None) -> str:
    """What to know of a saturation point: where its search stands, how precise it is, what its ceiling is."""
    if not point.ended:
        return "the search has not ended: lower and upper are what is known so far"
    hot = "" if ceiling is None or case.instance is None else _hot_hosts(case.instance, ceiling)
    return "; ".join(filter(None, (_bistable(rows) or _imprecise(case, point), hot)))


def _bistable(rows: Iterable[Row]) -> str:
    """Says at which loads throughput collapses with some draws only."""
    loads = [float(row["load"]) for row in rows if row.get("saturated_by") == SaturatedBy.DIFFER]
    if not loads:
        return ""
    low, high = f"{min(loads):.4g}", f"{max(loads):.4g}"
    where = f"load {low}" if low == high else f"loads from {low} to {high}"
    return f"bistable: at {where}, throughput collapses in some runs only"


def _imprecise(case: Case, point: Saturation) -> str:
    """Says that the bracket of a search is wider than what was asked for."""
    if not isinstance(case.placing, SaturationConfig) or not math.isfinite(point.upper):
        return ""
    wide = max((one.upper - one.lower) / one.upper for one in point.seeds.values())
    if wide <= case.placing.tolerance * (1 + 1e-9):
        return ""
    return (
        f"brackets are up to {wide:.1%} wide, not {case.placing.tolerance:.1%}: windows of {case.placing.longest} x "
        f"{case.measure.ticks:,} ticks tell no more (loads.saturation.longest)"
    )


def _hot_hosts(instance: Instance, ceiling: float) -> str:
    from flitlab.fluid.hosts import hot_host_note

    return hot_host_note(instance.topology, instance.traffic, ceiling)


def latency_half(point: Saturation, rows: Iterable[Row]) -> float:
    """Mean over seeds of the latency at half of each one's saturation point; NaN below the lowest load.

    Between two loads by linear interpolation.
    """
    by_seed: dict[int, dict[float, float]] = {}
    for row in rows:
        if not math.isnan(value := number(row, "latency_mean")):
            by_seed.setdefault(int(row["seed"]), {})[float(row["load"])] = value
    return mean_known(_at(rounded(HALF * point.seeds[seed].value), latency) for seed, latency in by_seed.items())


def _at(load: float, values: Mapping[float, float]) -> float:
    loads = sorted(values)
    return float(np.interp(load, loads, [values[x] for x in loads], math.nan, math.nan))


def seed_rows(case: Case, point: Saturation) -> list[Row]:
    """The rows of saturation_seeds.csv: each seed by itself."""
    return [
        {
            "scenario": case.label, **case.keys, "seed": seed, "saturation": one.value, "lower": one.lower,
            "upper": one.upper, **{name: math.nan if one.over is None else number(one.over, name) for name in FAIRNESS},
        } for seed, one in point.seeds.items()
    ]  # fmt: skip
