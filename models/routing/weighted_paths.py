# SPDX-License-Identifier: Apache-2.0
"""Tables of paths with weights for some pairs of switches, and shortest paths for all others."""

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.paths.bounded import sampled_shortest
from flitlab.models.paths.pathset import PathSet, concatenate
from flitlab.models.routing.paths import path_table
from flitlab.models.routing.planned import thresholds
from flitlab.models.routing.route_set import PathTable
from flitlab.models.topology.graph import Topology


def weighted_path_table(
    topology: Topology, pairs: Ints, paths: PathSet, weight: Floats, spare: int, seed: int
) -> PathTable:
    """The table of the paths of all pairs of switches with hosts.

    Pairs without weights have up to ``spare`` shortest paths, equally likely.

    Parameters
    ----------
    topology: the network.
    pairs: int64, different ones, s * switches + t.
    paths: paths of these pairs.
    weight: float64 [paths], sum 1 per pair.
    spare: the most paths of the other pairs.
    seed: of draws.
    """
    n = topology.switches
    bare = _others(topology, pairs)
    shortest = sampled_shortest(topology, bare // n, bare % n, spare, seed)
    every = np.concatenate([pairs, bare])
    order = np.argsort(every, kind="stable")
    joined, weights = _in_order(paths, shortest, weight, order)
    table = path_table(topology, [(every[order], joined)])
    return table._replace(threshold=thresholds(table.pair_start, weights))


def _others(topology: Topology, pairs: Ints) -> Ints:
    """The pairs of different switches with hosts, s * switches + t, that are not among ``pairs``: int64."""
    n = topology.switches
    other = np.zeros((n, n), bool)
    other[np.ix_(topology.src_switches, topology.dst_switches)] = True
    np.fill_diagonal(other, False)
    other.ravel()[pairs] = False
    return np.flatnonzero(other)


def _in_order(weighed: PathSet, spare: PathSet, weight: Floats, order: Ints) -> tuple[PathSet, Floats]:
    """Both sets as one whose pair i is pair ``order[i]``, and its weights; those of ``spare`` are equal."""
    counts = np.concatenate([weighed.counts, spare.counts])
    weights = np.concatenate([weight, np.repeat(1 / spare.counts, spare.counts)])
    first = np.cumsum(counts) - counts
    paths = concatenate([weighed, spare], order)
    index = np.repeat(first[order] - paths.pair_start[:-1], paths.counts) + np.arange(len(weights))
    return paths, weights[index]
