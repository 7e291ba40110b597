# SPDX-License-Identifier: Apache-2.0
"""Jain's throughput model."""

from collections.abc import Iterator

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.sharing import Sharing
from flitlab.models.instance import Instance
from flitlab.models.registry import register


@register("ceiling", "jm")
class Jm(Sharing):
    """Jain's model: paths get the least equal share of their channels, and remaining capacity is shared again."""

    rank = 8
    label = "JM"

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the mean rate of a flow, then those of total, least rate, theta and Jain index."""
        from flitlab.fluid.sharing.jain import jain
        from flitlab.fluid.sharing.rows import model_rows

        yield from model_rows(instance, "jm", jain, "repeated shares")
