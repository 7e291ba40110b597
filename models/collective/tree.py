# SPDX-License-Identifier: Apache-2.0
"""Trees along which parts of a collective's data go from a root to all ranks."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """An out-tree of vertices of a network, which ``count`` equal parts of the root's data follow.

    paths: for every vertex that joins, in the order of joining, the vertices that lie on the way to it, from one that
    is in the tree already to itself. A path of two vertices is an arc; the inner vertices of a longer one only forward.
    """

    root: int
    count: int
    paths: tuple[tuple[int, ...], ...]

    def arcs(self) -> Iterator[tuple[int, int]]:
        """Every arc (x, y) of the network that a part of the data crosses, as often as it does."""
        for path in self.paths:
            yield from itertools.pairwise(path)

    def reached(self) -> set[int]:
        """The root and all vertices that join.

        Raises ``ValueError`` if a path begins outside of the tree or ends inside it.
        """
        members = {self.root}
        for path in self.paths:
            if path[0] not in members or path[-1] in members or len(path) < 2:
                raise ValueError(f"the path {path} does not add a vertex to the tree of {self.root}")
            members.add(path[-1])
        return members


def load(trees: Iterable[Tree]) -> Counter[tuple[int, int]]:
    """How many parts of the data cross each arc (x, y), over all trees."""
    total: Counter[tuple[int, int]] = Counter()
    for tree in trees:
        for arc in tree.arcs():
            total[arc] += tree.count
    return total
