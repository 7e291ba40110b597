# SPDX-License-Identifier: Apache-2.0
"""Loss budgets: the losses between the maximum concurrent flow and the saturation point of a switch.

A budget is a sequence of levels, each the load of a scenario in which one cause of loss is removed. Its upper levels
are ceilings, certified or exact: ``mcf`` (any routing), ``mcf_paths`` (the paths of this routing), ``split`` (its
split of the traffic over them). The lower ones are saturation points of simulations, found by bisection for each
seed: ``ideal`` (output queues without limit), ``infinite_buffers`` (this switch with unlimited buffers),
``full_speedup`` (its own buffers, a crossbar without limit), ``switch`` (as configured). A *loss* is the difference
of two neighbours, so losses add up.

Draws depend only on the seed, so two switches see the same packets: their loss is the mean of the differences per seed,
with the 95 % confidence interval (Student's t), widened by the distance of each load to the farther end of its bracket.
Between certified levels, the ends of their intervals are subtracted. *Sensitivities* are gains of single changes of the
switch; they do not add up.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import cast

import numpy as np

from flitlab.fluid.certificate import bottlenecks
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import Row
from flitlab.models.topology.names import switch_names
from flitlab.sim.config.case import Budget, Case, LevelScenario
from flitlab.sim.config.sections import CERTIFIED, MEASURED, BudgetConfig
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.points import PointRuns
from flitlab.sim.experiment.saturation import highest_load
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.saturation import saturation

LOSSES = {
    "mcf_paths": "paths", "split": "weights", "ideal": "window", "infinite_buffers": "blocking",
    "full_speedup": "buffers", "switch": "crossbar",
}  # fmt: skip
"""Level -> loss against the level above. Where levels are omitted, their losses are combined."""

OMITTED, MEASURED_KIND, EXACT, CERTIFIED_KIND = "omitted", "measured", "exact", "certified"
"""How a level is known (``kind``)."""

MAX_BOTTLENECKS = 10
"""Bottlenecks that are listed, those with the highest price first."""


@dataclass(frozen=True)
class Level:
    """A known level, in loads.

    Parameters
    ----------
    name: of the level.
    kind: how it is known.
    lower, upper: its interval.
    note: a remark.
    seeds: seed -> saturation point; {} for ceilings.
    step: distance from the saturation point to the farther end of its bracket, the largest over seeds.
    scenario: hash of what was simulated; equal levels have equal hashes.
    middle: the mean over seeds, None for ceilings.
    """

    name: str
    kind: str
    lower: float
    upper: float
    note: str = ""
    seeds: Mapping[int, float] = field(default_factory=dict)
    step: float = 0.0
    scenario: str = ""
    middle: float | None = None

    @property
    def value(self) -> float:
        """The mean over seeds, else the middle of the interval."""
        return (self.lower + self.upper) / 2 if self.middle is None else self.middle

    @property
    def half(self) -> float:
        """Half-width of the interval: of 95 % over seeds, with ``step``; of a certified level between its ends."""
        if not self.seeds:
            return (self.upper - self.lower) / 2
        return mean_and_half(list(self.seeds.values()), 0.0, self.step)[1]


@dataclass(frozen=True)
class Loss:
    """The difference of two levels, in loads: value in [low, high]."""

    above: Level
    below: Level
    value: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """The cause of the loss, and those of omitted levels between the two."""
        order = list(LOSSES)
        first = order.index(self.above.name) + 1 if self.above.name in LOSSES else 0
        return "+".join(LOSSES[level] for level in order[first : order.index(self.below.name) + 1])


def loss(above: Level, below: Level) -> Loss:
    """The difference of two levels, paired by seed if both were simulated.

    >>> one = Level("full_speedup", "measured", 0.4, 0.6, seeds={1: 0.49, 2: 0.51}, step=0.01, scenario="a")
    >>> two = Level("switch", "measured", 0.3, 0.5, seeds={1: 0.39, 2: 0.41}, step=0.01, scenario="b")
    >>> difference = loss(one, two)
    >>> round(difference.value, 3), round(difference.low, 3), round(difference.high, 3), loss(one, one).high
    (0.1, 0.08, 0.12, 0.0)
    """
    value = above.value - below.value
    if above.scenario and above.scenario == below.scenario:
        return Loss(above, below, 0.0, 0.0, 0.0)
    if above.seeds and below.seeds:
        pairs = [above.seeds[seed] - below.seeds[seed] for seed in above.seeds]
        half = mean_and_half(pairs, 0.0, above.step + below.step)[1]
    else:
        half = above.half + below.half
    return Loss(above, below, value, value - half, value + half)


def narrow_levels(levels: Mapping[str, Level | str]) -> dict[str, Level | str]:
    """Certified levels, each narrowed by the others: levels descend, which bounds the ends of their intervals.

    >>> above, below = Level("mcf", "certified", 0.4, 0.6), Level("mcf_paths", "certified", 0.5, 0.7)
    >>> [(level.lower, level.upper) for level in narrow_levels({"mcf": above, "mcf_paths": below}).values()]
    [(0.5, 0.6), (0.5, 0.6)]
    """
    narrowed, upper = dict(levels), math.inf
    for name, level in levels.items():
        if isinstance(level, Level):
            upper = min(upper, level.upper)
            below = [one.lower for one in list(levels.values())[list(levels).index(name) :] if isinstance(one, Level)]
            narrowed[name] = replace(level, lower=min(max(below), upper), upper=upper)
    return narrowed


@dataclass(frozen=True)
class BudgetRuns:
    """The tables of all budgets, from the current points and ceilings."""

    budgets: Sequence[Budget]
    points: PointRuns
    ceilings: CeilingRuns

    def tables(self) -> dict[str, list[Row]]:
        """budget.csv, budget_parts.csv, budget_sensitivities.csv and budget_channels.csv."""
        tables: dict[str, list[Row]] = {}
        for budget in self.budgets:
            for name, rows in self._tables_of(budget):
                tables.setdefault(name, []).extend(
                    {"scenario": budget.case.label, **budget.case.keys, **row} for row in rows
                )
        return tables

    def _tables_of(self, budget: Budget) -> Iterator[tuple[str, list[Row]]]:
        levels, missing = self._levels(budget)
        mcf = next((level.value for level in levels if level.name == "mcf"), math.nan)
        rows = [_level_row(level, mcf) for level in levels] + missing
        order = [*CERTIFIED, *MEASURED]
        yield "budget.csv", sorted(rows, key=lambda row: order.index(row["rung"]))
        yield "budget_parts.csv", [_loss_row(loss(*pair), mcf) for pair in pairwise(levels)]
        switch = next((level for level in levels if level.name == "switch"), None)
        changes = ((name, scenario) for name, scenario in budget.changes.items())
        yield "budget_sensitivities.csv", [self._sensitivity(name, scenario, switch, mcf) for name, scenario in changes]
        yield "budget_channels.csv", list(self._channels(budget.case, levels))

    def _levels(self, budget: Budget) -> tuple[list[Level], list[Row]]:
        """The known levels from the highest, and rows of the omitted ones."""
        certified = dict(self._certified(budget.case))
        levels: dict[str, Level | str] = {kind: certified.get(kind, "was not computed") for kind in CERTIFIED}
        levels = narrow_levels(levels)
        levels |= {name: self._measured(name, scenario) for name, scenario in budget.levels.items()}
        known = [level for level in levels.values() if isinstance(level, Level)]
        return known, [_omitted(name, why) for name, why in levels.items() if isinstance(why, str)]

    def _certified(self, case: Case) -> Iterator[tuple[str, Level | str]]:
        """Ceiling -> its level, or why there is none; the first of several methods counts."""
        for row in reversed(self.ceilings.rows_of(self._index(case))):
            ends = [row[end] / case.flits_per_load for end in ("lower", "upper") if row[end] is not None]
            name = row["ceiling"]
            if name not in CERTIFIED:
                continue
            kind = EXACT if name == "split" else CERTIFIED_KIND
            level = Level(name, kind, ends[0], ends[-1], row["method"]) if ends else None
            yield name, level or row["note"] or "is not known"

    def _measured(self, name: str, scenario: LevelScenario) -> Level | str:
        """The saturation point of a scenario over its seeds, or why there is none."""
        case = scenario.case
        if case is None or case.scenario is None:
            return scenario.note
        index = self._index(case)
        rows = [{"load": one.load, "seed": one.seed, **one.row} for one in self.points.rows_of(index)]
        point = saturation(rows, self.points.limit(index))
        placements = [one for one in self.points.placements if one.index == index]
        if point is None or math.isinf(point.upper) or not all(one.has_succeeded for one in placements):
            return "its points are not all there"
        seeds = {seed: one.value for seed, one in point.seeds.items()}
        content = content_hash(case.scenario.content_hash, case.measure.model_dump(mode="json"))
        step = max(one.half for one in point.seeds.values())
        top = min(self.points.limit(index), highest_load(case))
        wide = max(one.upper - one.lower for one in point.seeds.values()) / top
        note = "; ".join(filter(None, (scenario.note, _imprecise(case, wide))))
        return Level(name, MEASURED_KIND, point.low, point.high, note, seeds, step, content, point.value)

    def _sensitivity(self, name: str, scenario: LevelScenario, switch: Level | None, mcf: float) -> Row:
        """A row of budget_sensitivities.csv: both loads, and the gain."""
        row = {"change": name, "set": " ".join(scenario.set), "switch": switch.value if switch else None}
        changed = self._measured(name, scenario)
        if isinstance(changed, str) or switch is None:
            return row | {"note": changed if isinstance(changed, str) else "the switch itself is not known"}
        gain = loss(changed, switch)
        return row | {"changed": changed.value, **_numbers(gain, mcf), "note": changed.note}

    def _channels(self, case: Case, levels: Sequence[Level]) -> Iterator[Row]:
        """Rows of budget_channels.csv: the bottlenecks, with their share of the dual."""
        optimum = self.ceilings.optimum(self._index(case))
        if optimum is None:
            return
        lower = max([optimum.lower, *(level.lower for level in levels if level.name == "mcf")])
        topology, prices = case.topology, optimum.certificate
        price = topology.capacity * prices.network
        hosts = topology.host_capacity * float(prices.injection.sum() + prices.ejection.sum())
        total, bound = price.sum() + (hosts or 0.0), bottlenecks(topology, prices, lower, optimum.upper)
        if bound.hosts:
            yield {"from": "hosts", "to": "", "price": hosts / total, "of": 1}
        names, full = switch_names(topology), np.flatnonzero(bound.network)
        for channel in full[np.argsort(-price[full], kind="stable")][:MAX_BOTTLENECKS]:
            ends = {"from": names.value(topology.src[channel]), "to": names.value(topology.dst[channel])}
            yield ends | {"price": float(price[channel] / total), "of": len(full)}

    def _index(self, case: Case) -> int:
        return next(i for i, one in enumerate(self.points.cases) if one is case)


def _imprecise(case: Case, wide: float) -> str:
    """Says that a bracket, a part of the lowest ceiling, is wider than what was asked for."""
    required: float = cast(BudgetConfig, case.placing).tolerance
    if wide <= required * (1 + 1e-9):
        return ""
    return f"bracket of {wide:.1%} of the lowest ceiling, not {required:.1%}: needs longer windows (budget.longest)"


def _level_row(level: Level, mcf: float) -> Row:
    return {
        "rung": level.name, "lower": level.lower, "upper": level.upper, "kind": level.kind, "value": level.value,
        "percent": 100 * level.value / mcf, "note": level.note,
    }  # fmt: skip


def _omitted(name: str, why: str) -> Row:
    empty = dict.fromkeys(("lower", "upper"))
    return {"rung": name, **empty, "kind": OMITTED, "value": None, "percent": None, "note": why}


def _loss_row(one: Loss, mcf: float) -> Row:
    return {"part": one.name, "from": one.above.name, "to": one.below.name, **_numbers(one, mcf)}


def _numbers(one: Loss, mcf: float) -> dict[str, float]:
    in_percent = {"percent": one.value, "percent_low": one.low, "percent_high": one.high}
    loads = {"value": one.value, "low": one.low, "high": one.high}
    return loads | {name: 100 * value / mcf for name, value in in_percent.items()}
