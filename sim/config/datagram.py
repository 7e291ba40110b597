"""``switching.mode: datagram``: queues, transport and flows from a configuration."""

from collections.abc import Callable
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make, spec_class
from flitlab.models.scenario import Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.discipline import Setting
from flitlab.models.transport.paths import PATH_DRAWS
from flitlab.sim.config.check import from_build, mistake_at, spec_of
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node
from flitlab.sim.config.overrides import parse_path
from flitlab.sim.config.parts import Parts
from flitlab.sim.config.schema import Config

ENDLESS_LOAD = 1.0
"""``load`` of endless flows: each sends as much as it can."""


def is_datagram(root: Node) -> bool:
    """Whether a configuration asks for this discipline."""
    mode = root.get("switching", "mode")
    return mode is not None and mode.value == "datagram"


def is_endless(root: Node) -> bool:
    """Whether its flows never end, so that it needs no loads; without a load, too, where flows do not arrive."""
    arrivals = root.get("traffic", "arrivals")
    together = arrivals is not None and arrivals.value == "together"
    return is_datagram(root) and (together or root.get("traffic", "sizes") is None)


def with_source_routes(root: Node) -> Node:
    """Where nothing else is said, equal-cost paths are drawn at the source."""
    routing = root.get("routing")
    if not is_datagram(root) or routing is None or not routing.is_map:
        return root
    kind = routing.get("kind")
    if kind is None or kind.value != "ecmp" or routing.get("routed") is not None:
        return root
    routed = routing.with_value({**routing.value, "routed": kind.with_value("source")})
    return root.with_value({**root.value, "routing": routed})


def datagram_scenario(
    root: Node, config: Config, parts: Parts, mistakes: list[Mistake],
    on_hosts: Callable[[Datagram], Workload] | None = None,
) -> Scenario[Datagram] | None:  # fmt: skip
    """A scenario of this discipline, or None with what is wrong added to ``mistakes``.

    on_hosts: what hosts run in place of flows.
    """
    found: list[Mistake] = []
    absent = root.get("transport") is None
    transport: Any = make("transport", kind="tcp") if absent else spec_of("transport", root, found)
    _check_times(root, config, parts, found)
    mistakes += found
    if found or transport is None or parts.topology is None or parts.routes is None or parts.traffic is None:
        return None
    if parts.source is None or parts.routing is None or parts.source_config is None:
        return None
    given = _datagram(config, parts, transport)
    work = parts.source if on_hosts is None else on_hosts(given)
    scenario = Scenario(Instance(parts.topology, parts.traffic, parts.routes), given, work)
    try:
        given.check(scenario.instance, work, max(config.load_list, default=ENDLESS_LOAD), config.seeds[0])
    except SpecError as error:
        mistakes.append(mistake_at(root, parse_path(error.key or "switching"), str(error), error.choices))
        return None
    except Exception as error:  # a transport may be a stranger's: whatever it raises is reported
        mistakes.append(from_build(error, "transport", root))
        return None
    return scenario


def _datagram(config: Config, parts: Parts, transport: Any) -> Datagram:
    source, topology, routes = parts.source_config, parts.topology, parts.routes
    assert source is not None and topology is not None and routes is not None
    model: Any = spec_class("switching", "datagram")
    keys = config.switching.model_dump(exclude_unset=True, include=set(model.model_fields))
    return model.model_validate({"mode": "datagram", **keys}).build(
        Setting(
            topology,
            routes,
            routing=parts.routing,
            transport=transport,
            path_draw=PATH_DRAWS[parts.path_draw],
            sizes=source.sizes,
            together=source.arrivals == "together",
            seconds=config.measure.seconds,
        )
    )


def _check_times(root: Node, config: Config, parts: Parts, mistakes: list[Mistake]) -> None:
    window, seconds = config.measure.window, config.measure.seconds
    if window is not None and not (len(window) == 2 and 0 <= window[0] < window[1] <= seconds):
        problem = f"must be two times in seconds, ascending, within the {seconds:g} seconds of the run"
        mistakes.append(mistake_at(root, ("measure", "window"), problem))
    source = parts.source_config
    if source is not None and source.arrivals == "together" and source.sizes is None:
        mistakes.append(mistake_at(root, ("traffic", "arrivals"), "needs traffic.sizes: endless flows never arrive"))


def plain_datagram(config: Config, scenario: Scenario[Datagram], parts: Parts) -> dict[str, Any]:
    """The sections that are this discipline's own, as they were understood."""
    given = scenario.switching
    measure = {"seconds": config.measure.seconds, "window": list(config.measure.measured(not given.endless))}
    routing = {**parts.plain["routing"], "path_draw": parts.path_draw}
    return {
        "routing": routing, "switching": given.plain(), "transport": given.transport.model_dump(mode="json"),
        "measure": measure,
    }  # fmt: skip
