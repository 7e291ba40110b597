# SPDX-License-Identifier: Apache-2.0
"""Three-tier fat trees of identical switches."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "fat_tree")
class FatTree(TopologySpec):
    """Three-tier fat tree (folded Clos network) of k-port switches.

    k pods of k/2 edge and k/2 aggregation switches, every edge switch linked to every aggregation switch of
    its pod; (k/2)**2 core switches. Aggregation switch j of each pod is linked to the core switches
    j k/2 .. (j + 1) k/2 - 1, so that every core switch reaches every pod by one link. Each edge switch has
    k/2 hosts; the others have none.

    5 k**2 / 4 switches, numbered edge (pod by pod), aggregation (pod by pod), core; k**3 / 2 links;
    k**3 / 4 hosts; diameter 4. Valid: k even, up to 2 * 10**7 channels.

    Example: ``topology: {kind: fat_tree, k: 8}``

    Source: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, doi:10.1145/1402958.1402967.
    """

    k: int = Field(ge=2)
    """Ports of a switch, an even number."""

    def graph(self) -> Topology:
        if self.k % 2:
            raise SpecError(f"must be even; nearest {self.k - 1}, {self.k + 1}", key="k")
        limit_size(self.k**3, "k")
        pods, half = self.k, self.k // 2
        edge = np.arange(pods * half).reshape(pods, half)
        aggregation = edge + edge.size
        core = np.arange(half * half).reshape(half, half) + 2 * edge.size
        inside = np.broadcast_arrays(edge[:, :, None], aggregation[:, None, :])
        above = np.broadcast_arrays(aggregation[:, :, None], core[None, :, :])
        links = np.concatenate([np.stack(ends, axis=-1).reshape(-1, 2) for ends in (inside, above)])
        switches = 2 * edge.size + core.size
        tiers = [
            ["edge", 0, edge.size],
            ["aggregation", edge.size, edge.size],
            ["core", 2 * edge.size, core.size],
        ]
        topology = Topology.from_links(self.kind, switches, links, notes={"tiers": tiers})
        return topology.with_hosts(half * (np.arange(switches) < edge.size))
