# SPDX-License-Identifier: Apache-2.0
"""Imase graphs: uni-directional graphs of any order with near-minimal diameter."""

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


def imase_arcs(n: int, degree: int, a: int, b: int) -> Ints:
    """Return arcs i -> ((a i + b) d + alpha) mod n, alpha = 0 .. d - 1, including loops, int64 [n * degree, 2].

    n**2 * degree must be less than 2**63.

    Parameters
    ----------
    n: number of switches.
    degree: arcs out of each switch, d.
    a, b: coefficients of the arcs.
    """
    tail = np.repeat(np.arange(n), degree)
    alpha = np.tile(np.arange(degree), n)
    return np.column_stack([tail, (((a % n) * tail + b % n) * degree + alpha) % n])


@register("topology", "imase")
class Imase(TopologySpec):
    """Uni-directional Imase graph: switch i reaches ((a i + b) degree + alpha) mod n, alpha = 0 .. degree - 1.

    Self-loops are dropped, so a few switches have fewer than ``degree`` channels.

    Valid: 1 <= degree < n, up to 2 * 10**7 channels; a and b such that the graph is strongly connected, as it is
    with a = 1.

    Example: ``topology: {kind: imase, n: 256, degree: 6, hosts_per_switch: 4}``

    Source: UNI section III-A (Imase and Itoh 1981, doi:10.1109/TC.1981.1675809).
    """

    n: int = Field(ge=2)
    degree: int = Field(ge=1)
    a: int = 1
    b: int = 1

    def graph(self) -> Topology:
        if self.n <= self.degree:
            raise SpecError(f"must exceed the degree, {self.degree}", key="n")
        limit_size(self.n * self.degree, "n")
        return Topology.from_arcs(self.kind, self.n, imase_arcs(self.n, self.degree, self.a, self.b))
