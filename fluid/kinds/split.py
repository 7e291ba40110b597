# SPDX-License-Identifier: Apache-2.0
"""The fixed split of a routing."""

from collections.abc import Iterator

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.instance import Instance
from flitlab.models.registry import register


@register("ceiling", "split")
class Split(CeilingSpec):
    """The largest load that the routing's fixed split of traffic can carry.

    It is a single value of this split, without a certificate.
    """

    rank = 2
    usual = True
    label = "fixed split of the routing"
    share = "Of the load that the routing's own split over its routes could carry"
    routes = "needed"
    beside_background = True
    quick = True
    growth = 0.8

    per_flow: bool = False
    """Also the rates of flows, as in throughput models."""

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of theta, of the network or a host channel, then those of the rates of flows with ``per_flow``."""
        from flitlab.fluid.concurrent import fixed_split
        from flitlab.fluid.sharing.rows import with_rates

        yield from with_rates(instance, fixed_split(instance), self.per_flow)
