# SPDX-License-Identifier: Apache-2.0
"""Channel loads when traffic is divided evenly over all shortest paths."""

import numpy as np

from flitlab.models.arrays import Floats, Integers
from flitlab.models.jit import njit
from flitlab.models.paths.search import search_to
from flitlab.models.topology.graph import Topology


@njit
def _even_load(out_start: Integers, dst: Integers, in_start: Integers, in_tail: Integers, load: Floats) -> None:
    """Add the load of one unit from every switch to every other to ``load``, float64 [channels].

    The parameters are those of :func:`~flitlab.models.paths.search.search_to` and of the topology.
    """
    n = len(out_start) - 1
    hops, order = np.empty(n, np.int64), np.empty(n, np.int64)
    paths, flow = np.empty(n), np.empty(n)
    for dst_switch in range(n):
        reached = search_to(dst_switch, in_start, in_tail, hops, order)
        paths[:] = 0.0
        paths[dst_switch] = 1.0
        for i in range(1, reached):
            v = order[i]
            for c in range(out_start[v], out_start[v + 1]):
                if hops[dst[c]] == hops[v] - 1:
                    paths[v] += paths[dst[c]]
        flow[:] = 1.0
        for i in range(reached - 1, 0, -1):  # farthest first, so that all transit has arrived
            v = order[i]
            for c in range(out_start[v], out_start[v + 1]):
                u = dst[c]
                if hops[u] == hops[v] - 1:
                    share = flow[v] * (paths[u] / paths[v])
                    load[c] += share
                    flow[u] += share


def even_load_shortest(topology: Topology) -> Floats:
    """Compute channel loads, float64 [channels], if every ordered pair sends 1, evenly over its shortest paths.

    Paths over different parallel channels are different paths. This is the edge betweenness, not normalised. Pairs
    without a path send nothing.

    Source: Brandes, J. Mathematical Sociology 25, 2001, doi:10.1080/0022250X.2001.9990249.
    """
    load = np.zeros(topology.channels)
    _even_load(topology.out_start, topology.dst, topology.in_start, topology.src[topology.in_channels], load)
    return load
