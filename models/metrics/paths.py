# SPDX-License-Identifier: Apache-2.0
"""Number and length of paths, shortest or short."""

from typing import Literal

import numpy as np
from pydantic import Field

from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.paths.ksp import k_shortest_paths
from flitlab.models.paths.within import all_counts_within, k_shortest_lengths
from flitlab.models.registry import make, register
from flitlab.models.topology.bounds import paths_within_bound, shortest_paths_length
from flitlab.models.topology.graph import Topology


@register("metric", "k_shortest")
class KShortest(MetricSpec):
    """Average length, in hops, of the ``k`` shortest loopless paths of all ordered pairs of different switches.

    The metric itself is the mean over all these paths; ``longest``: length of the longest of them; ``bound``: LK, the
    least mean with that many switches of the largest degree (Lemma 2); ``ratio``: mean / bound. ``missing``: share of
    pairs that have fewer than k loopless paths (the others are all counted); the bound then means little. Paths
    that differ only in which of several parallel channels they take count separately.

    Example: ``metrics: [{kind: k_shortest, k: 4}]``

    Source: DBG section III-B, Figures 5 to 9. Paths: Yen 1971.
    """

    k: int = Field(default=8, ge=1, le=1024)
    """Paths of a pair."""

    def measure(self, topology: Topology) -> Row:
        n = topology.switches
        if n < 2:
            raise ValueError("k_shortest: needs two switches")
        by_length, missing = k_shortest_lengths(topology, self.k)
        mean = int(by_length @ np.arange(n)) / int(by_length.sum())
        bound = shortest_paths_length(n, int(topology.out_degree.max()), self.k)
        return {
            "": mean,
            "longest": int(np.flatnonzero(by_length)[-1]),
            "bound": bound,
            "ratio": mean / bound,
            "missing": missing / (n * (n - 1)),
        }


MOST_PATHS = 10**12
"""Most paths, by the largest degree, that ``paths_within`` walks."""


@register("metric", "paths_within")
class PathsWithin(MetricSpec):
    """Number of loopless paths of at most ``hops`` hops, over the ordered pairs of different switches.

    ``min``, ``mean``, ``max``; ``none``: share of the pairs without any. ``bound``: the most that ``min`` can be
    with that many switches of the largest degree (Lemma 3). Paths that differ only in which of several parallel
    channels they take count separately. Every path is walked, so the time grows as switches * degree**hops.

    Example: ``metrics: [{kind: paths_within, hops: 3}]``

    Source: DBG sections III-B and IV-A.
    """

    hops: int = Field(default=3, ge=1)
    """The most hops of a path."""

    def measure(self, topology: Topology) -> Row:
        n = topology.switches
        if n < 2:
            raise ValueError("paths_within: needs two switches")
        hops = min(self.hops, n - 1)
        most = n * float(topology.out_degree.max()) ** min(hops, 64)
        if most > MOST_PATHS:
            raise ValueError(
                f"paths_within: up to {most:.0e} paths to walk, at most {MOST_PATHS:.0e} are; use fewer hops"
            )
        min_paths, max_paths, total, none = np.iinfo(np.int64).max, 0, 0, 0
        for source, counts in enumerate(all_counts_within(topology, hops)):
            paths = np.delete(counts.sum(0), source)
            min_paths, max_paths = min(min_paths, int(paths.min())), max(max_paths, int(paths.max()))
            total += int(paths.sum())
            none += int((paths == 0).sum())
        pairs = n * (n - 1)
        return {
            "min": min_paths,
            "mean": total / pairs,
            "max": max_paths,
            "none": none / pairs,
            "bound": paths_within_bound(n, int(topology.out_degree.max()), hops),
        }


@register("metric", "path_counts")
class PathCounts(MetricSpec):
    """The number of distinct paths that each channel is on when every host sends to one other, all different.

    A pair of hosts brings the paths between their switches: with ``routing: ecmp`` up to ``k`` of the shortest ones,
    with ``ksp`` the k shortest loopless ones; where several are equally long, a random choice. Pairs of hosts on
    the same two switches bring the same paths, which count once. Both directions of a link count separately.

    ``pattern: permutation`` is the traffic of that kind, from ``seed``, which also decides between paths.

    ``counts``: paths on each channel, ascending. ``mean``. ``share_at_most_2``: of the channels. ``unused``: share of
    channels on no path.

    Example: ``metrics: [{kind: path_counts, routing: ecmp, k: 8}]``

    Source: SIN section 6.1, Figure 6.1.
    """

    routing: Literal["ecmp", "ksp"] = "ksp"
    """Paths of each pair."""
    k: int = Field(default=8, ge=1, le=1024)
    """Paths of a pair."""
    pattern: Literal["permutation"] = "permutation"
    """The traffic."""
    seed: int = Field(default=1, ge=0)
    """Seed of the traffic and of the choice among paths."""

    def measure(self, topology: Topology) -> Row:
        if topology.hosts < 2:
            raise ValueError("path_counts: needs two hosts")
        if not topology.channels:
            raise ValueError("path_counts: needs two switches")
        traffic = make("traffic", kind=self.pattern, seed=self.seed).build(topology)
        ends = np.column_stack([topology.host_switch, topology.host_switch[traffic.fixed]])
        pairs = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
        extra = 0 if self.routing == "ecmp" else None
        paths = k_shortest_paths(topology, pairs, self.k, extra=extra, seed=self.seed)
        counts = np.sort(paths.usage(topology.channels))
        return {
            "mean": float(counts.mean()),
            "share_at_most_2": float((counts <= 2).mean()),
            "unused": float((counts == 0).mean()),
            "counts": counts.tolist(),
        }
