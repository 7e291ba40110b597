"""A ceiling of a user's own: all that it takes stands in this file."""

import math
from collections.abc import Iterator

from pydantic import Field

from flitlab.fluid.ceiling import Ceiling, theta_unit
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.instance import Instance
from flitlab.models.registry import register


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

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The bound, then the capacity that it is made of."""
        capacity = self.usable * float(instance.topology.capacity.sum())
        demand = float(instance.traffic.switch_pairs()[2].sum())
        upper, unit = capacity / demand if demand else math.inf, theta_unit(instance.topology)
        yield Ceiling.value("one_hop", math.nan, upper, unit, "closed form", "all channels / all demand")
        yield Ceiling.value("one_hop:capacity", capacity, capacity, "flits/tick", "closed form")
