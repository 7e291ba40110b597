"""What an experiment asks of a scenario, and what it cannot do without."""

from typing import Any

from flitlab.fluid.kinds.spec import CeilingSpec, asked, kinds
from flitlab.models.near import near
from flitlab.sim.config.check import mistake_at, spec_of
from flitlab.sim.config.datagram import is_endless
from flitlab.sim.config.errors import Mistake, key_path, show
from flitlab.sim.config.load import Node, Place
from flitlab.sim.config.overrides import parse_path, put
from flitlab.sim.config.schema import NEEDS, PLACED, Config


def missing(root: Node, experiment: str) -> list[Mistake]:
    """Keys that the experiment cannot do without, and topology, routing, traffic that are no mappings."""
    found = []
    for key in NEEDS.get(experiment, ()):
        node = root.get(key)
        if (node is None or node.value is None) and not (key == "loads" and is_endless(root)):
            found.append(mistake_at(root, (key,), f"is missing: experiment {experiment} needs it"))
    return found


def with_search(root: Node) -> Node:
    """What ``experiment: saturation`` means: a search for the saturation point besides the loads that are given."""
    loads = root.get("loads")
    if loads is None or loads.value is None:
        return put(root, ("loads",), root.with_value({"saturation": root.with_value({})}))
    if loads.is_map and PLACED & loads.value.keys():
        return root
    return put(root, ("loads",), loads.with_value({"at": loads, "saturation": loads.with_value({})}))


def ceilings_of(root: Node, config: Config | None, experiment: str, mistakes: list[Mistake]) -> list[CeilingSpec]:
    """The ceilings asked for; by default all usual ones that the configuration allows. ``relative`` needs its own."""
    if config is None or experiment in ("metrics", "search"):
        return []
    listed = [] if config.ceilings is None else _listed(root, mistakes)
    if experiment == "relative":
        by = config.relative.by
        if by == "mcf_paths" and config.routing is None:
            mistakes.append(mistake_at(root, ("relative", "by"), "is over the ways of a routing, and there is none"))
        return listed if any(spec.kind == by for spec in listed) else [asked(by), *listed]
    if config.ceilings is None:
        return [asked("makespan")] if experiment == "application" else _usual(config)
    return listed


def _usual(config: Config) -> list[CeilingSpec]:
    """What is computed where no ceilings are listed."""
    usual = [asked(name) for name, kind in kinds().items() if kind.usual]
    routed = config.routing is not None
    return [one for one in usual if (config.loads or not one.by_load) and (routed or one.routes != "needed")]


def _listed(root: Node, mistakes: list[Mistake]) -> list[CeilingSpec]:
    """The entries of ``ceilings:``, once what is wrong with them is added to ``mistakes``."""
    entries = root.get("ceilings")
    if entries is None or not entries.is_list:
        return []
    nodes = [node.with_value({"kind": node}) if isinstance(node.value, str) else node for node in entries.value]
    named = put(root, ("ceilings",), entries.with_value(nodes))
    found: list[CeilingSpec] = []
    for i in range(len(nodes)):
        place = ("ceilings", i)
        spec = spec_of("ceiling", named, mistakes, place=place)
        if not isinstance(spec, CeilingSpec):
            continue
        if spec in found:
            mistakes.append(mistake_at(root, place, f"{spec.kind} is listed twice"))
        if spec.of_program and root.get("application") is None:
            mistakes.append(mistake_at(root, place, f"{spec.kind} is for experiment: application"))
        if spec.by_load and root.get("loads") is None:
            mistakes.append(mistake_at(root, place, f"{spec.kind} is drawn over loads, and there are none"))
        found.append(spec)
    return found


def question(config: Config, experiment: str, ceilings: list[CeilingSpec]) -> dict[str, Any]:
    """What is asked of a scenario, with all defaults, plain."""
    found: dict[str, Any] = {}
    if experiment not in ("metrics", "search"):
        found["ceilings"] = [ceiling.plain() for ceiling in ceilings]
    if experiment == "relative":
        found["relative"] = config.relative.model_dump(mode="json")
    if experiment == "search" and config.search is not None:
        found["search"] = config.search.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def varied(root: Node, config: Config | None, mistakes: list[Mistake]) -> Place:
    """The place of the key that a search varies: an integer of the topology (by its name alone) or of the traffic."""
    if config is None or config.search is None:
        return ()
    path = parse_path(config.search.vary)
    place = path if path and path[0] in ("topology", "traffic") else ("topology", *path)
    node = root.get(*place)
    if node is None:
        known = [
            key_path((part, key))
            for part in ("topology", "traffic")
            for key, child in (root.get(part) or root.with_value({})).value.items()
            if _is_integer(child.value)
        ]
        problem = "names no key of topology or traffic that is given"
        mistakes.append(mistake_at(root, ("search", "vary"), problem, known, near(key_path(place), known)))
    elif not _is_integer(node.value):
        problem = f"must name a key that is a whole number; {key_path(place)} is {show(node.plain()) or 'none'}"
        mistakes.append(mistake_at(root, ("search", "vary"), problem))
    return place


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
