# SPDX-License-Identifier: Apache-2.0
"""Random permutation traffic."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator, random_cycle
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec, require_two_hosts


@register("traffic", "permutation")
class Permutation(TrafficSpec):
    """A random permutation of the hosts without fixed points, drawn from ``seed``.

    It is one long cycle of all hosts in random order (Sattolo's algorithm), so every host sends and
    receives exactly 1.

    Example: ``traffic: {kind: permutation, seed: 7}``

    Source: Sattolo 1986, doi:10.1016/0020-0190(86)90073-6.
    """

    seed: int = Field(default=1, ge=0)

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        return fixed_traffic(self.kind, topology, random_cycle(generator(self.seed), topology.hosts))
