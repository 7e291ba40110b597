# SPDX-License-Identifier: Apache-2.0
"""The maximum concurrent flow, by any routing, over the paths of a routing, and by its fixed split."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from flitlab.fluid.ceiling import PER_FLOW, Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec, Quantities, Solved
from flitlab.fluid.saved import Saved
from flitlab.models.instance import Instance
from flitlab.models.registry import register
from flitlab.models.rules.tables import RouteForm

if TYPE_CHECKING:
    from flitlab.models.traffic.traffic import Traffic
    from flitlab.models.transport.session import Session


class Concurrent(Solved):
    """A maximum concurrent flow."""

    usual = True
    limit = True
    beside_background = True
    growth = 0.8

    per_flow: bool = False
    """Also the rates of flows, as in throughput models."""

    @classmethod
    def proof(cls, row: str) -> type[Saved] | None:
        """Of the row of the kind."""
        from flitlab.fluid.verify_flow import FlowProof

        return None if ":" in row else FlowProof

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of theta, an interval, then those of the rates of flows with ``per_flow``."""
        from flitlab.fluid.sharing.rows import with_rates

        kind = cast(Literal["mcf", "mcf_paths"], self.kind)
        yield from with_rates(instance, context.flow(kind, self.method, self.gap), self.per_flow)


@register("ceiling", "mcf")
class Mcf(Concurrent):
    """Maximum concurrent flow: the largest load at which every demand is met, by any routing."""

    rank = 0
    label = "maximum concurrent flow"
    quantities: ClassVar[Quantities] = {"mean": ("MCF", PER_FLOW)}
    share = "Of the load that any routing could carry on the same network"
    of_one_flow = True
    growth = 0.72  # measured from 64 to 10,000 switches: in small networks path search is a small part


@register("ceiling", "mcf_paths")
class McfPaths(Concurrent):
    """Maximum concurrent flow over the paths of the routing, with the best split of each demand."""

    rank = 1
    label = "maximum concurrent flow over the routes"
    quantities: ClassVar[Quantities] = {"mean": ("MCF over the routes", PER_FLOW)}
    share = "Of the load that the best use of its routes could carry"
    routes = "needed"

    @classmethod
    def proof(cls, row: str) -> type[Saved] | None:
        """Of the row of the kind."""
        from flitlab.fluid.verify_flow import RoutedFlowProof

        return None if ":" in row else RoutedFlowProof

    def absent(self, instance: Instance) -> str:
        """Why an instance has no such ceiling, '' if it has one.

        With any intermediate switch there may be more paths than a linear program can hold.
        """
        from flitlab.fluid.graph import Demand
        from flitlab.fluid.mcf.choose import MAX_PATH_PAIRS

        reason = super().absent(instance)
        if reason or instance.routes is None or instance.routes.form != RouteForm.VIA:
            return reason
        pairs = Demand.of_traffic(instance.traffic.at(1.0)[0]).size
        if pairs <= MAX_PATH_PAIRS:
            return ""
        return f"{pairs} pairs of switches, each over every other one, are too many (at most {MAX_PATH_PAIRS})"

    @classmethod
    def drawn(cls, session: "Session", traffic: "Traffic") -> dict[str, float]:
        """The largest theta with theta times the demand of every pair over the paths that a run drew."""
        from flitlab.fluid.sharing.rows import drawn_theta

        return {"mcf_paths_drawn": drawn_theta(session, traffic)}


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
