# SPDX-License-Identifier: Apache-2.0
"""The placement of ranks on hosts drawn at random."""

import numpy as np
from pydantic import Field

from flitlab.models.application.placement import PlacementSpec, require_enough_hosts
from flitlab.models.application.program import Program
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator


@register("placement", "random")
class Random(PlacementSpec):
    """Ranks run on different hosts drawn from ``seed``, every placement being as likely as any other.

    Example: ``placement: {kind: random, seed: 2}``
    """

    seed: int = Field(default=1, ge=0)

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        return generator(self.seed).permutation(topology.hosts)[: program.ranks]
