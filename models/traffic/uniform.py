# SPDX-License-Identifier: Apache-2.0
"""Uniform random traffic."""

import numpy as np

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic, TrafficSpec, require_two_hosts


@register("traffic", "uniform", aliases=("uniform_random",))
class Uniform(TrafficSpec):
    """Every packet goes to a host drawn uniformly, not the sender itself unless ``include_self``.

    T[i, j] = 1 / (hosts - 1), or 1 / hosts with ``include_self``.

    Example: ``traffic: {kind: uniform, packet_flits: 33}``

    Source: Dally and Towles, Principles and Practices of Interconnection Networks, section 3.2.
    """

    include_self: bool = False
    """Whether a host may draw itself."""

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        law = DestinationRule.UNIFORM_SELF if self.include_self else DestinationRule.UNIFORM
        return Traffic(self.kind, topology, law, np.ones(topology.hosts))


@register("traffic", "all_to_all")
class AllToAll(Uniform):
    """Every host sends equally to every other; simulated with destinations drawn uniformly.

    T[i, j] = 1 / (hosts - 1), or 1 / hosts with ``include_self``, as MUT section II writes it.

    Example: ``traffic: {kind: all_to_all, include_self: true}``

    Source: MUT section II-B.
    """
