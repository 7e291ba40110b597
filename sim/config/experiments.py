# SPDX-License-Identifier: Apache-2.0
"""The keys of the experiments that ask for more than a ceiling of a scenario."""

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
    """``loads.saturation:`` the saturation point of every seed, by bisection; see
    ``flitlab.sim.experiment.saturation``.

    tolerance: relative width of the bracket at which the search ends. longest: the longest window of a probe, as a
    multiple of ``measure.ticks``; windows are lengthened as far as a verdict needs it, and a bracket that is wider than
    the tolerance is what they can tell.
    """

    tolerance: Annotated[float, Field(ge=1e-3, lt=1)] = 0.01
    longest: Longest = 16


class AdaptiveConfig(Section):
    """``loads.adaptive:`` loads along the curve, more where latency bends; see ``flitlab.sim.experiment.saturation``.

    points: loads of the curve, up to the first that is past saturation.
    """

    points: Annotated[int, BeforeValidator(whole), Field(ge=4, le=1000)] = 10


Change = Literal["vcs", "buffers", "vcs_and_buffers", "speedup", "oldest", "packets", "rising"]
CHANGES: tuple[Change, ...] = get_args(Change)
"""What a budget changes one at a time, to see what the stable load would gain by it."""


class BudgetConfig(Section):
    """``budget:`` how loss budgets are made, which the figure ``budget`` asks for; see
    ``flitlab.sim.experiment.budget``.

    tolerance: width of the bracket of a stable load at which the search ends, as a part of the least ceiling of the
    routing. sensitivities: what is changed one at a time; [] for none. window: packet times of a run, at least 45,000
    ticks, a third of which is warm-up; by default as ``measure`` says, and 6,000 where that says nothing of it.
    longest: the longest window of a probe, as a multiple of the first. of: labels of the scenarios that have a budget,
    by default all.
    """

    of: Annotated[list[str], AfterValidator(require_distinct)] | None = None

    window: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    tolerance: Annotated[float, Field(ge=1e-3, le=0.5)] = 0.01
    longest: Longest = 4
    sensitivities: Annotated[list[Change], AfterValidator(require_distinct)] = list(CHANGES)


class CollectiveConfig(Section):
    """``collective:`` of the experiment of that name; see docs/collectives.md.

    ranks: every host, or every switch that has some. size_bytes: S as NCCL's tests have it: of an all-gather what a
    rank has in the end, of a reduce-scatter what it has at first, of an all-to-all all that it sends, its own part
    included, else the vector of a rank. root: of those that have one. gflops: at which ranks reduce doubles, by
    default at no cost. algorithm: its name, or a mapping with its keys; by default that which an MPI library would
    choose.
    """

    kind: CollectiveName
    ranks: Literal["hosts", "switches"] = "hosts"
    size_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**12)] = 2**20
    root: Annotated[int, BeforeValidator(whole), Field(ge=0)] = 0
    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    algorithm: Component | None = None


class RelativeConfig(Section):
    """``relative:`` throughput divided by that of random graphs of the same equipment; see
    ``flitlab.sim.experiment.relative``.

    draws: random graphs, at least two (the confidence interval needs them). by: the ceiling that is compared; with a
    routing, mcf_paths and mmf are over its ways on the random graphs too.
    """

    to: Literal["same_equipment"] = "same_equipment"
    by: Literal["mcf", "mcf_paths", "mmf"] = "mcf"
    draws: Annotated[int, BeforeValidator(whole), Field(ge=2, le=10_000)] = 10


class SearchConfig(Section):
    """``search:`` the largest value of an integer key at which theta reaches ``until``; see
    ``flitlab.sim.experiment.search``.

    vary: a key of the topology (``hosts_total``), or its path (``topology.n``, ``traffic.by``). from, to: bounds of
    the search; by default 1 and what doubling finds. draws: seeds tried at each value. verify: more seeds, tried at
    the value found. share: of the seeds tried at a value, how many must reach ``until``. tolerance: relative, on theta.
    """

    vary: Annotated[str, Field(min_length=1)]
    until: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    verify: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10_000)] = 10
    draws: Draws = 3
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    first: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] | None = Field(None, alias="from")
    last: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] | None = Field(None, alias="to")
    tolerance: Annotated[float, Field(ge=1e-5, lt=1)] = 0.001

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.first is not None and self.last is not None and self.first > self.last:
            raise PydanticCustomError("empty_range", "from is above to")
        return self
