# SPDX-License-Identifier: Apache-2.0
"""Hamiltonian cycles: closed walks along the arcs of a graph that visit every vertex once."""

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

Arcs: TypeAlias = Sequence[Sequence[int]]
"""Heads of the arcs out of each vertex, all different and none the vertex itself."""

ATTEMPTS = 10
"""Cycle covers that are tried."""

STEPS = 20
"""Steps of a walk per vertex; small graphs get a few hundred more."""

MAX_WORK = 100_000_000
"""Limit of steps times vertices over all walks; some seconds."""


def hamiltonian_cycle(out: Arcs, rng: np.random.Generator) -> tuple[list[int], bool]:
    """Search for a Hamiltonian cycle.

    A cycle cover comes from an assignment with random costs; cycles are joined in pairs by exchanging followers
    (:func:`join_cycles`); a :class:`_Walk` joins the rest. If it fails, another assignment is drawn. A failed search
    proves nothing, unless no cycle cover exists.

    Parameters
    ----------
    out: heads of the arcs out of each vertex.
    rng: source of all draws.

    Returns
    -------
    All vertices in an order, and whether it is a cycle: each vertex has an arc to the next, and the last to the first.
        If not, most of the order is a path.
    """
    count, symmetric = len(out), _is_symmetric(out)
    steps = min(STEPS * count + 500, MAX_WORK // max(count, 1))
    order = list(range(count))
    for _ in range(min(ATTEMPTS, MAX_WORK // (steps * count)) if count else 0):
        follower = cycle_cover(out, rng)
        pieces = [[v] for v in order] if follower is None else cycles_of(join_cycles(out, follower))
        walk = _Walk(out, pieces, rng, symmetric)
        if walk.run(steps if follower is not None else 5 * count):
            return walk.path, True
        order = max(order, walk.order(), key=lambda some: count_joined(out, some))
        if follower is None:
            break
    return order, count == 0


def count_joined(out: Arcs, order: Sequence[int]) -> int:
    """Count the vertices of a cyclic order that have an arc to the next one."""
    return sum(order[i] in out[order[i - 1]] for i in range(len(order)))


def _is_symmetric(out: Arcs) -> bool:
    arcs = {(u, v) for u, heads in enumerate(out) for v in heads}
    return all((v, u) in arcs for u, v in arcs)


def cycle_cover(out: Arcs, rng: np.random.Generator) -> list[int] | None:
    """Return the next vertex of each along disjoint cycles that cover all vertices; None if there is no such cover.

    It is the cover of minimum total cost, where every arc has a random cost.
    """
    start = np.cumsum([0, *map(len, out)])
    heads = np.array([w for arc_heads in out for w in arc_heads], np.int64)
    costs = csr_array((1 + rng.random(len(heads)), heads, start), shape=(len(out), len(out)))
    try:
        follower: list[int] = min_weight_full_bipartite_matching(costs)[1].tolist()
    except ValueError:  # there is no full matching
        return None
    return follower


def join_cycles(out: Arcs, follower: Sequence[int]) -> list[int]:
    """Exchange the followers of vertices of two cycles wherever both new arcs exist; return the follower of each
    vertex.

    Every exchange joins two cycles. In the line graph of a strongly connected digraph, such as a Kautz or a de Bruijn
    graph, one cycle remains: two vertices that share a follower share all of them.

    Source: Karp, SIAM J. Computing 8 (1979).
    """
    follower = list(follower)
    cycle, predecessor = [0] * len(out), [0] * len(out)
    for number, vertices in enumerate(cycles_of(follower)):
        for i, v in enumerate(vertices):
            cycle[v], predecessor[v] = number, vertices[i - 1]
    leader = list(range(max(cycle) + 1))

    def find(v: int) -> int:
        """Return the number of a vertex's cycle after the exchanges so far."""
        number = cycle[v]
        while leader[number] != number:
            leader[number] = number = leader[leader[number]]
        return number

    for u, heads in enumerate(out):
        for w in heads:
            v, old = predecessor[w], follower[u]
            if find(u) != find(w) and old in out[v]:
                leader[find(w)] = find(u)
                follower[u], follower[v], predecessor[w], predecessor[old] = w, old, u, v
    return follower


def cycles_of(follower: Sequence[int]) -> list[list[int]]:
    """Return the cycles of a permutation, the longest first."""
    visited, cycles = [False] * len(follower), []
    for first in range(len(follower)):
        cycle, v = [], first
        while not visited[v]:
            visited[v] = True
            cycle.append(v)
            v = follower[v]
        if cycle:
            cycles.append(cycle)
    return sorted(cycles, key=len, reverse=True)


class _Walk:
    """Joins cycles to one: a path absorbs one cycle after another, and changes its end where it cannot continue.

    The path extends from its end into any cycle to which it has an arc, and follows it to its last vertex. If there is
    none and the path can be closed, it is closed and reopened where it leads to a cycle. Otherwise its end changes. In
    a symmetric graph an arc from the end to a vertex of the path reverses the path behind that vertex (a rotation). In
    other graphs that vertex and everything behind it becomes a cycle, preferably where the new end leads into a cycle.

    cycles: vertices of each, every vertex once; a single vertex counts as a cycle.

    Source: Posa, Discrete Math. 14 (1976) (rotations); Frieze, An algorithm for finding Hamilton cycles in random
    directed graphs, J. Algorithms 9 (1988) (cycles set aside).
    """

    def __init__(self, out: Arcs, cycles: list[list[int]], rng: np.random.Generator, symmetric: bool) -> None:
        self.out, self.rng, self.symmetric = out, rng, symmetric
        self.path = cycles[0]
        self.cycles: dict[int, list[int]] = {}
        self.cycle_of = [-1] * len(out)
        """The cycle of each vertex, -1 for the path."""
        self.longest = self.path
        for cycle in cycles[1:]:
            self._set_aside(cycle)

    def run(self, steps: int) -> bool:
        """Take at most ``steps`` steps; return whether the path is then a cycle through all vertices."""
        draws = self.rng.random(steps).tolist()
        for draw in draws:
            closed = self.path[0] in self.out[self.path[-1]] or len(self.out) == 1
            if closed and not self.cycles:
                return True
            if not self._extend_into_cycle(draw) and not (closed and self._reopen(draw)) and not self._change_end(draw):
                return False
        return False

    def order(self) -> list[int]:
        """Return all vertices, beginning with the longest path so far."""
        within = set(self.longest)
        others = chain(self.path, *self.cycles.values())
        return self.longest + [v for v in others if v not in within]

    def _extend_into_cycle(self, draw: float) -> bool:
        """Extend the path into a cycle; return False if its end has no arc to one."""
        heads = [w for w in self.out[self.path[-1]] if self.cycle_of[w] >= 0]
        if heads:
            w = heads[int(draw * len(heads))]
            cycle = self.cycles.pop(self.cycle_of[w])
            for v in cycle:
                self.cycle_of[v] = -1
            i = cycle.index(w)
            self.path = self.path + cycle[i:] + cycle[:i]
            if len(self.path) > len(self.longest):
                self.longest = self.path
        return bool(heads)

    def _reopen(self, draw: float) -> bool:
        """Close the path and reopen it behind a vertex that has an arc to a cycle; return False if there is none."""
        path = self.path
        first = int(draw * len(path))
        for i in (*range(first, len(path)), *range(first)):
            if any(self.cycle_of[w] >= 0 for w in self.out[path[i]]):
                self.path = path[i + 1 :] + path[: i + 1]
                return True
        return False

    def _change_end(self, draw: float) -> bool:
        """Change the end of the path; return False if no arc of the end allows it."""
        path = self.path
        indices = [path.index(w) for w in self.out[path[-1]]]
        if self.symmetric:
            indices = [i for i in indices if i < len(path) - 2]
        else:
            indices = [i for i in indices if i > 0]
            indices = [i for i in indices if self._can_continue(i)] or indices
        if indices:
            i = indices[int(draw * len(indices))]
            if self.symmetric:
                self.path = path[: i + 1] + path[:i:-1]
            else:
                self.path = path[:i]
                self._set_aside(path[i:])
        return bool(indices)

    def _can_continue(self, i: int) -> bool:
        """Whether the vertex before index i of the path has another arc to the vertices behind it, or to a cycle."""
        behind = set(self.path[i + 1 :])
        return any(w in behind or self.cycle_of[w] >= 0 for w in self.out[self.path[i - 1]])

    def _set_aside(self, cycle: list[int]) -> None:
        """Register a cycle outside the path."""
        number = cycle[0]
        self.cycles[number] = cycle
        for v in cycle:
            self.cycle_of[v] = number
