# SPDX-License-Identifier: Apache-2.0
"""Ranks in a ring of neighbours."""

import numpy as np
from pydantic import Field

from flitlab.models.application.placement import PlacementSpec, require_enough_hosts
from flitlab.models.application.program import Program
from flitlab.models.arrays import Ints
from flitlab.models.collective.ring import find_ring, ring_of, ring_segment
from flitlab.models.mappings import Notes
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("placement", "ring")
class Ring(PlacementSpec):
    """Rank r is next to rank r + 1, and the last to the first: on the same switch, or on neighbours, where possible.

    Switches with hosts follow a Hamiltonian cycle of the network if the search finds one, and the hosts of a switch
    each other, so that a ring algorithm loads no channel twice. Without such a cycle, the order is the best one found
    by the load of the busiest channel if each rank sends to the next one by minimal routing. ``seed`` draws both
    searches, which take a few seconds at most. Fewer ranks than hosts take a part of the order, whose ends are
    neighbours if there is such a part.

    Example: ``placement: {kind: ring, seed: 1}``

    Source: Karp, SIAM J. Comput. 8 (1979), for cycles from an assignment; Posa, Discrete Mathematics 14 (1976).
    """

    seed: int = Field(default=1, ge=0)
    """Seed of the search for a cycle."""

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        return ring_segment(topology, find_ring(topology, self.seed).order, program.ranks)

    def notes(self, topology: Topology, host: Ints) -> Notes:
        ring = ring_of(topology, host)
        return {"hamiltonian": ring.hamiltonian, "ring_load": round(ring.load, 6)}
