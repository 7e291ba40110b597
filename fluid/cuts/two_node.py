"""Cuts around two switches."""

import numpy as np

from fluid.cuts.cut import Network


def search(network: Network) -> np.ndarray | None:
    """The sparsest cut between any two switches and all others; bool [switches]. None below three switches."""
    n = network.topology.switches
    if n < 3:
        return None
    room, wanted = network.capacity, network.demand
    least, side = np.inf, None
    for u in range(n - 1):
        later = slice(u + 1, n)
        between = room.exchanged(u)[later], wanted.exchanged(u)[later]
        for leaving, asks, way in ((room.rows, wanted.rows, False), (room.columns, wanted.columns, True)):
            found = network.ratio(leaving[u] + leaving[later] - between[0], asks[u] + asks[later] - between[1])
            v = int(found.argmin())
            if found[v] < least * (1 - 1e-12):
                least = float(found[v])
                side = np.isin(np.arange(n), [u, u + 1 + v]) ^ way
    return side
