# SPDX-License-Identifier: Apache-2.0
"""Distributions of distances between switches and between hosts."""

import numpy as np
from pydantic import Field

from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.distances import host_distance_counts, mean_hops, sampled_distances
from flitlab.models.topology.graph import Topology


@register("metric", "hop_distribution")
class HopDistribution(MetricSpec):
    """Distances between switches and between hosts.

    Over the ordered pairs of different switches, in hops (channels): ``counts`` and ``shares`` by distance;
    ``mean``; ``p50``, ``p99`` and ``p9999``, the least distance within which that share (50, 99, 99.99 %) lies.

    Over the ordered pairs of different hosts: ``host_mean``, the average hops between the switches of two hosts on
    different switches; ``host_max``, the largest. None without such pairs.

    ``within``: adds ``within``, the share of pairs of switches within that many channels, and ``host_within``, the
    share of pairs of hosts within that many *server hops*, which include the two host channels: 2 on one
    switch, otherwise the hops between the switches + 2.

    ``sources``: distances from only that many switches (a multiple of 64), for graphs of 100,000 switches and more;
    all but the host columns, which are then None, are estimates; ``mean_stderr`` is the standard error of the mean.

    Example: ``metrics: [{kind: hop_distribution, within: 5}]``

    Source: SIN Figures 4.1 and 4.4.
    """

    within: int | None = Field(default=None, ge=0)
    """Hops within which the share of pairs is counted."""
    sources: int | None = Field(default=None, ge=64)
    """Switches from which distances are measured. null: all."""

    def measure(self, topology: Topology) -> Row:
        sampled = sampled_distances(topology, self.sources or topology.switches)
        counts = sampled.counts.copy()
        counts[0] = 0  # a switch and itself
        values = {
            "mean": sampled.mean,
            "counts": {str(h): int(count) for h, count in enumerate(counts) if count},
            "shares": {str(h): int(count) / int(counts.sum()) for h, count in enumerate(counts) if count},
            "p50": distance_quantile(counts, 50, 100),
            "p99": distance_quantile(counts, 99, 100),
            "p9999": distance_quantile(counts, 9999, 10000),
        }
        if self.sources is not None:
            values["mean_stderr"] = sampled.stderr
        if self.within is not None:
            values["within"] = share_within(counts, self.within)
        return values | self._host_values(topology, exact=sampled.sources == topology.switches)

    def _host_values(self, topology: Topology, exact: bool) -> Row:
        pairs = host_distance_counts(topology) if exact else np.zeros(1, np.int64)
        has_remote_pairs = bool(pairs[1:].sum())
        values = {
            "host_mean": mean_hops(pairs) if has_remote_pairs else None,
            "host_max": len(pairs) - 1 if has_remote_pairs else None,
        }
        if self.within is not None:
            values["host_within"] = share_within(pairs, self.within - 2)
        return values


def distance_quantile(counts: np.ndarray, numerator: int, denominator: int) -> int | None:
    """Return the least distance within which numerator / denominator of the pairs lie; None without pairs.

    Parameters
    ----------
    counts: int64 [hops], pairs by distance.
    numerator, denominator: the share.
    """
    total = int(counts.sum())
    if not total:
        return None
    return next(h for h, reached in enumerate(np.cumsum(counts).tolist()) if reached * denominator >= numerator * total)


def share_within(counts: np.ndarray, hops: int) -> float | None:
    """Return the share of the pairs at most ``hops`` apart; None without pairs.

    Parameters
    ----------
    counts: int64 [hops], pairs by distance.
    hops: the distance.
    """
    total = int(counts.sum())
    return int(counts[: max(hops + 1, 0)].sum()) / total if total else None
