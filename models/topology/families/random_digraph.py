# SPDX-License-Identifier: Apache-2.0
"""Random uni-directional graphs."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import DRAWS, random_pairs


@register("topology", "random_digraph")
class RandomDigraph(TopologySpec):
    """Uni-directional random regular graph: ``degree`` channels into and out of every switch.

    Simple: no self-loops, no parallel channels. Drawn again until it is strongly connected.
    Valid: 1 <= degree < n, up to 5 * 10**6 channels.

    Example: ``topology: {kind: random_digraph, n: 64, degree: 4, seed: 1}``

    Source: UNI section III-A ("Random").
    """

    n: int = Field(ge=2)
    """Switches."""
    degree: int = Field(ge=1)
    """Channels out of, and into, every switch."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        if self.degree >= self.n:
            raise SpecError(f"must be below n = {self.n}", key="degree")
        limit_random_size(self.n * self.degree, "n")
        rng = np.random.default_rng(self.seed)
        for _ in range(DRAWS):
            arcs = random_pairs(np.full(self.n, self.degree), True, rng)
            if arcs is None:
                continue
            topology = Topology.from_arcs(self.kind, self.n, arcs)
            if topology.unreachable_pair() is None:
                return topology
        raise SpecError(f"no strongly connected graph among {DRAWS} drawn", key="degree")
