# SPDX-License-Identifier: Apache-2.0
"""Throughput models, which assign a rate to every flow by a rule."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from flitlab.fluid.ceiling import PER_FLOW, Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.instance import Instance
from flitlab.models.registry import register
from flitlab.models.rules.tables import RouteForm

if TYPE_CHECKING:
    from flitlab.models.traffic.traffic import Traffic
    from flitlab.models.transport.session import Session


class Sharing(CeilingSpec):
    """A throughput model over the paths of a routing: a rule, not a bound."""

    unit = PER_FLOW
    routes: ClassVar[Literal["unused", "used", "needed"]] = "needed"

    def absent(self, instance: Instance) -> str:
        """Why an instance has no such ceiling, '' if it has one: with any intermediate switch there are too many
        paths.
        """
        routes, reason = instance.routes, super().absent(instance)
        if not reason and routes is not None and routes.form == RouteForm.VIA:
            return f"{routes.kind} routing has too many paths, over every intermediate switch"
        return reason


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
        from flitlab.fluid.sharing.rows import drawn_rates

        return drawn_rates(session)


@register("ceiling", "hm")
class Hm(Sharing):
    """Hoefler's model: the rate of a path is the least equal share of its channels."""

    rank = 7
    label = "HM"

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the mean rate of a flow, then those of total, least rate, theta and Jain index."""
        from flitlab.fluid.sharing.filling import hoefler
        from flitlab.fluid.sharing.rows import model_rows

        yield from model_rows(instance, "hm", hoefler, "shares")


@register("ceiling", "jm")
class Jm(Sharing):
    """Jain's model: paths get the least equal share of their channels, and remaining capacity is shared again."""

    rank = 8
    label = "JM"

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the mean rate of a flow, then those of total, least rate, theta and Jain index."""
        from flitlab.fluid.sharing.filling import jain
        from flitlab.fluid.sharing.rows import model_rows

        yield from model_rows(instance, "jm", jain, "repeated shares")
