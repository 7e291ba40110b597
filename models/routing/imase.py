# SPDX-License-Identifier: Apache-2.0
"""Minimal routing by arithmetic on the numbers of switches."""

from typing import Literal

import numpy as np

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import NO_PORTS, SELECT, Routes, RoutingSpec
from flitlab.models.rules.tables import MaxPorts, RouteForm
from flitlab.models.topology.distances import diameter
from flitlab.models.topology.graph import Topology


def digits_of(topology: Topology) -> tuple[int, int] | None:
    """(degree, shift) if the channels are v -> degree v + shift + 0 .. degree - 1 (mod switches), without loops."""
    n, degree_max = topology.switches, int(topology.out_degree.max(initial=0))
    for degree in (degree_max, degree_max + 1):  # one more if there is a loop at every switch
        tail, step = np.repeat(np.arange(n), degree), np.tile(np.arange(degree), n)
        for shift in [0, *np.unique(topology.dst[topology.src == 0]).tolist()]:
            if not _leads_on(topology, n - 1, degree, int(shift)):
                continue  # all but few are ruled out by one switch
            arcs = np.column_stack([tail, (tail * degree + step + shift) % n])
            if Topology.from_arcs("candidate", n, arcs).edge_hash == topology.edge_hash:
                return degree, int(shift)
    return None


def _leads_on(topology: Topology, v: int, degree: int, shift: int) -> bool:
    """Whether the channels of switch v lead to degree v + shift + 0 .. degree - 1."""
    heads = topology.dst[topology.out_start[v] : topology.out_start[v + 1]].tolist()
    computed = [(degree * v + shift + step) % topology.switches for step in range(degree)]
    return sorted(heads) == sorted(head for head in computed if head != v)


@register("routing", "imase")
class Arithmetic(RoutingSpec):
    """Minimal routing without tables where switch v has channels to degree v + shift + 0 .. degree - 1 (mod n).

    The switches k steps from v are degree**k in a row, so distances and next hops follow from the numbers, in time that
    grows with the degree and the logarithm of n. The routes are exactly the shortest paths, with the same choices among
    them as ``minimal``. Serves undamaged imase (a = 1) and gdbg graphs of more switches than their degree.

    Example: ``routing: {kind: imase}``

    Source: Imase and Itoh 1981, doi:10.1109/TC.1981.1675809; DBG section IV-A.
    """

    select: Literal["random", "hash", "adaptive"] = "random"
    """How one of the channels that serve is chosen."""

    def routes(self, topology: Topology) -> Routes:
        digits = digits_of(topology)
        if digits is None:
            raise SpecError(
                f"needs an undamaged imase graph with a = 1, or gdbg; this {topology.kind} is none "
                "(minimal takes the same routes from tables)",
                key="kind",
            )
        if digits[0] > MaxPorts.MASK:
            raise SpecError(f"serves at most {MaxPorts.MASK} channels out of a switch", key="kind")
        return Routes(
            self.kind, NO_PORTS, SELECT[self.select], diameter(topology), form=RouteForm.DIGITS,
            digits=digits, notes={"degree": digits[0], "shift": digits[1]},
        )  # fmt: skip
