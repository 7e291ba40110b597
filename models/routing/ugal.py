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
    """Every packet goes by one leg, or over an intermediate switch as under ``valiant``, whichever is less congested.

    When a host starts a packet it draws the switch of a host with equal probability from all hosts. The packet goes by
    one leg from source to destination if w_m <= w_v + ``threshold``, else by one leg to the switch drawn and one from
    there. w_m and w_v say how long it would wait on the two routes. It stays decided.

    A channel's queue is what waits for it and what it is filling: the flits in the buffers of the switch that it leaves
    whose front packet goes to it (``vct``: of packets whose header has been read), and the flits of credit in use on
    all its VCs (VCs times buffer_flits less the credits). It is told as the tick of the decision begins: credits that
    come back in it are back, grants made in it do not count. Packets in the hosts' source queues do not count either.

    ``mode: local`` (UGAL-L) knows the source switch only: w is the queue of the channel by which the packet would
    leave it, times the channels of the route; ``threshold`` is in flits times hops. ``mode: global`` (UGAL-G): w is
    the sum of the queues of all channels that the packet would take, which no real source knows; ``threshold`` is in
    flits. ``legs`` are those of valiant but for ``optimal``, whose weights hold where all traffic goes over others; on
    a dragonfly ``legs: dragonfly`` is the routing of the source.

    A packet that goes by one leg uses the VCs of the second one with ``vc_policy: legs``, those of the first one with
    ``groups``. Otherwise the VC policies are those of valiant: ``rising`` takes as many VCs as the two longest legs
    have channels together.

    Example: ``routing: {kind: ugal, mode: local}``

    Example: ``routing: {kind: ugal, mode: global, legs: updown, vc_policy: legs, threshold: 8}``

    Source: Singh, Load-balanced routing in interconnection networks, PhD thesis, Stanford 2005; Kim, Dally, Scott,
    Abts, ISCA 2008, doi:10.1109/ISCA.2008.19 (UGAL-L and UGAL-G, there the queue of the global channel alone).
    UGAL-G as the sum over the route: Besta, Hoefler, Slim Fly, SC 2014, doi:10.1109/SC.2014.34.
    """

    legs: Literal["minimal", "dor", "updown", "dragonfly"] = "minimal"
    mode: Literal["local", "global"] = "local"
    threshold: int = Field(default=0, ge=0, le=1 << 30)

    def routes(self, topology: Topology) -> Routes:
        routes = self.over_all(topology, UGAL_LOCAL if self.mode == "local" else UGAL_GLOBAL, self.threshold)
        return without_mean_hops(routes)
