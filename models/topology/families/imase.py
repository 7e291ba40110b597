# SPDX-License-Identifier: Apache-2.0
"""Uni-directional graphs of least or near-minimal diameter: Imase, generalised de Bruijn and Kautz graphs."""

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


@register("topology", "imase", aliases=("imase_itoh",))
class Imase(TopologySpec):
    """Uni-directional Imase graph: switch i reaches ((a i + b) degree + alpha) mod n, alpha = 0 .. degree - 1.

    Self-loops are dropped, so a few switches have fewer than ``degree`` channels.

    Valid: 1 <= degree < n, up to 2 * 10**7 channels; a and b such that the graph is strongly connected, as it is
    with a = 1.

    Example: ``topology: {kind: imase, n: 256, degree: 6, hosts_per_switch: 4}``

    Source: UNI section III-A (Imase and Itoh 1981, doi:10.1109/TC.1981.1675809).
    """

    n: int = Field(ge=2)
    """Switches."""
    degree: int = Field(ge=1)
    """Channels out of every switch."""
    a: int = 1
    """Factor of the rule that joins switches."""
    b: int = 1
    """Summand of the rule that joins switches."""

    def graph(self) -> Topology:
        if self.n <= self.degree:
            raise SpecError(f"must exceed the degree, {self.degree}", key="n")
        limit_size(self.n * self.degree, "n")
        return Topology.from_arcs(self.kind, self.n, imase_arcs(self.n, self.degree, self.a, self.b))


@register("topology", "gdbg", aliases=("de_bruijn",))
class Gdbg(TopologySpec):
    """Uni-directional generalised de Bruijn graph: switch i reaches (degree i + alpha) mod n, alpha < degree.

    Self-loops (at most 2 degree of them) are dropped; a degree above n repeats channels. The diameter is at most the
    smallest D with degree^D >= n. Valid: 2 <= degree, up to 2 * 10**7 channels.

    Example: ``topology: {kind: gdbg, n: 64, degree: 4}``

    Source: DBG section IV-A (Du and Hwang, Networks 18, 1988).
    """

    n: int = Field(ge=2)
    """Switches."""
    degree: int = Field(ge=2)
    """Channels out of every switch."""

    def graph(self) -> Topology:
        limit_size(self.n * self.degree, "n" if self.n > self.degree else "degree")
        return Topology.from_arcs(self.kind, self.n, imase_arcs(self.n, self.degree, a=1, b=0))


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
    """Channels out of every switch."""
    diameter: int = Field(ge=1, le=64)
    """The most hops between two switches."""

    def graph(self) -> Topology:
        n = kautz_order(self.degree, self.diameter)
        limit_size(n * self.degree, "diameter" if self.diameter > 1 else "degree")
        return Topology.from_arcs(self.kind, n, kautz_arcs(self.degree, self.diameter))
