# SPDX-License-Identifier: Apache-2.0
"""Random matchings of servers."""

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator, random_cycle
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec
from flitlab.models.traffic.units import Units


@register("traffic", "random_matching")
class RandomMatching(TrafficSpec):
    """RM(servers): a random matching in which every switch has ``servers`` servers, each of which sends to one.

    The servers are virtual, so their number is independent of the hosts of a switch: the switch-level demand is
    (servers at s matched to servers at t) / servers, per host. The matching is one random cycle through all servers
    (no server sends to itself; two of one switch may be matched, and what they exchange needs no network). A switch
    with more hosts than others has in proportion more servers. The k-th hosts of two switches talk to each other.

    Example: ``traffic: {kind: random_matching, servers: 10, seed: 1}``

    Source: MUT section II-C.
    """

    servers: int = Field(default=1, ge=1, le=10_000)
    seed: int = Field(default=1, ge=0)

    def demand(self, topology: Topology) -> Traffic:
        units = Units.of(topology)
        servers = units.count * self.servers
        target = random_cycle(generator(self.seed), servers) // self.servers
        source = np.arange(servers) // self.servers
        flows = sparse.coo_array((np.ones(servers), (source, target)), (units.count, units.count))
        return table_traffic(self.kind, topology, units.host_matrix(flows / self.servers))
