# SPDX-License-Identifier: Apache-2.0
"""Events of a configuration: which links or switches fail, return or slow down, and when."""

from math import inf
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from flitlab.models.registry import whole
from flitlab.models.topology.links import Links
from flitlab.models.topology.names import Name

Time = Annotated[float, Field(ge=0)]


def _delay(value: object) -> object:
    """A delay that is no text: its unit depends on another key, so that it has none of its own."""
    if isinstance(value, str):
        problem = "must be a number without a unit: microseconds with at_us, ticks with at_tick; .inf: never"
        raise PydanticCustomError("delay", problem)
    return value


class Parts(BaseModel):
    """What an event affects: ``{links: [[0, 8], [1, 9]], switches: [16]}``.

    links: as in :class:`~flitlab.models.topology.links.CapacityOf`, always both directions; a share or a number is
    drawn from ``seed`` among the links to which the event can happen. switches: their numbers or labels, each with all
    its links.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)

    links: Links = []
    """Pairs of switches; or a share or number of links, drawn from ``seed``."""
    switches: list[Name] = []
    """Numbers or labels of switches, each with all its links."""
    seed: int = Field(default=1, ge=0)
    """Seed of the draw."""


class Event(BaseModel):
    """An entry of ``timeline:``: an event at ``at_us`` microseconds, or at the tick ``at_tick``.

    fail: links and switches stop working. restore: those that failed, or were slow, are as built again. slow: links run
    at ``factor`` of the rate as built. reroute_after: delay until the routing learns of the event, in the unit of its
    time; ``.inf``: never. By default the routing learns of failures and returns at once, and of slow links never.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)

    at_us: Annotated[Time, Field(allow_inf_nan=False)] | None = None
    """Time of the event."""
    at_tick: Annotated[int, BeforeValidator(whole), Field(ge=0)] | None = None
    """Time of the event in ticks, instead. [tick]"""
    fail: Parts | None = None
    """Links and switches that stop working."""
    restore: Parts | None = None
    """Links and switches that are as built again."""
    slow: Parts | None = None
    """Links that run at ``factor`` of their rate."""
    factor: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the rate as built."""
    reroute_after: Annotated[Time | None, BeforeValidator(_delay)] = None
    """Delay until the routing learns of it, in the unit of its time. null: 0, of slow links .inf."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.at_us is None) == (self.at_tick is None):
            raise PydanticCustomError("when", "an event needs exactly one of at_us and at_tick")
        if sum(part is not None for part in (self.fail, self.restore, self.slow)) != 1:
            raise PydanticCustomError("what", "an event needs exactly one of fail, restore and slow")
        if (self.slow is None) != (self.factor is None):
            raise PydanticCustomError("factor", "factor goes with slow: the part of its rate that a link keeps")
        return self

    @property
    def what(self) -> str:
        """The key that names the event: ``fail``, ``restore`` or ``slow``."""
        return next(name for name in ("fail", "restore", "slow") if getattr(self, name) is not None)

    @property
    def learned_after(self) -> float:
        """Delay until the routing learns of the event, in the unit of its time; infinite: never."""
        if self.reroute_after is None:
            return inf if self.what == "slow" else 0.0
        return self.reroute_after

    @property
    def parts(self) -> Parts:
        """The links and switches of the event."""
        parts: Parts = getattr(self, self.what)
        return parts
