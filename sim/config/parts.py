# SPDX-License-Identifier: Apache-2.0
"""Builds topologies, routes and traffic, each distinct one only once."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from flitlab.models.application.order import check_order
from flitlab.models.application.program import Program
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.metrics.summary import ALWAYS
from flitlab.models.registry import Spec, SpecWarning, recorded_warnings
from flitlab.models.routing.planned import PlannedSpec, needs_solver
from flitlab.models.routing.routes import Routes
from flitlab.models.routing.weights import LATENCY, WeightedSpec
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.switching.timed import TimedSpec
from flitlab.models.timeline.epochs import moved
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.config.check import refuse_built, spec_of
from flitlab.sim.config.collective import ranked
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.load import Place
from flitlab.sim.config.overrides import parse_path
from flitlab.sim.config.page import Page
from flitlab.sim.config.schema import SourceConfig
from flitlab.sim.config.section import named
from flitlab.sim.config.size import routing_refused

SOURCE_KEYS = tuple(SourceConfig.model_fields)
"""Keys of ``traffic:`` that say how packets arrive, not whereto."""

ROOM = 20_000_000
"""Channels of the topologies that are remembered: about a gigabyte."""


@dataclass(frozen=True, eq=False)
class Parts:
    """What a configuration names, built; None where it names nothing or has a mistake.

    again: builds the topology once more, or remembers it. plain: the mappings under ``topology``, ``routing``
    and ``traffic`` with their defaults. routing: the specification that ``routes`` follow from. replan: finds them in
    what is left of the topology, None where the specification can build them without a demand.
    """

    topology: Topology | None
    again: Callable[[], Topology]
    routes: Routes | None
    traffic: Traffic | None
    source: Source | None
    plain: dict[str, Any]
    routing: Any = None
    replan: Callable[[Topology], Routes] | None = None


@dataclass
class PartsBuilder:
    """Builds the parts of scenarios."""

    _cache: dict[Hashable, Any] = field(default_factory=dict)
    _warnings: dict[Hashable, list[SpecWarning]] = field(default_factory=dict)

    def build(self, draft: Draft) -> Parts:
        """The parts of one scenario; what is wrong with them is refused."""
        spec = draft.spec("topology")
        topology: Topology | None = self._part("topology", spec, (), draft)
        again = partial(self._made, "topology", spec, ())
        if topology is not None:
            if topology.notes.get("capacity_missing") == "all":
                draft.warn("topology.capacity_from", "is at no edge of a file: `missing` is the capacity of all")
            topology = ranked(draft, topology)
        plain = {"topology": plain_of(spec)}
        if draft.experiment == "metrics":
            return Parts(topology, again, None, None, None, plain)
        routing = _with_hop_ticks(draft, _with_source_routes(draft, draft.spec("routing")))
        pattern = draft.spec("traffic")
        routes = traffic = None
        if topology is not None:
            traffic = self._part("traffic", pattern, (topology,), draft)
        if topology is not None and not (routing and routing_refused(draft, topology)):
            routes = self._routes(routing, topology, traffic, draft)
        plain |= {"routing": plain_of(routing), "traffic": plain_of(pattern)}
        if draft.source is not None:
            plain["traffic"] |= draft.source.model_dump(mode="json", exclude_none=True)
        given = {name: mapping for name, mapping in plain.items() if mapping}
        replan = partial(self._replanned, routing, traffic) if routes is not None and needs_solver(routing) else None
        return Parts(topology, again, routes, traffic, _source(draft.source), given, routing, replan)

    def program(self, draft: Draft, spec: Any, hosts: int, place: Place = ("application",)) -> Program | None:
        """The program of a specification, given at a place, on so many hosts; None once it is refused."""
        program = self.once(("application", hosts, _key(spec)), lambda: spec.build(hosts))
        found: Program | None = _found(program, place, draft)
        return found

    def tuned(
        self,
        draft: Draft,
        spec: Any,
        scenario: Scenario[SwitchingMode, Workload],
        hosts: int,
        place: Place = ("application",),
    ) -> Program | None:
        """The program with the algorithms that are best where it has those of a library; None if it asks for none.

        spec, hosts, place: as of :meth:`program`. scenario: of the program as a library would have it.
        """
        if not spec.asks_for_best:
            return None
        from flitlab.fluid.tuning import Rounds  # solvers take long to import

        key = ("tuned", scenario.content_hash, hosts, _key(spec))
        program: Program | None = _found(
            self.once(key, lambda: spec.build(hosts, Rounds(scenario).ticks)), place, draft
        )  # fmt: skip
        return program

    def order(self, draft: Draft, program: Program, rendezvous: int, place: Place = ("application",)) -> None:
        """Refuses a program, given at a place, that waits for itself.

        rendezvous: a message of more bytes waits for its receive.
        """
        key = ("order", program.content_hash, rendezvous)
        _found(self.once(key, lambda: check_order(program, rendezvous)), place, draft)

    def placement(
        self, draft: Draft, spec: Any, topology: Topology, program: Program, place: Place, free: Ints
    ) -> tuple[Ints, dict[str, Any]] | None:
        """The host of each rank, of those that are free, and notes on them; None once the placement is refused."""
        key = ("placement", topology.content_hash, program.content_hash, free.tobytes(), _key(spec))
        host = _found(self.once(key, lambda: spec.among(topology, program, free)), place, draft)
        if host is None:
            return None
        notes = _found(self.once((*key, "notes"), lambda: spec.validated_notes(topology, host)), place, draft)
        return None if notes is None else (host, notes)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` returned, or the exception it raised, when it was first asked for."""
        if key not in self._cache:
            with recorded_warnings() as found:
                try:
                    self._cache[key] = make()
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # a third-party component may raise anything, which is reported
                    self._cache[key] = error
            self._warnings[key] = found
            self._make_room()
        return self._cache[key]

    def _make_room(self) -> None:
        """Forgets the oldest topologies where many are measured one after the other."""
        held = [(key, part) for key, part in self._cache.items() if isinstance(part, Topology)]
        channels = sum(topology.channels for _, topology in held)
        for key, topology in held[:-1]:
            if channels <= ROOM:
                break
            del self._cache[key]
            channels -= topology.channels

    def _part(self, name: str, spec: Spec | None, on: tuple[Any, ...], draft: Page) -> Any:
        """The component on a topology (on nothing, if it is one), or None once it is refused."""
        if spec is None:
            return None
        result = self._made(name, spec, on)
        self._warn(_made_key(name, spec, on), name, draft)
        return _found(result, name, draft)

    def _warn(self, key: Hashable, name: str, draft: Page) -> None:
        """Show the warnings of what is known by a key at a component's place."""
        for warning in self._warnings[key]:
            draft.warn((name, *parse_path(warning.key or "")), str(warning))

    def _routes(self, spec: Any, topology: Topology, traffic: Traffic | None, draft: Draft) -> Any:
        """The routes, or None once they are refused, or where they would be made for traffic that is."""
        if not needs_solver(spec):
            return self._part("routing", spec, (topology,), draft)
        if spec.for_scenario and traffic is None and draft.mapping("traffic"):
            return None
        return _found(self._planned(spec, topology, traffic, draft), "routing", draft)

    def _replanned(self, spec: PlannedSpec, traffic: Traffic | None, left: Topology) -> Routes:
        """The routes for the same demand in what is left of a topology. Raises ``SpecError``."""
        found = self._planned(spec, left, None if traffic is None else moved(traffic, left))
        if isinstance(found, BaseException):
            raise found
        routes: Routes = found
        return routes

    def _planned(
        self, spec: PlannedSpec, topology: Topology, traffic: Traffic | None, draft: Page | None = None
    ) -> Any:
        """The routes of a routing that is made for a demand, or the exception that it raises.

        draft: shows the warnings of the routing; None: they are known already.
        """
        from flitlab.fluid.weights import planned_routes

        of = ("demand", topology.content_hash, traffic and traffic.content_hash, _key(spec))
        demand = self.once(of, lambda: spec.validated_demand(topology, traffic))
        if isinstance(demand, BaseException):
            return demand
        key = ("routing", topology.content_hash, demand.content_hash, _key(spec))
        routes = self.once(key, lambda: planned_routes(spec, topology, demand))
        if draft is not None:
            self._warn(key, "routing", draft)
        return routes

    def _made(self, name: str, spec: Any, on: tuple[Any, ...]) -> Any:
        """What a component is built to, or the exception it raises."""
        return self.once(_made_key(name, spec, on), lambda: spec.build(*on))


def _made_key(name: str, spec: Spec, on: tuple[Any, ...]) -> Hashable:
    """What the result of building a component depends on."""
    return name, *(part.content_hash for part in on), _key(spec)


def _key(spec: Spec) -> Hashable:
    return repr(spec), tuple(sorted(spec.model_fields_set))


def _found(result: Any, name: str | Place, draft: Page) -> Any:
    """What was made, or None once the exception that was raised instead is refused."""
    if isinstance(result, BaseException):
        refuse_built(result, name, draft)
        return None
    return result


def plain_of(spec: Spec | None) -> dict[str, Any]:
    """A component with its defaults, but for those that mean less once given: a file may hold hosts of its own."""
    if spec is None:
        return {}
    optional = set(TopologySpec.model_fields) - {"kind"} if isinstance(spec, TopologySpec) else set()
    plain = spec.model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in plain.items() if key in spec.model_fields_set or key not in optional}


def metrics_of(draft: Draft) -> list[MetricSpec]:
    """The entries of ``metrics:``; what is wrong with them is refused."""
    listed = draft.mapping("metrics")
    found: dict[str, MetricSpec] = {}
    for i in range(len(listed) if isinstance(listed, list) else 0):
        spec = spec_of("metric", draft, ("metrics", i), named(draft.mapping("metrics", i)))
        if not isinstance(spec, MetricSpec):
            continue
        if spec.label in ALWAYS:
            draft.refuse(("metrics", i, "label"), "is the name of a column that every topology has")
        if found.setdefault(spec.label or spec.kind, spec) is not spec:
            draft.refuse(("metrics", i), f"{spec.label or spec.kind} is listed twice: give one a label")
    return list(found.values())


def _with_source_routes(draft: Draft, routing: Any) -> Any:
    """Where flows draw their paths and nothing else is said, those of equal cost are drawn at the source."""
    draws = draft.switching_mode is not None and draft.switching_mode.draws_paths
    if routing is None or routing.kind != "ecmp" or "routed" in routing.model_fields_set or not draws:
        return routing
    return routing.model_copy(update={"routed": "source"})


def _with_hop_ticks(draft: Draft, routing: Any) -> Any:
    """Where paths are measured by the latency of channels, with the ticks of a hop in the switching mode."""
    if not isinstance(routing, WeightedSpec) or routing.weight != LATENCY or routing.hop_ticks is not None:
        return routing
    if not isinstance(draft.switching, TimedSpec):
        return routing
    ticks = draft.switching.ticks()
    return routing.model_copy(update={"hop_ticks": ticks["header"] + ticks["switch"] + ticks["link"]})


def _source(config: SourceConfig | None) -> Source | None:
    if config is None:
        return None
    mix = config.packet_flits
    if isinstance(mix, int):
        return Source(config.arrivals, (mix,), (1.0,), config.burst)
    return Source(config.arrivals, tuple(part.flits for part in mix), tuple(part.share for part in mix), config.burst)
