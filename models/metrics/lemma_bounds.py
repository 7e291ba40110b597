# SPDX-License-Identifier: Apache-2.0
"""Bounds for every topology of an order and degree: diameter, path length, number of paths, channel load."""

from typing import Any

from pydantic import Field

from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.bounds import (
    covering_hops,
    link_load_bound,
    moore_diameter,
    paths_within_bound,
    shortest_paths_length,
)
from flitlab.models.topology.graph import Topology


@register("metric", "lemma_bounds")
class LemmaBounds(MetricSpec):
    """Bounds for directed regular graphs with the order N and the largest degree r of the topology.

    r counts the channels out of a switch, so that a bi-directional link gives 1 to either end, and RRG(N, r) with r
    links a switch is compared with a uni-directional graph of as many channels.

    ``diameter``: at least (Lemma 1). ``k_shortest``: LK(N, r, k), least average length of the ``k`` shortest
    paths (Lemma 2). ``paths_within``: most paths of at most ``hops`` hops that all pairs can have (Lemma 3);
    hops: by default the least H with r**H >= N, and repeated as ``hops``. ``link_load``: ML(N, r), least
    maximum load of a channel if every ordered pair of switches sends 1 (Lemma 4).

    Example: ``metrics: [{kind: lemma_bounds, k: 8}]``

    Source: DBG section III.
    """

    k: int = Field(default=1, ge=1)
    hops: int | None = Field(default=None, ge=1)

    def measure(self, topology: Topology) -> dict[str, Any]:
        n, degree = topology.switches, int(topology.out_degree.max())
        if n < 2 or (degree < 2 and self.hops is None):
            raise ValueError("lemma_bounds: needs two switches and a degree of 2 or more")
        hops = self.hops or covering_hops(n, degree)
        return {
            "diameter": moore_diameter(n, degree, directed=True),
            "k_shortest": shortest_paths_length(n, degree, self.k),
            "hops": hops,
            "paths_within": paths_within_bound(n, degree, hops),
            "link_load": link_load_bound(n, degree),
        }
