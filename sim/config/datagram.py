"""``switching.mode: datagram``: queues, transport and flows from a configuration."""

from collections.abc import Callable
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario, Switching
from flitlab.models.transport.datagram import Datagram, session_of
from flitlab.models.transport.failures import LinkFailures
from flitlab.models.transport.paths import PATH_DRAWS
from flitlab.models.transport.session import Queues
from flitlab.sim.config.check import from_build, mistake_at, spec_of
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node, Place
from flitlab.sim.config.parts import Parts
from flitlab.sim.config.schema import Config

ENDLESS_LOAD = 1.0
"""``load`` of endless flows: each sends as much as it can."""

_PLACES: dict[str, Place] = {
    **{key: ("switching", key) for key in ("queue_packets", "packet_bytes")},
    **{key: ("transport", key) for key in ("subflows", "min_rto_ms", "ack_path", "ack_bytes")},
    **{key: ("switching", "link_failures", key) for key in ("at_ms", "reroute_ms")},
    "failures.links": ("switching", "link_failures", "links"), "failures": ("switching", "link_failures"),
    "host_capacity": ("topology", "host_capacity"), "traffic": ("traffic",), "loads": ("loads",),
    "application": ("application",), "transport": ("transport",), "flows": ("transport", "flows"),
    "sizes.bytes": ("traffic", "sizes", "bytes"), "sizes.path": ("traffic", "sizes", "path"),
    "seconds": ("measure", "seconds"), "sizes.mean_bytes": ("traffic", "sizes", "mean_bytes"),
}  # fmt: skip
"""Key of a ``SpecError`` -> where it stands in a configuration."""


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
    on_hosts: Callable[[Queues], Workload] | None = None,
) -> Scenario | None:  # fmt: skip
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
    scenario = Scenario(
        parts.topology, parts.routes, parts.traffic, Switching("datagram"), parts.source, datagram=given,
        workload=None if on_hosts is None else on_hosts(given.queues),
    )  # fmt: skip
    try:
        session_of(scenario, max(config.load_list, default=ENDLESS_LOAD), config.seeds[0])
    except SpecError as error:
        place = _PLACES.get(error.key or "", ("switching",))
        mistakes.append(mistake_at(root, place, str(error), error.choices))
        return None
    except Exception as error:  # a transport may be a stranger's: whatever it raises is reported
        mistakes.append(from_build(error, "transport", root))
        return None
    return scenario


def _datagram(config: Config, parts: Parts, transport: Any) -> Datagram:
    switching, source, failing = config.switching, parts.source_config, config.switching.link_failures
    assert source is not None and parts.routing is not None
    room = switching.queue_bytes
    queues = Queues(
        switching.packet_bytes, switching.nic_mbps, switching.link_us,
        switching.queue_packets * switching.packet_bytes if room is None else room, switching.random_drop,
        switching.feeder_packets,
    )  # fmt: skip
    failures = failing if failing is None else LinkFailures(**failing.model_dump())
    return Datagram(
        transport, queues, parts.routing, PATH_DRAWS[parts.path_draw], source.sizes, source.arrivals != "together",
        config.measure.seconds, failures,
    )  # fmt: skip


def _check_times(root: Node, config: Config, parts: Parts, mistakes: list[Mistake]) -> None:
    window, seconds = config.measure.window, config.measure.seconds
    if window is not None and not (len(window) == 2 and 0 <= window[0] < window[1] <= seconds):
        problem = f"must be two times in seconds, ascending, within the {seconds:g} seconds of the run"
        mistakes.append(mistake_at(root, ("measure", "window"), problem))
    source = parts.source_config
    if source is not None and source.arrivals == "together" and source.sizes is None:
        mistakes.append(mistake_at(root, ("traffic", "arrivals"), "needs traffic.sizes: endless flows never arrive"))


def plain_datagram(config: Config, scenario: Scenario, parts: Parts) -> dict[str, Any]:
    """The sections that are this discipline's own, as they were understood."""
    given, switching = scenario.datagram, config.switching
    assert given is not None
    keys = ("packet_bytes", "nic_mbps", "link_us", "random_drop", "feeder_packets")
    plain = {"mode": "datagram", **{key: getattr(switching, key) for key in keys}}
    plain["queue_bytes"] = given.queues.queue_bytes
    if switching.link_failures is not None:
        plain["link_failures"] = switching.link_failures.model_dump(mode="json")
    measure = {"seconds": config.measure.seconds, "window": list(config.measure.measured(given.sizes is not None))}
    routing = {**parts.plain["routing"], "path_draw": parts.path_draw}
    return {
        "routing": routing, "switching": plain, "transport": given.transport.model_dump(mode="json"), "measure": measure
    }  # fmt: skip
