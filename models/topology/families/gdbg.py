# SPDX-License-Identifier: Apache-2.0
"""Generalised de Bruijn graphs: the uni-directional graph of every order and degree, in round-robin order."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.families.imase import imase_arcs
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "gdbg")
class Gdbg(TopologySpec):
    """Uni-directional generalised de Bruijn graph: switch i reaches (degree i + alpha) mod n, alpha < degree.

    Self-loops (at most 2 degree of them) are dropped; a degree above n repeats channels. The diameter is at most the
    smallest D with degree^D >= n. Valid: 2 <= degree, up to 2 * 10**7 channels.

    Example: ``topology: {kind: gdbg, n: 64, degree: 4}``

    Source: DBG section IV-A (Du and Hwang, Networks 18, 1988).
    """

    n: int = Field(ge=2)
    degree: int = Field(ge=2)

    def graph(self) -> Topology:
        limit_size(self.n * self.degree, "n" if self.n > self.degree else "degree")
        return Topology.from_arcs(self.kind, self.n, imase_arcs(self.n, self.degree, a=1, b=0))
