# SPDX-License-Identifier: Apache-2.0
"""What an experiment asks of a scenario, and what it cannot do without."""

from typing import Any

from flitlab.fluid.kinds.spec import CeilingSpec, ceiling_spec, kinds
from flitlab.models.closest_match import closest_match
from flitlab.sim.config.budget import CERTIFIED, has_budget
from flitlab.sim.config.check import spec_of
from flitlab.sim.config.draft import BUDGET, Draft
from flitlab.sim.config.errors import key_path, show
from flitlab.sim.config.flows import is_endless
from flitlab.sim.config.load import Place
from flitlab.sim.config.overrides import parse_path
from flitlab.sim.config.schema import NEEDS, Config
from flitlab.sim.config.section import named

VARIABLE = ("topology", "traffic")
"""Sections of which a search may vary a key."""

ABSENT = object()
"""The value of a key that is not given."""


def refuse_missing(draft: Draft) -> None:
    """Refuses a scenario without the keys that its experiment cannot do without."""
    for key in NEEDS.get(draft.experiment, ()):
        if not draft.given(key) and not (
            key == "loads" and (is_endless(draft) or BUDGET in draft.config.outputs.figures)
        ):
            draft.refuse(key, f"is missing: experiment {draft.experiment} needs it")


def ceilings_of(draft: Draft) -> list[CeilingSpec]:
    """The ceilings asked for; by default all usual ones that the configuration allows. ``relative`` needs its own."""
    config, experiment, by = draft.config, draft.experiment, draft.config.relative.by
    if experiment in ("metrics", "search"):
        return []
    listed = [] if config.ceilings is None else _listed(draft)
    if experiment == "relative":
        if by == "mcf_paths" and not draft.given("routing"):
            draft.refuse("relative.by", "is over the ways of a routing, and there is none")
        return listed if any(spec.kind == by for spec in listed) else [ceiling_spec(by), *listed]
    if config.ceilings is None:
        listed = (
            [ceiling_spec("makespan")] if experiment == "application" else [] if draft.runs_program else _usual(config)
        )
    if has_budget(draft):
        known = {spec.kind for spec in listed}
        listed = [*listed, *(ceiling_spec(kind) for kind in CERTIFIED if kind not in known)]
    return listed


def _usual(config: Config) -> list[CeilingSpec]:
    """What is computed where no ceilings are listed."""
    usual = [ceiling_spec(name) for name, kind in kinds().items() if kind.usual]
    routed = config.routing is not None
    return [one for one in usual if (config.loads or not one.by_load) and (routed or one.routes != "needed")]


def _listed(draft: Draft) -> list[CeilingSpec]:
    """The entries of ``ceilings:``; what is wrong with them is refused."""
    listed = draft.mapping("ceilings")
    found: list[CeilingSpec] = []
    for i in range(len(listed) if isinstance(listed, list) else 0):
        place = ("ceilings", i)
        spec = spec_of("ceiling", draft, place, named(draft.mapping(*place)))
        if not isinstance(spec, CeilingSpec):
            continue
        if spec in found:
            draft.refuse(place, f"{spec.kind} is listed twice")
        if spec.of_program and not draft.given("application"):
            draft.refuse(place, f"{spec.kind} is for experiment: application")
        if spec.by_load and not draft.given("loads"):
            draft.refuse(place, f"{spec.kind} is drawn over loads, and there are none")
        found.append(spec)
    return found


def question(draft: Draft, ceilings: list[CeilingSpec]) -> dict[str, Any]:
    """What is asked of a scenario, with all defaults, plain."""
    config, experiment = draft.config, draft.experiment
    found: dict[str, Any] = {}
    if experiment not in ("metrics", "search"):
        found["ceilings"] = [ceiling.plain() for ceiling in ceilings]
    if experiment == "relative":
        found["relative"] = config.relative.model_dump(mode="json")
    if experiment == "search" and config.search is not None:
        found["search"] = config.search.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def varied(draft: Draft) -> Place:
    """The place of the key that a search varies: an integer of the topology (by its name alone) or of the traffic."""
    if draft.config.search is None:
        return ()
    path = parse_path(draft.config.search.vary)
    place = path if path and path[0] in VARIABLE else ("topology", *path)
    value = _value(draft.config, place)
    if value is ABSENT:
        given = {part: getattr(draft.config, part) or {} for part in VARIABLE}
        known = [key_path((part, key)) for part in given for key, value in given[part].items() if _is_integer(value)]
        draft.refuse(
            "search.vary",
            "names no key of topology or traffic that is given",
            known,
            closest_match(key_path(place), known),
        )
    elif not _is_integer(value):
        problem = f"must name a key that is a whole number; {key_path(place)} is {show(value) or 'none'}"
        draft.refuse("search.vary", problem)
    return place


def _value(config: Config, place: Place) -> Any:
    """What a component has at a place."""
    value = getattr(config, str(place[0]))
    for part in place[1:]:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return ABSENT
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
