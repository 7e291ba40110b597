# SPDX-License-Identifier: Apache-2.0
"""Universal globally adaptive load-balanced routing: minimal or over a random intermediate switch."""

from typing import Literal

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.routing.routes import Routes
from flitlab.models.routing.valiant import ViaSpec, without_mean_hops
from flitlab.models.rules.tables import UGAL_GLOBAL, UGAL_LOCAL
from flitlab.models.topology.graph import Topology


@register("routing", "ugal")
class Ugal(ViaSpec):
    """A packet takes one leg or, as under ``valiant``, two: whichever route is less congested.

    When a host starts a packet it draws the switch of a host uniformly from all hosts. The packet takes one leg from
    source to destination if w_m <= w_v + ``threshold``, else one leg to the drawn switch and one from there. w_m and
    w_v estimate the wait on the two routes. The decision is final.

    A channel's queue estimate is the flits in the input buffers of its switch whose head packet requests it (``vct``:
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
    mode: Literal["local", "global"] = "local"
    threshold: int = Field(default=0, ge=0, le=1 << 30)

    def routes(self, topology: Topology) -> Routes:
        routes = self.over_all(topology, UGAL_LOCAL if self.mode == "local" else UGAL_GLOBAL, self.threshold)
        return without_mean_hops(routes)
