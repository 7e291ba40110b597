# SPDX-License-Identifier: Apache-2.0
"""Superposed random permutations."""

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator, random_cycle
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec, require_two_hosts


@register("traffic", "perm")
class Perm(TrafficSpec):
    """perm(x): ``x`` random permutations of the hosts superposed, drawn one after another from ``seed``.

    T[i, j] = (how many of the permutations lead from i to j) / x. No permutation leads from a host to itself
    (each is one random cycle through all of them, as in ``permutation``, which is perm(1)).

    Example: ``traffic: {kind: perm, x: 4, seed: 2}``

    Source: GBU section III.
    """

    x: int = Field(ge=1, le=1000)
    seed: int = Field(default=1, ge=0)

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        hosts, rng = topology.hosts, generator(self.seed)
        target = np.concatenate([random_cycle(rng, hosts) for _ in range(self.x)])
        source = np.tile(np.arange(hosts), self.x)
        flows = sparse.coo_array((np.ones(len(target)), (source, target)), (hosts, hosts))
        return table_traffic(self.kind, topology, flows)
