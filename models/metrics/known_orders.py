# SPDX-License-Identifier: Apache-2.0
"""Orders of the largest known networks of a degree and a diameter, uni- and bi-directional."""

from typing import Any

from pydantic import Field

from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.bounds import moore_order
from flitlab.models.topology.degree_diameter_graphs import record_orders
from flitlab.models.topology.distances import distance_counts
from flitlab.models.topology.families.degree_diameter import MAX_DIAMETER, largest_digraph
from flitlab.models.topology.graph import Topology


@register("metric", "known_orders")
class KnownOrders(MetricSpec):
    """Orders of the largest known networks of this degree and diameter, uni- and bi-directional.

    ``degree``, ``diameter``: by default those of the topology (its largest degree, in channels out of a switch);
    if set, the metric is independent of the topology.

    ``directed``: the largest known digraph (see ``degree_diameter``; the Kautz graph from degree 3), and
    ``undirected``, the largest known graph (Combinatorics Wiki, July 2022; the Moore bound for diameter 1 and up to
    degree 2; None where the table ends). ``directed_bound``, ``undirected_bound``: the Moore bounds;
    ``directed_share``, ``undirected_share``: of the bound. ``ratio``: directed / undirected.

    Example: ``metrics: [{kind: known_orders, degree: 8, diameter: 4}]``

    Source: UNI section I, Figure 1, and section IV-A.
    """

    degree: int | None = Field(default=None, ge=1)
    diameter: int | None = Field(default=None, ge=1, le=MAX_DIAMETER)

    def measure(self, topology: Topology) -> dict[str, Any]:
        if topology.switches < 2 and not (self.degree and self.diameter):
            raise ValueError("known_orders: a single switch has no degree and no diameter")
        degree = self.degree or int(topology.out_degree.max())
        diameter = self.diameter or len(distance_counts(topology)) - 1
        directed, undirected = largest_digraph(degree, diameter).order, largest_graph_order(degree, diameter)
        bounds = {kind: moore_order(degree, diameter, kind == "directed") for kind in ("directed", "undirected")}
        return {
            "directed": directed,
            "undirected": undirected,
            "directed_bound": bounds["directed"],
            "undirected_bound": bounds["undirected"],
            "directed_share": directed / bounds["directed"],
            "undirected_share": undirected and undirected / bounds["undirected"],
            "ratio": undirected and directed / undirected,
        }


def largest_graph_order(degree: int, diameter: int) -> int | None:
    """Return the order of the largest known bi-directional network; None if the table of records does not contain it.

    Complete graphs, single links and odd cycles reach the Moore bound.
    """
    if diameter == 1 or degree <= 2:
        return moore_order(degree, diameter, directed=False)
    return record_orders().get((degree, diameter))
