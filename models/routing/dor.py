"""Dimension-order routing."""

from typing import Literal

import numpy as np

from models.registry import SpecError, register
from models.routing.routes import MAX_PORTS, SELECT, Routes, RoutingSpec
from models.topology.graph import Grid, Topology


def dimension_order_ports(topology: Topology, grid: Grid) -> np.ndarray:
    """Masks uint64 [t, v]: the shorter way in the first dimension in which v and t differ (both, on a tie)."""
    n, place = topology.switches, grid.coordinates
    ports = np.zeros((n, n), np.uint64)
    tail = topology.src
    port = (np.arange(topology.channels) - topology.out_start[tail]).astype(np.uint64)
    for c in range(topology.channels):
        v, w = tail[c], topology.dst[c]
        d = int(np.flatnonzero(place[v] != place[w])[0])
        same_before = (place[:, :d] == place[v, :d]).all(axis=1)
        ahead, there = place[:, d] - place[v, d], place[:, d] - place[w, d]
        if grid.wrap:
            k = grid.dims[d]
            ahead, there = np.minimum(ahead % k, -ahead % k), np.minimum(there % k, -there % k)
        closer = same_before & (np.abs(there) < np.abs(ahead))
        ports[closer, v] |= np.uint64(1) << port[c]
    return ports


@register("routing", "dor")
class DimensionOrder(RoutingSpec):
    """Dimensions are corrected one after another, the first one first, each the shorter way.

    Half-way round an even ring both ways are equally short: ``select`` draws (random) or hashes.
    Serves mesh, torus and hypercube. On a torus use ``vc_policy: dateline``.

    Example: ``routing: {kind: dor, vc_policy: {kind: dateline, choose: on_entry}}``

    Source: Dally and Seitz 1987, doi:10.1109/TC.1987.1676939.
    """

    select: Literal["random", "hash"] = "random"

    def build(self, topology: Topology) -> Routes:
        grid = topology.grid
        if grid is None:
            raise SpecError(
                f"needs the coordinates of an undamaged mesh, torus or hypercube; this {topology.kind} has none "
                "(minimal serves any topology)",
                key="kind",
            )
        if topology.out_degree.max() > MAX_PORTS:
            raise SpecError(f"serves at most {MAX_PORTS} channels out of a switch", key="kind")
        ports = dimension_order_ports(topology, grid)
        longest = sum(k // 2 if grid.wrap else k - 1 for k in grid.dims)
        return Routes(self.kind, ports, SELECT[self.select], longest, vc_policy=self.policy_code())
