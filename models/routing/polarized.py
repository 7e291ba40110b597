# SPDX-License-Identifier: Apache-2.0
"""Polarized routing: adaptive, away from the source and towards the destination, over longer ways where queues ask."""

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import ADAPTIVE, NO_PORTS, POLARIZED, RISING, Routes, RoutingSpec
from flitlab.models.routing.valiant import route_hops
from flitlab.models.topology.graph import Topology

HOPS_MOST = 64
"""Channels of a route at most: there are no more VCs than that."""


@register("routing", "polarized")
class Polarized(RoutingSpec):
    """Adaptive routing away from the source and towards the destination, over longer ways where queues ask for them.

    From s to t a packet may go on to a switch w unless that lowers D(s, w) - D(w, t), D being distances. Where it stays
    as it is, w must be farther from both ends as long as the packet is nearer to s than to t, and from then on nearer
    to both. Where no such w is left the packet goes a shortest way on. Of these it takes the one of least cost, every
    tick anew, and waits for it: the cost is the packets that the credits in use on the channel stand for, and
    ``penalty`` for each by which the gain of D(s, w) - D(w, t) is less than 2.

    ``hops``: channels of a route at most, by default twice the diameter. A packet goes nowhere from where the rest of
    them would not take it to its destination, so it always arrives. The VC policy is ``rising``, or ``hop`` if asked
    for, and needs as many VCs as ``hops``. Serves ``mode: vct``.

    Example: ``routing: {kind: polarized}``

    Example: ``routing: {kind: polarized, hops: 6, penalty: 2}``

    Source: Camarero, Martínez, Beivide, Polarized routing: an efficient and versatile algorithm for large direct
    networks, HOTI 2021; the bound on hops and the cost are our own.
    """

    hops: int | None = Field(default=None, ge=1, le=HOPS_MOST)
    penalty: int = Field(default=1, ge=0, le=1000)

    def routes(self, topology: Topology) -> Routes:
        ports, diameter = minimal_ports(topology)
        hops = min(2 * diameter, HOPS_MOST) if self.hops is None else self.hops
        if diameter > HOPS_MOST:
            raise SpecError(f"serves a diameter of at most {HOPS_MOST}, and here it is {diameter}", key="kind")
        if hops < diameter:
            raise SpecError(f"must be at least the diameter, {diameter}", key="hops")
        hops = min(hops, topology.switches - 1)  # as none comes back to where it was
        return Routes(
            self.kind, NO_PORTS, ADAPTIVE, hops, vc_policy=RISING, form=POLARIZED, leg=route_hops(topology, ports),
            threshold=self.penalty, notes={"hops": hops, "penalty": self.penalty},
        )  # fmt: skip
