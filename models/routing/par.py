# SPDX-License-Identifier: Apache-2.0
"""Progressive adaptive routing of a dragonfly: a minimal route can be revised in the source group."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import PROGRESSIVE, Routes
from flitlab.models.routing.valiant import ViaSpec, without_mean_hops
from flitlab.models.topology.graph import Topology


@register("routing", "par")
class Par(ViaSpec):
    """Minimal or Valiant routing of a dragonfly per packet, as under ``ugal``, with one possible re-routing.

    When a host starts a packet it decides as under ``ugal`` with ``mode: local``. A packet on a minimal route whose
    first channel leads to another router of its group, which is not its destination, is re-routed when that router has
    read its header: it continues minimally, or by one leg to the switch of a newly drawn host and one from there. The
    source router knows only its own queues; that of the global channel is at the second router. w_m and w_v are the
    queues of the two next channels there times the remaining channels, as the tick begins: arrivals, credits and grants
    of the tick do not count. A packet with an intermediate switch is not re-routed.

    A route has one channel more than under ``ugal``: local, then two legs. VC policies: ``groups`` (the default with 5
    or 6 VCs, one more than there: a packet's first channel has VCs of its own), ``rising`` (the default with 7) and
    ``hop``. Serves ``mode: vct``, and hosts on all routers or on none.

    Example: ``routing: {kind: par}``

    Example: ``routing: {kind: par, threshold: 16, vc_policy: rising}``

    Source: Jiang, Kim, Dally, Indirect adaptive routing on large scale interconnection networks, ISCA 2009,
    doi:10.1145/1555754.1555783, progressive adaptive routing; drawing a new intermediate switch is our addition.
    """

    legs: Literal["dragonfly"] = "dragonfly"
    threshold: int = Field(default=0, ge=0, le=1 << 30)

    def routes(self, topology: Topology) -> Routes:
        if topology.hosts and not topology.host_count.all():
            raise SpecError("needs hosts on all routers, as any may begin a leg (ugal serves others)", key="kind")
        routes = self.over_all(topology, PROGRESSIVE, self.threshold)
        return replace(without_mean_hops(routes), hops_max=routes.hops_max + 1)
