# SPDX-License-Identifier: Apache-2.0
"""``timeline:`` of a configuration: the events of a network."""

from dataclasses import dataclass
from fractions import Fraction

from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Epoch, Timeline, make_timeline
from flitlab.models.timeline.surviving import SurvivingNetwork
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.components import Components
from flitlab.sim.config.draft import BUDGET, Draft
from flitlab.sim.config.flows import window_of
from flitlab.sim.config.sections import PlacedLoads
from flitlab.sim.engines.table import timeline_modes


@dataclass(frozen=True, eq=False)
class ScenarioEpoch:
    """An epoch of a scenario.

    Parameters
    ----------
    number: from 1.
    epoch: of the timeline.
    until: tick at which the next epoch begins, None for the last.
    left: the network without its failed parts; None if hosts are disconnected.
    instance: ``left`` with its demand and routes; None likewise.
    problem: why hosts are disconnected.
    """

    number: int
    epoch: Epoch
    until: int | None
    surviving: SurvivingNetwork | None
    instance: Instance | None
    problem: str = ""


def epochs_of(timeline: Timeline, instance: Instance) -> list[ScenarioEpoch]:
    """The epochs of a scenario in order. instance: of the network without events."""
    ends = [*(epoch.tick for epoch in timeline.epochs[1:]), None]
    epochs = []
    for number, (epoch, until) in enumerate(zip(timeline.epochs, ends, strict=True), 1):
        try:
            left, reduced = timeline.surviving(epoch), timeline.instance(epoch, instance)
            epochs.append(ScenarioEpoch(number, epoch, until, left, reduced))
        except SpecError as error:
            epochs.append(ScenarioEpoch(number, epoch, until, None, None, str(error)))
    return epochs


def timeline_of(
    draft: Draft,
    components: Components,
    switching_mode: SwitchingMode,
    flit_ns: float | None,
    subnet: Topology | None,
) -> Timeline | None:
    """The timeline of a scenario; None without events, or, with errors added, if it is invalid.

    Parameters
    ----------
    draft, components: the configuration and its components.
    switching_mode: in force.
    flit_ns: nanoseconds of a flit, None if unknown.
    subnet: one of the copies that the network consists of; None if it is no copies.
    """
    if not draft.config.timeline:
        return None
    if not switching_mode.supports_timeline:
        modes = ", ".join(timeline_modes())
        problem = f"is not for mode {switching_mode.mode}, whose network is static; modes: {modes}"
        draft.reject("timeline", problem)
        return None
    if components.topology.is_multistage:
        draft.reject("timeline", "is for networks whose hosts inject and eject at one switch")
        return None
    if draft.has_value_at("switching.link_failures") or "link_failures" in draft.config.switching:
        draft.reject("timeline", "is given beside switching.link_failures: let one of them say what fails")
        return None
    if BUDGET in draft.config.outputs.figures:
        draft.reject("timeline", "is not for budgets, which are of one network")
        return None
    if switching_mode.counts == "packets" and draft.runs_program:
        problem = (
            f"is not for programs in mode {switching_mode.mode}, where a message that loses a packet never arrives"
        )
        draft.reject("timeline", f"{problem}; modes flow and datagram take both")
        return None
    if switching_mode.counts == "packets" and isinstance(draft.config.loads, PlacedLoads):
        draft.reject("timeline", "is not for a search, which needs a static network: list loads")
        return None
    topology, routes = components.topology, components.routes
    assert routes is not None
    try:
        tick_ns = switching_mode.tick_ns(topology, flit_ns)
    except SpecError:
        return None  # rejected at the start of the run
    if subnet is not None and components.replan is not None:
        draft.reject("timeline", f"is not for subnets with routing {routes.kind}, which is made for a demand")
        return None
    timeline = _build_timeline(draft, components, tick_ns, subnet)
    if timeline is None:
        return None
    _reject_late_events(draft, timeline, switching_mode)
    try:
        switching_mode.check_timeline(timeline, routes)
    except SpecError as error:
        draft.reject(draft.path_of_event(error.key or "timeline"), str(error), error.choices)
        return None
    return timeline


def timeline_of_ceilings(draft: Draft, components: Components) -> Timeline | None:
    """The timeline of a scenario with ceilings only; None as for :func:`timeline_of`.

    Ticks are nanoseconds, as there is no switching mode to define them.
    """
    if not draft.config.timeline:
        return None
    if draft.experiment != "ceilings":
        draft.reject("timeline", f"is not for experiment {draft.experiment}, which needs a static network")
        return None
    return _build_timeline(draft, components, Fraction(1))


def plain_timeline(draft: Draft, timeline: Timeline | None) -> Keys:
    """``timeline:`` with all defaults, plain; {} without events."""
    if timeline is None:
        return {}
    return {"timeline": [event.model_dump(mode="json", exclude_none=True) for event in draft.config.timeline or ()]}


def _build_timeline(
    draft: Draft, components: Components, tick_ns: Fraction | None, subnet: Topology | None = None
) -> Timeline | None:
    """The timeline of the events; None if it is invalid. subnet: as of :func:`timeline_of`."""
    events = draft.config.timeline or ()
    try:
        return make_timeline(
            components.topology, events, components.routing, components.routes, tick_ns, components.replan, subnet
        )
    except SpecError as error:
        draft.reject(error.key or "timeline", str(error), error.choices)
        return None


def _reject_late_events(draft: Draft, timeline: Timeline, switching_mode: SwitchingMode) -> None:
    """Reject events after the end of a run; the length of a program is unknown."""
    if draft.runs_program:
        return
    if switching_mode.counts == "packets":
        warmup, ticks = draft.config.measure.warmup, draft.config.measure.ticks
        ticks += 0 if warmup == "auto" else warmup
        for epoch in timeline.epochs:
            if epoch.tick >= ticks:
                draft.reject(
                    "timeline", f"{epoch.description} at tick {epoch.tick}, after the end of the run, {ticks:,} ticks"
                )
        return
    window = window_of(draft)
    if timeline.tick_ns is None or window is None:
        return
    end = Fraction(repr(float(window[1]))) * 10**9
    for index, event in enumerate(draft.config.timeline or ()):
        tick = event.at_tick if event.at_us is None else None
        at = Fraction(repr(event.at_us)) * 1000 if tick is None else tick * Fraction(timeline.tick_ns)
        if at >= end:
            draft.reject(("timeline", index), f"is after the end of the run, {window[1]:g} s")
