# SPDX-License-Identifier: Apache-2.0
"""Splitting off: vertices without ranks make way for arcs between ranks, each of which is a path of the network.

At a vertex z capacity m is taken from an arc (u, z) and an arc (z, t) and given to an arc (u, t), as long as from the
roots of all trees as much still flows to every rank as there are trees. If as much capacity enters z as leaves it, z
can be used up (Bang-Jensen, Frank and Jackson 1995, doi:10.1137/S0036142993226983; Jackson 1988).

How much m may be is known exactly: only sets of vertices that have the root, and z but neither u nor t, or u and t but
not z, are left by less than before, so the least of them is a maximum flow with u, t and z joined to its ends.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import product

import numpy as np

from flitlab.fluid.collective.maxflow import Residual, first_short, send_most, set_capacities
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import device_function


class SplittingError(FluidError):
    """A vertex without ranks cannot be split off."""


@dataclass(frozen=True, eq=False)
class Logical:
    """Arcs between ranks, each a path of the network.

    tail, head, capacity: int64 [arcs], sorted by (tail, head). paths: for each arc the vertices of its path, the first
    being its tail and the last its head; the inner ones have no ranks and only forward.
    """

    tail: Ints
    head: Ints
    capacity: Ints
    paths: tuple[tuple[int, ...], ...]


def split_off(tail: Ints, head: Ints, capacity: Ints, count: Ints, is_rank: Bools) -> Logical:
    """Arcs between ranks over which as many trees can be packed as over those of the network.

    tail, head, capacity: int64 [arcs]. count: int64 [vertices], how many trees have their root there, at ranks only.
    is_rank: bool [vertices], the vertices that all trees are to reach.

    Raises :class:`SplittingError` if a vertex cannot be split off, as may be if not as much can enter it as leave it.
    """
    ways = _Ways(count, is_rank)
    for u, v, room in zip(tail.tolist(), head.tolist(), capacity.tolist(), strict=True):
        ways.add((u, v), room)
    for z in np.flatnonzero(~is_rank).tolist():
        ways.split(z)
    found = sorted((path[0], path[-1], path, room) for paths in ways.between.values() for path, room in paths.items())
    arcs = np.array([(tail, head, room) for tail, head, _, room in found], np.int64).reshape(-1, 3).T
    return Logical(arcs[0], arcs[1], arcs[2], tuple(path for _, _, path, _ in found))


class _Ways:
    """The arcs while vertices are split off: from u to v, the capacity of every path that stands for an arc (u, v)."""

    def __init__(self, count: Ints, is_rank: Bools) -> None:
        self.count, self.sinks = count, np.flatnonzero(is_rank)
        self.between: dict[tuple[int, int], dict[tuple[int, ...], int]] = defaultdict(dict)

    def add(self, path: tuple[int, ...], room: int) -> None:
        """Give capacity to a path, but for its detours."""
        path = _straight(path)
        paths = self.between[path[0], path[-1]]
        paths[path] = paths.get(path, 0) + room

    def split(self, z: int) -> None:
        """Replace the vertex z by paths through it."""
        into = [u for u, v in self.between if v == z]
        out = [v for u, v in self.between if u == z]
        arcs = dict.fromkeys([*self.between, *((u, t) for u, t in product(into, out) if u != t)])
        tail, head = np.array(list(arcs), np.int64).reshape(-1, 2).T
        room = np.array([sum(self.between[arc].values()) if arc in self.between else 0 for arc in arcs], np.int64)
        place = {arc: i for i, arc in enumerate(arcs)}
        pairs = [(u, t) for u, t in product(into, out) if u != t]
        of_pair = np.array([(place[u, z], place[z, t], place[u, t]) for u, t in pairs], np.int64).reshape(-1, 3)
        moved = self._moved(z, tail, head, room, of_pair)
        for (u, t), amount in zip(pairs, moved.tolist(), strict=True):
            self._move(u, z, t, amount)
        for arc in [arc for arc in self.between if z in arc]:
            del self.between[arc]

    def _moved(self, z: int, tail: Ints, head: Ints, room: Ints, of_pair: Ints) -> Ints:
        """int64 [pairs]: how much goes to the arc from u to t instead of by way of z.

        of_pair: int64 [pairs, 3], the arcs (u, z), (z, t) and (u, t) of every pair.
        """
        n, every = len(self.count), np.arange(len(self.count))
        source, sink = np.full(n, n), np.full(n, n + 1)
        tail, head = np.concatenate([tail, source, every]), np.concatenate([head, every, sink])
        room = np.concatenate([room, self.count, np.zeros(n, np.int64)])
        residual = Residual.of(n + 2, tail, head)
        moved = np.zeros(len(of_pair), np.int64)
        _split(residual, room, tail, head, of_pair, z, self.sinks, int(self.count.sum()), moved)
        room[(tail == z) | (head == z)] = 0
        if first_short(residual, room, n, self.sinks, 0, int(self.count.sum())) < len(self.sinks):
            raise SplittingError(f"switch {z}, which has no ranks, cannot be split off: paths through it are too few")
        return moved

    def _move(self, u: int, z: int, t: int, amount: int) -> None:
        """Join paths of (u, z) to paths of (z, t), for so much capacity."""
        while amount > 0:
            (before, first), (after, second) = (next(iter(self.between[arc].items())) for arc in ((u, z), (z, t)))
            part = min(amount, first, second)
            self._take(before, part)
            self._take(after, part)
            self.add(before + after[1:], part)
            amount -= part

    def _take(self, path: tuple[int, ...], room: int) -> None:
        paths = self.between[path[0], path[-1]]
        paths[path] -= room
        if paths[path] == 0:
            del paths[path]


def _straight(path: tuple[int, ...]) -> tuple[int, ...]:
    """A path without the rounds in it that lead back to where it was."""
    found: list[int] = []
    for v in path:
        if v in found:
            del found[found.index(v) :]
        found.append(v)
    return tuple(found)


@device_function
def _split(
    residual: Residual, room: Ints, tail: Ints, head: Ints, of_pair: Ints, z: int, sinks: Ints, trees: int, moved: Ints
) -> None:
    """Fill in how much each pair of arcs at z gives to the arc past it, the pairs one after the other.

    residual, room, tail, head: of flows, with an arc from the source and then one to the sink for every vertex, which
    come last; room changes as capacity is moved.
    """
    vertices, begin = len(residual.cursor), 0
    n = vertices - 2
    from_source, to_sink = len(room) - 2 * n, len(room) - n
    for k in range(len(of_pair)):
        before, after, past = of_pair[k, 0], of_pair[k, 1], of_pair[k, 2]
        u, t = tail[before], head[after]
        amount = min(room[before], room[after])
        for i in range(len(sinks)):
            if amount == 0:
                break
            v = sinks[(begin + i) % len(sinks)]
            for kind in range(2):
                wanted = trees + amount
                set_capacities(residual, room, len(room))
                left, slot = residual.left, residual.slot
                left[slot[to_sink + v]] = wanted
                for end in (u, t):
                    left[slot[(from_source if kind == 0 else to_sink) + end]] = wanted
                left[slot[(to_sink if kind == 0 else from_source) + z]] = wanted
                amount = min(amount, send_most(residual, n, n + 1, wanted) - trees)
            if amount == 0:
                begin = (begin + i) % len(sinks)
        room[before] -= amount
        room[after] -= amount
        room[past] += amount
        moved[k] = amount
