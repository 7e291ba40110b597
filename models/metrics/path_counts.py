# SPDX-License-Identifier: Apache-2.0
"""Path diversity: the number of paths on each channel when hosts communicate in pairs."""

from typing import Any, Literal

import numpy as np
from pydantic import Field

from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.paths.ksp import k_shortest_paths
from flitlab.models.registry import make, register
from flitlab.models.topology.graph import Topology


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
    k: int = Field(default=8, ge=1, le=1024)
    pattern: Literal["permutation"] = "permutation"
    seed: int = Field(default=1, ge=0)

    def measure(self, topology: Topology) -> dict[str, Any]:
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
