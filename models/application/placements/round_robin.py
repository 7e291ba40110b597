# SPDX-License-Identifier: Apache-2.0
"""Placement round robin over switches."""

import numpy as np

from flitlab.models.application.placement import PlacementSpec, require_enough_hosts
from flitlab.models.application.program import Program
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("placement", "round_robin")
class RoundRobin(PlacementSpec):
    """Consecutive ranks run on different switches: one on the first host of each, then one on the second, and so on.

    With one host per switch it equals ``linear``.

    Example: ``placement: {kind: round_robin}``
    """

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        switch = topology.host_switch
        index = np.arange(topology.hosts) - np.searchsorted(switch, switch)  # which of its switch's hosts it is
        return np.lexsort((switch, index))[: program.ranks]
