# SPDX-License-Identifier: Apache-2.0
"""What one part of a scenario that is to be simulated asks of the others."""

from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, names, spec_class
from flitlab.models.rules.arrivals import too_much
from flitlab.models.switching.discipline import Discipline, SwitchingSpec
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.config.check import not_for, refuse_built
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.flows import ENDLESS_LOAD, counts_flows


def refuse_beside(draft: Draft, spec: SwitchingSpec) -> None:
    """Refuses keys outside of ``switching:`` that only other disciplines have."""
    having: dict[str, list[str]] = {}
    for mode in names("switching"):
        other: Any = spec_class("switching", mode)
        for place in other.beside:
            having.setdefault(place, []).append(mode)
    foreign = {place: modes for place, modes in having.items() if place not in spec.beside}
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
    if problem := too_much(source.arrivals, load, source.mean_flits, at_one):
        draft.refuse("loads", problem)


def refuse_start(draft: Draft, instance: Instance, discipline: Discipline, work: Source | Workload) -> None:
    """Refuses a scenario that no run can begin with."""
    try:
        discipline.check(instance, work, max(draft.config.load_list, default=ENDLESS_LOAD), draft.config.seeds[0])
    except SpecError as error:
        draft.refuse(error.key or "switching", str(error), error.choices)
    except Exception as error:  # a transport may be a stranger's: whatever it raises is reported
        refuse_built(error, "transport" if counts_flows(draft) else "switching", draft)
