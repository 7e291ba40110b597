# SPDX-License-Identifier: Apache-2.0
"""Degree-diameter graphs: the largest known graphs of a degree and a diameter."""

from functools import partial
from math import isqrt

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.bounds import moore_order
from flitlab.models.topology.degree_diameter_graphs import (
    Construction,
    alegre_arcs,
    constructions,
    cycle_links,
    kautz,
    largest_graph,
    record_orders,
)
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MAX_SIZE, listed
from flitlab.models.topology.spec import TopologySpec

MAX_DIAMETER = 64


def largest_digraph(degree: int, diameter: int) -> Construction:
    """Return the largest known digraph: a Kautz graph, but a ring for degree 1 and Alegre's order for degree 2."""
    if degree == 1:
        return Construction(diameter + 1, "ring", partial(cycle_links, diameter + 1))
    if degree == 2 and diameter >= 4:
        name = "lift over Z_5 of Alegre's order"
        name += f", line digraph (times {diameter - 4})" if diameter > 4 else ""
        return Construction(25 * 2 ** (diameter - 4), name, partial(alegre_arcs, diameter))
    return kautz(degree, diameter)


@register("topology", "degree_diameter")
class DegreeDiameter(TopologySpec):
    """The largest available graph of a degree (most links of a switch) and a diameter (most hops of a pair).

    Uni-directional (``directed: true``): the Kautz graph, of degree**diameter + degree**(diameter - 1) switches,
    the largest known from degree 3; for degree 2 and diameter k from 4, 25 * 2**(k - 4) switches, the order of
    Alegre's digraph and its line digraphs; for degree 1, the ring of diameter + 1.

    Bi-directional: complete graph (diameter 1); odd cycle (degree 2); for diameter 2, the larger of polarity
    graph ER_q (q = degree - 1: q**2 + q + 1 switches, one more if q is even), ER_q of a smaller odd q with
    switches duplicated, and McKay-Miller-Siran graph (2 q**2, see ``slim_fly``); for diameter 3 from degree 9,
    the polarity quotient of W(8) and its duplications, 585 + 65 (degree - 9); edge lists and voltage graphs
    that were found by search for the rest. In polarity graphs some switches have a free port.

    ``notes`` state the construction, the largest order known (Combinatorics Wiki, July 2022, undirected only to
    degree 16 and diameter 10; null where unknown), whether it is reached, and the Moore bound.

    Valid: directed, every degree and diameter; otherwise diameter 1 with every degree, 2 and 3 with degrees from
    2, and some more that an error message lists; diameter up to 64, up to 2 * 10**7 channels.

    Example: ``topology: {kind: degree_diameter, degree: 3, diameter: 3}``

    Example: ``topology: {kind: degree_diameter, degree: 7, diameter: 2, directed: false}``

    Source: Miller and Siran, Moore graphs and beyond, Electronic J. Combinatorics DS14, 2013. Duplication:
    Delorme and Farhi, IEEE Trans. Computers C-33, 1984. UNI section III; SIN figure 4.11.
    """

    degree: int = Field(ge=1)
    """The most links, or channels out, of a switch."""
    diameter: int = Field(ge=1, le=MAX_DIAMETER)
    """The most hops between two switches."""
    directed: bool = True
    """Whether channels are uni-directional."""

    def graph(self) -> Topology:
        best = self._best(self.diameter)
        if best is None:
            raise SpecError(self._alternatives(), key="diameter")
        if not self._fits(best):
            smaller = [k for k in range(1, self.diameter) if (graph := self._best(k)) and self._fits(graph)]
            what = f"{best.order} switches of degree {self.degree}: too many"
            if not smaller:
                raise SpecError(f"{what}; valid up to {isqrt(MAX_SIZE) - 1}, with diameter 1", key="degree")
            raise SpecError(f"{what}; nearest {smaller[-1]}", key="diameter")
        record = self._record(best)
        notes = {
            "order": best.order,
            "best_known_order": record,
            "record": None if record is None else best.order >= record,
            "moore_bound": moore_order(self.degree, self.diameter, self.directed),
            "construction": best.name,
        }
        make = Topology.from_arcs if self.directed else Topology.from_links
        return make(self.kind, best.order, best.links(), notes=notes)

    def _fits(self, graph: Construction) -> bool:
        return graph.order * self.degree <= MAX_SIZE

    def _best(self, diameter: int) -> Construction | None:
        """The largest graph of this degree at hand."""
        if self.directed:
            return largest_digraph(self.degree, diameter)
        return largest_graph(self.degree, diameter)

    def _alternatives(self) -> str:
        """What there is instead of a bi-directional graph that is not at hand."""
        if self.degree == 1:
            return "no graph of degree 1 has it; nearest 1"
        diameters = [k for k in range(1, MAX_DIAMETER + 1) if constructions(self.degree, k)]
        degrees = [d for d in range(1, 17) if constructions(d, self.diameter)]
        return (
            f"no graph of degree {self.degree} at hand; of this degree: diameter {listed(diameters)}; "
            f"of this diameter: degree {listed(degrees)}"
        )

    def _record(self, best: Construction) -> int | None:
        """The largest order known; directed, all that are at hand are."""
        if self.directed:
            return best.order
        if self.diameter == 1 or self.degree <= 2:
            return moore_order(self.degree, self.diameter, directed=False)
        return record_orders().get((self.degree, self.diameter))
