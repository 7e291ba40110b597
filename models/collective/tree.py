# SPDX-License-Identifier: Apache-2.0
"""Trees along which a collective's data flows from a root to all ranks."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """An out-tree of a network that carries ``count`` equal parts of the root's data.

    root: its root. count: number of parts. paths: for every other vertex, in the order of joining, the vertices on its
    path from a vertex of the tree to itself. A path of two vertices is an arc; the inner vertices of a longer one only
    forward.
    """

    root: int
    count: int
    paths: tuple[tuple[int, ...], ...]

    def arcs(self) -> Iterator[tuple[int, int]]:
        """Yield every arc (x, y) of the network that a part of the data crosses, as often as it does."""
        for path in self.paths:
            yield from itertools.pairwise(path)

    def reached(self) -> set[int]:
        """Return the root and all vertices that join.

        Raises ``ValueError`` if a path begins outside the tree or ends inside it.
        """
        members = {self.root}
        for path in self.paths:
            if path[0] not in members or path[-1] in members or len(path) < 2:
                raise ValueError(f"the path {path} does not add a vertex to the tree of {self.root}")
            members.add(path[-1])
        return members


def load(trees: Iterable[Tree]) -> Counter[tuple[int, int]]:
    """Count the parts of the data that cross each arc (x, y), over all trees."""
    total: Counter[tuple[int, int]] = Counter()
    for tree in trees:
        for arc in tree.arcs():
            total[arc] += tree.count
    return total
