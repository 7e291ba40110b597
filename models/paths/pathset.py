# SPDX-License-Identifier: Apache-2.0
"""Sets of paths in three flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flitlab.models.arrays import Floats, Ints, Ints32, sums
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, eq=False)
class PathSet:
    """Loopless paths between pairs of switches, as channels, in ascending length within a pair.

    The paths of pair i are pair_start[i] .. pair_start[i + 1] - 1; the channels of path p, in travelling order, are
    channel[path_start[p]:path_start[p + 1]]. Paths over different parallel channels are different paths.

    pair_start: int64 [pairs + 1]. path_start: int64 [paths + 1]. channel: int32 [sum of the lengths].
    """

    pair_start: Ints
    path_start: Ints
    channel: Ints32

    @property
    def pairs(self) -> int:
        """Number of pairs, including those without paths."""
        return len(self.pair_start) - 1

    @property
    def counts(self) -> Ints:
        """Number of paths of each pair: int64 [pairs]."""
        return np.diff(self.pair_start)

    @property
    def lengths(self) -> Ints:
        """Hops of each path: int64 [paths]."""
        return np.diff(self.path_start)

    def paths_of(self, pair: int) -> list[np.ndarray]:
        """Return the paths of one pair, each int32 [hops]."""
        ends = self.path_start[self.pair_start[pair] : self.pair_start[pair + 1] + 1]
        return [self.channel[a:b] for a, b in pairwise(ends)]

    def switches(self, topology: Topology, pair: int) -> list[np.ndarray]:
        """Return the paths of one pair as the switches that they visit, including both ends: int64 [hops + 1] each."""
        return [np.append(topology.src[path], topology.dst[path[-1:]]) for path in self.paths_of(pair)]

    def even_load(self, channels: int) -> Floats:
        """Return the load of each channel, float64 [channels], if every pair sends 1, divided evenly over its paths."""
        share = np.repeat(1.0 / np.maximum(self.counts, 1), self.counts)
        return sums(self.channel, np.repeat(share, self.lengths), channels)

    def usage(self, channels: int) -> Ints:
        """Return how many paths use each channel: int64 [channels]."""
        return np.bincount(self.channel, minlength=channels)


def starts(sizes: np.ndarray) -> Ints:
    """Return where each group begins in their concatenation, and its end: int64 [groups + 1].

    Parameters
    ----------
    sizes: integers [groups], the size of each group.
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def concatenate(sets: Sequence[PathSet], order: np.ndarray | None = None) -> PathSet:
    """Concatenate sets of paths.

    Parameters
    ----------
    sets: the sets.
    order: int64 [pairs]; pair i of the result is pair ``order[i]`` of the concatenation; None: unchanged.
    """

    def gather(start: Ints, groups: Ints) -> Ints:
        """Indices of the elements of the chosen groups, group after group."""
        size = np.diff(start)[groups]
        return np.repeat(start[groups] - starts(size)[:-1], size) + np.arange(size.sum())

    empty = np.zeros(0, np.int64)
    pair_start = starts(np.concatenate([empty, *(paths.counts for paths in sets)]))
    path_start = starts(np.concatenate([empty, *(paths.lengths for paths in sets)]))
    channel = np.concatenate([np.zeros(0, np.int32), *(paths.channel for paths in sets)])
    if order is None:
        return PathSet(pair_start, path_start, channel)
    chosen_paths = gather(pair_start, order)
    return PathSet(
        starts(np.diff(pair_start)[order]),
        starts(np.diff(path_start)[chosen_paths]),
        channel[gather(path_start, chosen_paths)],
    )
