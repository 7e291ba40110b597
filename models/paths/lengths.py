# SPDX-License-Identifier: Apache-2.0
"""Lengths of the k shortest loopless paths of all pairs, without the paths."""

import numpy as np

from flitlab.models.paths.ksp import k_shortest_to
from flitlab.models.paths.within import counts_within
from flitlab.models.topology.graph import Topology


def k_shortest_lengths(topology: Topology, k: int) -> tuple[np.ndarray, int]:
    """Count the lengths of the k shortest loopless paths of every ordered pair of different switches.

    Counting all paths of few hops settles most pairs and is much faster than Yen's algorithm, which serves the others.

    Returns
    -------
    int64 [switches], the number of paths of each length; and the number of pairs with fewer than k paths.
    """
    n = topology.switches
    backwards = Topology.from_arcs("reversed", n, np.column_stack([topology.dst, topology.src]))
    hops = _hops_to_count(topology, k)
    histogram = np.zeros(n, np.int64)
    missing = 0
    for dst_switch in range(n):
        paths_within_hops = np.minimum(np.cumsum(counts_within(backwards, dst_switch, hops), axis=0), k)
        complete = paths_within_hops[-1] == k
        histogram[: hops + 1] += np.diff(paths_within_hops[:, complete], axis=0, prepend=0).sum(axis=1)
        complete[dst_switch] = True
        paths = k_shortest_to(topology, dst_switch, np.flatnonzero(~complete), k)
        histogram += np.bincount(paths.lengths, minlength=n)
        missing += int((paths.counts < k).sum())
    return histogram, missing


def _hops_to_count(topology: Topology, k: int) -> int:
    """Estimate the hops within which most pairs have k paths: the least with 2 k paths per destination."""
    degree = topology.channels / topology.switches - (not topology.directed)
    min_paths, paths, hops = 2 * k * topology.switches, 1.0, 0
    while paths < min_paths and hops < min(topology.switches - 1, 16):
        paths *= max(degree, 1.0)
        hops += 1
    return hops
