# SPDX-License-Identifier: Apache-2.0
"""Checks of the sections of a scenario against each other."""

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
from flitlab.sim.config.check import not_for, reject_build_error
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.flows import LONG_LIVED_LOAD, counts_flows
from flitlab.sim.config.timeline import path_of_event


def reject_keys_of_other_modes(draft: Draft, spec: SwitchingSpec) -> None:
    """Reject keys outside of ``switching:`` that only other switching modes have."""
    modes_by_key: dict[str, list[str]] = {}
    for mode in names("switching"):
        other: Any = spec_class("switching", mode)
        for key in other.related_keys:
            modes_by_key.setdefault(key, []).append(mode)
    other_keys = {key: modes for key, modes in modes_by_key.items() if key not in spec.related_keys}
    for key, modes in other_keys.items():
        if draft.has_value_at(key):
            draft.reject(key, not_for(spec.mode, modes))
    together = draft.source is not None and draft.source.arrivals == "together"
    if together and "traffic.sizes" in other_keys:
        draft.reject("traffic.arrivals", not_for(spec.mode, other_keys["traffic.sizes"]))


def has_unsupported_background(draft: Draft, traffic: Traffic | None) -> bool:
    """Whether a fixed background is rejected: not for flows, nor for experiments that only scale whole demands."""
    if traffic is None or traffic.background is None:
        return False
    user = f"experiment {draft.experiment}" if draft.experiment in ("relative", "search") else ""
    if counts_flows(draft) and draft.experiment == "load_sweep" and draft.switching is not None:
        user = f"switching.mode {draft.switching.mode}"
    if user:
        draft.reject("traffic.background", f"is not for {user}, which scales only whole demands")
    return bool(user)


def validate_loads(draft: Draft, traffic: Traffic, source: Source) -> None:
    """Reject loads at which a host would have to create more than arrivals allow.

    Only a matrix outside the hose model, or a background, can reach that.

    Parameters
    ----------
    draft: has the loads.
    traffic: its rates at load 1.
    source: arrivals and lengths of packets.
    """
    if counts_flows(draft):
        return
    load = max(draft.config.load_list, default=0.0)
    at_one = traffic.sent(load) / load if load else traffic.rate
    if problem := overload_error(source.arrivals, load, source.mean_flits, at_one):
        draft.reject("loads", problem)


def validate_start(
    draft: Draft, instance: Instance, switching_mode: SwitchingMode, work: Source | Workload, timeline: Timeline | None
) -> None:
    """Reject a scenario that no run can start with.

    Parameters
    ----------
    draft: has load and seed.
    instance: network, demand and routes.
    switching_mode: in force.
    work: arrivals of packets, or a program.
    timeline: None for a static network.
    """
    load, seed = max(draft.config.load_list, default=LONG_LIVED_LOAD), draft.config.seeds[0]
    changes = () if timeline is None else (timeline,)
    try:
        switching_mode.check(instance, work, load, seed, *changes)
    except SpecError as error:
        draft.reject(path_of_event(draft, error.key or "switching"), str(error), error.choices)
    except Exception as error:  # a third-party transport may raise anything
        reject_build_error(error, "transport" if counts_flows(draft) else "switching", draft)


def validate_demand(draft: Draft, instance: Instance, ceilings: Sequence[CeilingSpec]) -> None:
    """Reject capacities and demands for which no ceiling can be certified.

    Numbers may be too far apart, or a demand may have no path. Omitted where nothing is certified anyway: with a fixed
    background, or for a program that sends nothing.

    Parameters
    ----------
    draft: gets the errors.
    instance: network and demand.
    ceilings: nothing is checked without any.
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
