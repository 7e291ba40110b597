# SPDX-License-Identifier: Apache-2.0
"""Hop distances in a topology: all pairs, their histogram, diameter and mean.

Hops are channels between switches; capacities and delays do not matter. In a multistage network, distances are from a
switch where hosts inject to one where hosts eject.
"""

from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Bools, Int, Integers, Ints, Masks
from flitlab.models.jit import kernel, njit
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.topology.graph import Topology

WORDS = 8
"""Words of 64 sources per search: a cache line."""

BATCH = 64 * WORDS


@kernel
def _gather(frontier: Masks, neighbours: Integers, arriving: Masks) -> None:
    """Add the sources of some switches of the frontier to ``arriving``."""
    for u in neighbours:
        for w in range(WORDS):
            arriving[w] |= frontier[u, w]


@kernel
def _enter(table: Integers, first: int, sources: Int, v: int, hops: int) -> None:
    """Enter the hops from some sources to v; bit i of ``sources`` is row ``first`` + i."""
    while sources != np.uint64(0):
        table[first + lowest(sources), v] = hops
        sources &= sources - np.uint64(1)


@njit
def _search(
    in_start: Integers, neighbour: Integers, sources: Integers, weight: Ints, counts: Ints, group: Ints, table: Integers
) -> int:
    """Search breadth-first from up to BATCH sources at once, one bit each.

    Parameters
    ----------
    in_start, neighbour: the switches with a channel into v are neighbour[in_start[v]:in_start[v + 1]].
    sources: integers [sources], switches.
    weight: int64 [switches].
    counts: int64 [switches]; counts[h] grows by weight[s] weight[v] for every source s and switch v at h hops.
    group: int64 [WORDS]; grows by the hops from each 64 sources to all switches.
    table: [sources, switches]; table[i, v] becomes the hops from sources[i] to v; unused if it has no rows.

    Returns
    -------
    The number of connected pairs (source, switch); below sources * switches where a switch is unreachable.

    Source: Then et al., The More the Merrier: Efficient Multi-Source Graph Traversal, PVLDB 8, 2014,
    doi:10.14778/2735496.2735507.
    """
    n = len(in_start) - 1
    frontier = np.zeros((n, WORDS), np.uint64)
    next_frontier = np.zeros((n, WORDS), np.uint64)
    all_sources = np.zeros(WORDS, np.uint64)
    bits = 1
    while np.int64(1) << bits <= weight.max():
        bits += 1
    planes = np.zeros((bits, WORDS), np.uint64)  # bit b of the weight of each source
    for i in range(len(sources)):
        bit = np.uint64(1) << np.uint64(i % 64)
        frontier[sources[i], i // 64] |= bit
        all_sources[i // 64] |= bit
        counts[0] += weight[sources[i]] ** 2
        for b in range(bits):
            if weight[sources[i]] >> b & 1:
                planes[b, i // 64] |= bit
    reached = frontier.copy()
    arriving = np.zeros(WORDS, np.uint64)
    pairs, new_pairs, hops = len(sources), len(sources), 0
    while new_pairs > 0:
        hops += 1
        new_pairs = 0
        for v in range(n):
            missing = np.uint64(0)
            for w in range(WORDS):
                missing |= all_sources[w] ^ reached[v, w]
                arriving[w] = np.uint64(0)
            if missing != np.uint64(0):
                _gather(frontier, neighbour[in_start[v] : in_start[v + 1]], arriving)
            for w in range(WORDS):
                new_sources = arriving[w] & ~reached[v, w]
                next_frontier[v, w] = new_sources
                reached[v, w] |= new_sources
                if new_sources == np.uint64(0):
                    continue
                size = popcount(new_sources)
                new_pairs += size
                group[w] += hops * size
                for b in range(bits):
                    counts[hops] += weight[v] * popcount(new_sources & planes[b, w]) << b
                if len(table) > 0:
                    _enter(table, 64 * w, new_sources, v, hops)
        pairs += new_pairs
        frontier, next_frontier = next_frontier, frontier
    return pairs


def _search_all(
    topology: Topology, sources: Ints, weight: Ints | None = None, table: Integers | None = None, partial: bool = False
) -> tuple[Ints, Ints]:
    """Return (counts [switches], hops from each 64 sources to all switches), batch by batch.

    Raises ``ValueError`` for a switch that is unreachable, unless ``partial``.
    """
    n = topology.switches
    counts = np.zeros(n, np.int64)
    groups = np.zeros((-(-len(sources) // BATCH), WORDS), np.int64)
    weight = np.ones(n, np.int64) if weight is None else np.asarray(weight, np.int64)
    tails = topology.src[topology.in_channels]
    no_table = np.zeros((0, 0), np.uint8)
    for batch, group in enumerate(groups):
        rows = slice(batch * BATCH, min((batch + 1) * BATCH, len(sources)))
        rows_of_table = no_table if table is None else table[rows]
        pairs = _search(topology.in_start, tails, sources[rows], weight, counts, group, rows_of_table)
        if pairs < n * len(sources[rows]) and not partial and not topology.is_multistage:
            u, v = topology.unreachable_pair() or (0, 0)
            raise ValueError(f"no path from switch {u} to switch {v}")
    return counts, groups.ravel()[: -(-len(sources) // 64)]


def host_distance_counts(topology: Topology) -> Ints:
    """Count ordered pairs of different hosts whose switches are h hops apart: int64 [hops].

    From the switch where the first host injects to that where the second ejects. Raises ``ValueError`` if the topology
    is not strongly connected.
    """
    if topology.is_multistage:
        src, dst = topology.src_switches, topology.dst_switches
        pairs = np.outer(topology.host_count[src], topology.ejection_count[dst])
        hops = distances(topology)
        counts = np.bincount(hops[np.ix_(src, dst)].ravel(), pairs.ravel()).astype(np.int64)
        own = np.bincount(hops[topology.host_switch, topology.ejection_switch], minlength=len(counts))
        return np.trim_zeros(counts - own, "b")
    counts = distance_counts(topology, topology.host_count)
    if not len(counts):
        return np.zeros(1, np.int64)
    counts[0] -= topology.hosts  # a host and itself
    return counts


def distance_counts(topology: Topology, weight: Ints | None = None) -> Ints:
    """Count the ordered pairs of switches at h hops, int64 [diameter + 1]; h = 0: the switches.

    The memory is proportional to the number of channels.

    Parameters
    ----------
    topology: the network.
    weight: int64 [switches], 0 or more; a pair then counts weight[s] weight[t] times. With the hosts at each switch as
        weights, the result counts ordered pairs of hosts, each host with itself included.

    Raises
    ------
    ValueError: the topology is not strongly connected, or has weights and is multistage.
    """
    if topology.is_multistage:
        if weight is not None:
            raise ValueError("weights are of hosts that inject and eject at one switch")
        return np.bincount(distances(topology)[np.ix_(topology.src_switches, topology.dst_switches)].ravel())
    sources = np.arange(topology.switches)
    if weight is not None:
        sources = np.flatnonzero(weight)
    return np.trim_zeros(_search_all(topology, sources, weight)[0], "b")


@dataclass(frozen=True)
class SampledDistances:
    """Distances from a sample of the switches to all switches.

    counts: int64 [hops], ordered pairs (source, switch) by distance. mean: over pairs of different switches. stderr:
    standard error of the mean; 0 if every switch is a source, None if the sample is too small. sources: number of
    sources.
    """

    counts: Ints
    mean: float
    stderr: float | None
    sources: int


def sampled_distances(topology: Topology, sources: int) -> SampledDistances:
    """Compute distances from ``sources`` switches, rounded up to a multiple of 64 and drawn without repetition.

    The sample is always the same. With at least as many sources as switches the result is exact; else the standard
    error comes from the variance of the means of 64 sources each, and the largest distance is a lower bound on the
    diameter. Raises ``ValueError`` where a switch is unreachable.
    """
    n = topology.switches
    count = -(-sources // 64) * 64
    if count >= n or topology.is_multistage:
        counts = distance_counts(topology)
        return SampledDistances(counts, mean_hops(counts), 0.0, n)
    sample = np.random.Generator(np.random.Philox(0)).choice(n, count, replace=False)
    histogram, groups = _search_all(topology, np.sort(sample))
    means = groups / (64 * (n - 1))
    stderr = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else None
    counts = np.trim_zeros(histogram, "b")
    return SampledDistances(counts, mean_hops(counts), stderr, count)


def distances(topology: Topology) -> np.ndarray:
    """Return the hops *from* s *to* t, [switches, switches]; uint8, or uint16 where the diameter exceeds 255.

    In a multistage network the greatest number of the type stands for no path.

    Raises ``ValueError`` if not strongly connected.
    """
    n = topology.switches
    diameter = len(np.trim_zeros(_search_all(topology, np.arange(n))[0], "b")) - 1
    table = np.zeros((n, n), np.min_scalar_type(diameter + topology.is_multistage))
    if topology.is_multistage:
        table[:] = np.iinfo(table.dtype).max
        np.fill_diagonal(table, 0)
    _search_all(topology, np.arange(n), table=table)
    return table


def reachable(topology: Topology) -> Bools:
    """Return whether a path leads from s to t, bool [switches, switches]; a switch reaches itself."""
    n = topology.switches
    table = np.zeros((n, n), np.min_scalar_type(n))
    _search_all(topology, np.arange(n), table=table, partial=True)
    reached: Bools = table > 0
    np.fill_diagonal(reached, True)
    return reached


def mean_of_reachable(topology: Topology) -> float:
    """Return the mean distance, in hops, of the pairs of different switches that a path joins; 0 if there are none."""
    counts = _search_all(topology, np.arange(topology.switches), partial=True)[0]
    return mean_hops(counts) if counts[1:].any() else 0.0


def diameter(topology: Topology) -> int:
    """Return the largest distance between two switches, in hops. Raises ``ValueError`` if not strongly connected."""
    return len(distance_counts(topology)) - 1


def nearest_hosts(topology: Topology) -> int:
    """Return the least distance between two different hosts, in hops; 0 if there are fewer than two.

    Raises ``ValueError`` if the topology is not strongly connected.
    """
    if topology.is_multistage:
        return int(np.flatnonzero(np.append(host_distance_counts(topology), 1))[0]) if topology.hosts > 1 else 0
    count = topology.host_count
    if topology.hosts < 2 or count.max() > 1:
        return 0
    if (count[topology.src] & count[topology.dst]).any():
        return 1
    pairs = distance_counts(topology, count)
    pairs[0] = 0  # each host with itself
    return int(np.flatnonzero(pairs)[0])


def aspl(topology: Topology) -> float:
    """Return the mean distance over the n (n - 1) ordered pairs of different switches, in hops; 0 for a single switch.

    Raises ``ValueError`` if not strongly connected.
    """
    return mean_hops(distance_counts(topology))


def mean_hops(counts: np.ndarray) -> float:
    """Return the mean distance over pairs of different switches; 0 without pairs.

    Parameters
    ----------
    counts: int64 [hops], as :func:`distance_counts` returns.
    """
    pairs = int(counts[1:].sum())
    return int(counts @ np.arange(len(counts))) / pairs if pairs else 0.0
