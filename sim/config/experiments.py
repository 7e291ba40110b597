# SPDX-License-Identifier: Apache-2.0
"""The sections of the experiments: searches, budgets, collectives, comparisons."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.models.collective.schedule import CollectiveName
from flitlab.models.registry import whole
from flitlab.sim.config.section import BY_SHAPE, Section, require_distinct

Component = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[dict[str, Any], Tag("<map>")]
    | Annotated[str, Tag("<list>")]
    | Annotated[str, Tag("<number>")],
    BY_SHAPE,
]
"""The name of a component, or a mapping with its keys."""

Draws = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10_000)]


Longest = Annotated[int, BeforeValidator(whole), Field(ge=1, le=1024)]


class SaturationConfig(Section):
    """``loads.saturation:`` finds the saturation point of every seed by bisection.

    See ``flitlab.sim.experiment.saturation``.
    """

    tolerance: Annotated[float, Field(ge=1e-3, lt=1)] = 0.01
    """Relative width of the bracket at which the search ends."""
    longest: Longest = 16
    """Longest window of a probe, as a multiple of ``measure.ticks``. Windows grow as far as a verdict needs it."""


class AdaptiveConfig(Section):
    """``loads.adaptive:`` places loads along the curve, more where the latency bends.

    See ``flitlab.sim.experiment.saturation``.
    """

    points: Annotated[int, BeforeValidator(whole), Field(ge=4, le=1000)] = 10
    """Loads of the curve, up to the first past saturation."""


Change = Literal["vcs", "buffers", "vcs_and_buffers", "speedup", "oldest", "packets", "rising"]
CHANGES: tuple[Change, ...] = get_args(Change)
"""Changes of the switch whose effect on the saturation point a budget measures, one at a time."""


class BudgetConfig(Section):
    """``budget:`` settings of loss budgets, which the figure ``budget`` and ``simrun budget`` make.

    See ``flitlab.sim.experiment.budget``.
    """

    of: Annotated[list[str], AfterValidator(require_distinct)] | None = None
    """Labels of the scenarios that get a budget. null: all."""
    window: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    """Packet times of a run, at least 45,000 ticks; a third is warm-up. null: as ``measure`` says, else 6,000."""
    tolerance: Annotated[float, Field(ge=1e-3, le=0.5)] = 0.01
    """Width of the bracket of a level at which its search ends, as a share of the least ceiling of the routing."""
    longest: Longest = 4
    """Longest window of a probe, as a multiple of the first."""
    sensitivities: Annotated[list[Change], AfterValidator(require_distinct)] = list(CHANGES)
    """Changes of the switch, made one at a time. []: none."""


class CollectiveConfig(Section):
    """``collective:`` the operation of ``experiment: collective``, see docs/collectives.md."""

    kind: CollectiveName
    """The operation."""
    ranks: Literal["hosts", "switches"] = "hosts"
    """Every host is a rank, or every switch that has hosts."""
    size_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**12)] = 2**20
    """S as in NCCL's tests. all-gather: what a rank has in the end; reduce-scatter: what it has at first; all-to-all:
    what it sends, its own share included; others: the vector of a rank."""
    root: Annotated[int, BeforeValidator(whole), Field(ge=0)] = 0
    """The root rank of operations that have one."""
    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Rate at which ranks reduce float64. null: in no time. [Gflop/s]"""
    algorithm: Component | None = None
    """An [algorithm](reference/algorithm.md), by name or as a mapping. null: the choice of an MPI library."""


class RelativeConfig(Section):
    """``relative:`` throughput divided by that of random graphs of the same equipment.

    See ``flitlab.sim.experiment.relative``.
    """

    to: Literal["same_equipment"] = "same_equipment"
    """Random graphs with the same degree and hosts at each switch."""
    by: Literal["mcf", "mcf_paths", "mmf"] = "mcf"
    """The ceiling that is compared. With a routing, mcf_paths and mmf use its paths on the random graphs too."""
    draws: Annotated[int, BeforeValidator(whole), Field(ge=2, le=10_000)] = 10
    """Random graphs; at least two, for the confidence interval."""


class SearchConfig(Section):
    """``search:`` the largest value of an integer key at which the throughput reaches ``until``.

    See ``flitlab.sim.experiment.search``.
    """

    vary: Annotated[str, Field(min_length=1)]
    """A key of the topology (``hosts_total``), or a path (``topology.n``, ``traffic.by``)."""
    until: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Throughput to reach. [load]"""
    verify: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10_000)] = 10
    """Further seeds, tried at the final value."""
    draws: Draws = 3
    """Seeds tried at each value."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the seeds that must reach ``until``."""
    first: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] | None = Field(None, alias="from")
    """Smallest value. null: 1."""
    last: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] | None = Field(None, alias="to")
    """Largest value. null: 16 times the value in the file."""
    tolerance: Annotated[float, Field(ge=1e-5, lt=1)] = 0.001
    """Relative tolerance of the throughput."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.first is not None and self.last is not None and self.first > self.last:
            raise PydanticCustomError("empty_range", "from is above to")
        return self
