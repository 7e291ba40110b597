# SPDX-License-Identifier: Apache-2.0
"""Max-min fair rates."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.sharing import Sharing
from flitlab.models.instance import Instance
from flitlab.models.registry import register

if TYPE_CHECKING:
    from flitlab.models.traffic.traffic import Traffic
    from flitlab.models.transport.session import Session


@register("ceiling", "mmf")
class Mmf(Sharing):
    """Max-min fair rates of the flows over the paths of the routing: none can grow without reducing a smaller one.

    Without a routing, all paths are allowed.
    """

    rank = 6
    label = "MMF"
    routes = "used"
    growth = 1.3

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the mean rate of a flow, then those of total, least rate, theta and Jain index."""
        from flitlab.fluid.sharing.maxmin import max_min
        from flitlab.fluid.sharing.rows import model_rows

        yield from model_rows(instance, "mmf", max_min)

    @classmethod
    def drawn(cls, session: "Session", traffic: "Traffic") -> dict[str, float]:
        """Max-min fair rates over the paths that a run drew, with equal weights of all flows, by column of results.csv.

        These are the mean per host and the least, both relative to the interface, and Jain's index.
        """
        from flitlab.fluid.sharing.drawn import drawn_rates

        return drawn_rates(session)
