# SPDX-License-Identifier: Apache-2.0
"""The table of the experiment ``collective``: times, lower bounds, and bandwidths."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flitlab.fluid.collective.collective import Collective as Bounded
from flitlab.fluid.collective.latency import Latency
from flitlab.fluid.problem import FluidError
from flitlab.models.application.workload import Workload
from flitlab.models.collective.schedule import KINDS
from flitlab.models.mappings import Row
from flitlab.models.registry import spec_class
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.sim.config.case import Case, Study
from flitlab.sim.config.collective import Collective
from flitlab.sim.measure.rows import Status

if TYPE_CHECKING:  # solvers take long to import
    from flitlab.fluid.collective.bounds import CollectiveBounds, TimeBound

ROUNDING = 1e-9
"""Relative difference by which a time may be below its bound."""


@dataclass(frozen=True)
class LowerBound:
    """Bounds on the time of a collective without simulation, in nanoseconds.

    Parameters
    ----------
    bound: lower bound for any algorithm.
    by, proof: the kind of the bound, and its derivation.
    reachable: time of the best known schedule by bandwidth only; None if there is none.
    """

    bound: float
    by: str
    proof: str
    reachable: float | None


class LowerBounds:
    """The bounds of all scenarios of a study, computed once for each network and collective."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], CollectiveBounds | FluidError] = {}
        self._latencies: dict[tuple[Hashable, ...], Latency] = {}

    def of(self, case: Case) -> LowerBound | None:
        """The bounds of a scenario; None without a collective.

        Raises :class:`~flitlab.fluid.problem.FluidError` if its numbers are too large for exact arithmetic.
        """
        collective, scenario = case.collective, case.program
        if collective is None or scenario is None:
            return None
        bounds, messages, latency = self._bounds(collective), scenario.work.messages, self._latency(scenario)
        flits = Fraction(collective.question.piece * messages.packet_flits, messages.packet_bytes) * latency.flit
        least, tick = bounds.at(flits, latency), messages.tick_ns
        times = [time for time in (bounds.upper and bounds.upper[0], collective.plan.reaches) if time is not None]
        reachable = float(min(times) * flits * latency.flits_per_tick * tick) if times else None
        return LowerBound(
            float(least.time * tick), least.by, "" if least.proof is None else least.proof.text, reachable
        )

    def proof(self, case: Case) -> "TimeBound | None":
        """The bound of a scenario by bandwidth only; None if there is none."""
        try:
            return None if case.collective is None else self._bounds(case.collective).lower
        except FluidError:
            return None

    def _latency(self, scenario: Scenario[SwitchingMode, Workload]) -> Latency:
        """The delays of a scenario, which do not depend on sizes."""
        switching_mode, unit = scenario.switching, scenario.switching.weight(scenario.work.messages)
        key = (scenario.topology.content_hash, repr(switching_mode), unit)
        if key not in self._latencies:
            self._latencies[key] = Latency.of(scenario.topology, switching_mode, unit)
        return self._latencies[key]

    def _bounds(self, collective: Collective) -> "CollectiveBounds":
        from flitlab.fluid.collective.bounds import bounds

        question = collective.question
        key = (question.topology.content_hash, question.collective, question.ranks, question.root)
        if key not in self._known:
            bounded = Bounded(question.collective, question.ranks, question.root)
            try:
                self._known[key] = bounds(question.topology, bounded)
            except FluidError as error:
                self._known[key] = error
        outcome = self._known[key]
        if isinstance(outcome, FluidError):
            raise outcome
        return outcome


def collectives(study: Study, results: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """The rows of collectives.csv, and errors; a result below its bound gets the status of a violation."""
    bounds, rows, problems = LowerBounds(), [], []
    by_label = {case.label: case for case in study.cases}
    for result in results:
        case = by_label[result["scenario"]]
        if case.collective is None:
            continue
        try:
            bound = bounds.of(case)
        except FluidError as error:
            bound = None
            problems.append(f"{case.label}: no bound: {error}")
        row = dict(_row(case, case.collective, result, bound))
        rows.append(row)
        if row.get("efficiency") is not None and row["efficiency"] > 1 + ROUNDING:
            result["status"] = Status.CEILING_VIOLATED
            result["message"] = (
                f"is done before the bound by {row['bound_by']} allows: {row['proof']}{_plugin_hint(case)}"
            )
            problems.append(f"{case.label}: {result['message']}")
    return rows, problems


def _plugin_hint(case: Case) -> str:
    """A hint for algorithms of plugins, whose programs are not verified."""
    assert case.collective is not None
    if spec_class("algorithm", case.collective.algorithm).__module__.startswith("flitlab."):
        return ""
    return "; the algorithm is a plugin's: look first whether its program does all of the collective"


def _row(case: Case, collective: Collective, result: Row, bound: LowerBound | None) -> Iterator[tuple[str, Any]]:
    """The columns of a row and their values."""
    question, plan = collective.question, collective.plan
    bus = float(KINDS[question.collective].bus(question.count))
    time = result.get("total_ns")
    yield from {"scenario": case.label, **case.keys, "seed": result["seed"]}.items()
    yield from {"kind": question.collective, "algorithm": collective.algorithm, "ranks": question.count}.items()
    yield from {"size_bytes": question.size, "time_ns": time}.items()
    if bound is not None:
        yield from {"bound_ns": bound.bound, "bound_by": bound.by, "reachable_ns": bound.reachable}.items()
        yield "efficiency", bound.bound / time if time else None
    yield from {
        "algbw": question.size / time if time else None,
        "busbw": question.size * bus / time if time else None,
    }.items()
    if bound is not None:
        yield "busbw_bound", question.size * bus / bound.bound if bound.bound else None
    yield from {"trees": plan.trees, "chunks": plan.chunks, "depth": plan.depth}.items()
    if bound is not None:
        yield "proof", bound.proof
