# SPDX-License-Identifier: Apache-2.0
"""Packing spanning out-trees of many roots into arc capacities: trees by which an all-gather reaches its bound.

Frank's theorem: the trees exist if every set of vertices is entered by at least as much capacity as there are trees
with roots outside. Trees grow arc by arc, so that this remains true of the residual capacities. A *bundle* is a number
of equal trees that grow together; where an arc has capacity for some of them only, the bundle is divided.

A bundle takes its arcs in one scan. Behind a rejected arc there is a set of vertices whose residual capacity the other
bundles need, as long as any of them grow; so no arc is examined twice.

Bundles grow in turns, one depth each, so that the last ones do not become deep. Flows start at every member of every
bundle; when there are many members, bundles are completed one after another instead.

Sources: Edmonds 1973; Frank 1978; Bérczi and Frank 2010; Zhao et al., arXiv:2402.06787.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flitlab.fluid.collective.maxflow import Residual, send_up_to, set_capacities
from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import device_function

SUPPLY = 4096
"""Total members of all bundles up to which bundles grow in turns."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """``count`` equal out-trees: vertices in the order of joining, the root first, and the arc by which each joined.

    member, arc, depth: int64 [members]; the root's arc is -1, depths are hops from the root. scanned: progress of the
    scan: index of a member, and number of its arcs that have been examined.
    """

    count: int
    member: Ints
    arc: Ints
    depth: Ints
    scanned: tuple[int, int] = (0, 0)

    @classmethod
    def single(cls, root: int, count: int) -> "Bundle":
        """Trees that consist of a root."""
        return cls(count, np.array([root]), np.array([-1]), np.array([0]))

    @property
    def root(self) -> int:
        return int(self.member[0])

    @property
    def reached(self) -> int:
        """The depth of the member that the scan has reached."""
        return int(self.depth[min(self.scanned[0], len(self.depth) - 1)])


def pack(vertices: int, tail: Ints, head: Ints, capacity: Ints, count: Ints) -> list[Bundle]:
    """Pack spanning out-trees of many roots into arc capacities.

    Parameters
    ----------
    vertices : int
        Number of vertices.
    tail, head, capacity : int64 [arcs]
        Arcs, sorted by tail; parallel arcs are allowed. Products of capacities and counts must fit into int64. The
        arrays are not changed.
    count : int64 [vertices]
        Trees of each root, 0 or more.

    Returns
    -------
    list of Bundle
        Complete trees, sorted by root; the ``count`` of the bundles of a root add up to its entry of ``count``.
        ``member`` has all vertices, ``arc`` the indices of given arcs, -1 at the root. An arc is in at most as many
        trees as its capacity.

    Raises
    ------
    ValueError
        There are no such trees.

    Source: Edmonds 1973; Frank 1978; Bérczi and Frank 2010; in bundles Zhao et al., arXiv:2402.06787.
    """
    packing, done = _Packing(vertices, tail, head, capacity.copy()), list[Bundle]()
    waiting = [Bundle.single(root, int(count[root])) for root in np.flatnonzero(count).tolist()]
    while waiting:
        in_sequence = sum(len(bundle.member) for bundle in waiting) > SUPPLY
        index = 0 if in_sequence else min(range(len(waiting)), key=lambda place: waiting[place].reached)
        bundle = waiting.pop(index)
        if len(bundle.member) == vertices:
            done.append(bundle)
        else:
            waiting[index:index] = packing.grown(bundle, waiting)
    return sorted(done, key=lambda bundle: bundle.root)


@dataclass(frozen=True, eq=False)
class _Packing:
    """The arrays of :func:`pack`; ``capacity`` is residual."""

    vertices: int
    tail: Ints
    head: Ints
    capacity: Ints

    def grown(self, bundle: Bundle, others: list[Bundle]) -> list[Bundle]:
        """The bundle after it has grown by one depth, and the part divided from it, if any."""
        residual, capacity = self._supply(others)
        start = np.searchsorted(self.tail, np.arange(self.vertices + 1))
        member, arc, depth = (np.resize(values, self.vertices) for values in (bundle.member, bundle.arc, bundle.depth))
        inside = np.bincount(bundle.member, minlength=self.vertices) > 0
        state = np.array([len(bundle.member), *bundle.scanned, bundle.count])
        needed = sum(other.count for other in others)
        rest = _grow(residual, capacity, needed, self.head, start, _Members(member, arc, depth, inside), state)
        if rest < 0:
            raise ValueError(f"the capacities do not suffice for all trees: those of root {bundle.root} cannot grow")
        self.capacity[:] = capacity[: len(self.capacity)]
        size, member_index, arc_index, count = state.tolist()
        return [
            Bundle(trees, member[:members], arc[:members], depth[:members], (member_index, arc_index))
            for trees, members in ((count, size), (rest, size - 1))
            if trees
        ]

    def _supply(self, others: list[Bundle]) -> tuple[Residual, Ints]:
        """Residual graph and capacities for flows from the other bundles: each member supplies the trees of its bundle.

        Arcs: those of the network; from the source (vertex ``vertices``) to every vertex, for trees that consist of a
        root; from the source to a vertex of each other bundle, and from there to its members.
        """
        n, begun = self.vertices, [bundle for bundle in others if len(bundle.member) > 1]
        unstarted = np.zeros(n, np.int64)
        for bundle in others:
            unstarted[bundle.root] += bundle.count * (len(bundle.member) == 1)
        own, count = n + 1 + np.arange(len(begun)), np.array([bundle.count for bundle in begun], np.int64)
        size = [len(bundle.member) for bundle in begun]
        tail = np.concatenate([self.tail, np.full(n + len(begun), n), np.repeat(own, size)])
        head = np.concatenate([self.head, np.arange(n), own, *(bundle.member for bundle in begun)])
        capacity = np.concatenate([self.capacity, unstarted, count, np.repeat(count, size)])
        return Residual.of(n + 1 + len(begun), tail, head), capacity


class _Members(NamedTuple):
    """Members of a :class:`Bundle`, and whether a vertex is one; all [vertices]."""

    member: Ints
    arc: Ints
    depth: Ints
    inside: Bools


@device_function
def _grow(
    residual: Residual, capacity: Ints, needed: int, head: Ints, start: Ints, bundle: _Members, state: Ints
) -> int:  # fmt: skip
    """Scan the members of a bundle of one depth, or until it is divided; returns the trees divided from it.

    Without a division that is 0, or -1 if the trees cannot grow.

    residual, capacity: for flows, with the arcs of the network first, whose capacities decrease. needed: trees of all
    other bundles. head, start: the arcs out of v are start[v]:start[v + 1]. state: int64 [4], members of the
    bundle, the scan (two numbers), and its trees.
    """
    member, arc, depth, inside = bundle
    vertices, arcs, level = len(member), len(head), depth[state[1]]
    while state[0] < vertices:
        if state[1] == state[0]:
            return -1
        if depth[state[1]] > level:
            break
        x = member[state[1]]
        a = start[x] + state[2]
        if a == start[x + 1]:
            state[1] += 1
            state[2] = 0
            continue
        state[2] += 1
        y = head[a]
        if inside[y] or capacity[a] == 0:
            continue
        most = needed + min(state[3], capacity[a])
        set_capacities(residual, capacity, len(capacity))
        residual.remaining[residual.slot[arcs + x]] = most
        fit = send_up_to(residual, vertices, y, most) - needed
        if fit <= 0:
            continue
        capacity[a] -= fit
        member[state[0]], arc[state[0]], depth[state[0]], inside[y] = y, a, level + 1, True
        state[0] += 1
        if fit < state[3]:
            rest = int(state[3]) - fit
            state[3] = fit
            return rest
    return 0
