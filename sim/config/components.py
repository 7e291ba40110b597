# SPDX-License-Identifier: Apache-2.0
"""Builds topologies, routes and traffic, each distinct one only once."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from flitlab.models.application.order import check_order
from flitlab.models.application.placement import PlacementSpec
from flitlab.models.application.program import Program
from flitlab.models.application.spec import ApplicationSpec
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Keys, Notes
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.metrics.summary import ALWAYS
from flitlab.models.registry import Spec, SpecError, SpecWarning, recorded_warnings
from flitlab.models.routing.planned import PlannedSpec, needs_solver
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.routing.weights import LATENCY, ChannelWeightSpec
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.switching.timed import ONE, TimedSpec
from flitlab.models.timeline.epochs import renumbered_traffic
from flitlab.models.topology.flit_times import capacity_unit, in_flits_per_tick
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.traffic.source import BurstRates, Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.config.checks import is_routing_too_large
from flitlab.sim.config.collective import ranked
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.link_rate import with_delays_of_file, with_rate_of_file
from flitlab.sim.config.schema import BurstConfig, SourceConfig
from flitlab.sim.config.sections import as_component
from flitlab.sim.config.text import ConfigDocument
from flitlab.sim.config.validation import reject_build_error, spec_of

Made = TypeVar("Made")

SOURCE_KEYS = tuple(SourceConfig.model_fields)
"""Keys of ``traffic:`` about arrivals and lengths, not about the pattern."""

PART_CONNECTED = "part-connected topology"
"""Name, in the cache, of topologies that need not be strongly connected."""

MAX_CACHED_CHANNELS = 20_000_000
"""Channels of all cached topologies: about a gigabyte."""


@dataclass(frozen=True, eq=False)
class Components:
    """A topology, and the other components of a scenario; None for those that are absent or invalid.

    Parameters
    ----------
    topology, routes, traffic, source: as built.
    build_topology: builds the topology again, or returns the cached one.
    plain: the mappings under ``topology``, ``routing`` and ``traffic`` with their defaults.
    routing: the specification of ``routes``.
    replan: computes the routes in a reduced topology; None if the specification builds them without a demand.
    """

    topology: Topology
    build_topology: Callable[[], Topology]
    routes: Routes | None
    traffic: Traffic | None
    source: Source | None
    plain: Keys
    routing: RoutingSpec | None = None
    replan: Callable[[Topology], Routes] | None = None


@dataclass
class ComponentBuilder:
    """Builds the components of scenarios, with a cache."""

    _cache: dict[Hashable, Any] = field(default_factory=dict)
    _warnings: dict[Hashable, list[SpecWarning]] = field(default_factory=dict)

    def build(self, draft: Draft) -> Components | None:
        """The components of one scenario; errors are added to the draft. None without a topology."""
        spec = draft.spec("topology")
        name = PART_CONNECTED if _takes_part_connected(draft) else "topology"
        topology: Topology | None = self._component(spec, (), draft.part("topology"), name)
        build_topology = partial(self._build_result, name, spec, ())
        if topology is not None:
            if topology.notes.get("capacity_missing") == "all":
                draft.warn(
                    "topology.capacity_from", "is an attribute of no edge in the file: all have the capacity `missing`"
                )
            topology = _in_flits_per_tick(draft, ranked(draft, topology))
        plain = {"topology": plain_of(spec)}
        if topology is not None and draft.switching is not None and draft.experiment != "metrics":
            size = draft.messages.flit_bytes if draft.runs_program else None
            switching = with_rate_of_file(draft.switching, topology, size)
            draft.switching, topology, whose = with_delays_of_file(
                draft, switching, topology, spec.delays, simulates(draft)
            )
            plain["topology"] |= {} if whose is None else {"delays": whose}
        if draft.experiment == "metrics":
            if topology is None:
                return None
            return Components(topology, build_topology, None, None, None, plain)
        routing = _with_hop_ticks(draft, _with_source_routes(draft, draft.spec("routing")), topology)
        pattern = draft.spec("traffic")
        routes = traffic = None
        if topology is not None:
            traffic = self._component(pattern, (topology,), draft.part("traffic"))
        if topology is not None and not (routing and is_routing_too_large(draft, topology)):
            routes = self._routes(routing, topology, traffic, draft)
        plain |= {"routing": plain_of(routing), "traffic": plain_of(pattern)}
        if draft.source is not None:
            of_classes = {"packet_flits"} if traffic is not None and traffic.classes else set()
            plain["traffic"] |= draft.source.model_dump(mode="json", exclude_none=True, exclude=of_classes)
        if topology is None:
            return None
        non_empty = {name: mapping for name, mapping in plain.items() if mapping}
        replan = None
        if routes is not None and routing is not None and needs_solver(routing):
            replan = partial(self._replanned, routing, traffic)
        source = _source(draft.source)
        if source is not None and traffic is not None and traffic.classes:
            flits, shares = traffic.lengths(1.0)
            source = replace(source, flits=flits, shares=shares)
        return Components(topology, build_topology, routes, traffic, source, non_empty, routing, replan)

    def program(self, document: ConfigDocument, spec: ApplicationSpec, hosts: int) -> Program | None:
        """The program of a specification; None, with errors added, if it is invalid.

        Parameters
        ----------
        document: the part of the program.
        spec: of the program.
        hosts: available to it.
        """
        return _or_reject(self.memoized(("application", hosts, _key(spec)), lambda: spec.build(hosts)), document)

    def tuned(
        self, document: ConfigDocument, spec: ApplicationSpec, scenario: Scenario[SwitchingMode, Workload], hosts: int
    ) -> Program | None:
        """The program with the best algorithms in place of the library's; None if it requests none.

        Parameters
        ----------
        document, spec, hosts: as for :meth:`program`.
        scenario: of the program with the library's algorithms.
        """
        if not spec.asks_for_best:
            return None
        from flitlab.fluid.tuning import Rounds  # solvers take long to import

        key = ("tuned", scenario.content_hash, hosts, _key(spec))
        return _or_reject(self.memoized(key, lambda: spec.build(hosts, Rounds(scenario).ticks)), document)

    def order(self, document: ConfigDocument, program: Program, rendezvous: int) -> None:
        """Reject a program whose operations wait for each other in a cycle.

        Parameters
        ----------
        document: the part of the program.
        program: checked once for equal arguments.
        rendezvous: larger messages, in bytes, wait for their receive.
        """
        key = ("order", program.content_hash, rendezvous)
        _or_reject(self.memoized(key, lambda: check_order(program, rendezvous)), document)

    def placement(
        self, document: ConfigDocument, spec: PlacementSpec, topology: Topology, program: Program, free: Ints
    ) -> tuple[Ints, Notes] | None:
        """The host of each rank, and notes; None, with errors added, if the placement is invalid.

        Parameters
        ----------
        document: the part of the placement.
        spec: of the placement.
        topology, program: what is placed where.
        free: int64, the hosts that are available.
        """
        key = ("placement", topology.content_hash, program.content_hash, free.tobytes(), _key(spec))
        host = _or_reject(self.memoized(key, lambda: spec.among(topology, program, free)), document)
        if host is None:
            return None
        notes = _or_reject(self.memoized((*key, "notes"), lambda: spec.validated_notes(topology, host)), document)
        return None if notes is None else (host, notes)

    def memoized(self, key: Hashable, make: Callable[[], Made]) -> Made | BaseException:
        """The result of the first call of ``make`` for a key, or the exception that it raised."""
        if key not in self._cache:
            with recorded_warnings() as warnings:
                try:
                    self._cache[key] = make()
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # a third-party component may raise anything, which is reported
                    self._cache[key] = error
            self._warnings[key] = warnings
            self._evict_topologies()
        made: Made | BaseException = self._cache[key]
        return made

    def _evict_topologies(self) -> None:
        """Drop the oldest topologies where a study measures many, one after another."""
        cached = [(key, part) for key, part in self._cache.items() if isinstance(part, Topology)]
        channels = sum(topology.channels for _, topology in cached)
        for key, topology in cached[:-1]:
            if channels <= MAX_CACHED_CHANNELS:
                break
            del self._cache[key]
            channels -= topology.channels

    def _component(self, spec: Any, arguments: tuple[Any, ...], document: ConfigDocument, name: str = "") -> Any:
        """The component built on others (``arguments``); None, with errors added, if it is invalid.

        document: the part of the component. name: for :meth:`_build_result`, by default that of its section.
        """
        if spec is None:
            return None
        name = name or str(document.path[0])
        result = self._build_result(name, spec, arguments)
        self._warn(_build_key(name, spec, arguments), document)
        return _or_reject(result, document)

    def _warn(self, key: Hashable, document: ConfigDocument) -> None:
        """Add the warnings of a cached component at its part of the configuration."""
        for warning in self._warnings[key]:
            document.warn(warning.key or "", str(warning))

    def _routes(
        self, spec: RoutingSpec | None, topology: Topology, traffic: Traffic | None, draft: Draft
    ) -> Routes | None:
        """The routes; None if they are invalid, or planned for a traffic that is invalid."""
        if spec is None or not needs_solver(spec):
            routes: Routes | None = self._component(spec, (topology,), draft.part("routing"))
            return routes
        if spec.for_scenario and traffic is None and draft.mapping("traffic"):
            return None
        return _or_reject(self._planned(spec, topology, traffic, draft), draft.part("routing"))

    def _replanned(self, spec: PlannedSpec, traffic: Traffic | None, reduced: Topology) -> Routes:
        """The routes for the same demand in a reduced topology. Raises ``SpecError``."""
        result = self._planned(spec, reduced, None if traffic is None else renumbered_traffic(traffic, reduced))
        if isinstance(result, BaseException):
            raise result
        return result

    def _planned(
        self, spec: PlannedSpec, topology: Topology, traffic: Traffic | None, draft: ConfigDocument | None = None
    ) -> Routes | BaseException:
        """The routes of a routing that is planned for a demand, or the exception that it raises.

        draft: gets the warnings of the routing; None if it has them already.
        """
        from flitlab.fluid.weights import planned_routes

        key_of_demand = ("demand", topology.content_hash, traffic and traffic.content_hash, _key(spec))
        demand = self.memoized(key_of_demand, lambda: spec.validated_demand(topology, traffic))
        if isinstance(demand, BaseException):
            return demand
        key = ("routing", topology.content_hash, demand.content_hash, _key(spec))
        routes: Routes | BaseException = self.memoized(key, lambda: planned_routes(spec, topology, demand))
        if draft is not None:
            self._warn(key, draft.part("routing"))
        return routes

    def _build_result(self, name: str, spec: Any, arguments: tuple[Any, ...]) -> Any:
        """The component of a specification, or the exception that it raises."""
        build = spec.build_part_connected if name == PART_CONNECTED else spec.build
        return self.memoized(_build_key(name, spec, arguments), lambda: build(*arguments))


def _takes_part_connected(draft: Draft) -> bool:
    """Whether a topology need not be strongly connected: for ceilings, and for programs in mode ``flow``."""
    flow = draft.runs_program and draft.switching is not None and draft.switching.mode == "flow"
    return draft.experiment == "ceilings" or flow


def _build_key(name: str, spec: Spec, arguments: tuple[Any, ...]) -> Hashable:
    """The arguments that determine a component."""
    return name, *(part.content_hash for part in arguments), _key(spec)


def _key(spec: Spec) -> Hashable:
    return repr(spec), tuple(sorted(spec.model_fields_set))


def _or_reject(result: Made | BaseException, document: ConfigDocument) -> Made | None:
    """A result; None, with an error added, if it is an exception."""
    if isinstance(result, BaseException):
        reject_build_error(result, document)
        return None
    return result


def plain_of(spec: Spec | None) -> Keys:
    """The keys of a component with defaults, except for optional keys of topologies: a file may define hosts itself."""
    if spec is None:
        return {}
    optional = set(TopologySpec.model_fields) - {"kind"} if isinstance(spec, TopologySpec) else set()
    nulls = {  # null that is not the default would be read as the default
        key: None
        for key, field in type(spec).model_fields.items()
        if getattr(spec, key) is None
        and not field.is_required()
        and field.get_default(call_default_factory=True) is not None
    }
    plain = spec.model_dump(mode="json", exclude_none=True) | nulls
    return {key: value for key, value in plain.items() if key in spec.model_fields_set or key not in optional}


def metrics_of(draft: Draft) -> list[MetricSpec]:
    """The valid entries of ``metrics:``; errors of others are added."""
    listed = draft.mapping("metrics")
    specs: dict[str, MetricSpec] = {}
    for i in range(len(listed) if isinstance(listed, list) else 0):
        entry = draft.part("metrics", i)
        spec = spec_of("metric", entry, as_component(draft.mapping("metrics", i)))
        if not isinstance(spec, MetricSpec):
            continue
        if spec.label in ALWAYS:
            entry.reject("label", "is the name of a column that every topology has")
        if specs.setdefault(spec.label or spec.kind, spec) is not spec:
            entry.reject((), f"{spec.label or spec.kind} is listed twice: give one a label")
    return list(specs.values())


def _with_source_routes(draft: Draft, routing: RoutingSpec | None) -> RoutingSpec | None:
    """The routing; if flows draw paths, ECMP draws them at the source unless ``routed`` is set."""
    draws = draft.switching_mode is not None and draft.switching_mode.draws_paths
    if routing is None or routing.kind != "ecmp" or "routed" in routing.model_fields_set or not draws:
        return routing
    return routing.model_copy(update={"routed": "source"})


def simulates(draft: Draft) -> bool:
    """Whether an engine runs."""
    return draft.experiment == "load_sweep" or draft.runs_program


def _in_flits_per_tick(draft: Draft, topology: Topology) -> Topology:
    """The topology; for a simulation of flits, with capacities in flits per tick."""
    if not simulates(draft) or draft.switching is None or not draft.switching.sends_flits:
        return topology
    try:
        return in_flits_per_tick(topology)
    except SpecError:
        return topology  # rejected with the switching mode


def _with_hop_ticks(draft: Draft, routing: RoutingSpec | None, topology: Topology | None) -> RoutingSpec | None:
    """The routing; if weights are latencies, with the ticks of a hop in the switching mode."""
    if not isinstance(routing, ChannelWeightSpec) or routing.weight != LATENCY or routing.hop_ticks is not None:
        return routing
    if not isinstance(draft.switching, TimedSpec):
        return routing
    ticks = draft.switching.ticks(ONE if topology is None else capacity_unit(topology))
    return routing.model_copy(update={"hop_ticks": ticks["header"] + ticks["switch"] + ticks["link"]})


def _source(config: SourceConfig | None) -> Source | None:
    if config is None:
        return None
    mix, keys = config.packet_flits, config.burst
    burst = BurstRates(keys.start, keys.end, keys.rate) if isinstance(keys, BurstConfig) else keys
    if isinstance(mix, int):
        return Source(config.arrivals, (mix,), (1.0,), burst)
    return Source(config.arrivals, tuple(part.flits for part in mix), tuple(part.share for part in mix), burst)
