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
    """``loads.saturation:`` the saturation point of every seed, by bisection; see
    ``flitlab.sim.experiment.saturation``.

    tolerance: relative width of the bracket at which the search ends. longest: the longest window of a probe, as a
    multiple of ``measure.ticks``; windows are lengthened until the verdict is clear. The bracket stays wider than the
    tolerance if the longest window cannot resolve it.
    """

    tolerance: Annotated[float, Field(ge=1e-3, lt=1)] = 0.01
    longest: Longest = 16


class AdaptiveConfig(Section):
    """``loads.adaptive:`` loads along the curve, denser where latency rises; see ``flitlab.sim.experiment.saturation``.

    points: loads of the curve, up to the first one beyond saturation.
    """

    points: Annotated[int, BeforeValidator(whole), Field(ge=4, le=1000)] = 10


Change = Literal["vcs", "buffers", "vcs_and_buffers", "speedup", "oldest", "packets", "rising"]
CHANGES: tuple[Change, ...] = get_args(Change)
"""Changes of the switch whose effect on the saturation point a budget measures, one at a time."""


class BudgetConfig(Section):
    """``budget:`` how the loss budgets of the figure ``budget`` are measured; see ``flitlab.sim.experiment.budget``.

    tolerance: width of the final bracket of a load, relative to the lowest ceiling of the routing. sensitivities:
    changes that are measured one at a time; [] for none. window: packet times of a run, at least 45,000 ticks, a third
    of which is warm-up; by default the times of ``measure``, or 6,000 packet times. longest: the longest window of a
    probe, as a multiple of the first. of: labels of the scenarios that have a budget, by default all.
    """

    of: Annotated[list[str], AfterValidator(require_distinct)] | None = None

    window: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    tolerance: Annotated[float, Field(ge=1e-3, le=0.5)] = 0.01
    longest: Longest = 4
    sensitivities: Annotated[list[Change], AfterValidator(require_distinct)] = list(CHANGES)


class CollectiveConfig(Section):
    """``collective:`` of the experiment of that name; see docs/collectives.md.

    ranks: every host, or every switch with hosts. size_bytes: S as NCCL's tests define it: the output of a rank for
    all-gather, its input for reduce-scatter, all that it sends, its own part included, for all-to-all, else the vector
    of a rank. root: of rooted collectives. gflops: rate at which ranks reduce doubles; by default reduction is free.
    algorithm: its name, or a mapping with its keys; by default the choice of an MPI library.
    """

    kind: CollectiveName
    ranks: Literal["hosts", "switches"] = "hosts"
    size_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**12)] = 2**20
    root: Annotated[int, BeforeValidator(whole), Field(ge=0)] = 0
    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    algorithm: Component | None = None


class RelativeConfig(Section):
    """``relative:`` throughput relative to random graphs of the same equipment; see
    ``flitlab.sim.experiment.relative``.

    draws: random graphs, at least two for the confidence interval. by: the ceiling that is compared; with a routing,
    mcf_paths and mmf use its paths on the random graphs, too.
    """

    to: Literal["same_equipment"] = "same_equipment"
    by: Literal["mcf", "mcf_paths", "mmf"] = "mcf"
    draws: Annotated[int, BeforeValidator(whole), Field(ge=2, le=10_000)] = 10


class SearchConfig(Section):
    """``search:`` the largest value of an integer key at which theta reaches ``until``; see
    ``flitlab.sim.experiment.search``.

    vary: a key of the topology (``hosts_total``), or its path (``topology.n``, ``traffic.by``). from, to: bounds of the
    search; by default 1, and as far as doubling leads. draws: seeds tried at each value. verify: further seeds at the
    result. share: of the seeds of a value, those that must reach ``until``. tolerance: relative, on theta.
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
