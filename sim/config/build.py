"""Puts the parts of a scenario together and checks what one asks of the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import SpecError
from flitlab.models.routing.certificate import Certified, certify
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.arrivals import too_much
from flitlab.models.rules.tables import ANY, ESCAPE, LAYERED
from flitlab.models.scenario import Scenario, Source, Switching
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.session import Queues
from flitlab.sim.config import time
from flitlab.sim.config.application import (
    datagram_mistakes,
    datagram_workload,
    messages_of,
    plain_messages,
    program_mistakes,
    rendezvous_of,
    source_of,
    traffic_of,
)
from flitlab.sim.config.check import from_build, mistake_at
from flitlab.sim.config.datagram import datagram_scenario, is_datagram, plain_datagram, with_source_routes
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node, Place
from flitlab.sim.config.parts import Parts, PartsBuilder
from flitlab.sim.config.schema import Config, SourceConfig, SwitchingConfig
from flitlab.sim.config.size import length_mistakes, simulation_mistakes


@dataclass(frozen=True, eq=False)
class Built:
    """A scenario with what a user may want to know of how it came about.

    again: gives the topology; it is not kept, as there may be thousands to be measured. metrics: what is to be
    measured. scenario: None for the experiment ``metrics``. ticks: delay name -> ticks. certificate: why the VC policy
    cannot deadlock, '' where nothing was certified. resolved: the configuration with all defaults, plain.
    """

    again: Callable[[], Topology]
    metrics: list[MetricSpec]
    scenario: Scenario | None
    ticks: dict[str, int]
    certificate: str
    resolved: dict[str, Any]
    warnings: list[Mistake]


class Builder:
    """Builds the scenarios of one configuration file. base: folder that its paths are relative to."""

    def __init__(self, base: Path):
        self.parts = PartsBuilder(base)

    def build(self, root: Node, config: Config | None, experiment: str, mistakes: list[Mistake]) -> Built | None:
        """One scenario, or None with everything that is wrong added to ``mistakes``.

        config: None where too much of it is wrong; then the parts are built all the same, to find their mistakes.
        """
        root = with_source_routes(root)
        parts = self.parts.build(root, experiment == "metrics", mistakes)
        metrics = self.parts.metrics(root, mistakes)
        if parts.topology is None:
            return None
        asked = [metric.model_dump(mode="json", exclude_none=True) for metric in metrics]
        if experiment == "metrics":
            return Built(parts.again, metrics, None, {}, "", {**parts.plain, "metrics": asked}, [])
        if config is None:
            return None
        if foreign := _background_mistakes(root, parts.traffic, experiment):
            mistakes += foreign
            return None
        if experiment == "application":
            return self._for_application(root, config, parts, mistakes)
        if experiment == "load_sweep" and is_datagram(root):
            return _for_datagrams(root, config, parts, mistakes)
        if experiment == "load_sweep":
            return self._for_simulation(root, config, parts, mistakes)
        return _for_ceilings(parts, config, metrics, {"metrics": asked} if asked else {})

    def _for_simulation(
        self, root: Node, config: Config, parts: Parts, mistakes: list[Mistake], workload: Workload | None = None
    ) -> Built | None:
        topology, routes, traffic, source = parts.topology, parts.routes, parts.traffic, parts.source
        assert topology is not None
        found = _capacity_mistakes(root, topology, config.switching.mode) + _foreign_mistakes(root)
        if traffic is not None and source is not None:
            found += _load_mistakes(root, config, traffic, source)
        found += length_mistakes(root, config.measure) if workload is None else []
        ticks = time.resolve(config.switching, root, found)
        switching = certified = None
        if routes is not None and source is not None:
            switching = _switching(config.switching, ticks, topology, routes, source)
            found += _switching_mistakes(root, config, routes, source, switching)
            if switching.mode == "flow":
                certified = FLOWS
            else:
                certified = self._certified(root, topology, routes, switching, found)
        mistakes += found
        if found or switching is None or routes is None or traffic is None or source is None or certified is None:
            return None
        scenario = Scenario(
            topology, routes, traffic, switching, source, certified.policy, not certified.acyclic, workload=workload
        )  # fmt: skip
        if huge := simulation_mistakes(root, scenario, config.measure):
            mistakes += huge
            return None
        plain = {**_resolved(parts, config), "switching": _plain_switching(config.switching, switching)}
        warnings = _warnings(root, topology, routes, switching, source)
        return Built(parts.again, [], scenario, ticks, certified.note, plain, warnings)

    def _for_application(self, root: Node, config: Config, parts: Parts, mistakes: list[Mistake]) -> Built | None:
        """As for a simulation, or for datagrams, with a program on the hosts and its traffic."""
        topology, datagram = parts.topology, is_datagram(root)
        assert topology is not None
        found: list[Mistake] = datagram_mistakes(root) if datagram else []
        messages = None if datagram else messages_of(root, config, found)
        program, application = self.parts.program(root, topology, found)
        if program is not None:
            found += program_mistakes(root, program, topology, messages)
            self.parts.order(root, program, rendezvous_of(config.messages), found)
        mistakes += found
        if program is None or found:
            return None
        host, placement = self.parts.placement(root, topology, program, mistakes)
        if host is None:
            return None
        traffic = traffic_of(program, host, topology)
        parts = replace(parts, traffic=traffic, source=source_of(messages), source_config=SourceConfig())
        if messages is None:
            on_hosts = partial(datagram_workload, config.messages, program, host, topology)
            built = _for_datagrams(root, config, parts, mistakes, on_hosts)
        else:
            built = self._for_simulation(root, config, parts, mistakes, Workload(program, host, messages))
        if built is None:
            return None
        own = {"application": application, "placement": placement}
        own["messages"] = plain_messages(config.messages, datagram)
        given = config.measure.max_ticks
        measure = {} if given is None else {"max_ticks": given}
        return replace(built, resolved={**built.resolved, **own, "loads": None, "measure": measure})

    def _certified(
        self, root: Node, topology: Topology, routes: Routes, switching: Switching, mistakes: list[Mistake]
    ) -> Certified | None:
        vcs, allowed = switching.vcs, switching.allow_deadlock
        key = ("certificate", topology.content_hash, routes.content_hash, vcs, allowed)
        result = self.parts.once(key, lambda: certify(topology, routes, vcs, allowed))
        if isinstance(result, BaseException):
            in_switching = isinstance(result, SpecError) and result.key in SwitchingConfig.model_fields
            mistakes.append(from_build(result, "switching" if in_switching else "routing", root))
            return None
        return result


FLOWS = Certified(ANY, "mode flow holds nothing that a message could wait for")


def _for_datagrams(
    root: Node, config: Config, parts: Parts, mistakes: list[Mistake],
    on_hosts: Callable[[Queues], Workload] | None = None,
) -> Built | None:  # fmt: skip
    if config.placing is not None:
        problem = "mode datagram has no saturation point: what its flows reach is efficiency in results.csv"
        mistakes.append(mistake_at(root, ("loads",), problem))
        return None
    scenario = datagram_scenario(root, config, parts, mistakes, on_hosts)
    if scenario is None:
        return None
    plain = {**_resolved(parts, config), **plain_datagram(config, scenario, parts)}
    return Built(parts.again, [], scenario, {}, "", plain, [])


def _for_ceilings(parts: Parts, config: Config, metrics: list[MetricSpec], asked: dict[str, Any]) -> Built | None:
    """Without a routing, the ceilings that would need one are omitted, with that reason."""
    if parts.topology is None or parts.traffic is None or parts.source is None:
        return None
    routes: Any = parts.routes
    scenario = Scenario(parts.topology, routes, parts.traffic, Switching("vct"), parts.source)
    return Built(parts.again, metrics, scenario, {}, "", {**_resolved(parts, config), **asked}, [])


def _resolved(parts: Parts, config: Config) -> dict[str, Any]:
    in_ticks = config.measure.model_dump(mode="json", exclude={"seconds", "window"})
    measure = {**in_ticks, "max_ticks": config.measure.longest}
    return {**parts.plain, "loads": config.plain_loads, "seeds": config.seeds, "measure": measure}


ALLOCATORS = {"vct": "age", "wormhole": "islip", "deflection": "age", "flow": None}
"""Switch discipline -> how it decides who goes first; None where all go at once."""


def _mode(config: SwitchingConfig, routes: Routes) -> str:
    """The discipline in force; ``mode: deflection`` with a routing that is not is a mistake found elsewhere."""
    if routes.deflection and config.mode != "flow":
        return "deflection"
    return "vct" if config.mode == "deflection" else config.mode


def _switching(
    config: SwitchingConfig, ticks: dict[str, int], topology: Topology, routes: Routes, source: Source
) -> Switching:
    return Switching(
        mode=_mode(config, routes),
        vcs=config.vcs,
        buffer_flits=config.buffer_flits or 2 * max(source.flits),
        shared_input=config.input_speedup == 1,
        iterations=config.iterations,
        hold_packets=(config.hold_packets or config.vcs * _degree(topology)) if routes.deflection else 0,
        slotted=config.slotted and routes.deflection,
        allow_deadlock=config.allow_deadlock,
        half_duplex=config.duplex == "half",
        **ticks,
    )


def _degree(topology: Topology) -> int:
    return int(topology.out_degree.max(initial=1))


def _capacity_mistakes(root: Node, topology: Topology, mode: str) -> list[Mistake]:
    """Engines move one flit a tick over every channel, but in mode flow."""
    if mode == "flow":
        finite = np.isfinite(topology.host_capacity)
        return [] if finite else [mistake_at(root, ("topology", "host_capacity"), "must be finite in a simulation")]
    found = []
    if topology.host_capacity != 1:
        problem = "must be 1 in a simulation (.inf is for experiment: ceilings)"
        found.append(mistake_at(root, ("topology", "host_capacity"), problem))
    if np.any(topology.capacity != 1):
        found.append(mistake_at(root, ("topology", "capacity"), "must be 1 for all channels in a simulation"))
    return found


def _foreign_mistakes(root: Node) -> list[Mistake]:
    """Keys that only mode datagram knows."""
    keys: list[Place] = [("transport",), ("traffic", "sizes"), ("switching", "link_failures")]
    found = [mistake_at(root, key, "is for switching.mode: datagram") for key in keys if root.get(*key) is not None]
    arrivals = root.get("traffic", "arrivals")
    if arrivals is not None and arrivals.value == "together":
        found.append(mistake_at(root, ("traffic", "arrivals"), "is for switching.mode: datagram"))
    return found


def _background_mistakes(root: Node, traffic: Traffic | None, experiment: str) -> list[Mistake]:
    """A background where nothing is asked for at a load of its own, or where flows are endless."""
    if traffic is None or traffic.background is None:
        return []
    where = f"experiment {experiment}" if experiment in ("relative", "search") else ""
    where = "switching.mode datagram" if is_datagram(root) and experiment == "load_sweep" else where
    problem = f"is not for {where}, which knows only demands that grow as a whole"
    return [mistake_at(root, ("traffic", "background"), problem)] if where else []


def _load_mistakes(root: Node, config: Config, traffic: Traffic, source: Source) -> list[Mistake]:
    """Only a matrix beyond the hose, or a background, can ask for more than hosts can create."""
    load = max(config.load_list, default=0.0)
    at_one = traffic.sent(load) / load if load else traffic.rate
    problem = too_much(source.arrivals, load, source.mean_flits, at_one)
    return [mistake_at(root, ("loads",), problem)] if problem else []


def _switching_mistakes(
    root: Node, config: Config, routes: Routes, source: Source, switching: Switching
) -> list[Mistake]:
    """What the discipline asks of routing and packets."""
    found = []
    longest = max(source.flits)
    if config.switching.mode == "deflection" and not routes.deflection:
        found.append(mistake_at(root, ("switching", "mode"), "needs routing.kind: deflection"))
    if routes.deflection and len(source.flits) > 1:
        found.append(mistake_at(root, ("traffic", "packet_flits"), "deflection needs packets of one length"))
    if switching.mode == "flow" and not routes.oblivious:
        problem = f"{routes.kind} routing decides on the way: mode flow needs one that fixes the ways beforehand"
        found.append(mistake_at(root, ("routing",), problem))
    if switching.half_duplex and switching.mode != "flow":
        problem = f"half is for mode flow; in mode {switching.mode} each direction of a link has a channel of its own"
        found.append(mistake_at(root, ("switching", "duplex"), problem))
    if not routes.deflection and config.switching.allocator not in (None, ALLOCATORS[switching.mode]):
        problem = f"is not for mode {switching.mode}; choices: {ALLOCATORS[switching.mode] or 'none'}"
        found.append(mistake_at(root, ("switching", "allocator"), problem))
    if config.switching.iterations > 1 and switching.mode == "vct":
        problem = "must be 1 in vct, which visits everybody once (only islip iterates)"
        found.append(mistake_at(root, ("switching", "iterations"), problem))
    if switching.buffer_flits < longest and (switching.mode == "vct" or routes.vc_policy == ESCAPE):
        why = "" if switching.mode == "vct" else "; vc_policy escape gives adaptive VCs to packets that fit whole"
        problem = f"must hold a whole packet, {longest} flits{why}"
        found.append(mistake_at(root, ("switching", "buffer_flits"), problem))
    return found


def _warnings(root: Node, topology: Topology, routes: Routes, switching: Switching, source: Source) -> list[Mistake]:
    """What is allowed but unlikely to be meant."""
    if routes.group is not None and routes.vc_policy == LAYERED:
        problem = (
            "warning: past saturation a dragonfly delivers less than half as much with layered as with groups or hop "
            "(docs/routing.md): do not judge the routing by it"
        )
        return [mistake_at(root, ("routing", "vc_policy"), problem)]
    arriving = 2 * _degree(topology) * -(-switching.header // source.flits[0])
    if switching.mode != "deflection" or switching.hold_packets >= arriving:
        return []
    problem = (
        f"warning: {switching.hold_packets} packets per switch are fewer than 2·degree·ceil(header/packet) = "
        f"{arriving}: packets in their header delay alone fill it, and throughput may collapse"
    )
    return [mistake_at(root, ("switching", "hold_packets"), problem)]


def _plain_switching(config: SwitchingConfig, switching: Switching) -> dict[str, Any]:
    """``switching:`` as it was understood: the discipline in force, every delay in ticks."""
    if switching.mode == "flow":
        return {"mode": "flow", "flit_ns": config.flit_ns, "duplex": config.duplex} | _plain_ticks(switching)
    plain: dict[str, Any] = {
        "mode": switching.mode, "vcs": switching.vcs, "buffer_flits": switching.buffer_flits,
        "allocator": ALLOCATORS[switching.mode], "input_speedup": config.input_speedup,
        "allow_deadlock": config.allow_deadlock,
    }  # fmt: skip
    if switching.mode == "wormhole":
        plain["iterations"] = switching.iterations
    if switching.mode == "deflection":
        plain |= {"hold_packets": switching.hold_packets, "slotted": switching.slotted}
    if config.flit_ns is not None:
        plain["flit_ns"] = config.flit_ns
    return plain | _plain_ticks(switching)


def _plain_ticks(switching: Switching) -> dict[str, int]:
    return {f"{name}_ticks": getattr(switching, name) for name in time.DEFAULTS}
