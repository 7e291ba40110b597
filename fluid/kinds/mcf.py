"""The maximum concurrent flow by any routing."""

from collections.abc import Iterator
from typing import ClassVar

from flitlab.fluid.ceiling import PER_FLOW, Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import Quantities, Solved
from flitlab.models.instance import Instance
from flitlab.models.registry import register


@register("ceiling", "mcf")
class Mcf(Solved):
    """Maximum concurrent flow: the largest load at which every demand can be met, by any routing.

    method: ``exact`` goes to a gap of 1e-6 (refused, with the size, where that would not fit into memory),
    ``approx`` uses a first-order method, ``auto`` chooses.
    gap: relative distance of the two bounds at which an approximation may stop.
    per_flow: also the rates that flows get, as throughput models have them.
    """

    rank = 0
    usual = True
    label = "maximum concurrent flow"
    quantities: ClassVar[Quantities] = {"mean": ("MCF", PER_FLOW)}
    share = "Of the load that any routing could carry on the same network"
    limit = True
    beside_background = True
    of_one_flow = True
    growth = 1.3

    per_flow: bool = False

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of theta, an interval, then those of the rates of flows if they are asked for."""
        from flitlab.fluid.sharing.rows import with_rates

        yield from with_rates(instance, context.flow("mcf", self.method, self.gap), self.per_flow)
