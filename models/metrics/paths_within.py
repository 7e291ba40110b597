# SPDX-License-Identifier: Apache-2.0
"""Number of short paths between switches."""

from typing import Any

import numpy as np
from pydantic import Field

from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.paths.within import all_counts_within
from flitlab.models.registry import register
from flitlab.models.topology.bounds import paths_within_bound
from flitlab.models.topology.graph import Topology


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

    def measure(self, topology: Topology) -> dict[str, Any]:
        n = topology.switches
        if n < 2:
            raise ValueError("paths_within: needs two switches")
        min_paths, max_paths, total, none = np.iinfo(np.int64).max, 0, 0, 0
        for source, counts in enumerate(all_counts_within(topology, self.hops)):
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
            "bound": paths_within_bound(n, int(topology.out_degree.max()), self.hops),
        }
