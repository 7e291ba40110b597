# SPDX-License-Identifier: Apache-2.0
"""The traffic of greatest total distance in the hose model."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from flitlab.models.arrays import Integers
from flitlab.models.registry import register
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.longest_matching import lengths, longest_assignment
from flitlab.models.traffic.table import per_host, table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec
from flitlab.models.traffic.units import Units

ROUNDS = 100_000
"""Most iterations of scaling rows and columns."""


@register("traffic", "kodialam")
class Kodialam(TrafficSpec):
    """The demand between switches that maximises total distance: a solution of a transportation problem.

    Maximise sum T[s, t] * hops(s, t) over T >= 0 in which each switch sends and receives as much as it has hosts.
    The solutions form a face whose corners are longest matchings; this is its centre, the one of maximum entropy:
    T[s, t] = a[s] b[t] on the pairs that carry anything in some solution, and 0 elsewhere. It is unique, spreads
    every switch's demand over many destinations, and is as symmetric as the topology. Split equally over the
    hosts at both ends; as little as possible stays within a switch, and that is left out. ``notes`` has the mean
    distance and the number of pairs of switches.

    Example: ``traffic: {kind: kodialam}``

    Source: Kodialam, Lakshman and Sengupta 2011, doi:10.1109/TNET.2010.2090539; MUT section II-C.
    """

    def demand(self, topology: Topology) -> Traffic:
        units = Units.of(topology)
        units.validate_size()
        switches, unit = np.unique(units.switch, return_inverse=True)
        hops = distances(topology)[np.ix_(switches, switches)]
        target = longest_assignment(hops[np.ix_(unit, unit)])
        matching = sparse.coo_array((np.ones(units.count), (unit, unit[target])), hops.shape).tocsr()
        best = entropy_centre(optimal_pairs(lengths(hops, units.count), matching), topology.host_count[switches])
        notes = {"mean_distance": float(best.multiply(hops).sum() / best.sum()), "pairs": best.nnz}
        source, target = switches[best.row], switches[best.col]
        between = source != target  # what stays within a switch needs no network
        demand = sparse.coo_array((best.data * between, (source, target)), (topology.switches,) * 2)
        return table_traffic(self.kind, topology, per_host(topology, demand), notes=notes)


def optimal_pairs(length: Integers, best: sparse.csr_array) -> sparse.csr_array:
    """Return which entries are positive in some optimum of the transportation problem, from one optimum.

    With the dual potentials p, q, every optimum uses only pairs with p[s] - q[t] = length[s, t]. Such a pair can be
    positive if it lies on a cycle of the residual graph: if both ends are in one strongly connected component.

    Parameters
    ----------
    length: int32 [n, n].
    best: [n, n], an optimum.

    Returns
    -------
    [n, n], 1 where an entry may be positive.
    """
    n = len(length)
    used, to = best.nonzero()
    # a path is at most as long as the sum of all arcs
    p: Integers = np.zeros(n, np.int32 if 2 * n * int(length.max()) < 1 << 31 else np.int64)
    while True:
        q = (p[:, None] - length).min(axis=0)
        lower = p.copy()
        np.minimum.at(lower, used, q[to] + length[used, to])
        if (lower == p).all():
            break
        p = lower
    tight = sparse.csr_array(p[:, None] - length == q)
    residual = sparse.block_array([[None, tight], [sparse.csr_array(best > 0).T, None]])
    _, component_of = connected_components(residual, directed=True, connection="strong")
    row, column = tight.nonzero()
    keep = component_of[row] == component_of[n + column]
    return sparse.csr_array((np.ones(keep.sum()), (row[keep], column[keep])), (n, n))


def entropy_centre(allowed: sparse.csr_array, total: np.ndarray) -> sparse.coo_array:
    """Return the matrix a[s] b[t] on the allowed pairs with row and column sums ``total``, by alternate scaling.

    Parameters
    ----------
    allowed: [n, n], non-zero for allowed pairs.
    total: float64 [n], row and column sums.

    Source: Sinkhorn and Knopp 1967, doi:10.2140/pjm.1967.21.343.
    """
    columns = sparse.csr_array(allowed.T)
    b = np.ones(len(total))
    for _ in range(ROUNDS):
        a = total / (allowed @ b)
        received = b * (columns @ a)
        if np.abs(received - total).max() < 1e-12 * total.max():
            break
        b *= total / received
    row, column = allowed.nonzero()
    return sparse.coo_array((a[row] * b[column], (row, column)), allowed.shape)
