# SPDX-License-Identifier: Apache-2.0
"""What one part of a scenario that is to be simulated asks of the others."""

from collections.abc import Sequence
from typing import Any

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.fluid.problem import FluidError, check_capacities, check_joined, check_numbers
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, names, spec_class
from flitlab.models.rules.arrivals import overload_error
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.config.check import not_for, refuse_built
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.flows import ENDLESS_LOAD, counts_flows
from flitlab.sim.config.timeline import place_of_event


def refuse_beside(draft: Draft, spec: SwitchingSpec) -> None:
    """Refuses keys outside of ``switching:`` that only other disciplines have."""
    having: dict[str, list[str]] = {}
    for mode in names("switching"):
        other: Any = spec_class("switching", mode)
        for place in other.related_keys:
            having.setdefault(place, []).append(mode)
    foreign = {place: modes for place, modes in having.items() if place not in spec.related_keys}
    for place, modes in foreign.items():
        if draft.states(place):
            draft.refuse(place, not_for(spec.mode, modes))
    together = draft.source is not None and draft.source.arrivals == "together"
    if together and "traffic.sizes" in foreign:
        draft.refuse("traffic.arrivals", not_for(spec.mode, foreign["traffic.sizes"]))


def background_refused(draft: Draft, traffic: Traffic | None) -> bool:
    """Whether there is a background where nothing is asked for at a load of its own, or where flows are endless."""
    if traffic is None or traffic.background is None:
        return False
    where = f"experiment {draft.experiment}" if draft.experiment in ("relative", "search") else ""
    if counts_flows(draft) and draft.experiment == "load_sweep" and draft.switching is not None:
        where = f"switching.mode {draft.switching.mode}"
    if where:
        draft.refuse("traffic.background", f"is not for {where}, which knows only demands that grow as a whole")
    return bool(where)


def refuse_loads(draft: Draft, traffic: Traffic, source: Source) -> None:
    """Only a matrix beyond the hose, or a background, can ask for more than hosts can create."""
    if counts_flows(draft):
        return
    load = max(draft.config.load_list, default=0.0)
    at_one = traffic.sent(load) / load if load else traffic.rate
    if problem := overload_error(source.arrivals, load, source.mean_flits, at_one):
        draft.refuse("loads", problem)


def refuse_start(
    draft: Draft, instance: Instance, discipline: SwitchingMode, work: Source | Workload, timeline: Timeline | None
) -> None:
    """Rejects a scenario that no run can begin with. timeline: None where the network stays as it is."""
    load, seed = max(draft.config.load_list, default=ENDLESS_LOAD), draft.config.seeds[0]
    changes = () if timeline is None else (timeline,)
    try:
        discipline.check(instance, work, load, seed, *changes)
    except SpecError as error:
        draft.refuse(place_of_event(draft, error.key or "switching"), str(error), error.choices)
    except Exception as error:  # a transport may be a stranger's: whatever it raises is reported
        refuse_built(error, "transport" if counts_flows(draft) else "switching", draft)


def refuse_unbounded(draft: Draft, instance: Instance, ceilings: Sequence[CeilingSpec]) -> None:
    """Rejects numbers and demands of which no ceiling is certified: too far apart, or between parts of the network.

    With a fixed background most ceilings are omitted, and a program may send nothing at all.
    """
    if not ceilings or instance.traffic.background is not None or not instance.traffic.rate.any():
        return
    topology, traffic = instance.topology, instance.traffic
    try:
        check_capacities(topology)
    except FluidError as error:
        draft.refuse("topology", str(error))
        return
    try:
        check_numbers(topology, traffic)
        check_joined(topology, traffic)
    except FluidError as error:
        draft.refuse("traffic", str(error))
