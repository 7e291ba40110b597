# SPDX-License-Identifier: Apache-2.0
"""What one part of a scenario that is to be simulated asks of the others."""

from collections.abc import Sequence
from typing import Any

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.fluid.problem import FluidError, check_capacities, check_joined, check_numbers
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, names, spec_class
from flitlab.models.rules.arrivals import too_much
from flitlab.models.switching.discipline import Discipline, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.config.check import not_for, reject_build_error
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.flows import LONG_LIVED_LOAD, counts_flows
from flitlab.sim.config.timeline import place_of_event


def reject_keys_of_other_modes(draft: Draft, spec: SwitchingSpec) -> None:
    """Refuses keys outside of ``switching:`` that only other disciplines have."""
    modes_by_key: dict[str, list[str]] = {}
    for mode in names("switching"):
        other: Any = spec_class("switching", mode)
        for place in other.beside:
            modes_by_key.setdefault(place, []).append(mode)
    other_keys = {place: modes for place, modes in modes_by_key.items() if place not in spec.beside}
    for place, modes in other_keys.items():
        if draft.has_value_at(place):
            draft.reject(place, not_for(spec.mode, modes))
    together = draft.source is not None and draft.source.arrivals == "together"
    if together and "traffic.sizes" in other_keys:
        draft.reject("traffic.arrivals", not_for(spec.mode, other_keys["traffic.sizes"]))


def has_unsupported_background(draft: Draft, traffic: Traffic | None) -> bool:
    """Whether there is a background where nothing is asked for at a load of its own, or where flows are endless."""
    if traffic is None or traffic.background is None:
        return False
    user = f"experiment {draft.experiment}" if draft.experiment in ("relative", "search") else ""
    if counts_flows(draft) and draft.experiment == "load_sweep" and draft.switching is not None:
        user = f"switching.mode {draft.switching.mode}"
    if user:
        draft.reject("traffic.background", f"is not for {user}, which knows only demands that grow as a whole")
    return bool(user)


def validate_loads(draft: Draft, traffic: Traffic, source: Source) -> None:
    """Only a matrix beyond the hose, or a background, can ask for more than hosts can create."""
    if counts_flows(draft):
        return
    load = max(draft.config.load_list, default=0.0)
    at_one = traffic.sent(load) / load if load else traffic.rate
    if problem := too_much(source.arrivals, load, source.mean_flits, at_one):
        draft.reject("loads", problem)


def validate_start(
    draft: Draft, instance: Instance, discipline: Discipline, work: Source | Workload, timeline: Timeline | None
) -> None:
    """Rejects a scenario that no run can begin with. timeline: None where the network stays as it is."""
    load, seed = max(draft.config.load_list, default=LONG_LIVED_LOAD), draft.config.seeds[0]
    changes = () if timeline is None else (timeline,)
    try:
        discipline.check(instance, work, load, seed, *changes)
    except SpecError as error:
        draft.reject(place_of_event(draft, error.key or "switching"), str(error), error.choices)
    except Exception as error:  # a transport may be a stranger's: whatever it raises is reported
        reject_build_error(error, "transport" if counts_flows(draft) else "switching", draft)


def validate_demand(draft: Draft, instance: Instance, ceilings: Sequence[CeilingSpec]) -> None:
    """Rejects numbers and demands of which no ceiling is certified: too far apart, or between parts of the network.

    With a fixed background most ceilings are omitted, and a program may send nothing at all.
    """
    if not ceilings or instance.traffic.background is not None or not instance.traffic.rate.any():
        return
    topology, traffic = instance.topology, instance.traffic
    try:
        check_capacities(topology)
    except FluidError as error:
        draft.reject("topology", str(error))
        return
    try:
        check_numbers(topology, traffic)
        check_joined(topology, traffic)
    except FluidError as error:
        draft.reject("traffic", str(error))
