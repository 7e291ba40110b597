# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""A ceiling of a user's own, with its certificate: all that it takes stands in this file."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from flitlab.fluid.ceiling import Ceiling, theta_unit
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.fluid.saved import Saved
from flitlab.models.arrays import Floats
from flitlab.models.instance import Instance
from flitlab.models.registry import register


@dataclass(frozen=True, eq=False)
class UsableCapacity(Saved):
    """The proof of ``one_hop``. capacity: float64 [channels], flits/tick that data can have of every channel."""

    capacity: Floats

    @classmethod
    def parts(cls, instance: Instance, row: Ceiling) -> dict[str, Any]:
        """The arrays of a row."""
        return {"capacity": row.flow}

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """The ends that the arrays prove. subjects: the usable parts that the configuration names for this row."""
        capacity, demand = instance.topology.capacity, float(instance.traffic.switch_pairs()[2].sum())
        if not any(np.array_equal(self.capacity, part * capacity) for part in map(float, subjects)):
            self.reject("the capacity of a channel is not its usable part")
        return math.nan, float(self.capacity.sum()) / demand if demand else math.inf


@register("ceiling", "one_hop")
class OneHop(CeilingSpec):
    """All channels over all demand that leaves its switch: whatever the routing, a flit uses one channel at least.

    usable: the part of every channel that data can have.

    Example: ``ceiling: {kind: one_hop, usable: 0.9}``
    """

    label = "one channel per flit"
    share = "Of the load that channels could carry if all paths were one hop long"
    quick = True
    growth = 1.0

    usable: float = Field(default=1.0, gt=0, le=1)

    @classmethod
    def proof(cls, row: str) -> type[Saved] | None:
        """Of the bound, not of the capacity."""
        return None if ":" in row else UsableCapacity

    def provable_rows(self) -> Mapping[str, float]:
        """Only a proof with this usable part is accepted."""
        return {self.kind: self.usable}

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The bound, then the capacity that it is made of."""
        usable = self.usable * instance.topology.capacity
        capacity = float(usable.sum())
        demand = float(instance.traffic.switch_pairs()[2].sum())
        upper, unit = capacity / demand if demand else math.inf, theta_unit(instance.topology)
        bound = Ceiling.value("one_hop", math.nan, upper, unit, "closed form", "all channels / all demand")
        yield replace(bound, flow=usable)
        yield Ceiling.value("one_hop:capacity", capacity, capacity, "flits/tick", "closed form")
