# SPDX-License-Identifier: Apache-2.0
"""Packing spanning out-trees of many roots into capacities: the trees along which an all-gather reaches its bound.

That the trees exist is Frank's theorem: every set of vertices must be entered by at least as much capacity as there
are trees whose roots all lie outside. They grow one arc after the other, each such that this remains true of what is
left. A *bundle* is a number of equal trees that grow together; where an arc has room for some of them only, the others
become a bundle of their own.

A bundle takes its arcs in one scan. Behind an arc that was refused is a set of vertices that no more can enter than the
other bundles need, and this stays so while any of them grow, so no arc is looked at twice.

Bundles take turns, one depth after the other, lest the last ones become deep. Flows are fed at every member of every
bundle, so that, when these are many, one bundle after another is finished first.

Sources: Edmonds 1973; Frank 1978; Bérczi and Frank 2010; Zhao et al., arXiv:2402.06787.
"""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.collective.maxflow import Residual, send_most, set_capacities
from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import device_function

SUPPLY = 4096
"""Members of all bundles together, up to which they take turns."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """``count`` equal out-trees: vertices in the order of joining, the root first, and the arc by which each joined.

    member, arc, depth: int64 [members], arcs being -1 for the root and depths hops from it. scanned: how far the scan
    has come: the place of a member, and how many arcs out of it have been looked at.
    """

    count: int
    member: Ints
    arc: Ints
    depth: Ints
    scanned: tuple[int, int] = (0, 0)

    @classmethod
    def single(cls, root: int, count: int) -> "Bundle":
        """Trees that have a root only."""
        return cls(count, np.array([root]), np.array([-1]), np.array([0]))

    @property
    def root(self) -> int:
        return int(self.member[0])

    @property
    def reached(self) -> int:
        """The depth of the members that the scan has come to."""
        return int(self.depth[min(self.scanned[0], len(self.depth) - 1)])


def pack(vertices: int, tail: Ints, head: Ints, capacity: Ints, count: Ints) -> list[Bundle]:
    """Spanning trees, ``count`` of each root, of which no more use an arc than its capacity.

    tail, head, capacity: int64 [arcs], sorted by tail; parallel arcs are allowed. count: int64 [vertices]. Products of
    their sums must fit into int64.

    Raises ``ValueError`` if there are no such trees.
    """
    packing, done = _Packing(vertices, tail, head, capacity.copy()), list[Bundle]()
    waiting = [Bundle.single(root, int(count[root])) for root in np.flatnonzero(count).tolist()]
    while waiting:
        many = sum(len(bundle.member) for bundle in waiting) > SUPPLY
        turn = 0 if many else min(range(len(waiting)), key=lambda place: waiting[place].reached)
        bundle = waiting.pop(turn)
        if len(bundle.member) == vertices:
            done.append(bundle)
        else:
            waiting[turn:turn] = packing.grown(bundle, waiting)
    return sorted(done, key=lambda bundle: bundle.root)


@dataclass(frozen=True, eq=False)
class _Packing:
    """The arrays of :func:`pack`; ``capacity`` is what is left."""

    vertices: int
    tail: Ints
    head: Ints
    capacity: Ints

    def grown(self, bundle: Bundle, others: list[Bundle]) -> list[Bundle]:
        """The bundle once it has come a depth further; and the part that had to be divided from it, if there is one."""
        residual, room = self._supply(others)
        start = np.searchsorted(self.tail, np.arange(self.vertices + 1))
        member, arc, depth = (np.resize(values, self.vertices) for values in (bundle.member, bundle.arc, bundle.depth))
        inside = np.bincount(bundle.member, minlength=self.vertices) > 0
        state = np.array([len(bundle.member), *bundle.scanned, bundle.count])
        needed = sum(other.count for other in others)
        rest = _grow(residual, room, needed, self.head, start, member, arc, depth, inside, state)
        if rest < 0:
            raise ValueError(f"the capacities do not suffice for all trees: those of {bundle.root} find no way on")
        self.capacity[:] = room[: len(self.capacity)]
        size, place, looked, count = state.tolist()
        return [
            Bundle(many, member[:some], arc[:some], depth[:some], (place, looked))
            for many, some in ((count, size), (rest, size - 1))
            if many
        ]

    def _supply(self, others: list[Bundle]) -> tuple[Residual, Ints]:
        """Room for flows that the other bundles feed, as a tree of theirs enters where it has members; and capacities.

        First come the arcs of the network, then one from the source (vertex ``vertices``) to every vertex, for trees
        that have a root only, then those from it to a vertex for each other bundle, and from there to its members.
        """
        n, begun = self.vertices, [bundle for bundle in others if len(bundle.member) > 1]
        alone = np.zeros(n, np.int64)
        for bundle in others:
            alone[bundle.root] += bundle.count * (len(bundle.member) == 1)
        own, count = n + 1 + np.arange(len(begun)), np.array([bundle.count for bundle in begun], np.int64)
        size = [len(bundle.member) for bundle in begun]
        tail = np.concatenate([self.tail, np.full(n + len(begun), n), np.repeat(own, size)])
        head = np.concatenate([self.head, np.arange(n), own, *(bundle.member for bundle in begun)])
        room = np.concatenate([self.capacity, alone, count, np.repeat(count, size)])
        return Residual.of(n + 1 + len(begun), tail, head), room


@device_function
def _grow(
    residual: Residual, room: Ints, needed: int, head: Ints, start: Ints, member: Ints, arc: Ints, depth: Ints,
    inside: Bools, state: Ints,
) -> int:  # fmt: skip
    """Scan the members of a bundle that are of one depth, or until it is divided; how many trees were divided from it.

    Without a division that is 0, or -1 if some vertex finds no way in.

    residual, room: of flows, and the capacities of their arcs; those of the network, which come first, become less.
    needed: trees of all other bundles. head, start: the arcs out of v are start[v]:start[v + 1]. member, arc, depth,
    inside: the bundle's, [vertices]. state: int64 [4], its number of members, the scan and its number of trees.
    """
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
        if inside[y] or room[a] == 0:
            continue
        most = needed + min(state[3], room[a])
        set_capacities(residual, room, len(room))
        residual.left[residual.slot[arcs + x]] = most
        fit = send_most(residual, vertices, y, most) - needed
        if fit <= 0:
            continue
        room[a] -= fit
        member[state[0]], arc[state[0]], depth[state[0]], inside[y] = y, a, level + 1, True
        state[0] += 1
        if fit < state[3]:
            rest = int(state[3]) - fit
            state[3] = fit
            return rest
    return 0
