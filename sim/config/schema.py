"""What a configuration may say, and the defaults of what it leaves out.

One :class:`Config` describes one scenario: cases and sweeps are resolved before (see ``expand``).
Topology, routing and traffic are mappings here; the registry knows their keys.
"""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.models.registry import names, spec_class
from flitlab.models.switching.discipline import SwitchingSpec
from flitlab.models.topology.failures import Amount
from flitlab.models.transport.sizes import SizesSpec
from flitlab.sim.config.questions import AdaptiveConfig, RelativeConfig, SaturationConfig, SearchConfig
from flitlab.sim.config.reporting import OutputsConfig, PublishedConfig, Which
from flitlab.sim.config.section import BY_SHAPE, Count, Name, Section, unlike, whole

Load = Annotated[float, Field(ge=1e-6, le=1, allow_inf_nan=False)]

MOST_LOADS = 10_000
"""A range of more loads than this is refused."""


class LoadRange(Section):
    """``{from, to, step}``, both ends included."""

    first: Load = Field(alias="from")
    last: Load = Field(alias="to")
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)]

    def values(self) -> list[float]:
        """from, from + step, ..., without drift."""
        first, last, step = (Decimal(repr(value)) for value in (self.first, self.last, self.step))
        count = int((last - first) / step) + 1
        if first > last:
            raise PydanticCustomError("empty_range", "from is above to")
        if count > MOST_LOADS:
            raise PydanticCustomError("long_range", "more than {most} loads are too many", {"most": f"{MOST_LOADS:,}"})
        return [float(first + i * step) for i in range(count)]


def _defaults(value: Any) -> Any:
    """A section with nothing in it has its defaults."""
    return {} if value is None else value


def _loads(value: Any) -> list[float]:
    if isinstance(value, LoadRange):
        value = value.values()
    return sorted(unlike(value if isinstance(value, list) else [value]))


Loads = Annotated[
    Annotated[LoadRange, Tag("<map>")]
    | Annotated[list[Load], Field(min_length=1), Tag("<list>")]
    | Annotated[Load, Tag("<number>")]
    | Annotated[Load, Tag("<text>")],
    BY_SHAPE,
    AfterValidator(_loads),
]
"""A load, a list or a range of them; ascending."""


class PlacedLoads(Section):
    """``loads:`` that are found as the run goes, and those ``at`` which there is to be a point anyway.

    Either ``saturation`` or ``adaptive``; with nothing under it, with its defaults.
    """

    at: Loads = []
    saturation: Annotated[SaturationConfig | None, BeforeValidator(_defaults)] = None
    adaptive: Annotated[AdaptiveConfig | None, BeforeValidator(_defaults)] = None

    @model_validator(mode="before")
    @classmethod
    def _no_range(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() & {"from", "to", "step"}:
            raise PydanticCustomError("range", "a range besides a search must be under at")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.saturation is None) == (self.adaptive is None):
            raise PydanticCustomError("one_way", "must have one of saturation and adaptive")
        return self


PLACED = frozenset(PlacedLoads.model_fields)
"""Keys of :class:`PlacedLoads`; a mapping with any of them is one, any other a range."""


def _form(value: Any) -> str:
    return "<placed>" if isinstance(value, dict) and PLACED & value.keys() else "<fixed>"


LONGEST_DELAY = 1_000_000
"""Ticks of the longest delay: an engine's memory grows with it."""

Room = Annotated[int, BeforeValidator(whole), Field(ge=1, le=100_000)]
"""Of a buffer; an engine's memory grows with it."""

Delay = Annotated[int, BeforeValidator(whole), Field(ge=1, le=LONGEST_DELAY)]
DelayNs = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LinkFailuresConfig(Section):
    """``link_failures:`` of mode datagram; see :class:`flitlab.models.transport.failures.LinkFailures`."""

    links: Amount
    at_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    reroute_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    seed: Annotated[int, Field(ge=0)] = 1


class SwitchingConfig(Section):
    """``switching:``. Every delay as ``*_ticks``, or as ``*_ns`` together with ``flit_ns``; see
    ``flitlab.models.switching.timed``.

    Defaults: 4 VCs, buffers of two packets of the greatest length, the allocator of the mode (vct ``age``, wormhole
    ``islip``), header 0, all other delays 1 tick. ``iterations``: of islip. ``duplex``: of mode flow. The keys from
    ``packet_bytes`` on are those of mode datagram; a queue has room for ``queue_packets``, or for ``queue_bytes``.
    """

    mode: Literal["vct", "wormhole", "deflection", "datagram", "flow"] = "vct"
    vcs: Annotated[int, Field(ge=1, le=64)] = 4
    buffer_flits: Room | None = None
    allocator: Literal["age", "islip"] | None = None
    iterations: Annotated[int, BeforeValidator(whole), Field(ge=1, le=64)] = 1
    input_speedup: Literal[1, "vcs"] = 1
    allow_deadlock: bool = False
    hold_packets: Room | None = None
    slotted: bool = False
    duplex: Literal["full", "half"] = "full"
    flit_ns: DelayNs | None = None
    header_ticks: Annotated[int, BeforeValidator(whole), Field(ge=0, le=LONGEST_DELAY)] | None = None
    header_ns: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    switch_ticks: Delay | None = None
    switch_ns: DelayNs | None = None
    link_ticks: Delay | None = None
    link_ns: DelayNs | None = None
    injection_ticks: Delay | None = None
    injection_ns: DelayNs | None = None
    ejection_ticks: Delay | None = None
    ejection_ns: DelayNs | None = None
    credit_ticks: Delay | None = None
    credit_ns: DelayNs | None = None
    packet_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=65535)] = 1000
    nic_mbps: Annotated[float, Field(gt=0, le=1e7)] = 64.0
    link_us: Annotated[float, Field(ge=0, le=1e6)] = 100.0
    queue_packets: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 100
    queue_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**9)] | None = None
    random_drop: bool = True
    feeder_packets: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**6)] = 0
    link_failures: LinkFailuresConfig | None = None


def _of_its_mode(value: Any) -> Any:
    """The keys of a discipline that a plugin has registered."""
    mode = value.get("mode") if isinstance(value, dict) else None
    own = get_args(SwitchingConfig.model_fields["mode"].annotation)
    if isinstance(mode, str) and mode not in own and mode in names("switching"):
        return spec_class("switching", mode).model_validate(value)
    return value


class MessagesConfig(Section):
    """``messages:`` of an application: see :class:`flitlab.models.application.messages.Messages`.

    packet_flits: of a full packet, ``header_flits`` among them; a flit carries ``flit_bytes``. A message of more than
    ``rendezvous_bytes`` (null: none) waits for its receiver; a send, or a receive, takes ``overhead_ns`` of a
    processor. The send of any other message is done when the message has left its host, or at once (``buffered``). In
    mode datagram ``switching.packet_bytes`` says what a packet is.
    """

    flit_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 32
    packet_flits: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 32
    header_flits: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**6)] = 0
    rendezvous_bytes: Annotated[int, BeforeValidator(whole), Field(ge=0, le=2**60)] | None = 65536
    overhead_ns: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    buffered: bool = False

    @model_validator(mode="after")
    def _room_for_payload(self) -> Self:
        if self.header_flits >= self.packet_flits:
            raise PydanticCustomError("no_payload", "header_flits must be fewer than packet_flits")
        return self


class Share(Section):
    """One packet length of a mix."""

    flits: Count
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PathConfig(Section):
    """The keys of ``routing:`` that are not the routing's: how subflows of mode datagram draw their paths."""

    path_draw: Literal["distinct", "with_replacement"] = "distinct"


class SourceConfig(Section):
    """The keys of ``traffic:`` that are not the pattern's.

    sizes: of the flows of mode datagram, which are endless without. They come one by one, or all pairs have theirs
    from the beginning (``arrivals: together``).
    """

    packet_flits: Annotated[
        Annotated[list[Share], Field(min_length=1), Tag("<list>")]
        | Annotated[Count, Tag("<number>")]
        | Annotated[Count, Tag("<text>")]
        | Annotated[Count, Tag("<map>")],
        BY_SHAPE,
    ] = 1
    arrivals: Literal["bernoulli", "poisson", "onoff", "together"] = "bernoulli"
    burst: Annotated[float, Field(ge=1, le=10**6)] = 8.0
    sizes: SizesSpec | None = None


class MeasureConfig(Section):
    """``measure:``, in ticks. ``ci``: wanted relative half-width, null to measure exactly ``ticks``.

    Defaults: 30,000 ticks, 5 %, at most twice the ticks. Mode datagram runs for ``seconds`` and measures in ``window``,
    by default their second half, or all of them where flows are finite.
    """

    warmup: Annotated[
        Annotated[Literal["auto"], Tag("<text>")]
        | Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9), Tag("<number>")]
        | Annotated[int, Tag("<list>")]
        | Annotated[int, Tag("<map>")],
        BY_SHAPE,
    ] = "auto"
    ticks: Count = 30_000
    ci: Annotated[float, Field(gt=0, lt=1)] | None = 0.05
    max_ticks: Count | None = None
    stop_when_saturated: bool = False
    seconds: Annotated[float, Field(gt=0, le=1e6)] = 2.0
    window: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None

    def measured(self, finite: bool) -> tuple[float, float]:
        """Of mode datagram: where the window begins and ends, in seconds; finite: whether flows end."""
        if self.window is not None:
            return self.window[0], self.window[1]
        return (0.0 if finite else self.seconds / 2), self.seconds

    @property
    def longest(self) -> int:
        """The most ticks that a point may measure."""
        if self.ci is None:
            return self.ticks
        return 2 * self.ticks if self.max_ticks is None else self.max_ticks


class Config(Section):
    """A whole configuration of one scenario."""

    schema_: Literal[1] = Field(1, alias="schema")
    name: Name | None = None
    topology: dict[str, Any] | None = None
    routing: dict[str, Any] | None = None
    switching: Annotated[SwitchingConfig | SwitchingSpec, BeforeValidator(_of_its_mode)] = SwitchingConfig()
    traffic: dict[str, Any] | None = None
    transport: dict[str, Any] | None = None
    application: dict[str, Any] | None = None
    placement: dict[str, Any] | None = None
    messages: MessagesConfig = MessagesConfig()
    loads: Annotated[
        Annotated[Loads, Tag("<fixed>")] | Annotated[PlacedLoads, Tag("<placed>")], Discriminator(_form)
    ] | None = None  # fmt: skip
    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1), AfterValidator(unlike)] = [1]
    measure: MeasureConfig = MeasureConfig()
    ceilings: list[Which] | None = None
    engine: Literal["reference", "compiled", "both"] = "compiled"
    outputs: OutputsConfig = OutputsConfig()
    plugins: list[str] = []
    experiment: Literal[
        "load_sweep", "saturation", "metrics", "ceilings", "relative", "search", "application"
    ] = "load_sweep"  # fmt: skip
    relative: RelativeConfig = RelativeConfig()
    search: SearchConfig | None = None
    metrics: list[Which] = []
    published: list[PublishedConfig] = []
    quick: dict[str, Any] = {}

    @property
    def load_list(self) -> list[float]:
        """The loads that are known before the run, ascending."""
        found = self.loads.at if isinstance(self.loads, PlacedLoads) else self.loads
        assert found is None or isinstance(found, list)  # the validator makes lists of all forms
        return found or []

    @property
    def plain_loads(self) -> list[float] | dict[str, Any] | None:
        """``loads:`` with all defaults, plain."""
        if isinstance(self.loads, PlacedLoads):
            plain = self.loads.model_dump(mode="json", exclude_none=True)
            return {key: value for key, value in plain.items() if value != []}
        return self.load_list or None

    @property
    def placing(self) -> SaturationConfig | AdaptiveConfig | None:
        """How further loads are found, None if they are not."""
        return self.loads.saturation or self.loads.adaptive if isinstance(self.loads, PlacedLoads) else None


NEEDS = {
    "load_sweep": ("topology", "routing", "traffic", "loads"),
    "ceilings": ("topology", "traffic"),
    "relative": ("topology", "traffic"),
    "search": ("topology", "traffic", "search"),
    "metrics": ("topology",),
    "application": ("topology", "routing", "application"),
}
"""Experiment -> keys that it cannot do without."""
