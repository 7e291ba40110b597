# SPDX-License-Identifier: Apache-2.0
"""Splitting off: vertices without ranks are replaced by arcs between ranks, each of which is a path of the network.

At a vertex z, capacity m is moved from arcs (u, z) and (z, t) to an arc (u, t), as long as the maximum flow from the
roots of all trees to every rank is at least the number of trees. If the capacities into and out of z are equal, z can
be removed completely (Bang-Jensen, Frank and Jackson 1995, doi:10.1137/S0036142993226983; Jackson 1988).

The largest m is exact: it only reduces the capacity out of sets that contain the root, and either z but neither u nor
t, or u and t but not z. The least such set is a minimum cut with u, t and z joined to source and sink.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import product

import numpy as np

from flitlab.fluid.collective.maxflow import Residual, first_unreached, send_up_to, set_capacities
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import device_function


class SplittingError(FluidError):
    """A vertex without ranks cannot be split off."""


@dataclass(frozen=True, eq=False)
class LogicalArcs:
    """Arcs between ranks, each a path of the network.

    tail, head, capacity: int64 [arcs], sorted by (tail, head). paths: the vertices of each arc's path, from its tail to
    its head; the inner ones have no ranks and only forward.
    """

    tail: Ints
    head: Ints
    capacity: Ints
    paths: tuple[tuple[int, ...], ...]


def split_off(tail: Ints, head: Ints, capacity: Ints, count: Ints, is_rank: Bools) -> LogicalArcs:
    """Arcs between ranks over which as many trees can be packed as over the network.

    Parameters
    ----------
    tail, head, capacity : int64 [arcs]
        Arcs of the network.
    count : int64 [vertices]
        Trees of each root, at ranks only.
    is_rank : bool [vertices]
        Vertices that all trees reach.

    Raises
    ------
    SplittingError
        A vertex cannot be split off, which may happen if the capacities into and out of it differ.
    """
    arc_paths = _ArcPaths(count, is_rank)
    for u, v, path_capacity in zip(tail.tolist(), head.tolist(), capacity.tolist(), strict=True):
        arc_paths.add((u, v), path_capacity)
    for z in np.flatnonzero(~is_rank).tolist():
        arc_paths.split(z)
    sorted_paths = sorted(
        (path[0], path[-1], path, path_capacity)
        for paths in arc_paths.between.values()
        for path, path_capacity in paths.items()
    )
    arcs = (
        np.array([(tail, head, path_capacity) for tail, head, _, path_capacity in sorted_paths], np.int64)
        .reshape(-1, 3)
        .T
    )
    return LogicalArcs(arcs[0], arcs[1], arcs[2], tuple(path for _, _, path, _ in sorted_paths))


class _ArcPaths:
    """The arcs while vertices are split off: for each arc (u, v), path -> capacity."""

    def __init__(self, count: Ints, is_rank: Bools) -> None:
        self.count, self.sinks = count, np.flatnonzero(is_rank)
        self.between: dict[tuple[int, int], dict[tuple[int, ...], int]] = defaultdict(dict)

    def add(self, path: tuple[int, ...], capacity: int) -> None:
        """Add capacity to a path, without its loops."""
        path = _straight(path)
        paths = self.between[path[0], path[-1]]
        paths[path] = paths.get(path, 0) + capacity

    def split(self, z: int) -> None:
        """Replace the vertex z by paths through it."""
        into = [u for u, v in self.between if v == z]
        out = [v for u, v in self.between if u == z]
        arcs = dict.fromkeys([*self.between, *((u, t) for u, t in product(into, out) if u != t)])
        tail, head = np.array(list(arcs), np.int64).reshape(-1, 2).T
        capacity = np.array([sum(self.between[arc].values()) if arc in self.between else 0 for arc in arcs], np.int64)
        index = {arc: i for i, arc in enumerate(arcs)}
        pairs = [(u, t) for u, t in product(into, out) if u != t]
        of_pair = np.array([(u, t, index[u, z], index[z, t], index[u, t]) for u, t in pairs], np.int64).reshape(-1, 5)
        moved = self._moved(z, tail, head, capacity, of_pair)
        for (u, t), amount in zip(pairs, moved.tolist(), strict=True):
            self._move(u, z, t, amount)
        for arc in [arc for arc in self.between if z in arc]:
            del self.between[arc]

    def _moved(self, z: int, tail: Ints, head: Ints, capacity: Ints, of_pair: Ints) -> Ints:
        """int64 [pairs]: capacity that moves from the arcs at z to the arc (u, t).

        of_pair: int64 [pairs, 5], every pair u, t, and its arcs (u, z), (z, t) and (u, t).
        """
        n, every = len(self.count), np.arange(len(self.count))
        source, sink = np.full(n, n), np.full(n, n + 1)
        tail, head = np.concatenate([tail, source, every]), np.concatenate([head, every, sink])
        capacity = np.concatenate([capacity, self.count, np.zeros(n, np.int64)])
        residual = Residual.of(n + 2, tail, head)
        moved = np.zeros(len(of_pair), np.int64)
        _split(residual, capacity, of_pair, z, self.sinks, int(self.count.sum()), moved)
        capacity[(tail == z) | (head == z)] = 0
        if first_unreached(residual, capacity, n, self.sinks, 0, int(self.count.sum())) < len(self.sinks):
            raise SplittingError(f"switch {z}, which has no ranks, cannot be split off: paths through it are too few")
        return moved

    def _move(self, u: int, z: int, t: int, amount: int) -> None:
        """Join paths of (u, z) to paths of (z, t), for an amount of capacity."""
        while amount > 0:
            (before, first), (after, second) = (next(iter(self.between[arc].items())) for arc in ((u, z), (z, t)))
            part = min(amount, first, second)
            self._take(before, part)
            self._take(after, part)
            self.add(before + after[1:], part)
            amount -= part

    def _take(self, path: tuple[int, ...], amount: int) -> None:
        paths = self.between[path[0], path[-1]]
        paths[path] -= amount
        if paths[path] == 0:
            del paths[path]


def _straight(path: tuple[int, ...]) -> tuple[int, ...]:
    """A path without its loops."""
    simple_path: list[int] = []
    for v in path:
        if v in simple_path:
            del simple_path[simple_path.index(v) :]
        simple_path.append(v)
    return tuple(simple_path)


@device_function
def _split(
    residual: Residual, capacity: Ints, of_pair: Ints, z: int, sinks: Ints, trees: int, moved: Ints
) -> None:  # fmt: skip
    """Compute the capacity that each pair of arcs at z moves to the arc past it, pair by pair.

    residual, capacity: for flows, with one arc from the source and one to the sink for every vertex, which
    come last; capacities change as capacity moves.
    """
    vertices, begin = len(residual.cursor), 0
    n = vertices - 2
    from_source, to_sink = len(capacity) - 2 * n, len(capacity) - n
    for k in range(len(of_pair)):
        u, t, before, after, past = of_pair[k, 0], of_pair[k, 1], of_pair[k, 2], of_pair[k, 3], of_pair[k, 4]
        amount = min(capacity[before], capacity[after])
        for i in range(len(sinks)):
            if amount == 0:
                break
            v = sinks[(begin + i) % len(sinks)]
            for kind in range(2):
                limit = trees + amount
                set_capacities(residual, capacity, len(capacity))
                remaining, slot = residual.remaining, residual.slot
                remaining[slot[to_sink + v]] = limit
                for end in (u, t):
                    remaining[slot[(from_source if kind == 0 else to_sink) + end]] = limit
                remaining[slot[(to_sink if kind == 0 else from_source) + z]] = limit
                amount = min(amount, send_up_to(residual, n, n + 1, limit) - trees)
            if amount == 0:
                begin = (begin + i) % len(sinks)
        capacity[before] -= amount
        capacity[after] -= amount
        capacity[past] += amount
        moved[k] = amount
