# SPDX-License-Identifier: Apache-2.0
"""Tables of whole paths, for routings that draw one at the source."""

from collections.abc import Iterable, Iterator

import numpy as np

from flitlab.models.arrays import Bytes, Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.mappings import Notes
from flitlab.models.paths.first import first_shortest_to
from flitlab.models.paths.ksp import k_shortest_to
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.paths.within import paths_within_from
from flitlab.models.registry import SpecError
from flitlab.models.routing.route_set import PathTable
from flitlab.models.rules.tables import MaxPorts
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

MAX_PATHS = 2 * 10**8
"""Paths that a table may hold."""


@njit
def _put_lengths(pairs: Ints, pair_start: Ints, counts: Integers, lengths: Integers, into: Integers) -> None:
    """Write the lengths of paths, pair after pair, to the places of the pairs in the table."""
    done = 0
    for i in range(len(pairs)):
        for j in range(counts[i]):
            into[pair_start[pairs[i]] + j] = lengths[done]
            done += 1


@njit
def _put_ports(pairs: Ints, pair_start: Ints, path_start: Ints, counts: Integers, ports: Bytes, into: Bytes) -> None:
    """Write the ports of paths, pair after pair, to the places of the paths; those of a pair are contiguous."""
    done = 0
    for i in range(len(pairs)):
        first = pair_start[pairs[i]]
        for j in range(path_start[first], path_start[first + counts[i]]):
            into[j] = ports[done]
            done += 1


def path_table(topology: Topology, groups: Iterable[tuple[Ints, PathSet]]) -> PathTable:
    """The table of path sets.

    It takes 8 bytes per pair of switches and per path, and one per hop.

    Parameters
    ----------
    topology: the network.
    groups: path sets, each with the numbers source * switches + target, int64, of its pairs.

    Returns
    -------
    The table.

    Raises
    ------
    SpecError: a switch has too many channels, or there are too many paths.
    """
    n = topology.switches
    degree = int(topology.out_degree.max(initial=0))
    if degree > MaxPorts.PATH:
        raise SpecError(f"serves at most {MaxPorts.PATH} channels out of a switch; the topology has {degree}")
    port_of = np.arange(topology.channels) - topology.out_start[topology.src]
    parts, total = [], 0
    for pairs, paths in groups:
        parts.append((pairs, paths.counts, paths.lengths.astype(np.uint32), port_of[paths.channel].astype(np.uint8)))
        total += len(paths.path_start) - 1
        if total > MAX_PATHS:
            raise SpecError(f"would take more than {MAX_PATHS:.0e} paths")
    counts = np.zeros(n * n, np.int64)
    for pairs, number, _, _ in parts:
        counts[pairs] = number
    pair_start = starts(counts)
    lengths = np.zeros(pair_start[-1], np.uint32)
    for pairs, number, length, _ in parts:
        _put_lengths(pairs, pair_start, number, length, lengths)
    path_start = starts(lengths)
    port = np.empty(path_start[-1], np.uint8)
    for pairs, number, _, ports in parts:
        _put_ports(pairs, pair_start, path_start, number, ports, port)
    return PathTable(pair_start, path_start, port)


def shortest_sets(
    topology: Topology, k: int, extra: int | None, seed: int, weight: Ints | None = None
) -> Iterator[tuple[Ints, PathSet]]:
    """The k shortest paths between switches with hosts, by destination.

    Parameters
    ----------
    topology: the network.
    k: paths per pair.
    extra: hops above the shortest that are allowed; None: any.
    seed: of draws.
    weight: int64 [channels], length of channels; None: 1 each.

    Returns
    -------
    (pairs, paths) of each destination, from :func:`~flitlab.models.paths.ksp.k_shortest_to`.
    """
    ends = topology.src_switches
    for dst_switch in topology.dst_switches.tolist():
        src_switches = ends[ends != dst_switch]
        yield (
            src_switches * topology.switches + dst_switch,
            k_shortest_to(topology, dst_switch, src_switches, k, extra=extra, seed=seed, weight=weight),
        )


def sets_within(topology: Topology, hops: int) -> Iterator[tuple[Ints, PathSet]]:
    """All loopless paths of at most ``hops`` channels between switches with hosts, by source."""
    ends = topology.dst_switches
    for src_switch in topology.src_switches.tolist():
        paths = paths_within_from(topology, src_switch, hops)
        dst_switches = ends[ends != src_switch]
        yield src_switch * topology.switches + dst_switches, _chosen(paths, dst_switches)


def first_sets(topology: Topology, k: int) -> Iterator[tuple[Ints, PathSet]]:
    """The k shortest paths between switches with hosts, ties by switch numbers, by destination.

    Raises ``SpecError`` if the search for some pair would take too long.
    """
    ends = topology.src_switches
    for dst_switch in topology.dst_switches.tolist():
        src_switches = ends[ends != dst_switch]
        try:
            yield (
                src_switches * topology.switches + dst_switch,
                first_shortest_to(topology, dst_switch, src_switches, k),
            )
        except ValueError as error:
            raise SpecError(str(error), key="ties") from None


def _chosen(paths: PathSet, pairs: Ints) -> PathSet:
    """The paths of some pairs of a set."""
    if len(pairs) == paths.pairs:
        return paths
    is_chosen = np.zeros(len(paths.path_start) - 1, bool)
    for pair in pairs:
        is_chosen[paths.pair_start[pair] : paths.pair_start[pair + 1]] = True
    lengths = paths.lengths
    return PathSet(
        starts(paths.counts[pairs]), starts(lengths[is_chosen]), paths.channel[np.repeat(is_chosen, lengths)]
    )


def within_hops(paths: PathSet, max_hops: int) -> PathSet:
    """The paths of at most ``max_hops`` channels; of a pair without any, those of the fewest channels.

    Parameters
    ----------
    paths: of every pair; may be none.
    max_hops: most channels.
    """
    lengths, listed = paths.lengths, paths.counts > 0
    if not listed.any():
        return paths
    fewest = np.repeat(np.minimum.reduceat(lengths, paths.pair_start[:-1][listed]), paths.counts[listed])
    is_kept = lengths <= np.maximum(fewest, max_hops)
    counts = np.diff(starts(is_kept)[paths.pair_start])
    return PathSet(starts(counts), starts(lengths[is_kept]), paths.channel[np.repeat(is_kept, lengths)])


def longest(table: PathTable) -> int:
    """Channels of the longest path.

    Parameters
    ----------
    table: the paths.
    """
    return int(np.diff(table.path_start).max(initial=0))


def paths_per_pair(topology: Topology, table: PathTable) -> Ints:
    """Paths between switches with hosts: int64 [src_switches, dst_switches]; MAX_PATHS from a switch to itself.

    Parameters
    ----------
    topology: the network.
    table: the paths.
    """
    src, dst = topology.src_switches, topology.dst_switches
    counts: Ints = np.diff(table.pair_start).reshape(topology.switches, -1)[np.ix_(src, dst)]
    counts[src[:, None] == dst] = MAX_PATHS
    return counts


def missing_pair(topology: Topology, table: PathTable) -> tuple[int, int] | None:
    """Two switches with hosts (s, t) without a path from s to t, or None.

    Parameters
    ----------
    topology: the network.
    table: the paths.
    """
    missing = np.argwhere(paths_per_pair(topology, table) == 0)
    if not len(missing):
        return None
    return int(topology.src_switches[missing[0, 0]]), int(topology.dst_switches[missing[0, 1]])


def path_notes(topology: Topology, table: PathTable) -> Notes:
    """Number of paths, paths per pair (least, mean), and their mean and longest length in channels.

    Parameters
    ----------
    topology: the network.
    table: the paths.
    """
    src, dst = topology.src_switches, topology.dst_switches
    pairs = len(src) * len(dst) - len(np.intersect1d(src, dst))
    counts = np.diff(table.pair_start)
    paths, used = len(table.path_start) - 1, counts[counts > 0]
    return {
        "paths": paths,
        "paths_per_pair_min": int(used.min()) if len(used) == pairs and pairs else 0,
        "paths_per_pair_mean": paths / pairs if pairs else 0.0,
        "hops_mean": float(np.diff(table.path_start).mean()) if paths else 0.0,
        "hops_max": longest(table),
    }


def require_connected(topology: Topology) -> None:
    """Raise ``SpecError`` unless every switch reaches every other, or in a multistage network every host every host.

    Parameters
    ----------
    topology: the network.
    """
    pair = topology.unreachable_pair()
    if pair is not None:
        u, v = map(switch_names(topology).label, pair)
        raise SpecError(f"the topology is not strongly connected: no path from switch {u} to switch {v}")


def farthest(topology: Topology) -> int:
    """Largest distance between switches with hosts, in channels.

    Parameters
    ----------
    topology: the network.
    """
    hops = distances(topology)[np.ix_(topology.src_switches, topology.dst_switches)]
    return int(hops.max(initial=0))
