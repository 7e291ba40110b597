# SPDX-License-Identifier: Apache-2.0
"""Hop-limited all-path routing."""

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.ksp import SourceRouted
from flitlab.models.routing.paths import MAX_PATHS, farthest, missing_pair, path_table, require_connected, sets_within
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names


def fewest_hops(switches: int, degree: int) -> int:
    """The least H with degree**H >= switches; 1 at least."""
    hops, reached = 1, degree
    while reached < switches and degree > 1:
        hops, reached = hops + 1, reached * degree
    return hops


@register("routing", "allpath")
class AllPath(SourceRouted):
    """ALLPATH(H): every loopless path of at most ``hops`` channels; a packet takes one of them.

    hops defaults to the least H with degree**H >= the number of switches, which serves every generalised de Bruijn
    graph. One of a pair's paths is drawn uniformly, for each packet or by flow.

    Example: ``routing: {kind: allpath, hops: 3}``

    Source: DBG section IV-B.
    """

    hops: int | None = Field(default=None, ge=1)

    def routes(self, topology: Topology) -> Routes:
        require_connected(topology)
        degree = int(topology.out_degree.max(initial=1))
        hops = self.hops or fewest_hops(topology.switches, degree)
        steps = topology.channels * max(1, degree - (not topology.directed)) ** min(hops - 1, 64)  # more is too many
        if steps > 10 * MAX_PATHS:
            raise SpecError(f"up to {steps:.0e} paths: too many to keep; use fewer hops, or ksp", key="hops")
        table = path_table(topology, sets_within(topology, hops))
        missing = missing_pair(topology, table)
        if missing is not None:
            s, t = map(switch_names(topology).label, missing)
            problem = f"switch {t} is farther than {hops} hops from switch {s}; nearest {farthest(topology)}"
            raise SpecError(problem, key="hops")
        return self.along(topology, table, hops_allowed=hops)
