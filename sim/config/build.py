"""Puts the parts of a scenario together and checks what one asks of the other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import SpecError, names, spec_class
from flitlab.models.routing.certificate import Certified, certify
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.arrivals import too_much
from flitlab.models.scenario import Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.discipline import Discipline, Setting, SwitchingSpec
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
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
from flitlab.sim.config.overrides import parse_path
from flitlab.sim.config.parts import Parts, PartsBuilder
from flitlab.sim.config.schema import Config, SourceConfig, SwitchingConfig
from flitlab.sim.config.size import length_mistakes, simulation_mistakes


@dataclass(frozen=True, eq=False)
class Built:
    """A scenario with what a user may want to know of how it came about.

    again: gives the topology; it is not kept, as there may be thousands to be measured. metrics: what is to be
    measured. instance: None for the experiment ``metrics``. scenario: None where nothing is simulated. certificate: why
    the VC policy cannot deadlock, '' where nothing was certified. resolved: the configuration with all defaults, plain.
    """

    again: Callable[[], Topology]
    metrics: list[MetricSpec]
    instance: Instance | None
    scenario: Scenario | None
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
            return Built(parts.again, metrics, None, None, "", {**parts.plain, "metrics": asked}, [])
        if config is None:
            return None
        if foreign := _background_mistakes(root, parts.traffic, experiment):
            mistakes += foreign
            return None
        if foreign := _switching_keys(root, switching_spec(config.switching)):
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
        spec = switching_spec(config.switching)
        refused = _refused(root, spec.refusals(topology, routes, None if source is None else source.flits))
        found = refused + _foreign_mistakes(root)
        if traffic is not None and source is not None:
            found += _load_mistakes(root, config, traffic, source)
        found += length_mistakes(root, config.measure) if workload is None else []
        switching = None
        if routes is not None and source is not None and not refused:
            switching = self._certified(
                root, topology, routes, spec.build(Setting(topology, routes, source.flits)), found
            )
        mistakes += found
        if found or switching is None or routes is None or traffic is None or source is None:
            return None
        discipline, note = switching
        scenario = Scenario(Instance(topology, traffic, routes), discipline, workload or source)
        if huge := simulation_mistakes(root, scenario, config.measure):
            mistakes += huge
            return None
        plain = {**_resolved(parts, config), "switching": discipline.plain(spec.tick_ns)}
        warnings = _refused(root, discipline.doubts(topology, routes, source.flits[0]), warning=True)
        return Built(parts.again, [], scenario.instance, scenario, note, plain, warnings)

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
        self, root: Node, topology: Topology, routes: Routes, discipline: Discipline, mistakes: list[Mistake]
    ) -> tuple[Discipline, str] | None:
        """The discipline with its VC policy, and why that cannot deadlock."""

        def known(topology: Topology, routes: Routes, vcs: int, allowed: bool) -> Certified:
            key = ("certificate", topology.content_hash, routes.content_hash, vcs, allowed)
            result = self.parts.once(key, lambda: certify(topology, routes, vcs, allowed))
            if isinstance(result, BaseException):
                raise result
            return result

        try:
            return discipline.certified(topology, routes, known)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # routes may be a stranger's: whatever is wrong with them is reported
            in_switching = isinstance(error, SpecError) and error.key in switching_keys()
            mistakes.append(from_build(error, "switching" if in_switching else "routing", root))
            return None


def switching_keys() -> set[str]:
    """Keys under ``switching:`` in any mode."""
    return {key for mode in names("switching") for key in spec_class("switching", mode).model_fields}


def _for_datagrams(
    root: Node, config: Config, parts: Parts, mistakes: list[Mistake],
    on_hosts: Callable[[Datagram], Workload] | None = None,
) -> Built | None:  # fmt: skip
    if config.placing is not None:
        problem = "mode datagram has no saturation point: what its flows reach is efficiency in results.csv"
        mistakes.append(mistake_at(root, ("loads",), problem))
        return None
    scenario = datagram_scenario(root, config, parts, mistakes, on_hosts)
    if scenario is None:
        return None
    plain = {**_resolved(parts, config), **plain_datagram(config, scenario, parts)}
    return Built(parts.again, [], scenario.instance, scenario, "", plain, [])


def _for_ceilings(parts: Parts, config: Config, metrics: list[MetricSpec], asked: dict[str, Any]) -> Built | None:
    """Without a routing, the ceilings that would need one are omitted, with that reason."""
    if parts.topology is None or parts.traffic is None or parts.source is None:
        return None
    instance = Instance(parts.topology, parts.traffic, parts.routes)
    return Built(parts.again, metrics, instance, None, "", {**_resolved(parts, config), **asked}, [])


def _resolved(parts: Parts, config: Config) -> dict[str, Any]:
    in_ticks = config.measure.model_dump(mode="json", exclude={"seconds", "window"})
    measure = {**in_ticks, "max_ticks": config.measure.longest}
    return {**parts.plain, "loads": config.plain_loads, "seeds": config.seeds, "measure": measure}


def switching_spec(config: SwitchingConfig | SwitchingSpec) -> SwitchingSpec:
    """The keys of a mode among all that ``switching:`` may have."""
    if isinstance(config, SwitchingSpec):
        return config
    model: Any = spec_class("switching", config.mode)
    own = config.model_dump(exclude_unset=True, include=set(model.model_fields))
    return model.model_validate({"mode": config.mode, **own})


def _switching_keys(root: Node, spec: SwitchingSpec) -> list[Mistake]:
    """Keys under ``switching:`` that other modes have."""
    given = root.get("switching")
    found = []
    for key in given.value if given is not None and given.is_map else ():
        modes = [mode for mode in names("switching") if key in spec_class("switching", mode).model_fields]
        if modes and spec.mode not in modes:
            problem = f"is not for mode {spec.mode}; it is for {', '.join(modes)}"
            found.append(mistake_at(root, ("switching", key), problem))
    return found


def _refused(root: Node, refusals: Iterable[SpecError], warning: bool = False) -> list[Mistake]:
    """Refusals of a discipline, whose keys are whole places, at their lines."""
    kind = "warning: " if warning else ""
    return [mistake_at(root, parse_path(error.key or ""), f"{kind}{error}", error.choices) for error in refusals]


def _foreign_mistakes(root: Node) -> list[Mistake]:
    """Keys that only mode datagram knows."""
    keys: list[Place] = [("transport",), ("traffic", "sizes")]
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
