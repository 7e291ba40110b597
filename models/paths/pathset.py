# SPDX-License-Identifier: Apache-2.0
"""Many paths in three flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flitlab.models.arrays import Floats, Ints, Ints32, sums
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, eq=False)
class PathSet:
    """Loopless paths between pairs of switches, as channels; those of one pair by length, shortest first.

    The paths of pair i are pair_start[i] .. pair_start[i + 1] - 1, the channels of path p, in travelling order,
    channel[path_start[p]:path_start[p + 1]]. Two paths that differ in nothing but which of several
    parallel channels they take are two paths.

    pair_start: int64 [pairs + 1]. path_start: int64 [paths + 1]. channel: int32 [sum of the lengths].
    """

    pair_start: Ints
    path_start: Ints
    channel: Ints32

    @property
    def pairs(self) -> int:
        """Number of pairs, with or without paths."""
        return len(self.pair_start) - 1

    @property
    def counts(self) -> Ints:
        """int64 [pairs]: paths of each pair."""
        return np.diff(self.pair_start)

    @property
    def lengths(self) -> Ints:
        """int64 [paths]: hops (channels) of each path."""
        return np.diff(self.path_start)

    def of(self, pair: int) -> list[np.ndarray]:
        """The paths of one pair, each int32 [hops]."""
        ends = self.path_start[self.pair_start[pair] : self.pair_start[pair + 1] + 1]
        return [self.channel[a:b] for a, b in pairwise(ends)]

    def switches(self, topology: Topology, pair: int) -> list[np.ndarray]:
        """The paths of one pair as the switches they visit, both ends included: int64 [hops + 1] each."""
        return [np.append(topology.src[path], topology.dst[path[-1:]]) for path in self.of(pair)]

    def even_load(self, channels: int) -> Floats:
        """float64 [channels]: what each carries if every pair sends 1, evenly over its paths."""
        share = np.repeat(1.0 / np.maximum(self.counts, 1), self.counts)
        return sums(self.channel, np.repeat(share, self.lengths), channels)

    def usage(self, channels: int) -> Ints:
        """int64 [channels]: how many of the paths each is on."""
        return np.bincount(self.channel, minlength=channels)


def starts(sizes: np.ndarray) -> Ints:
    """int64 [groups + 1]: where each group begins if they stand one after the other."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def concatenate(sets: Sequence[PathSet], order: np.ndarray | None = None) -> PathSet:
    """One set after the other; then pair i is pair ``order[i]`` of the whole, if given."""

    def gather(start: Ints, groups: Ints) -> Ints:
        """Indices of the elements of the chosen groups, group after group."""
        size = np.diff(start)[groups]
        return np.repeat(start[groups] - starts(size)[:-1], size) + np.arange(size.sum())

    none = np.zeros(0, np.int64)
    pair_start = starts(np.concatenate([none, *(paths.counts for paths in sets)]))
    path_start = starts(np.concatenate([none, *(paths.lengths for paths in sets)]))
    channel = np.concatenate([np.zeros(0, np.int32), *(paths.channel for paths in sets)])
    if order is None:
        return PathSet(pair_start, path_start, channel)
    chosen_paths = gather(pair_start, order)
    return PathSet(
        starts(np.diff(pair_start)[order]),
        starts(np.diff(path_start)[chosen_paths]),
        channel[gather(path_start, chosen_paths)],
    )
