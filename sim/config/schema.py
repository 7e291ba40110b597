# SPDX-License-Identifier: Apache-2.0
"""The keys of a configuration, and their defaults.

One :class:`Config` describes one scenario: cases and sweeps are expanded before (see ``expand``). Topology, routing,
switching and other components are mappings here; the registry has their keys.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.models.registry import whole
from flitlab.models.timeline.events import Event
from flitlab.models.topology.rates import CapacityOf
from flitlab.models.transport.sizes import SizesSpec
from flitlab.sim.config.experiments import (
    AdaptiveConfig,
    BudgetConfig,
    CollectiveConfig,
    RelativeConfig,
    SaturationConfig,
    SearchConfig,
)  # fmt: skip
from flitlab.sim.config.loads import AnyLoads, PlacedLoads
from flitlab.sim.config.reporting import ChoiceConfig, OutputsConfig, PublishedConfig, Which
from flitlab.sim.config.section import BY_SHAPE, Count, Name, Section, require_distinct


class MessagesConfig(Section):
    """``messages:`` of an application: see :class:`flitlab.models.application.messages.Messages`.

    packet_flits: of a full packet, ``header_flits`` included; a flit carries ``flit_bytes``. A message of more than
    ``rendezvous_bytes`` (null: none) waits for its receiver. A send, or a receive, takes ``overhead_ns`` of a
    processor. Any other send completes when the message has left its host, at once (``buffered``), or at delivery
    (``confirmed``). In mode datagram ``switching.packet_bytes`` defines the packets.
    """

    flit_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 32
    packet_flits: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 32
    header_flits: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**6)] = 0
    rendezvous_bytes: Annotated[int, BeforeValidator(whole), Field(ge=0, le=2**60)] | None = 65536
    overhead_ns: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    buffered: bool = False
    confirmed: bool = False

    @model_validator(mode="after")
    def _has_payload(self) -> Self:
        if self.header_flits >= self.packet_flits:
            raise PydanticCustomError("no_payload", "header_flits must be fewer than packet_flits")
        if self.buffered and self.confirmed:
            raise PydanticCustomError("done_twice", "a send is done at once (buffered) or late (confirmed), not both")
        return self


class Share(Section):
    """A packet length of a mix, and its share."""

    flits: Count
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PathConfig(Section):
    """The keys of ``routing:`` that do not belong to the routing: how subflows of mode datagram draw their paths."""

    path_draw: Literal["distinct", "with_replacement", "limited"] = "distinct"


class SourceConfig(Section):
    """The keys of ``traffic:`` that do not belong to the pattern.

    sizes: of flows; without, they are long-lived. Flows arrive one by one, or all start together
    (``arrivals: together``).
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
    """``measure:``, in ticks. ``ci``: target relative half-width; null measures exactly ``ticks``.

    Defaults: 30,000 ticks, 5 %, at most twice the ticks. Mode datagram runs for ``seconds`` and measures in ``window``,
    by default their second half, or all of them if flows are finite.
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


class Config(Section):
    """The configuration of one scenario."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    name: Name | None = None
    topology: dict[str, Any] | None = None
    capacity_of: CapacityOf | None = None
    routing: dict[str, Any] | None = None
    switching: dict[str, Any] = {}
    traffic: dict[str, Any] | None = None
    transport: dict[str, Any] | None = None
    application: (
        Annotated[
            Annotated[list[dict[str, Any]], Field(min_length=1), Tag("<list>")]
            | Annotated[dict[str, Any], Tag("<map>")]
            | Annotated[dict[str, Any], Tag("<text>")]
            | Annotated[dict[str, Any], Tag("<number>")],
            BY_SHAPE,
        ]
        | None
    ) = None
    placement: dict[str, Any] | None = None
    messages: MessagesConfig = MessagesConfig()
    timeline: list[Event] | None = None
    collective: CollectiveConfig | None = None
    loads: AnyLoads | None = None
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1), AfterValidator(require_distinct)
    ] = [1]
    measure: MeasureConfig = MeasureConfig()
    ceilings: list[Which] | None = None
    engine: Literal["reference", "compiled", "both"] = "compiled"
    outputs: OutputsConfig = OutputsConfig()
    plugins: list[str] = []
    experiment: Literal[
        "load_sweep", "saturation", "metrics", "ceilings", "relative", "search", "application", "collective"
    ] = "load_sweep"  # fmt: skip
    budget: BudgetConfig = BudgetConfig()
    relative: RelativeConfig = RelativeConfig()
    search: SearchConfig | None = None
    metrics: list[Which] = []
    published: list[PublishedConfig] = []
    chosen: list[ChoiceConfig] = []
    quick: dict[str, Any] = {}

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
    def plain_loads(self) -> list[float] | dict[str, Any] | None:
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
