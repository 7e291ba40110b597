# SPDX-License-Identifier: Apache-2.0
"""Layers of routes with acyclic dependencies: the VC policy ``layered``.

A unit is a path, or all next hops of a pair of switches. It is in one layer, and a packet stays on the VCs of its
layer. So it suffices that the channel dependencies within every layer have no cycle.

Sources: Skeie, Lysne, Theiss, LASH, IPDPS 2002, doi:10.1109/IPDPS.2002.1016580 (first fit). Domke, Hoefler, Nagel,
DFSSSP, IPDPS 2011, doi:10.1109/IPDPS.2011.65 (spreading units over spare layers). The order of channels is kept as in
Pearce and Kelly, J. Experimental Algorithmics 11, 2006, doi:10.1145/1187436.1210590.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from flitlab.models.arrays import Bools, Bytes, Int, Ints, Masks
from flitlab.models.jit import njit
from flitlab.models.registry import SpecError
from flitlab.models.routing.route_set import Routes
from flitlab.models.routing.walk import hop_dependencies, path_dependencies
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.tables import MaxPorts, RouteForm, Tables
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology

MOST_LAYERS = 255

_ONE = np.uint64(1)

_Graph: TypeAlias = tuple[Ints, Ints, Ints, Ints, Ints]
"""Arrays of a topology that the search needs: (out_start, dst, in_start, in_channels, src)."""


class _Scratch(NamedTuple):
    """Scratch of :func:`_insert_order`.

    is_reached: bool [channels], all False before and after. successors, predecessors, ordered: int64 [channels].
    """

    is_reached: Bools
    successors: Ints
    predecessors: Ints
    ordered: Ints


@njit
def _search(
    graph: _Graph, follows: Masks, rank: Ints, start: Int, limit: Int, backwards: bool, is_reached: Bools, reached: Ints
) -> int:
    """Collect the channels that depend on ``start`` (backwards: that it depends on) up to rank ``limit``; their number.

    is_reached: bool [channels], set for them; reached: int64 [channels], filled.
    """
    out_start, dst, in_start, in_channels, src = graph
    reached[0], count, done = start, 1, 0
    is_reached[start] = True
    while done < count:
        c = reached[done]
        done += 1
        if backwards:
            port = np.uint64(c - out_start[src[c]])
            for i in range(in_start[src[c]], in_start[src[c] + 1]):
                e = in_channels[i]
                if (follows[e] >> port) & _ONE and rank[e] >= limit and not is_reached[e]:
                    is_reached[e] = True
                    reached[count] = e
                    count += 1
        else:
            ports = follows[c]
            while ports:
                e = out_start[dst[c]] + lowest(ports)
                ports &= ports - _ONE
                if rank[e] <= limit and not is_reached[e]:
                    is_reached[e] = True
                    reached[count] = e
                    count += 1
    return count


@njit
def _sort(values: Ints, count: int) -> None:
    """Sort the first ``count`` values (Shell's method; Numba's sort takes seconds to compile)."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@njit
def _insert_order(graph: _Graph, follows: Masks, rank: Ints, a: Int, b: Int, scratch: _Scratch) -> bool:
    """Make rank[a] < rank[b] and keep the order of all dependencies; False if b must come before a.

    follows: uint64 [channels], ports of the channels that each channel requests. rank: int64 [channels].
    """
    is_reached, successors, predecessors, ordered = scratch
    if rank[a] < rank[b]:
        return True
    after = _search(graph, follows, rank, b, rank[a], False, is_reached, successors)
    cyclic = is_reached[a]
    for i in range(after):
        is_reached[successors[i]] = False
    if cyclic:
        return False
    before = _search(graph, follows, rank, a, rank[b], True, is_reached, predecessors)
    for i in range(before):
        is_reached[predecessors[i]] = False
    # predecessors in their order, then successors in theirs, take the ranks that all of them have now
    for i in range(before):
        predecessors[i] |= rank[predecessors[i]] << 32
    for i in range(after):
        successors[i] |= rank[successors[i]] << 32
    _sort(predecessors, before)
    _sort(successors, after)
    i = j = k = 0
    while i < before or j < after:
        if j == after or (i < before and predecessors[i] < successors[j]):
            ordered[k] = predecessors[i] >> 32
            i += 1
        else:
            ordered[k] = successors[j] >> 32
            j += 1
        k += 1
    for i in range(before):
        rank[predecessors[i] & 0xFFFFFFFF] = ordered[i]
    for j in range(after):
        rank[successors[j] & 0xFFFFFFFF] = ordered[before + j]
    return True


@njit
def _with_empty_layer(follows: Masks, rank: Ints) -> tuple[Masks, Ints]:
    """Copies of ``follows`` and ``rank``, [layers, channels], with an empty layer added."""
    layers, channels = follows.shape
    more_follows, more_rank = np.zeros((layers + 1, channels), np.uint64), np.empty((layers + 1, channels), np.int64)
    for c in range(channels):
        for k in range(layers):
            more_follows[k, c] = follows[k, c]
            more_rank[k, c] = rank[k, c]
        more_rank[layers, c] = c
    return more_follows, more_rank


@njit
def _first_fit(units: Ints, is_path: bool, starts: Ints, r: Tables, graph: _Graph, layer: Bytes, most: int) -> int:
    """Fill ``layer`` with the first layer that each unit fits into; the number of layers, -1 if above ``most``.

    starts: int64, the source of every path (unused for pairs: unit s * switches + t).
    """
    channels, switches = len(graph[1]), len(graph[0]) - 1
    follows, rank = _with_empty_layer(np.zeros((0, channels), np.uint64), np.zeros((0, channels), np.int64))
    rows = np.empty((3, channels), np.int64)
    scratch = _Scratch(np.zeros(channels, np.bool_), rows[0], rows[1], rows[2])
    seen, stack = np.zeros(switches, np.bool_), np.empty(switches, np.int64)
    edges = np.empty((MaxPorts.MASK * channels if not is_path else switches, 2), np.int64)
    new, source = np.empty(len(edges), np.int64), np.empty(1, np.int64)
    for unit in units:
        if is_path:
            count = path_dependencies(r, graph[0], graph[1], unit, starts[unit], edges)
        else:
            source[0] = unit // switches
            count = hop_dependencies(r, graph[0], graph[1], source, unit % switches, seen, stack, edges)
        k = 0
        while True:
            if k == len(follows):
                if k == most:
                    return -1
                follows, rank = _with_empty_layer(follows, rank)
            added, fits = 0, True
            for i in range(count):
                a, b = edges[i, 0], edges[i, 1]
                bit = _ONE << np.uint64(b - graph[0][graph[1][a]])
                if follows[k, a] & bit:
                    continue
                if not _insert_order(graph, follows[k], rank[k], a, b, scratch):
                    fits = False
                    break
                follows[k, a] |= bit
                new[added] = i
                added += 1
            if fits:
                layer[unit] = k
                break
            for j in range(added):
                a, b = edges[new[j], 0], edges[new[j], 1]
                follows[k, a] &= ~(_ONE << np.uint64(b - graph[0][graph[1][a]]))
            k += 1
    return len(follows)


def assign_layers(
    topology: Topology, routes: Routes, order: str = "short_first", most: int | None = None
) -> tuple[Bytes, int]:
    """The layer of every path (or pair of switches with hosts), uint8, and the number of layers.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    order: order of the paths, as in ``vc_policy``.
    most: exact number of layers; None: as many as needed.

    Raises
    ------
    SpecError: more layers are needed than ``most``, or than 255.

    Source: Skeie, Lysne, Theiss, IPDPS 2002, doi:10.1109/IPDPS.2002.1016580.
    """
    if topology.out_degree.max(initial=0) > MaxPorts.MASK:
        raise SpecError(f"layered serves at most {MaxPorts.MASK} channels out of a switch", key="vc_policy")
    n = topology.switches
    units_of_pairs, pairs = unit_pairs(topology, routes)
    if routes.paths:
        length = np.diff(routes.paths.path_start)
    else:
        length = distances(topology).ravel()[pairs].astype(np.int64)
    units = units_of_pairs[_ordering(length, order)]
    total = len(routes.paths.path_start) - 1 if routes.paths else n * n
    starts = np.zeros(total if routes.paths else 0, np.int64)
    if routes.paths:
        starts[units_of_pairs] = pairs // n
    layer = np.zeros(total, np.uint8)
    graph = topology.out_start, topology.dst, topology.in_start, topology.in_channels, topology.src
    limit = most or MOST_LAYERS
    count = _first_fit(units, routes.form == RouteForm.PATHS, starts, routes.tables(topology), graph, layer, limit)
    if count < 0:
        raise SpecError(f"the routes need more than {limit} layers", key="vc_policy")
    return _split_layers(layer, units, count, most or count), max(count, most or count)


def unit_pairs(topology: Topology, routes: Routes) -> tuple[Ints, Ints]:
    """Units, int64, and the pair s * switches + t of each.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    """
    n = topology.switches
    if routes.paths:
        every = np.arange(len(routes.paths.path_start) - 1)
        return every, np.repeat(np.arange(n * n), np.diff(routes.paths.pair_start))
    src, dst = topology.src_switches, topology.dst_switches
    pairs = (src[:, None] * n + dst)[src[:, None] != dst]
    return pairs, pairs


def _ordering(length: Ints, order: str) -> Ints:
    """Indices of the units in the order of their assignment."""
    if order == "random":
        return np.random.Generator(np.random.Philox(0)).permutation(len(length))
    return np.argsort(-length if order == "long_first" else length, kind="stable")


def _split_layers(layer: Bytes, units: Ints, count: int, layers: int) -> Bytes:
    """Split the fullest layer until there are ``layers``. A subset of an acyclic layer is acyclic."""
    for new in range(count, layers):
        sizes = np.bincount(layer[units], minlength=new)
        fullest = units[layer[units] == np.argmax(sizes)]
        layer[fullest[1::2]] = new
    return layer
