# SPDX-License-Identifier: Apache-2.0
"""Adaptive routing, minimal or over a random intermediate switch: UGAL, and progressive adaptive routing."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import Routes, Selection
from flitlab.models.routing.valiant import ViaSpec, without_mean_hops
from flitlab.models.topology.graph import Topology


@register("routing", "ugal")
class Ugal(ViaSpec):
    """A packet takes one leg or, as under ``valiant``, two: whichever route is less congested.

    When a host starts a packet it draws the switch of a host uniformly from all hosts. The packet takes one leg from
    source to destination if w_m <= w_v + ``threshold``, else one leg to the drawn switch and one from there. w_m and
    w_v estimate the wait on the two routes. The decision is final.

    A channel's queue estimate is all flits in the input VCs of its switch whose first packet requests it (``vct``:
    packets whose header has been read), plus the credits in use on all its VCs (VCs times buffer_flits less the
    credits). It is read as the tick of the decision begins: credits that return in it count, its grants do not. Packets
    in source queues do not count.

    ``mode: local`` (UGAL-L) knows the source switch only: w is the queue of the first channel, times the channels of
    the route; ``threshold`` is in flits times hops. ``mode: global`` (UGAL-G): w is the sum of the queues of all
    channels of the route, which no real source knows; ``threshold`` is in flits. ``legs`` are those of valiant without
    ``optimal``, whose weights need all traffic to use intermediate switches; on a dragonfly ``legs: dragonfly`` is the
    routing of the source.

    A packet with one leg uses the VCs of the second leg with ``vc_policy: legs``, those of the first with ``groups``.
    Otherwise the VC policies are those of valiant: ``rising`` needs as many VCs as the two longest legs have channels
    together.

    Example: ``routing: {kind: ugal, mode: local}``

    Example: ``routing: {kind: ugal, mode: global, legs: updown, vc_policy: legs, threshold: 8}``

    Source: Singh, Load-balanced routing in interconnection networks, PhD thesis, Stanford 2005; Kim, Dally, Scott,
    Abts, ISCA 2008, doi:10.1109/ISCA.2008.19 (UGAL-L and UGAL-G, there the queue of the global channel alone). UGAL-G
    as the sum over the route: Besta, Hoefler, Slim Fly, SC 2014, doi:10.1109/SC.2014.34.
    """

    legs: Literal["minimal", "dor", "updown", "dragonfly"] = "minimal"
    """The routing to the intermediate switch and from it."""
    mode: Literal["local", "global"] = "local"
    """Whether a host knows the queues of its switch, or of the whole route."""
    threshold: int = Field(default=0, ge=0, le=1 << 30)
    """Advantage of the minimal route. [flits, times hops with local]"""

    def routes(self, topology: Topology) -> Routes:
        routes = self.over_all(
            topology, Selection.UGAL_LOCAL if self.mode == "local" else Selection.UGAL_GLOBAL, self.threshold
        )
        return without_mean_hops(routes)


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
    """The routing to the intermediate switch and from it."""
    threshold: int = Field(default=0, ge=0, le=1 << 30)
    """Advantage of the minimal route. [flits times hops]"""

    def routes(self, topology: Topology) -> Routes:
        if topology.hosts and not topology.host_count.all():
            raise SpecError("needs hosts on all routers, as any may begin a leg (ugal serves others)", key="kind")
        routes = self.over_all(topology, Selection.PROGRESSIVE, self.threshold)
        return replace(without_mean_hops(routes), hops_max=routes.hops_max + 1)
