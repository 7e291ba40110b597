# SPDX-License-Identifier: Apache-2.0
"""The largest total accepted at a load."""

import math
from collections.abc import Iterator

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import Solved
from flitlab.fluid.saved import Saved
from flitlab.models.instance import Instance
from flitlab.models.registry import register

UNIT = "flits/tick/host"
"""Unit of the largest total: flits accepted per tick and host, on average."""


@register("ceiling", "total")
class Total(Solved):
    """The largest total accepted at each load, where no demand gets more than its offer."""

    rank = 3
    usual = True
    label = "largest total"
    unit = UNIT
    by_load = True
    beside_background = True
    of_one_flow = True
    growth = 0.8

    @classmethod
    def proof(cls, row: str) -> type[Saved] | None:
        """Of the row of the kind."""
        from flitlab.fluid.verify_flow import TotalProof

        return None if ":" in row else TotalProof

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """A row for each load: the largest total, which is the offered load up to a feasible theta."""
        for load in context.loads:
            yield self._at(instance, load, context.reached(self.method, self.gap))

    def _at(self, instance: Instance, load: float, theta: float) -> Ceiling:
        from flitlab.fluid.concurrent import gap_note, join_notes
        from flitlab.fluid.problem import FluidError
        from flitlab.fluid.total import total

        topology, (traffic, offered) = instance.topology, instance.traffic.at(load)
        offer = offered * float(traffic.rate.sum()) / topology.physical_hosts
        if load <= theta:
            return Ceiling("total", load, offer, offer, UNIT, "offer", 0.0, "the load is below a certified theta")
        try:
            bounds = total(topology, traffic, offered, self.gap, self.method)
        except FluidError as error:
            return Ceiling("total", load, math.nan, math.nan, UNIT, "omitted", 0.0, str(error))
        lower, upper = bounds.lower / topology.physical_hosts, bounds.upper / topology.physical_hosts
        note = join_notes(bounds.note, gap_note(lower, upper, self.method, self.gap))
        return Ceiling(
            "total", load, lower, upper, UNIT, bounds.method, 0.0, note, bounds.certificate, flow=bounds.flow
        )
