# SPDX-License-Identifier: Apache-2.0
"""Many to one."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Name, host_names
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "incast")
class Incast(TrafficSpec):
    """Many-to-one traffic: ``senders`` drawn from ``seed`` all send to one ``receiver``, which takes 1 at load 1.

    ``receiver`` is the number or the label of a host.

    Example: ``traffic: {kind: incast, senders: 8, receiver: 0}``

    Source: Chen, Griffith, Liu, Katz, Joseph, WREN 2009, doi:10.1145/1592681.1592693.
    """

    senders: int = Field(default=8, ge=1)
    """Hosts that send."""
    receiver: Name = 0
    """The host that receives."""
    seed: int = Field(default=1, ge=0)
    """Seed that draws the senders."""

    def demand(self, topology: Topology) -> Traffic:
        hosts = topology.hosts
        receiver = host_names(topology).number(self.receiver, "receiver")
        if self.senders >= hosts:
            raise SpecError(f"must be below the {hosts} hosts of the topology", key="senders")
        others = np.delete(np.arange(hosts), receiver)
        senders = np.random.Generator(np.random.Philox(self.seed)).permutation(others)[: self.senders]
        target = np.full(hosts, -1, np.int64)
        target[senders] = receiver
        return fixed_traffic(self.kind, topology, target)
