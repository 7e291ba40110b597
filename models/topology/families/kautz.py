# SPDX-License-Identifier: Apache-2.0
"""Kautz graphs: the largest known uni-directional graphs of given degree (above 2) and diameter."""

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


def kautz_order(degree: int, diameter: int) -> int:
    """Number of switches, degree**diameter + degree**(diameter - 1)."""
    order: int = degree**diameter + degree ** (diameter - 1)
    return order


def kautz_arcs(degree: int, diameter: int) -> Ints:
    """Return arcs i -> (-degree i - alpha) mod order, alpha = 1 .. degree, int64 [order * degree, 2]."""
    n = kautz_order(degree, diameter)
    tail = np.repeat(np.arange(n), degree)
    alpha = np.tile(np.arange(1, degree + 1), n)
    return np.column_stack([tail, (-degree * tail - alpha) % n])


@register("topology", "kautz")
class Kautz(TopologySpec):
    """Uni-directional Kautz graph K(degree, diameter).

    Its switches are the words of ``diameter`` letters from an alphabet of degree + 1, neighbouring letters
    distinct; a channel drops the first letter and appends one. Built in arithmetic form: switch i reaches
    (-degree i - alpha) mod n, alpha = 1 .. degree, with n = degree**diameter + degree**(diameter - 1).

    Valid: degree and diameter from 1, up to 2 * 10**7 channels. (Degree 1 gives two switches, of diameter 1,
    whatever the configured diameter is.)

    Example: ``topology: {kind: kautz, degree: 3, diameter: 3}``

    Source: Kautz 1968; arithmetic form: Imase and Itoh, IEEE Trans. Computers C-32, 1983. UNI section IV-A.
    """

    degree: int = Field(ge=1)
    diameter: int = Field(ge=1, le=64)

    def graph(self) -> Topology:
        n = kautz_order(self.degree, self.diameter)
        limit_size(n * self.degree, "diameter" if self.diameter > 1 else "degree")
        return Topology.from_arcs(self.kind, n, kautz_arcs(self.degree, self.diameter))
