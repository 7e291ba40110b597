# SPDX-License-Identifier: Apache-2.0
"""Dimension-order routing on grids, and on graphs with complete dimensions."""

from typing import Literal

import numpy as np

from flitlab.models.arrays import Masks
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.routes import SELECT, Routes, RoutingSpec
from flitlab.models.rules.port_sets import allow
from flitlab.models.rules.tables import MaxPorts
from flitlab.models.topology.graph import Grid, Topology


def line_grid(topology: Topology) -> Grid | None:
    """The coordinates of a mesh, torus or hypercube, or of a HyperX or flattened butterfly; else None.

    Switches of the latter two are numbered with the last dimension fastest.

    Parameters
    ----------
    topology: the network.
    """
    if topology.grid is not None:
        return topology.grid
    dims = topology.notes.get("dims")
    if topology.kind not in ("hyperx", "hyperx_search", "flattened_butterfly") or not dims:
        return None
    if int(np.prod(dims)) != topology.switches:
        return None
    grid = Grid(tuple(dims), False, np.indices(dims).reshape(len(dims), -1).T.astype(np.int64))
    change = grid.coordinates[topology.src] != grid.coordinates[topology.dst]
    joined = len(np.unique(topology.src * topology.switches + topology.dst))
    is_complete = (change.sum(axis=1) == 1).all() and joined == topology.switches * sum(k - 1 for k in dims)
    return grid if is_complete else None


def dimension_order_ports(topology: Topology, grid: Grid) -> tuple[Masks, int]:
    """The next hops of dimension order, a table of port sets, and the longest route.

    A set holds the channels that advance furthest, the shorter direction, in the first dimension in which v and t
    differ: one step where neighbours are linked (two directions on a tie in a ring), all the way where lines are
    complete.
    """
    ports, coordinates = empty_table(topology), grid.coordinates
    tail = topology.src
    port = np.arange(topology.channels) - topology.out_start[tail]
    complete = topology.grid is None
    for c in range(topology.channels):
        v, w = tail[c], topology.dst[c]
        d = int(np.flatnonzero(coordinates[v] != coordinates[w])[0])
        same_before = (coordinates[:, :d] == coordinates[v, :d]).all(axis=1)
        distance, next_distance = coordinates[:, d] - coordinates[v, d], coordinates[:, d] - coordinates[w, d]
        if complete:
            closer = same_before & (next_distance == 0)
        else:
            if grid.wrap:
                k = grid.dims[d]
                distance, next_distance = (
                    np.minimum(distance % k, -distance % k),
                    np.minimum(next_distance % k, -next_distance % k),
                )
            closer = same_before & (np.abs(next_distance) < np.abs(distance))
        allow(ports, np.flatnonzero(closer), v, port[c])
    longest = {True: [min(k - 1, 1) for k in grid.dims], False: [k // 2 if grid.wrap else k - 1 for k in grid.dims]}
    return ports, sum(longest[complete])


@register("routing", "dor", aliases=("dimension_order", "xy"))
class DimensionOrder(RoutingSpec):
    """Dimensions are corrected in order, the first one first, each in the shorter direction.

    Half-way round an even ring both directions are equally short, and links may be parallel: ``select`` draws (random)
    or hashes. Serves mesh, torus, hypercube, HyperX and flattened butterfly. On a torus the default ``vc_policy`` is
    ``dateline`` if there are too few VCs for ``rising``; elsewhere any VC serves.

    Example: ``routing: {kind: dor, vc_policy: {kind: dateline, choose: on_entry}}``

    Source: Dally and Seitz 1987, doi:10.1109/TC.1987.1676939.
    """

    select: Literal["random", "hash"] = "random"
    """How one of the channels that serve is chosen."""

    def routes(self, topology: Topology) -> Routes:
        grid = line_grid(topology)
        if grid is None:
            raise SpecError(
                "needs the coordinates of an undamaged mesh, torus, hypercube, HyperX or flattened butterfly; this "
                f"{topology.kind} has none (minimal, ecmp, ksp, valiant and, if bi-directional, updown serve it)",
                key="kind",
            )
        if topology.out_degree.max(initial=0) > MaxPorts.TABLE:
            raise SpecError(f"serves at most {MaxPorts.TABLE} channels out of a switch", key="kind")
        ports, longest = dimension_order_ports(topology, grid)
        return Routes(self.kind, ports, SELECT[self.select], longest)
