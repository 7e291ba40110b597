# SPDX-License-Identifier: Apache-2.0
"""A design that is asked for: hosts, equipment that can be bought, demands and limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from flitlab.fluid.design.demands import DesignDemand
from flitlab.fluid.design.options import Sku, most_switches
from flitlab.fluid.design.search import Limits, Tolerance
from flitlab.models.layout.design_prices import DesignPrices
from flitlab.models.mappings import Keys
from flitlab.models.topology.candidates import Equipment
from flitlab.sim.config.sections import Component, Name, Section
from flitlab.sim.config.text import ConfigDocument

Positive = Annotated[float, Field(gt=0, le=1e15)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10**6)]

SHORT = {"uniform": {"kind": "uniform"}, "worst": {"kind": "worst_matching"}}
"""Demands with a name of their own."""


class SwitchConfig(Section):
    """A switch that can be bought. split: how many links a port may make, each of a part of its rate."""

    name: Name | None = None
    ports: Annotated[int, Field(ge=2, le=4096)]
    split: list[Annotated[int, Field(ge=1, le=64)]] = Field(min_length=1, default_factory=lambda: [1])
    price: Annotated[float, Field(ge=0, le=1e15)] | None = None
    watts: Annotated[float, Field(ge=0, le=1e15)] | None = None


class ToleranceConfig(Section):
    """How much a point must beat another one by to be shown, relatively."""

    throughput: Annotated[float, Field(ge=0, lt=0.5)] = 0.03
    cost: Annotated[float, Field(ge=0, lt=0.5)] = 0.015


class FailuresConfig(Section):
    """Failures under which the front is evaluated. links: shares of all links. switches: numbers. seeds: draws."""

    links: list[Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=list)
    switches: list[Count] = Field(default_factory=list)
    seeds: Annotated[int, Field(ge=1, le=100)] = 1


class GrowthConfig(Section):
    """Growth to more hosts. keep: share of today's certified throughput that the larger network must carry."""

    hosts: Annotated[int, Field(ge=2, le=10**6)]
    keep: Annotated[float, Field(ge=0, le=1)] = 0.9


class ImproveConfig(Section):
    """Local search on the best random graph of the front, for a demand.

    demand: its name; the first by default. point: number of the point; the random graph that carries most by default.
    by: ``loads`` or ``hops`` of shortest paths, ``prices`` of the certificate, or ``both``: loads, then prices. steps:
    exchanges of the search by loads or hops. solves: of that by prices.
    """

    demand: str | None = None
    point: Count | None = None
    by: Literal["loads", "hops", "prices", "both"] = "both"
    steps: Annotated[int, Field(ge=1, le=10**8)] = 50_000
    solves: Annotated[int, Field(ge=1, le=10**5)] = 60
    seed: Annotated[int, Field(ge=0, le=10**9)] = 1


def _as_growth(value: object) -> object:
    """A mapping; a number becomes that of its hosts."""
    return {"hosts": value} if isinstance(value, int) and not isinstance(value, bool) else value


class LayoutConfig(Section):
    """Where switches stand, and which cables and latencies follow. reach: of copper, in metres."""

    switches_per_cabinet: Count | None = None
    pitch: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None
    placement: Literal["order", "optimised"] = "order"
    reach: Annotated[float, Field(ge=0, le=1e6)] = 3.0
    switch_ns: Annotated[float, Field(gt=0, le=1e9)] = 300.0
    metre_ns: Annotated[float, Field(gt=0, le=1e9)] = 5.0

    def metric_keys(self) -> Keys:
        """The keys of the metric ``cables``."""
        keys = {"switches_per_cabinet": self.switches_per_cabinet, "pitch": self.pitch, "placement": self.placement}
        return {key: value for key, value in keys.items() if value is not None}


class DesignConfig(Section):
    """A whole design."""

    name: Name | None = None
    experiment: Literal["design"] = "design"
    hosts: Annotated[int, Field(ge=2, le=10**6)]
    switches: Annotated[list[SwitchConfig], Field(min_length=1)]
    link_gbps: Positive | None = None
    planes: list[Annotated[int, Field(ge=1, le=64)]] = Field(min_length=1, default_factory=lambda: [1])
    families: Any = "all"
    demands: list[Component] = Field(min_length=1, default_factory=lambda: list[str | Keys](SHORT))
    limits: dict[str, float | None] = Field(default_factory=dict)
    failures: FailuresConfig | None = None
    growth: Annotated[GrowthConfig | None, BeforeValidator(_as_growth)] = None
    layout: LayoutConfig = LayoutConfig()
    routings: list[Component] = Field(default_factory=list)
    improve: ImproveConfig | None = None
    tolerance: ToleranceConfig = ToleranceConfig()
    gap: Annotated[float, Field(gt=0, lt=0.5)] = 0.02
    prices: dict[str, str | float] = Field(default_factory=dict)
    budget_s: Positive | None = None
    plugins: Any = None


@dataclass(frozen=True, eq=False)
class DesignRequest:
    """A design that is asked for, checked.

    text: of the file. config: its keys. splits: name of a switch -> links that a port may make. families: kind -> keys
    of its own. routings: label -> keys. page: the file, for errors. measured_limits: of measured columns.
    """

    name: str
    text: str
    config: DesignConfig
    skus: list[Sku]
    splits: dict[str, list[int]]
    families: dict[str, Keys]
    demands: list[DesignDemand]
    limits: Limits
    measured_limits: dict[str, float]
    routings: dict[str, Keys]
    tolerance: Tolerance
    prices: DesignPrices
    page: ConfigDocument

    @property
    def hosts(self) -> int:
        """Hosts of the network."""
        return self.config.hosts

    def all_equipment(self) -> Iterator[tuple[Sku, Equipment]]:
        """Every switch with the equipment of one plane."""
        for sku, b, split in self.equipments():
            yield sku, Equipment(self.hosts, sku.ports * b, split, most_switches(self.hosts, sku.ports * b))

    def equipments(self) -> list[tuple[Sku, int, int]]:
        """Every switch, number of planes, and links of a port within a plane."""
        return [
            (sku, b, total // b)
            for sku in self.skus for b in self.config.planes for total in self.splits[sku.name] if total % b == 0
        ]  # fmt: skip
