# SPDX-License-Identifier: Apache-2.0
"""The worst demand of a fixed routing."""

from collections.abc import Iterator
from typing import ClassVar

from flitlab.fluid.ceiling import Ceiling, theta_unit
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec, Quantities
from flitlab.fluid.saved import Saved
from flitlab.models.instance import Instance
from flitlab.models.registry import register
from flitlab.models.topology.names import switch_names


@register("ceiling", "worst_case")
class WorstCase(CeilingSpec):
    """The load at which the routing's fixed split carries every demand of hosts that are no busier than the busiest.

    Demands are all those in which no host sends or receives more than the busiest host of the scenario does at that
    load (the hose model); of the traffic nothing else counts, and with ``normalise: hose`` that is one unit at load 1.
    The worst demand, with which it is exact, is kept with the certificate and written as a demand matrix by ``simrun
    ceilings --save``, in flits per tick of hosts that send one each.

    Example: ``ceilings: [worst_case]``

    Source: Towles and Dally, SPAA 2002, doi:10.1145/564870.564894; Applegate and Cohen, SIGCOMM 2003,
    doi:10.1145/863955.863991.
    """

    rank = 12
    label = "fixed split of the routing under its worst demand"
    quantities: ClassVar[Quantities] = {
        "channel": ("channel that the worst demand fills", ""),
    }
    minor = ("",)
    line = False
    routes = "needed"
    beside_background = True
    growth = 1.5

    @classmethod
    def proof(cls, row: str) -> type[Saved] | None:
        """Of the row of the kind."""
        from flitlab.fluid.verify_worst import DemandProof

        return None if ":" in row else DemandProof

    def absent(self, instance: Instance) -> str:
        """Why there is none where some hose demand has no path."""
        if pair := instance.topology.unreachable_pair():
            u, v = map(switch_names(instance.topology).label, pair)
            return f"it is over the demands of all pairs of hosts, and no path leads from switch {u} to switch {v}"
        return super().absent(instance)

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of theta, and one of the bottleneck channel."""
        from flitlab.fluid.hosts import load_of
        from flitlab.fluid.worst import worst_case

        topology, routes = instance.topology, instance.routes
        assert routes is not None  # the kind is omitted without
        worst = worst_case(topology, routes)
        at_hosts, unit = topology.host_capacity, theta_unit(topology)
        flits = min(worst.lower, worst.upper, at_hosts), min(worst.upper, at_hosts)
        lower, upper = (load_of(topology, instance.traffic, each) for each in flits)
        full = "no demand crosses the network"
        if worst.channel >= 0:
            names = switch_names(topology)
            u, v = map(names.label, (topology.src[worst.channel], topology.dst[worst.channel]))
            demand = f"a demand of {len(worst.source)} pairs of switches"
            full = f"the channel from switch {u} to switch {v} is full first, under {demand}"
        note = "host channels bind" if at_hosts <= worst.upper else full
        yield Ceiling(self.kind, None, lower, upper, unit, "transportation", 0.0, note, flow=worst)
        if worst.channel >= 0:
            yield Ceiling.value(f"{self.kind}:channel", worst.channel, worst.channel, "1", "transportation", full)
