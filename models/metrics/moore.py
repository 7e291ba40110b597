# SPDX-License-Identifier: Apache-2.0
"""Moore bounds on order, diameter and average distance."""

from typing import Any

from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.bounds import moore_aspl, moore_diameter, moore_order
from flitlab.models.topology.distances import distance_counts, mean_hops
from flitlab.models.topology.graph import Topology


@register("metric", "moore")
class Moore(MetricSpec):
    """Distance of a topology from the Moore bounds of its largest degree d (channels out of a switch).

    ``order``: most switches within the same diameter D, 1 + d + d (d - 1) + … + d (d - 1)**(D - 1), and with
    uni-directional channels 1 + d + … + d**D; ``order_ratio``: switches / order. ``diameter``: least diameter
    of that many switches, ``diameter_excess``: difference of the diameter and it. ``aspl``: the lower bound of
    Cerf et al. on the average distance, ``aspl_ratio``: average distance / bound (1 for a single switch).

    Example: ``metrics: [{kind: moore}]``

    Source: Cerf, Cowan, Mullin and Stanton, Networks 4, 1974, doi:10.1002/net.3230040405. UNI section III-A.
    """

    def measure(self, topology: Topology) -> dict[str, Any]:
        n, degree, directed = topology.switches, int(topology.out_degree.max()), topology.directed
        counts = distance_counts(topology)
        diameter = len(counts) - 1
        order, least_diameter = moore_order(degree, diameter, directed), moore_diameter(n, degree, directed)
        bound = moore_aspl(n, degree, directed)
        return {
            "order": order,
            "order_ratio": n / order,
            "diameter": least_diameter,
            "diameter_excess": diameter - least_diameter,
            "aspl": bound,
            "aspl_ratio": mean_hops(counts) / bound if bound else 1.0,
        }
