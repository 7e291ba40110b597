# SPDX-License-Identifier: Apache-2.0
"""All loopless paths up to a number of hops."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Floats, Integers, Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.paths.ksp import k_shortest_to
from flitlab.models.paths.pathset import PathSet, concatenate, starts
from flitlab.models.topology.graph import Topology

MAX_STEPS = 10**11
"""Channels that a search over all pairs may traverse."""


class _Lists(NamedTuple):
    """Lists of paths; both arrays are empty if none are wanted.

    start: int64 [max_hops + 1, switches], index in ``channel`` of the next path of h channels to t. channel: int32.
    """

    start: Ints
    channel: Ints32


class _Load(NamedTuple):
    """Load of paths; both arrays are empty if none is wanted.

    share: float64 [switches], what each path to a switch carries. load: float64 [channels].
    """

    share: Floats
    load: Floats


_NO_LISTS = _Lists(np.zeros((0, 0), np.int64), np.zeros(0, np.int32))
_NO_LOAD = _Load(np.zeros(0), np.zeros(0))


@njit
def _walk(
    src_switch: int, max_hops: int, out_start: Integers, dst: Integers, counts: Ints, lists: _Lists, loads: _Load
) -> None:  # fmt: skip
    """Search depth-first all loopless paths of at most ``max_hops`` channels from a switch.

    Parameters
    ----------
    src_switch: first switch of all paths.
    max_hops: most channels of a path.
    out_start, dst: as in the topology.
    counts: int64 [max_hops + 1, switches]; counts[h, t] grows by the number of paths of h channels to t.
    lists: ``channel`` receives the paths, ``start`` is advanced.
    loads: ``load`` grows by what the paths carry.
    """
    (start, channel), (share, load) = lists, loads
    has_paths, has_load = start.size > 0, load.size > 0
    visited = np.zeros(len(out_start), np.bool_)
    visited[src_switch] = True
    path = np.empty(max_hops, np.int64)
    next_channel = np.empty(max_hops + 1, np.int64)  # channel to try next at each depth
    carried = np.zeros(max_hops + 1)  # load of the paths through the switch at each depth
    end = np.empty(max_hops + 1, np.int64)
    next_channel[0], end[0] = out_start[src_switch], out_start[src_switch + 1]
    depth = 0
    while depth >= 0:
        if next_channel[depth] == end[depth]:
            depth -= 1
            if depth >= 0:
                visited[dst[path[depth]]] = False
                if has_load:
                    load[path[depth]] += carried[depth + 1]
                    carried[depth] += carried[depth + 1]
            continue
        c = next_channel[depth]
        next_channel[depth] += 1
        v = dst[c]
        if visited[v]:
            continue
        path[depth] = c
        counts[depth + 1, v] += 1
        if has_paths:
            index = start[depth + 1, v]
            start[depth + 1, v] += depth + 1
            for i in range(depth + 1):
                channel[index + i] = path[i]
        if depth + 1 == max_hops:
            if has_load:
                load[c] += share[v]
                carried[depth] += share[v]
            continue
        depth += 1
        visited[v] = True
        next_channel[depth], end[depth] = out_start[v], out_start[v + 1]
        carried[depth] = share[v] if has_load else 0.0


def counts_within(topology: Topology, src_switch: int, max_hops: int) -> Ints:
    """Count loopless paths of exactly h hops from a switch to each: int64 [max_hops + 1, switches]; row 0 is 0.

    The time is proportional to the number of paths.

    Parameters
    ----------
    topology: the network.
    src_switch: first switch of all paths.
    max_hops: most hops of a path.
    """
    counts = np.zeros((max_hops + 1, topology.switches), np.int64)
    _walk(src_switch, max_hops, topology.out_start, topology.dst, counts, _NO_LISTS, _NO_LOAD)
    return counts


def paths_within_from(topology: Topology, src_switch: int, max_hops: int) -> PathSet:
    """List all loopless paths of at most ``max_hops`` hops from a switch; pair t is (src_switch, t), empty for the
    source.

    Parameters
    ----------
    topology: the network.
    src_switch: first switch of all paths.
    max_hops: most hops of a path.
    """
    counts = counts_within(topology, src_switch, max_hops)
    length = np.repeat(np.arange(max_hops + 1)[:, None], topology.switches, axis=1)
    size = (counts * length).T.ravel()
    start = (np.cumsum(size) - size).reshape(topology.switches, max_hops + 1).T.copy()
    channel = np.empty(size.sum(), np.int32)
    counts_again = np.zeros_like(counts)
    _walk(src_switch, max_hops, topology.out_start, topology.dst, counts_again, _Lists(start, channel), _NO_LOAD)
    lengths = np.repeat(length.T.ravel(), counts.T.ravel())
    return PathSet(starts(counts.sum(0)), starts(lengths), channel)


def paths_within(topology: Topology, pairs: npt.ArrayLike, max_hops: int) -> PathSet:
    """List all loopless paths of at most ``max_hops`` hops of each pair.

    Parameters
    ----------
    topology: the network.
    pairs: int64 [pairs, 2], source and destination switch.
    max_hops: most hops of a path.
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    src_switches, row = np.unique(pairs[:, 0], return_inverse=True)
    sets = [paths_within_from(topology, src_switch, max_hops) for src_switch in src_switches]
    return concatenate(sets, row * topology.switches + pairs[:, 1])


def all_counts_within(topology: Topology, max_hops: int) -> Iterator[np.ndarray]:
    """Yield :func:`counts_within` of each source 0, 1, … in order.

    Raises
    ------
    ValueError: there may be more than :data:`MAX_STEPS` steps.
    """
    _check_size(topology, max_hops)
    for src_switch in range(topology.switches):
        yield counts_within(topology, src_switch, max_hops)


def even_load_within(topology: Topology, max_hops: int) -> tuple[np.ndarray, int, int]:
    """Compute channel loads if every ordered pair sends 1, evenly over its paths of at most ``max_hops`` hops.

    Returns
    -------
    The load, float64 [channels]; the number of paths; and the number of ordered pairs of different switches without a
        path, which send nothing.

    Raises
    ------
    ValueError: there may be more than :data:`MAX_STEPS` steps.
    """
    load = np.zeros(topology.channels)
    path_count = pairs_without_paths = 0
    for src_switch, counts in enumerate(all_counts_within(topology, max_hops)):
        paths = counts.sum(0)
        path_count += int(paths.sum())
        pairs_without_paths += int((paths == 0).sum()) - 1  # the source itself
        share = np.divide(1.0, paths, where=paths > 0, out=np.zeros(len(paths)))
        _walk(src_switch, max_hops, topology.out_start, topology.dst, counts, _NO_LISTS, _Load(share, load))
    return load, path_count, pairs_without_paths


def _check_size(topology: Topology, hops: int) -> None:
    degree = int(topology.out_degree.max(initial=0))
    steps = topology.channels * max(degree - (not topology.directed), 1) ** (hops - 1)
    if steps > MAX_STEPS:
        raise ValueError(f"up to {steps:.1e} paths of at most {hops} hops: more than {MAX_STEPS:.0e}; use fewer hops")


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
