# SPDX-License-Identifier: Apache-2.0
"""Placement in the order of host numbers."""

import numpy as np

from flitlab.models.application.placement import PlacementSpec, require_enough_hosts
from flitlab.models.application.program import Program
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("placement", "linear")
class Linear(PlacementSpec):
    """Rank r runs on host r. Hosts are numbered switch by switch, so a switch's hosts have ranks in a row.

    Example: ``placement: {kind: linear}``
    """

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        return np.arange(program.ranks)
