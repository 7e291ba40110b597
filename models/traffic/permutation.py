"""Random permutation traffic."""

import numpy as np
from pydantic import Field

from models.registry import SpecError, register
from models.topology.graph import Topology
from models.traffic.fixed import fixed_traffic
from models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "permutation")
class Permutation(TrafficSpec):
    """A random permutation of the hosts without fixed points, drawn from ``seed``.

    It is one long cycle of all hosts in random order (Sattolo's algorithm), so every host sends and
    receives exactly 1.

    Example: ``traffic: {kind: permutation, seed: 7}``

    Source: Sattolo 1986, doi:10.1016/0020-0190(86)90073-6.
    """

    seed: int = Field(default=1, ge=0)

    def build(self, topology: Topology) -> Traffic:
        if topology.hosts < 2:
            raise SpecError(f"needs two hosts or more; the topology has {topology.hosts}", key="kind")
        order = np.random.Generator(np.random.Philox(self.seed)).permutation(topology.hosts)
        target = np.empty_like(order)
        target[order] = np.roll(order, -1)
        return fixed_traffic(self.kind, topology, target)
