# SPDX-License-Identifier: Apache-2.0
"""Edge connectivity: the fewest failures that disconnect a topology."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("metric", "edge_connectivity")
class EdgeConnectivity(MetricSpec):
    """Fewest channels whose removal leaves some switch without a path to some other.

    For bi-directional topologies that is the fewest links whose removal cuts the topology in two. ``excess``:
    smallest degree (in or out, channels) - connectivity, 0 where isolating a switch is the cheapest cut. By one
    maximum flow per switch: a few seconds for 256 switches.

    Example: ``metrics: [{kind: edge_connectivity}]``

    Source: Schnorr, SIAM J. Computing 8, 1979, doi:10.1137/0208020.
    """

    def measure(self, topology: Topology) -> Row:
        n = topology.switches
        if n < 2:
            raise ValueError("edge_connectivity: needs two switches")
        ones = np.ones(topology.channels, np.int32)
        matrix = csr_array((ones, (topology.src, topology.dst)), shape=(n, n))
        # the cycle over all switches crosses every cut in both directions
        connectivity = min(maximum_flow(matrix, v, (v + 1) % n).flow_value for v in range(n))
        degree = int(min(topology.out_degree.min(), topology.in_degree.min()))
        return {"": int(connectivity), "excess": degree - int(connectivity)}
