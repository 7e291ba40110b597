# SPDX-License-Identifier: Apache-2.0
"""``timeline:`` of a configuration: what happens to a network while a scenario runs."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.discipline import PACKETS, Discipline
from flitlab.models.timeline.epochs import Epoch, Left, Timeline, make_timeline
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.draft import BUDGET, Draft
from flitlab.sim.config.flows import window_of
from flitlab.sim.config.loads import PlacedLoads
from flitlab.sim.config.parts import Parts
from flitlab.sim.engines.table import timeline_modes


@dataclass(frozen=True, eq=False)
class EpochOf:
    """An epoch of a scenario. number: from 1. until: the tick at which the next one begins, None of the last.

    left: what is left of the network, and instance: that with its demand and routes; None where hosts are cut off,
    which ``problem`` says.
    """

    number: int
    epoch: Epoch
    until: int | None
    left: Left | None
    instance: Instance | None
    problem: str = ""


def epochs_of(timeline: Timeline, instance: Instance) -> list[EpochOf]:
    """The epochs of a scenario in order; instance: of the network as it was built."""
    ends = [*(epoch.tick for epoch in timeline.epochs[1:]), None]
    found = []
    for number, (epoch, until) in enumerate(zip(timeline.epochs, ends, strict=True), 1):
        try:
            left, of = timeline.left(epoch), timeline.instance(epoch, instance)
            found.append(EpochOf(number, epoch, until, left, of))
        except SpecError as error:
            found.append(EpochOf(number, epoch, until, None, None, str(error)))
    return found


def timeline_of(
    draft: Draft, parts: Parts, topology: Topology, routes: Routes, discipline: Discipline, flit_ns: float | None
) -> Timeline | None:
    """The timeline of a scenario; None where nothing happens, and once what is wrong with it is refused.

    topology, routes: as the parts have them. flit_ns: nanoseconds of a flit, None if unknown.
    """
    if not draft.config.timeline:
        return None
    if not discipline.changes:
        modes = ", ".join(timeline_modes())
        problem = f"is not for mode {discipline.mode}, whose network stays as it is; modes: {modes}"
        draft.refuse("timeline", problem)
        return None
    if draft.states("switching.link_failures") or "link_failures" in draft.config.switching:
        draft.refuse("timeline", "is given beside switching.link_failures: let one of them say what fails")
        return None
    if BUDGET in draft.config.outputs.figures:
        draft.refuse("timeline", "is not for budgets, which are of one network")
        return None
    if discipline.counts == PACKETS and draft.runs_program:
        problem = f"is not for programs in mode {discipline.mode}, where a message that loses a packet never arrives"
        draft.refuse("timeline", f"{problem}; modes flow and datagram take both")
        return None
    if discipline.counts == PACKETS and isinstance(draft.config.loads, PlacedLoads):
        draft.refuse("timeline", "is not for loads that are searched for, which are of one network: give loads")
        return None
    try:
        tick_ns = discipline.tick_ns(topology, flit_ns)
    except SpecError:
        return None  # the start of the run names what is wrong with the network
    made = _made(draft, parts, tick_ns)
    if made is None:
        return None
    _refuse_late(draft, made, discipline)
    try:
        discipline.endures(made, routes)
    except SpecError as error:
        draft.refuse(place_of_event(draft, error.key or "timeline"), str(error), error.choices)
        return None
    return made


def place_of_event(draft: Draft, key: str) -> str:
    """The place of a key of an event: ``timeline.factor`` stands for the factor of the event that slows links most."""
    factors = {i: event.factor for i, event in enumerate(draft.config.timeline or ()) if event.factor is not None}
    if key != "timeline.factor" or not factors:
        return key
    return f"timeline[{min(factors, key=lambda i: factors[i])}].factor"


def timeline_alone(draft: Draft, parts: Parts) -> Timeline | None:
    """The timeline of a scenario of which only ceilings are asked; None as for :func:`timeline_of`.

    Ticks are nanoseconds, as nothing runs that would have others.
    """
    if not draft.config.timeline:
        return None
    if draft.experiment != "ceilings":
        draft.refuse("timeline", f"is not for experiment {draft.experiment}, which is of networks that do not change")
        return None
    return _made(draft, parts, Fraction(1))


def plain_timeline(draft: Draft, timeline: Timeline | None) -> dict[str, Any]:
    """``timeline:`` as it was understood, plain; nothing where nothing happens."""
    if timeline is None:
        return {}
    return {"timeline": [event.model_dump(mode="json", exclude_none=True) for event in draft.config.timeline or ()]}


def _made(draft: Draft, parts: Parts, tick_ns: Fraction | None) -> Timeline | None:
    """The timeline that events make, or None once it is refused."""
    assert parts.topology is not None
    events = draft.config.timeline or ()
    try:
        return make_timeline(parts.topology, events, parts.routing, parts.routes, tick_ns, parts.replan)
    except SpecError as error:
        draft.refuse(error.key or "timeline", str(error), error.choices)
        return None


def _refuse_late(draft: Draft, timeline: Timeline, discipline: Discipline) -> None:
    """Refuses what would happen after the end of a run; how long a program runs nobody knows beforehand."""
    if draft.runs_program:
        return
    if discipline.counts == PACKETS:
        warmup, ticks = draft.config.measure.warmup, draft.config.measure.ticks
        ticks += 0 if warmup == "auto" else warmup
        for epoch in timeline.epochs:
            if epoch.tick >= ticks:
                draft.refuse(
                    "timeline", f"{epoch.words} at tick {epoch.tick}, after the end of the run, {ticks:,} ticks"
                )
        return
    window = window_of(draft)
    if timeline.tick_ns is None or window is None:
        return
    end = Fraction(repr(float(window[1]))) * 10**9
    for place, event in enumerate(draft.config.timeline or ()):
        tick = event.at_tick if event.at_us is None else None
        at = Fraction(repr(event.at_us)) * 1000 if tick is None else tick * Fraction(timeline.tick_ns)
        if at >= end:
            draft.refuse(("timeline", place), f"is after the end of the run, {window[1]:g} s")
