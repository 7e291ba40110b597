# SPDX-License-Identifier: Apache-2.0
"""The factors of the throughput of the maximum concurrent flow, and its utilisation of channels."""

from collections.abc import Iterator
from typing import ClassVar

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import Quantities, Solved
from flitlab.models.instance import Instance
from flitlab.models.registry import register


@register("ceiling", "decomposition")
class Decomposition(Solved):
    """Throughput = capacity x utilisation / (distance x stretch) of the maximum concurrent flow.

    method, gap: those of ``mcf``, whose flow it is.
    """

    rank = 9
    label = "throughput"
    unit = "flits/tick"
    quantities: ClassVar[Quantities] = {
        "capacity": ("capacity", "flits/tick"),
        "utilisation": ("channel utilisation", ""),
        "distance": ("mean distance", "hops"),
        "stretch": ("stretch", ""),
    }
    of_one_flow = True

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the throughput of the concurrent flow, then one of each factor."""
        from flitlab.fluid.decomposition import NO_LOAD, decomposition
        from flitlab.fluid.problem import Problem

        mcf = context.flow("mcf", self.method, self.gap)
        if mcf.channel_load is None:
            yield Ceiling.omitted("decomposition", "flits/tick", NO_LOAD)
            return
        problem = Problem.of(instance.topology, instance.traffic)
        parts, demand = decomposition(problem, mcf.lower, mcf.channel_load), problem.compact_demand.total
        note = f"theta {mcf.lower:.6g} = capacity x utilisation / (distance x stretch x {demand:.6g})"
        rows = [
            ("", parts.throughput, "flits/tick"), (":capacity", parts.capacity, "flits/tick"),
            (":utilisation", parts.utilisation, "1"), (":distance", parts.distance, "hops"),
            (":stretch", parts.stretch, "1"),
        ]  # fmt: skip
        for name, value, unit in rows:
            yield Ceiling.value(f"decomposition{name}", value, value, unit, mcf.method, "" if name else note)


@register("ceiling", "utilisation")
class Utilisation(Solved):
    """Mean utilisation of the channels, and of each class, by the maximum concurrent flow.

    method, gap: those of ``mcf``, whose flow it is.
    """

    rank = 10
    label = "channel utilisation"
    unit = ""
    of_one_flow = True

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the mean utilisation of all network channels, then one of each class."""
        from flitlab.fluid.decomposition import NO_LOAD, utilisation

        mcf = context.flow("mcf", self.method, self.gap)
        if mcf.channel_load is None:
            yield Ceiling.omitted("utilisation", "1", NO_LOAD)
            return
        for name, use in utilisation(instance.topology, mcf.channel_load).items():
            row = f"utilisation:{name}" if name else "utilisation"
            yield Ceiling.value(row, use, use, "1", mcf.method, "" if name else f"by the flow of theta {mcf.lower:.6g}")
