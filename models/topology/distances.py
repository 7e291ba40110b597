"""Hop distances in a topology: all pairs, their histogram, diameter and average.

Hops are channels between switches; capacities and delays play no part.
"""

import numpy as np

from models.jit import njit
from models.rules.bits import lowest, popcount
from models.topology.graph import Topology


@njit
def _search(in_start, neighbour, counts, table):
    """Breadth-first search from all switches, 64 sources at once, one bit each.

    in_start, neighbour: the switches with a channel into v are neighbour[in_start[v]:in_start[v + 1]].
    counts: int64 [switches], counts[h] grows by the ordered pairs at h hops.
    table: [switches, switches], table[s, v] becomes the hops from s to v; left alone if it has no rows.
    """
    n = len(in_start) - 1
    frontier, fresh, seen = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64)
    for first in range(0, n, 64):
        for v in range(n):
            frontier[v] = np.uint64(0)
        sources = np.uint64(0)
        for s in range(first, min(first + 64, n)):
            frontier[s] = np.uint64(1) << np.uint64(s - first)
            sources |= frontier[s]
        for v in range(n):
            seen[v] = frontier[v]
        hops, found = 0, min(64, n - first)
        while found > 0:
            counts[hops] += found
            hops += 1
            found = 0
            for v in range(n):
                fresh[v] = np.uint64(0)
                if seen[v] == sources:
                    continue
                for k in range(in_start[v], in_start[v + 1]):
                    fresh[v] |= frontier[neighbour[k]]
                fresh[v] &= ~seen[v]
                seen[v] |= fresh[v]
                found += popcount(fresh[v])
                if len(table) > 0:
                    rest = fresh[v]
                    while rest != np.uint64(0):
                        table[first + lowest(rest), v] = hops
                        rest &= rest - np.uint64(1)
            frontier, fresh = fresh, frontier


def distance_counts(topology: Topology) -> np.ndarray:
    """int64 [diameter + 1]: how many ordered pairs of switches are h hops apart (h = 0: the switches).

    Needs memory for the channels only. Raises ``ValueError`` if the topology is not strongly connected.
    """
    counts = np.zeros(topology.switches, np.int64)
    _search(topology.in_start, topology.src[topology.in_channels], counts, np.zeros((0, 0), np.uint8))
    if counts.sum() != topology.switches**2:
        u, v = topology.unreachable_pair() or (0, 0)
        raise ValueError(f"no path from switch {u} to switch {v}")
    return np.trim_zeros(counts, "b")


def distances(topology: Topology) -> np.ndarray:
    """[switches, switches]: element [s, t] is the number of hops *from* s *to* t.

    uint8, or uint16 where the diameter exceeds 255. Raises ``ValueError`` if not strongly connected.
    """
    n = topology.switches
    diameter = len(distance_counts(topology)) - 1
    table = np.zeros((n, n), np.min_scalar_type(diameter))
    _search(topology.in_start, topology.src[topology.in_channels], np.zeros(n, np.int64), table)
    return table


def diameter(topology: Topology) -> int:
    """Largest distance between two switches, in hops. Raises ``ValueError`` if not strongly connected."""
    return len(distance_counts(topology)) - 1


def aspl(topology: Topology) -> float:
    """Mean distance over the n (n - 1) ordered pairs of different switches, in hops; 0 for a single switch.

    Raises ``ValueError`` if not strongly connected.
    """
    return mean_hops(distance_counts(topology))


def mean_hops(counts: np.ndarray) -> float:
    """Mean over pairs of different switches, from a histogram of :func:`distance_counts`; 0 without pairs."""
    pairs = int(counts[1:].sum())
    return int(counts @ np.arange(len(counts))) / pairs if pairs else 0.0
