# SPDX-License-Identifier: Apache-2.0
"""Utilisation of channels by the maximum concurrent flow."""

from collections.abc import Iterator

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import Solved
from flitlab.models.instance import Instance
from flitlab.models.registry import register


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
