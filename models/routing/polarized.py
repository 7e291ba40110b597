# SPDX-License-Identifier: Apache-2.0
"""Polarized routing: adaptive, away from the source and towards the destination, over longer paths if queues are
shorter.
"""

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import NO_PORTS, RouteForm, Routes, RoutingSpec, Selection, VcPolicy
from flitlab.models.routing.valiant import route_hops
from flitlab.models.rules.tables import MaxPorts
from flitlab.models.topology.graph import Topology

HOPS_MOST = 64
"""The most channels of a route, as there are no more VCs."""


@register("routing", "polarized")
class Polarized(RoutingSpec):
    """Adaptive routing away from the source and towards the destination, over longer paths if their queues are shorter.

    From s to t a packet may take a channel to switch w unless that lowers D(s, w) - D(w, t), where D is the distance.
    If the value does not change, w must be farther from both ends while the packet is nearer to s than to t, and
    afterwards nearer to both. Where no such w exists, as in a leaf of the network, the packet takes a shortest path,
    which may lead back over switches that it has visited. It takes the channel of least cost, evaluated every tick, and
    waits for it: the cost is the packets of the credits in use on the channel, and ``penalty`` for each by which the
    gain of D(s, w) - D(w, t) is below 2.

    ``hops``: the most channels of a route, by default twice the diameter, and at most the number of switches less one,
    as a longer route visits a switch twice. A packet never takes a channel from which the remaining hops would not
    suffice, so it always arrives. The VC policy is ``rising``, or ``hop`` if set, and needs as many VCs as ``hops``.
    Serves ``mode: vct`` and ``ideal``.

    Example: ``routing: {kind: polarized}``

    Example: ``routing: {kind: polarized, hops: 6, penalty: 2}``

    Source: Camarero, Martínez, Beivide, Polarized routing: an efficient and versatile algorithm for large direct
    networks, HOTI 2021; the bound on hops, the cost, and shortest paths where no hop
    is polarized are our own.
    """

    hops: int | None = Field(default=None, ge=1, le=HOPS_MOST)
    """The most channels of a route, at most the number of switches less one. null: twice the diameter."""
    penalty: int = Field(default=1, ge=0, le=1000)
    """Packets for each hop by which a channel gains less than the most."""

    def routes(self, topology: Topology) -> Routes:
        ports, diameter = minimal_ports(topology, MaxPorts.MASK)
        hops = min(2 * diameter, HOPS_MOST) if self.hops is None else self.hops
        if diameter > HOPS_MOST:
            raise SpecError(f"serves a diameter of at most {HOPS_MOST}, and here it is {diameter}", key="kind")
        if hops < diameter:
            raise SpecError(f"must be at least the diameter, {diameter}", key="hops")
        hops = min(hops, topology.switches - 1)  # a longer one visits a switch twice
        return Routes(
            self.kind, NO_PORTS, Selection.ADAPTIVE, hops, vc_policy=VcPolicy.RISING, form=RouteForm.POLARIZED,
            leg=route_hops(topology, ports), threshold=self.penalty, notes={"hops": hops, "penalty": self.penalty},
        )  # fmt: skip
