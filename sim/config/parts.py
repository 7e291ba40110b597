"""Builds topologies, routes and traffic, each distinct one only once."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from flitlab.models.application.order import check_order
from flitlab.models.application.program import Program
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.metrics.summary import ALWAYS
from flitlab.models.registry import Spec
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.config.check import from_build, mistake_at, spec_of, validated
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node, wrap
from flitlab.sim.config.schema import PathConfig, SourceConfig
from flitlab.sim.config.size import routing_mistakes

SOURCE_KEYS = tuple(SourceConfig.model_fields)
"""Keys of ``traffic:`` that say how packets arrive, not whereto."""

ROUTING_KEYS = tuple(PathConfig.model_fields)
"""Keys of ``routing:`` that say how a path is drawn, not from which."""

PATHS = ("path", "constants")
"""Keys whose texts are names of files."""

ROOM = 20_000_000
"""Channels of the topologies that are remembered: about a gigabyte."""


@dataclass(frozen=True, eq=False)
class Parts:
    """What a configuration names, built; None where it names nothing or has a mistake.

    again: builds the topology once more, or remembers it. plain: the mappings under ``topology``, ``routing``
    and ``traffic`` with their defaults. routing, source_config, path_draw: as the configuration has them.
    """

    topology: Topology | None
    again: Callable[[], Topology]
    routes: Routes | None
    traffic: Traffic | None
    source: Source | None
    plain: dict[str, Any]
    routing: Any = None
    source_config: SourceConfig | None = None
    path_draw: str = "distinct"


@dataclass
class PartsBuilder:
    """Builds the parts of scenarios. base: folder that paths in the configuration are relative to."""

    base: Path
    _cache: dict[Hashable, Any] = field(default_factory=dict)

    def build(self, root: Node, alone: bool, mistakes: list[Mistake]) -> Parts:
        """The parts of one scenario; what is wrong with them is added to ``mistakes``.

        alone: only the topology is of interest.
        """
        absolute = _absolute(root, self.base)
        topology_spec = spec_of("topology", absolute, mistakes)
        topology: Topology | None = self._part("topology", topology_spec, (), root, mistakes)
        again = partial(self._made, "topology", topology_spec, ())
        plain = {"topology": _plain(topology_spec)}
        if alone:
            return Parts(topology, again, None, None, None, plain)
        found: dict[str, Any] = {"routing": None, "traffic": None}
        specs: dict[str, Any] = {}
        for name, foreign in (("routing", ROUTING_KEYS), ("traffic", SOURCE_KEYS)):
            specs[name] = spec = spec_of(name, absolute, mistakes, without=foreign)
            plain[name] = _plain(spec)
            huge = routing_mistakes(root, topology) if topology is not None and spec and name == "routing" else []
            mistakes += huge
            if topology is not None and not huge:
                found[name] = self._part(name, spec, (topology,), root, mistakes)
        source = _own_keys(SourceConfig, "traffic", absolute, mistakes)
        drawn = _own_keys(PathConfig, "routing", root, mistakes)
        if source is not None:
            plain["traffic"] |= source.model_dump(mode="json", exclude_none=True)
        given = {name: mapping for name, mapping in plain.items() if mapping}
        return Parts(
            topology, again, found["routing"], found["traffic"], _source(source), given, specs["routing"], source,
            drawn.path_draw if drawn is not None else PathConfig().path_draw,
        )  # fmt: skip

    def program(self, root: Node, topology: Topology, mistakes: list[Mistake]) -> tuple[Program | None, Any]:
        """What ``application:`` is built to on the hosts of a topology, and its mapping with all defaults."""
        spec: Any = spec_of("application", _absolute(root, self.base), mistakes)
        if spec is None:
            return None, None
        program = self.once(("application", topology.hosts, _key(spec)), lambda: spec.build(topology.hosts))
        return _found(program, "application", root, mistakes), _plain(spec)

    def order(self, root: Node, program: Program, rendezvous: int, mistakes: list[Mistake]) -> None:
        """Adds a mistake if a program waits for itself. rendezvous: a message of more bytes waits for its receive."""
        key = ("order", program.content_hash, rendezvous)
        _found(self.once(key, lambda: check_order(program, rendezvous)), "application", root, mistakes)

    def placement(self, root: Node, topology: Topology, program: Program, mistakes: list[Mistake]) -> Any:
        """The host of each rank, and the mapping under ``placement:`` with all defaults."""
        if root.get("placement") is None:
            root = root.with_value({**root.value, "placement": wrap({"kind": "linear"}, root.file)})
        spec: Any = spec_of("placement", _absolute(root, self.base), mistakes)
        if spec is None:
            return None, None
        key = ("placement", topology.content_hash, program.content_hash, _key(spec))
        host = self.once(key, lambda: spec.build(topology, program))
        return _found(host, "placement", root, mistakes), _plain(spec)

    def metrics(self, root: Node, mistakes: list[Mistake]) -> list[MetricSpec]:
        """The entries of ``metrics:``; what is wrong with them is added to ``mistakes``."""
        listed = root.get("metrics")
        if listed is None or not listed.is_list:
            return []
        nodes = [node.with_value({"kind": node}) if isinstance(node.value, str) else node for node in listed.value]
        absolute = [_with_base(node, self.base) for node in nodes]
        root = root.with_value({**root.value, "metrics": listed.with_value(absolute)})
        found: dict[str, MetricSpec] = {}
        for i in range(len(nodes)):
            spec = spec_of("metric", root, mistakes, place=("metrics", i))
            if not isinstance(spec, MetricSpec):
                continue
            if spec.label in ALWAYS:
                problem = "is the name of a column that every topology has"
                mistakes.append(mistake_at(root, ("metrics", i, "label"), problem))
            if found.setdefault(spec.label or spec.kind, spec) is not spec:
                problem = f"{spec.label or spec.kind} is listed twice: give one a label"
                mistakes.append(mistake_at(root, ("metrics", i), problem))
        return list(found.values())

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` returned, or the exception it raised, when it was first asked for."""
        if key not in self._cache:
            try:
                self._cache[key] = make()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a component may be a stranger's: whatever it raises is reported
                self._cache[key] = error
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

    def _part(self, name: str, spec: Spec | None, on: tuple, root: Node, mistakes: list[Mistake]) -> Any:
        """The component on a topology (on nothing, if it is one), or None and a mistake."""
        if spec is None:
            return None
        return _found(self._made(name, spec, on), name, root, mistakes)

    def _made(self, name: str, spec: Any, on: tuple) -> Any:
        """What a component is built to, or the exception it raises."""
        key = (name, *(part.content_hash for part in on), _key(spec))
        return self.once(key, lambda: spec.build(*on))


def _key(spec: Spec) -> Hashable:
    return repr(spec), tuple(sorted(spec.model_fields_set))


def _found(result: Any, name: str, root: Node, mistakes: list[Mistake]) -> Any:
    """What was made, or None and a mistake if it is an exception."""
    if isinstance(result, BaseException):
        mistakes.append(from_build(result, name, root))
        return None
    return result


def _plain(spec: Spec | None) -> dict[str, Any]:
    """A component with its defaults, but for those that mean less once given: a file may hold hosts of its own."""
    if spec is None:
        return {}
    optional = set(TopologySpec.model_fields) - {"kind"} if isinstance(spec, TopologySpec) else set()
    plain = spec.model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in plain.items() if key in spec.model_fields_set or key not in optional}


def _absolute(root: Node, base: Path) -> Node:
    """The configuration with the paths in its components made absolute."""
    named = ("topology", "traffic", "application", "placement")
    changed = {key: _with_base(root.value[key], base) for key in named if key in root.value}
    return root.with_value({**root.value, **changed})


def _with_base(node: Node, base: Path) -> Node:
    if not node.is_map:
        return node
    changed = {key: _with_base(child, base) for key, child in node.value.items()}
    for key in PATHS:
        path = changed.get(key)
        if path is not None and isinstance(path.value, str) and path.value:
            changed[key] = path.with_value(str(base / path.value))
    return node.with_value(changed)


def _own_keys(model: type[BaseModel], name: str, root: Node, mistakes: list[Mistake]) -> Any:
    """The keys of a mapping that are not the component's; None where there is no such mapping."""
    section = root.get(name)
    if section is None or not section.is_map:
        return None
    own = section.with_value({key: child for key, child in section.value.items() if key in model.model_fields})
    return validated(model, root.with_value({**root.value, name: own}), (name,), mistakes)


def _source(config: SourceConfig | None) -> Source | None:
    if config is None:
        return None
    mix = config.packet_flits
    if isinstance(mix, int):
        return Source(config.arrivals, (mix,), (1.0,), config.burst)
    return Source(config.arrivals, tuple(part.flits for part in mix), tuple(part.share for part in mix), config.burst)
