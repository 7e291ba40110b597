"""What a placement is asked for."""

import numpy as np

from models.application.program import Program
from models.registry import Spec, SpecError
from models.topology.graph import Topology


class PlacementSpec(Spec):
    """Decides which host runs which rank."""

    def build(self, topology: Topology, program: Program) -> np.ndarray:
        """int64 [ranks], the host of each rank, all different. Raises ``SpecError`` (also for too few hosts)."""
        raise NotImplementedError


def refuse_if_crowded(topology: Topology, program: Program) -> None:
    """Raise ``SpecError`` for more ranks than hosts."""
    if program.ranks > topology.hosts:
        raise SpecError(f"{program.ranks} ranks need as many hosts; the network has {topology.hosts}")
