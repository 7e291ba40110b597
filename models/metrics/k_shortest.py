# SPDX-License-Identifier: Apache-2.0
"""Mean length of the k shortest paths."""

from typing import Any

import numpy as np
from pydantic import Field

from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.paths.lengths import k_shortest_lengths
from flitlab.models.registry import register
from flitlab.models.topology.bounds import shortest_paths_length
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

    def measure(self, topology: Topology) -> dict[str, Any]:
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
