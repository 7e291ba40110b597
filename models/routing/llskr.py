# SPDX-License-Identifier: Apache-2.0
"""Limited length spread k-shortest path routing."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.routing.ksp import MOST, SourceRouted
from flitlab.models.routing.paths import path_table, require_connected, shortest_sets
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology


@register("routing", "llskr")
class LimitedSpread(SourceRouted):
    """The k shortest paths, but none over ``spread`` hops longer than the pair's shortest one.

    A pair with several short paths then uses no long ones, and a pair with few still has alternatives. spread 0 keeps
    the equal-cost paths. One path is drawn for each packet or flow, as in ``ksp``.

    Example: ``routing: {kind: llskr, k: 8, spread: 1}``

    Source: Yuan, Mahapatra, Nienaber, Pakin, Lang, A new routing scheme for Jellyfish and its performance with HPC
    workloads, SC 2013, doi:10.1145/2503210.2503229 (paths of limited spread; k and spread are parameters).
    """

    k: int = Field(default=8, ge=1, le=MOST)
    spread: int = Field(default=1, ge=0)
    seed: int = Field(default=0, ge=0)

    def routes(self, topology: Topology) -> Routes:
        require_connected(topology)
        table = path_table(topology, shortest_sets(topology, self.k, self.spread, self.seed))
        return self.along(topology, table)
