# SPDX-License-Identifier: Apache-2.0
"""The loop: exclude what a solved point dominates by ever dearer proofs, and solve what is left."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from flitlab.fluid.design.bounds import Network, Upper, by_equipment, closed_form
from flitlab.fluid.design.demands import DesignDemand, Memo
from flitlab.fluid.design.options import Option, built
from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.cputime import CpuTime
from flitlab.models.registry import SpecError

Stage = Literal["limit", "floor", "closed form", "built", "one solve", "solved", "error", "open"]
"""Where a candidate was struck. ``one solve``: by a solve that ended early. ``solved``: once its intervals were as
narrow as those of the front, or not at all. ``open``: not examined.
"""

STAGES: tuple[Stage, ...] = ("limit", "floor", "closed form", "built", "one solve", "solved", "error", "open")

COARSE = 0.15
"""The gap of the first solve."""

BAND = 0.04
"""Candidates whose costs differ by less are ordered by their bounds."""

SECONDS_EACH, SECONDS_PER_SWITCH = 2.5e-3, 3e-5
"""CPU time of an option, and of each of its switches: the searches of docs/design.md, on one core."""

CLOS = ("leaf_spine", "clos")
"""Families with a member of full throughput, which strikes everything dearer."""


@dataclass(frozen=True)
class Limits:
    """What a network may be at most; None: anything. cost, watts: per host."""

    cost: float | None = None
    watts: float | None = None
    cables: int | None = None
    switches: int | None = None
    diameter: int | None = None

    def exceeded(self, option: Option) -> str:
        """The first limit that an option exceeds before it is built, '' if none."""
        hosts = option.equipment.hosts
        values = {
            "cost": option.cost / hosts, "watts": option.watts / hosts, "cables": option.cables,
            "switches": option.switches,
        }  # fmt: skip
        for name, value in values.items():
            limit = getattr(self, name)
            if limit is not None and value > limit * (1 + 1e-12):
                return f"{name} {value:.6g} > {limit:g}"
        return ""


@dataclass
class Result:
    """What is known of an option.

    lower, upper: float64 [demands], certified ends of theta. proof: of each upper end. stage: where it ended. by: index
    of the solved point that dominates it, -1 if none. note: limit, floor or error. diameter, mean_hops: of one plane,
    where built.
    """

    option: Option
    upper: Floats
    lower: Floats
    proof: list[str]
    stage: Stage = "closed form"
    by: int = -1
    note: str = ""
    diameter: int | None = None
    mean_hops: float | None = None


@dataclass(frozen=True)
class Tolerance:
    """How much better a point must be than another, relatively. gap: of the intervals of solved points."""

    throughput: float = 0.03
    cost: float = 0.015
    gap: float = 0.02


class Search:
    """A search over options, which ends after ``budget`` CPU seconds; what was not examined then is ``open``.

    ``violated`` names a further limit that a solved network exceeds, '' if none: then it strikes nothing. ``memo`` has
    what was solved before, and grows.

    Attributes
    ----------
    results : list of Result
        One of each option, in their order.
    front : list of int
        Indices of the points that no other one dominates, by cost.
    """

    def __init__(
        self, options: Sequence[Option], demands: Sequence[DesignDemand], limits: Limits, tolerance: Tolerance,
        progress: Callable[[str], None] = lambda text: None, budget: float = math.inf,
        violated: Callable[[Result], str] = lambda result: "", memo: Memo | None = None,
    ):  # fmt: skip
        self.demands, self.limits, self.tolerance, self.progress = demands, limits, tolerance, progress
        self.counted = np.array([demand.weight > 0 for demand in demands])
        self.floor = np.array([demand.floor for demand in demands])
        self._lower = np.zeros((len(options), len(demands)))  # of all results, which have its rows
        self.results = [self._start(option, row) for option, row in zip(options, self._lower, strict=True)]
        self.cost = np.array([option.cost for option in options])
        self.budget, self.violated, self.memo = budget, violated, memo
        self.kept: list[int] = []
        self.front: list[int] = []

    def _start(self, option: Option, lower: Floats) -> Result:
        closed = dict(zip(("uniform", "worst"), closed_form(option.candidate, option.equipment), strict=True))
        unknown = Upper(math.inf, "none")
        uppers = [closed.get(demand.closed, unknown) for demand in self.demands]
        return Result(
            option, np.array([upper.value for upper in uppers]), lower, [one.proof for one in uppers],
        )  # fmt: skip

    def run(self) -> None:
        """Search: every result gets its stage, and the front is known."""
        order = self.left()
        first = [i for i in order if self.results[i].option.kind in CLOS and (self.results[i].upper >= 1).all()]
        reference = min(first, key=lambda i: self.cost[i], default=None)
        spent = CpuTime()
        for i in ([] if reference is None else [reference]) + [i for i in order if i != reference]:
            if spent.seconds > self.budget:
                self.results[i].stage = "open"
            else:
                self._treat(i)
        self.front = self._undominated()

    def left(self) -> list[int]:
        """Options that limits and floors in closed form leave, in the order in which they are examined."""
        return sorted((i for i in range(len(self.results)) if not self._limited(i)), key=self._order)

    def promising(self, count: int) -> list[int]:
        """The options of most throughput in closed form for their cost, among those that are left; the best first."""

        def worth(i: int) -> float:
            return float(np.minimum(self.results[i].upper, 1)[self.counted].sum() / self.cost[i])

        return sorted(self.left(), key=worth, reverse=True)[:count]

    def estimate(self) -> float:
        """About how many CPU seconds :meth:`run` takes, within a factor of three: most are spent on networks that are
        built and solved, which the switches of all options that are left stand for.
        """
        left = self.left()
        return sum(SECONDS_EACH + SECONDS_PER_SWITCH * self.results[i].option.switches for i in left)

    def _order(self, i: int) -> tuple[int, float, int]:
        upper = np.where(self.counted, np.minimum(self.results[i].upper, 1), 0)
        return int(math.log(self.cost[i] / self.cost.min()) / math.log1p(BAND)), -float(upper.sum()), i

    def _limited(self, i: int) -> bool:
        result = self.results[i]
        if note := self.limits.exceeded(result.option):
            result.stage, result.note = "limit", note
        return bool(note) or self._below_floor(i)

    def _below_floor(self, i: int) -> bool:
        result = self.results[i]
        low = np.flatnonzero(result.upper < self.floor)
        if len(low):
            d = int(low[0])
            result.stage = "floor"
            result.note = f"{self.demands[d].name} <= {result.upper[d]:.4g} < {self.floor[d]:g}: {result.proof[d]}"
        return len(low) > 0

    def _rivals(self, i: int) -> Ints:
        """int64 [rivals]: kept points that cost no more."""
        kept: Ints = np.array(self.kept, np.int64)
        rivals: Ints = kept[self.cost[kept] <= self.cost[i] * (1 + self.tolerance.cost)]
        return rivals

    def _dominates(self, rivals: Ints, i: int) -> Bools:
        """bool [rivals, demands]: whether each of some points reaches what is possible for i."""
        reached = self._lower[rivals] >= self.results[i].upper * (1 - self.tolerance.throughput)
        dominated: Bools = reached | ~self.counted
        return dominated

    def _struck(self, i: int, stage: Stage) -> bool:
        """Whether i is below a floor or dominated; its stage is then known."""
        if self._below_floor(i):
            return True
        rivals = self._rivals(i)
        dominating = rivals[self._dominates(rivals, i).all(axis=1)]
        if len(dominating):
            self.results[i].stage, self.results[i].by = stage, int(dominating[0])
        return len(dominating) > 0

    def _treat(self, i: int) -> None:
        result = self.results[i]
        if self._struck(i, "closed form"):
            return
        closed = dict(
            zip(("uniform", "worst"), by_equipment(result.option.candidate, result.option.equipment), strict=True)
        )
        for d, demand in enumerate(self.demands):
            if demand.closed:
                self._tighten(result, d, closed[demand.closed])
        if self._struck(i, "closed form"):
            return
        try:
            topology = built(result.option)
            network = Network.of(topology)
            demands = [demand.on(network) for demand in self.demands]
        except SpecError as error:
            result.stage, result.note = "error", str(error)
            return
        weight = np.outer(network.hosts, network.hosts)
        result.diameter = int(network.hops.max())
        result.mean_hops = float((weight * network.hops).sum() / (weight.sum() - network.hosts.sum()))
        if self.limits.diameter is not None and result.diameter > self.limits.diameter:
            result.stage, result.note = "limit", f"diameter {result.diameter} > {self.limits.diameter}"
            return
        for d, demand_on in enumerate(demands):
            self._tighten(result, d, demand_on.upper())
        if self._struck(i, "built"):
            return
        self._solve(i, network)

    def _tighten(self, result: Result, d: int, upper: Upper) -> None:
        if upper.value < result.upper[d]:
            result.upper[d], result.proof[d] = upper.value, upper.proof

    def _refuting(self, i: int, d: int) -> float:
        """An upper end of demand d at which i is struck; 0 if there is none."""
        if not self.counted[d]:
            return 0.0
        rivals = self._rivals(i)
        below = self._lower[rivals[np.delete(self._dominates(rivals, i), d, axis=1).all(axis=1)], d]
        return float(below.max(initial=0.0)) / (1 - self.tolerance.throughput)

    def _solve(self, i: int, network: Network) -> None:
        result, demands = self.results[i], self.demands
        for gap in sorted({max(COARSE, self.tolerance.gap), self.tolerance.gap}, reverse=True):
            rivals = self._rivals(i)
            reached = self._lower[rivals].max(axis=0, initial=0.0)
            for d in np.argsort(reached / np.minimum(result.upper, 1e9), kind="stable"):
                if result.upper[d] <= result.lower[d] * (1 + gap):
                    continue
                floor = np.nextafter(self.floor[d], 0) if self.floor[d] else 0.0
                ends = demands[d].ends(network, gap, max(self._refuting(i, int(d)), floor), self.memo)
                self._tighten(result, int(d), Upper(ends.upper, ends.proof))
                result.lower[d] = max(result.lower[d], min(ends.lower, float(result.upper[d])))
                solved = (result.upper <= result.lower * (1 + self.tolerance.gap)).all()
                if self._struck(i, "solved" if solved else "one solve"):
                    return
        if note := self.violated(result):
            result.stage, result.note = "limit", note
            return
        result.stage = "solved"
        if not self._struck(i, "solved"):
            self.kept.append(i)
            ends = ", ".join(f"{d.name} {x:.3f}" for d, x in zip(self.demands, result.lower, strict=True))
            self.progress(f"{result.option.label}: {ends}")

    def _undominated(self) -> list[int]:
        """Kept points that no other one dominates outright, by cost."""
        counted, results = self.counted, self.results

        def dominated(i: int, k: int) -> bool:
            mine, other = results[i].lower[counted], results[k].lower[counted]
            if k == i or self.cost[k] > self.cost[i] or (other < mine).any():
                return False
            return bool(self.cost[k] < self.cost[i] or (other > mine).any() or k < i)

        floors = [i for i in self.kept if (results[i].lower >= self.floor * (1 - self.tolerance.gap)).all()]
        return sorted((i for i in floors if not any(dominated(i, k) for k in self.kept)), key=lambda i: self.cost[i])

    def counts(self) -> dict[str, int]:
        """How many candidates ended at each stage."""
        return {stage: sum(result.stage == stage for result in self.results) for stage in STAGES}
