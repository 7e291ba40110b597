# SPDX-License-Identifier: Apache-2.0
"""What an experiment requires, and the ceilings, metrics and keys that it computes or varies."""

from typing import Any

from flitlab.fluid.kinds.spec import CeilingSpec, ceiling_spec, kinds
from flitlab.models.closest_match import closest_match
from flitlab.sim.config.budget import CERTIFIED, has_budget
from flitlab.sim.config.check import spec_of
from flitlab.sim.config.draft import BUDGET, Draft
from flitlab.sim.config.errors import key_path, show
from flitlab.sim.config.flows import has_long_lived_flows
from flitlab.sim.config.load import KeyPath
from flitlab.sim.config.overrides import parse_path
from flitlab.sim.config.schema import NEEDS, Config
from flitlab.sim.config.section import as_component

SEARCHABLE = ("topology", "traffic")
"""Sections with keys that a search may vary."""

ABSENT = object()
"""The value of a missing key."""


def require_keys(draft: Draft) -> None:
    """Reject a scenario without the keys that its experiment requires."""
    for key in NEEDS.get(draft.experiment, ()):
        if not draft.has_value(key) and not (
            key == "loads" and (has_long_lived_flows(draft) or BUDGET in draft.config.outputs.figures)
        ):
            draft.reject(key, f"is missing: experiment {draft.experiment} needs it")


def ceilings_of(draft: Draft) -> list[CeilingSpec]:
    """The configured ceilings, else all defaults that the configuration allows; with that of ``relative``."""
    config, experiment, by = draft.config, draft.experiment, draft.config.relative.by
    if experiment in ("metrics", "search"):
        return []
    listed = [] if config.ceilings is None else _listed_ceilings(draft)
    if experiment == "relative":
        if by == "mcf_paths" and not draft.has_value("routing"):
            draft.reject("relative.by", "is over the paths of a routing; routing is missing")
        return listed if any(spec.kind == by for spec in listed) else [ceiling_spec(by), *listed]
    if config.ceilings is None:
        listed = (
            [ceiling_spec("makespan")]
            if experiment == "application"
            else []
            if draft.runs_program
            else _default_ceilings(config)
        )
    if has_budget(draft):
        known = {spec.kind for spec in listed}
        listed = [*listed, *(ceiling_spec(kind) for kind in CERTIFIED if kind not in known)]
    return listed


def _default_ceilings(config: Config) -> list[CeilingSpec]:
    """The ceilings where none are listed."""
    usual = [ceiling_spec(name) for name, kind in kinds().items() if kind.usual]
    routed = config.routing is not None
    return [one for one in usual if (config.loads or not one.by_load) and (routed or one.routes != "needed")]


def _listed_ceilings(draft: Draft) -> list[CeilingSpec]:
    """The valid entries of ``ceilings:``; errors of others are added."""
    listed = draft.mapping("ceilings")
    specs: list[CeilingSpec] = []
    for i in range(len(listed) if isinstance(listed, list) else 0):
        path = ("ceilings", i)
        spec = spec_of("ceiling", draft, path, as_component(draft.mapping(*path)))
        if not isinstance(spec, CeilingSpec):
            continue
        if spec in specs:
            draft.reject(path, f"{spec.kind} is listed twice")
        if spec.of_program and not draft.has_value("application"):
            draft.reject(path, f"{spec.kind} is for experiment: application")
        if spec.by_load and not draft.has_value("loads"):
            draft.reject(path, f"{spec.kind} depends on the load; loads is missing")
        specs.append(spec)
    return specs


def plain_question(draft: Draft, ceilings: list[CeilingSpec]) -> dict[str, Any]:
    """The keys of ceilings, ``relative`` and ``search`` with all defaults, plain."""
    config, experiment = draft.config, draft.experiment
    plain: dict[str, Any] = {}
    if experiment not in ("metrics", "search"):
        plain["ceilings"] = [ceiling.plain() for ceiling in ceilings]
    if experiment == "relative":
        plain["relative"] = config.relative.model_dump(mode="json")
    if experiment == "search" and config.search is not None:
        plain["search"] = config.search.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


def search_path(draft: Draft) -> KeyPath:
    """The path of the key that a search varies: an integer of the topology (its name suffices) or of the traffic."""
    if draft.config.search is None:
        return ()
    path = parse_path(draft.config.search.vary)
    full_path = path if path and path[0] in SEARCHABLE else ("topology", *path)
    value = _value(draft.config, full_path)
    if value is ABSENT:
        sections = {part: getattr(draft.config, part) or {} for part in SEARCHABLE}
        known = [
            key_path((part, key)) for part in sections for key, value in sections[part].items() if _is_integer(value)
        ]
        draft.reject(
            "search.vary",
            "names no key that topology or traffic has",
            known,
            closest_match(key_path(full_path), known),
        )
    elif not _is_integer(value):
        problem = f"must name a key that is a whole number; {key_path(full_path)} is {show(value) or 'none'}"
        draft.reject("search.vary", problem)
    return full_path


def _value(config: Config, path: KeyPath) -> Any:
    """The value of a component at a path; ``ABSENT`` if there is none."""
    value = getattr(config, str(path[0]))
    for part in path[1:]:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return ABSENT
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
