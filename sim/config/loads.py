# SPDX-License-Identifier: Apache-2.0
"""``loads:`` of a configuration: as_list, or found by a search."""

from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from flitlab.sim.config.experiments import AdaptiveConfig, SaturationConfig
from flitlab.sim.config.section import BY_SHAPE, Section, require_distinct

Load = Annotated[float, Field(ge=1e-6, le=1, allow_inf_nan=False)]

MAX_LOADS = 10_000
"""Loads of the longest range."""


class LoadRange(Section):
    """``{from, to, step}``, both ends included."""

    first: Load = Field(alias="from")
    """First load."""
    last: Load = Field(alias="to")
    """Last load."""
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Difference of neighbours."""

    def values(self) -> list[float]:
        """from, from + step, ..., exact in decimal."""
        first, last, step = (Decimal(repr(value)) for value in (self.first, self.last, self.step))
        count = int((last - first) / step) + 1
        if first > last:
            raise PydanticCustomError("empty_range", "from is above to")
        if count > MAX_LOADS:
            raise PydanticCustomError("long_range", "more than {most} loads are too many", {"most": f"{MAX_LOADS:,}"})
        return [float(first + i * step) for i in range(count)]


def _defaults(value: Any) -> Any:
    """An empty section has its defaults."""
    return {} if value is None else value


def _loads(value: Any) -> list[float]:
    if isinstance(value, LoadRange):
        value = value.values()
    return sorted(require_distinct(value if isinstance(value, list) else [value]))


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
    """``loads:`` that a search finds as the run goes, and loads ``at`` which there is a point in any case.

    Either ``saturation`` or ``adaptive``; an empty section has its defaults.
    """

    at: Loads = []
    """Loads to simulate in any case."""
    saturation: Annotated[SaturationConfig | None, BeforeValidator(_defaults)] = None
    """Find the saturation point."""
    adaptive: Annotated[AdaptiveConfig | None, BeforeValidator(_defaults)] = None
    """Place loads along the curve."""

    @model_validator(mode="before")
    @classmethod
    def _no_range(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() & {"from", "to", "step"}:
            raise PydanticCustomError("range", "a range beside a search must be under at")
        return value

    @model_validator(mode="after")
    def _has_one_search(self) -> Self:
        if (self.saturation is None) == (self.adaptive is None):
            raise PydanticCustomError("one_way", "must have one of saturation and adaptive")
        return self


SEARCH_KEYS = frozenset(PlacedLoads.model_fields)
"""Keys of :class:`PlacedLoads`; a mapping without any of them is a range."""


def _form(value: Any) -> str:
    return "<placed>" if isinstance(value, dict) and SEARCH_KEYS & value.keys() else "<fixed>"


AnyLoads = Annotated[
    Annotated[Loads, Tag("<fixed>")] | Annotated[PlacedLoads, Tag("<placed>")], Discriminator(_form)
]  # fmt: skip
"""Loads that are as_list, or found by a search."""
