# SPDX-License-Identifier: Apache-2.0
"""The keys of a configuration, and their defaults.

One :class:`Config` describes one scenario: cases and sweeps are expanded before (see ``expand``). Topology, routing,
switching and other components are mappings here; the registry has their keys.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.fluid.kinds.spec import kinds as ceiling_kinds
from flitlab.models.mappings import Keys
from flitlab.models.registry import UnknownKindError, names, spec_class, whole
from flitlab.models.timeline.events import Event
from flitlab.models.topology.links import CapacityOf
from flitlab.models.traffic.classes import Share
from flitlab.models.transport.sizes import SizesSpec
from flitlab.sim.config.diagnostics import KeyPath
from flitlab.sim.config.reporting import ChoiceConfig, OutputsConfig, PublishedConfig, Which
from flitlab.sim.config.sections import (
    BY_SHAPE,
    AdaptiveConfig,
    AnyLoads,
    BudgetConfig,
    CollectiveConfig,
    Count,
    Name,
    PlacedLoads,
    RelativeConfig,
    SaturationConfig,
    SearchConfig,
    Section,
    UntilConfig,
    require_distinct,
)


class MessagesConfig(Section):
    """``messages:`` how applications and collectives send messages as packets; in mode datagram
    ``switching.packet_bytes`` is the packet size.

    See :class:`flitlab.models.application.messages.Messages`.
    """

    flit_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 32
    """Payload of a flit."""
    packet_flits: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 32
    """Length of a full packet, header included."""
    header_flits: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**6)] = 0
    """Header of a packet, without payload."""
    rendezvous_bytes: Annotated[int, BeforeValidator(whole), Field(ge=0, le=2**60)] | None = 65536
    """Largest eager message. A larger one waits for its receiver. null: all are eager."""
    overhead_ns: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    """Processor time of a send, and of a receive."""
    buffered: bool = False
    """An eager send completes at once, not when the message has left its host."""
    confirmed: bool = False
    """An eager send completes when the message is delivered."""
    await_receive: bool = False
    """The data of an eager message wait for its receive, while a buffered send completes at once: SimGrid's rule
    (mode flow)."""

    @model_validator(mode="after")
    def _has_payload(self) -> Self:
        if self.header_flits >= self.packet_flits:
            raise PydanticCustomError("no_payload", "header_flits must be fewer than packet_flits")
        if self.buffered and self.confirmed:
            raise PydanticCustomError("done_twice", "a send is done at once (buffered) or late (confirmed), not both")
        if self.await_receive and not self.buffered:
            text = "await_receive is for buffered sends; those that wait themselves are rendezvous_bytes: 0"
            raise PydanticCustomError("awaits", text)
        return self


class PathConfig(Section):
    """The keys of ``routing:`` that do not belong to the routing: how subflows of mode datagram draw their paths."""

    path_draw: Literal["distinct", "with_replacement", "limited"] = "distinct"
    """How subflows draw paths: distinct while there are some, independently, or no more subflows than paths."""


Chance = Annotated[float, Field(gt=0, le=1)]


class BurstConfig(Section):
    """``burst: {start, end}`` of ``onoff``: a Markov process. Two keys; the load determines the third."""

    start: Chance | None = None
    """Chance per tick that an idle host begins an on-period."""
    end: Chance | None = None
    """Chance per tick that an on-period ends."""
    rate: Chance | None = None
    """Packets per tick of a host in an on-period."""

    @model_validator(mode="after")
    def _has_two(self) -> Self:
        if [self.start, self.end, self.rate].count(None) != 1:
            raise PydanticCustomError("two_rates", "needs two of start, end, rate; the load determines the third")
        return self


class SourceConfig(Section):
    """The keys of ``traffic:`` that every pattern has."""

    packet_flits: Annotated[
        Annotated[list[Share], Field(min_length=1), Tag("<list>")]
        | Annotated[Count, Tag("<number>")]
        | Annotated[Count, Tag("<text>")]
        | Annotated[Count, Tag("<map>")],
        BY_SHAPE,
    ] = 1
    """Packet length, or a mix of lengths ``[{flits, share}, ...]``."""
    arrivals: Literal["bernoulli", "poisson", "onoff", "together"] = "bernoulli"
    """Arrival process of packets; of flows in modes datagram and spray, where ``together`` starts all at once."""
    burst: Annotated[
        Annotated[float, Field(ge=1, le=10**6), Tag("<number>")]
        | Annotated[float, Tag("<text>")]
        | Annotated[float, Tag("<list>")]
        | Annotated[BurstConfig, Tag("<map>")],
        BY_SHAPE,
    ] = 8.0
    """Mean packets of a burst of ``onoff``, back to back; or rates of a Markov process. [packet]"""
    sizes: SizesSpec | None = None
    """Flow sizes in modes datagram and spray. null: long-lived flows."""

    @model_validator(mode="after")
    def _bursts(self) -> Self:
        if isinstance(self.burst, BurstConfig) and self.arrivals != "onoff":
            raise PydanticCustomError("bursts", "rates of burst are for arrivals: onoff")
        return self


WINDOW_KEYS = frozenset({"warmup", "ticks", "ci", "max_ticks"})
"""Keys of ``measure:`` that replace the default window of a search."""

MIN_PROBE_TICKS = 45_000
"""Ticks of the shortest probe of a search, for short packets."""


class MeasureConfig(Section):
    """``measure:`` warm-up and window of a run: in ticks, in modes datagram and spray in seconds."""

    warmup: Annotated[
        Annotated[Literal["auto"], Tag("<text>")]
        | Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9), Tag("<number>")]
        | Annotated[int, Tag("<list>")]
        | Annotated[int, Tag("<map>")],
        BY_SHAPE,
    ] = "auto"
    """Ticks before the window. auto: until the means of the network are steady (MSER-5). [tick]"""
    ticks: Count = 30_000
    """Window."""
    ci: Annotated[float, Field(gt=0, lt=1)] | None = 0.05
    """The window grows until the 95 % interval of the latency has this relative half-width. null: it does not grow."""
    max_ticks: Count | None = None
    """Longest window. null: twice ``ticks``."""
    stop_when_saturated: bool = False
    """End a point as soon as it is certainly saturated."""
    seconds: Annotated[float, Field(gt=0, le=1e6)] = 2.0
    """Length of a run in modes datagram and spray."""
    window: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
    """Begin and end of their window; the run ends with it. null: the second half, or all where flows are finite. [s]"""

    def measured(self, finite: bool) -> tuple[float, float]:
        """(start, end) of the window of flows, in seconds. finite: whether flows end."""
        if self.window is not None:
            return self.window[0], self.window[1]
        return (0.0 if finite else self.seconds / 2), self.seconds

    @property
    def longest(self) -> int:
        """Ticks that a point measures at most."""
        if self.ci is None:
            return self.ticks
        return 2 * self.ticks if self.max_ticks is None else self.max_ticks

    def with_packet_times(self, mean_flits: float, times: int) -> Self:
        """With a window of ``times`` packet times of ``mean_flits`` ticks each, a third of them warm-up."""
        ticks = max(math.ceil(times * mean_flits), MIN_PROBE_TICKS)
        return self.model_copy(update={"warmup": ticks // 3, "ticks": ticks - ticks // 3, "ci": None})


class Config(Section):
    """The configuration of one scenario."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    """Version of this format."""
    name: Name | None = None
    """Results go to ``runs/NAME``. null: the name of the file."""
    topology: Keys | None = None
    """Switches, hosts and channels: a [kind](reference/topology.md) and its keys."""
    capacity_of: CapacityOf | None = None
    """Links with another capacity."""
    routing: Keys | None = None
    """How packets choose paths: a [kind](reference/routing.md) and its keys."""
    switching: Keys = {}
    """What a switch does with packets: a ``mode`` and its keys."""
    traffic: Keys | None = None
    """Who sends to whom, and how much: a [kind](reference/traffic.md) and its keys."""
    transport: Keys | None = None
    """Congestion control of modes datagram and spray: a [kind](reference/transport.md) and its keys."""
    application: (
        Annotated[
            Annotated[list[Keys], Field(min_length=1), Tag("<list>")]
            | Annotated[Keys, Tag("<map>")]
            | Annotated[Keys, Tag("<text>")]
            | Annotated[Keys, Tag("<number>")],
            BY_SHAPE,
        ]
        | None
    ) = None
    """The program that hosts run, or a list of jobs: a [kind](reference/application.md) and its keys."""
    placement: Keys | None = None
    """Which host runs which rank: a [kind](reference/placement.md) and its keys."""
    messages: MessagesConfig = MessagesConfig()
    """How messages become packets."""
    timeline: list[Event] | None = None
    """Failures, repairs and changes of rate during the run."""
    collective: CollectiveConfig | None = None
    """The collective operation of ``experiment: collective``."""
    loads: AnyLoads | None = None
    """Loads to simulate, or how to find them: a number, a list, ``{from, to, step}``, ``{saturation: ...}`` or
    ``{adaptive: ...}``."""
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1), AfterValidator(require_distinct)
    ] = [1]
    """Seeds of the random draws; one run each."""
    measure: MeasureConfig = MeasureConfig()
    """Warm-up and window."""
    ceilings: list[Which] | None = None
    """Certified upper bounds to compute: [names](reference/ceiling.md), or mappings with their keys."""
    engine: Literal["reference", "compiled", "both"] = "compiled"
    """SimPy, compiled, or both with a check that they agree."""
    outputs: OutputsConfig = OutputsConfig()
    """Figures and files."""
    plugins: list[str] = []
    """Python files that register your own components."""
    experiment: Literal[
        "load_sweep", "saturation", "metrics", "ceilings", "relative", "search", "application", "collective"
    ] = "load_sweep"  # fmt: skip
    """What the run does."""
    budget: BudgetConfig = BudgetConfig()
    """Settings of loss budgets."""
    relative: RelativeConfig = RelativeConfig()
    """Settings of ``experiment: relative``."""
    until: UntilConfig | None = None
    """Precision at which draws end, of ``experiment: ceilings``."""
    search: SearchConfig | None = None
    """Settings of ``experiment: search``."""
    metrics: list[Which] = []
    """Metrics of the topology: [names](reference/metric.md), or mappings with their keys."""
    published: list[PublishedConfig] = []
    """Published numbers to compare with."""
    chosen: list[ChoiceConfig] = []
    """Settings that the publication does not give."""
    quick: Keys = {}
    """Changes that ``--quick`` applies."""

    def gives(self, key: str) -> bool:
        """Whether a top-level key has a value."""
        return key in self.model_fields_set and getattr(self, key) is not None

    def searching(self) -> Self:
        """The configuration with a saturation search added to its loads, unless it has a search."""
        if isinstance(self.loads, PlacedLoads):
            return self
        placed = PlacedLoads.model_construct(at=self.load_list, saturation=SaturationConfig(), adaptive=None)
        return self.model_copy(update={"loads": placed})

    def budgeting(self, figure: str) -> Self:
        """The configuration without loads and with one figure, which requests budgets."""
        outputs = self.outputs.model_copy(update={"figures": [figure]})
        return self.model_copy(update={"loads": None, "outputs": outputs})

    @property
    def load_list(self) -> list[float]:
        """The loads that are known before the run, ascending."""
        loads = self.loads.at if isinstance(self.loads, PlacedLoads) else self.loads
        assert loads is None or isinstance(loads, list)  # the validator makes lists of all forms
        return loads or []

    @property
    def plain_loads(self) -> list[float] | Keys | None:
        """``loads:`` with all defaults, plain."""
        if isinstance(self.loads, PlacedLoads):
            plain = self.loads.model_dump(mode="json", exclude_none=True)
            return {key: value for key, value in plain.items() if value != []}
        return self.load_list or None

    @property
    def placing(self) -> SaturationConfig | AdaptiveConfig | None:
        """The search for further loads; None if there is none."""
        return self.loads.saturation or self.loads.adaptive if isinstance(self.loads, PlacedLoads) else None


NEEDS = {
    "load_sweep": ("topology", "routing", "traffic", "loads"),
    "ceilings": ("topology", "traffic"),
    "relative": ("topology", "traffic"),
    "search": ("topology", "traffic", "search"),
    "metrics": ("topology",),
    "application": ("topology", "routing", "application"),
    "collective": ("topology", "routing", "collective"),
}
"""Experiment -> required keys."""


SECTIONS: dict[str, type[BaseModel] | None] = {
    "topology": None, "routing": PathConfig, "traffic": SourceConfig, "transport": None, "application": None,
    "placement": None, "switching": None,
}  # fmt: skip
"""Section whose keys depend on its ``kind`` -> model of the keys that all kinds share."""

MAX_PATHS = 4
"""A key with more places gets no hint."""


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of the mapping that a model describes."""
    return [field.alias or name for name, field in model.model_fields.items()]


def models_at(model: type[BaseModel], path: KeyPath) -> list[type[BaseModel]]:
    """The models of the mapping at ``path``, one for each form that it may have."""
    models = [model]
    for part in path:
        models = [inner for one in models for inner in _models(_annotation(one, part))] or models
    return models


def literals_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The choices of the key at ``path``, or of ``kind`` in the mapping there."""
    names = tuple(part for part in path if isinstance(part, str))
    if not names:
        return []
    annotation = _annotation(models_at(model, names[:-1])[0], names[-1])
    if annotation is None or not any(get_args(leaf) for leaf in _leaves(annotation)):
        annotation = _annotation(models_at(model, path)[0], "kind")
    return [str(leaf) for leaf in _leaves(annotation) if isinstance(leaf, str | int) and not isinstance(leaf, bool)]


def paths_of_key(key: str, kinds: Mapping[str, object]) -> list[str]:
    """The places of a key, such as ``switching.flit_ns``; empty if there are too many.

    kinds: section of :data:`SECTIONS` -> kind of its component.
    """
    paths = list(_places(key, Config, ""))
    for section, more in SECTIONS.items():
        for model in [*_of_kinds(section, kinds.get(section)), *([more] if more else [])]:
            paths += _places(key, model, f"{section}.")
    if any(key in kind.model_fields for kind in ceiling_kinds().values()):
        paths.append(f"ceilings[].{key}")
    paths = sorted(dict.fromkeys(paths), key=lambda place: place.count("."))
    return paths if len(paths) <= MAX_PATHS else []


def sections(model: type[BaseModel] = Config, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """(path, model) of the whole configuration and of every mapping in it whose keys do not depend on a ``kind``.

    Lists of mappings have ``[]`` behind their key, ``outputs.plots[]``.
    """
    yield path, model
    for name, field in model.model_fields.items():
        several = any(get_origin(leaf) is list for leaf in _leaves(field.annotation))
        for inner in _models(field.annotation):
            yield from sections(inner, f"{path}.{field.alias or name}{'[]' * several}".removeprefix("."))
    if model is Config:
        yield from ((name, shared) for name, shared in SECTIONS.items() if shared is not None)


def kinds_with(section: str, key: str) -> list[str]:
    """The kinds of a section (for ``switching:`` the modes) that have a key."""
    return [kind for kind in names(section) if key in spec_class(section, kind).model_fields]


def _of_kinds(section: str, kind: Any) -> list[type[BaseModel]]:
    """The models of a section: of the given kind; for ``switching:`` those of all modes."""
    if section == "switching":
        return [spec_class(section, mode) for mode in names(section)]
    try:
        return [] if kind is None else [spec_class(section, kind)]
    except (UnknownKindError, TypeError):
        return []


def _places(key: str, model: type[BaseModel], where: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        name = field.alias or name
        if name == key:
            yield where + name
        is_list = any(get_origin(leaf) is list for leaf in _leaves(field.annotation))
        for inner in _models(field.annotation):
            yield from _places(key, inner, f"{where}{name}{'[]' * is_list}.")


def _models(annotation: object) -> list[type[BaseModel]]:
    return [leaf for leaf in _leaves(annotation) if isinstance(leaf, type) and issubclass(leaf, BaseModel)]


def _annotation(model: type[BaseModel], key: str | int) -> object:
    for name, field in model.model_fields.items():
        if key in (name, field.alias):
            return field.annotation
    return None


def _leaves(annotation: object) -> Iterator[object]:
    """An annotation and all its arguments, recursively."""
    yield annotation
    for argument in get_args(annotation):
        yield from _leaves(argument)
