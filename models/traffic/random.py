# SPDX-License-Identifier: Apache-2.0
"""Traffic to randomly drawn receivers."""

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec, require_two_hosts


@register("traffic", "random")
class Random(TrafficSpec):
    """random(x): every host sends equally to ``x`` different other hosts, drawn from ``seed``.

    T[i, j] = 1 / (the most senders that one host has, or x if that is more) for the receivers j of i: receivers
    are drawn independently, so that some host usually receives more than it sends, and it is the one that meets
    the hose model's limit.

    Example: ``traffic: {kind: random, x: 1, seed: 2}``

    Source: GBU section III.
    """

    x: int = Field(ge=1)
    """Receivers of every host."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        hosts, rng = topology.hosts, generator(self.seed)
        if self.x >= hosts:
            raise SpecError(f"must be less than the number of hosts, {hosts}", key="x")
        other = np.array([rng.choice(hosts - 1, self.x, replace=False, shuffle=False) for _ in range(hosts)])
        source = np.repeat(np.arange(hosts), self.x)
        target = other.ravel()
        target += target >= source
        return table_traffic(
            self.kind, topology, sparse.coo_array((np.ones(len(target)), (source, target)), (hosts, hosts))
        )
