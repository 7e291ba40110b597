# SPDX-License-Identifier: Apache-2.0
"""Hoefler's throughput model."""

from collections.abc import Iterator

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.sharing import Sharing
from flitlab.models.instance import Instance
from flitlab.models.registry import register


@register("ceiling", "hm")
class Hm(Sharing):
    """Hoefler's model: the rate of a path is the least equal share of its channels."""

    rank = 7
    label = "HM"

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the mean rate of a flow, then those of total, least rate, theta and Jain index."""
        from flitlab.fluid.sharing.hoefler import hoefler
        from flitlab.fluid.sharing.rows import model_rows

        yield from model_rows(instance, "hm", hoefler, "shares")
