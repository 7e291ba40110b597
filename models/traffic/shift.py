"""Shift traffic."""

import numpy as np

from models.registry import SpecError, register
from models.topology.graph import Topology
from models.traffic.fixed import fixed_traffic
from models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "shift")
class Shift(TrafficSpec):
    """Host i sends to host (i + by) mod hosts.

    Example: ``traffic: {kind: shift, by: 17}``

    Source: DBG section IV-B.
    """

    by: int

    def build(self, topology: Topology) -> Traffic:
        if self.by % max(topology.hosts, 1) == 0:
            raise SpecError(f"sends every host to itself ({topology.hosts} hosts)", key="by")
        host = np.arange(topology.hosts)
        return fixed_traffic(self.kind, topology, (host + self.by) % topology.hosts)
