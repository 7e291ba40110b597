# SPDX-License-Identifier: Apache-2.0
"""Hoefler's model (HM): every path gets its equal share of the most crowded link that it crosses.

Sources: Hoefler, Schneider, Lumsdaine, CLUSTER 2008, doi:10.1109/CLUSTR.2008.4663762; with several paths a flow, Yuan
et al., SC 2013, doi:10.1145/2503210.2503229, as stated by Faizian et al., "Throughput Models of Interconnection
Networks", section II-C.
"""

from flitlab.fluid.sharing.filling import least_on_path, per_weight
from flitlab.fluid.sharing.flows import Flows
from flitlab.models.arrays import Floats


def hoefler(flows: Flows) -> Floats:
    """float64 [paths]: weight * min over the links of the path of capacity / weight of all paths that cross it.

    Each path of a flow counts as a flow of its own, with the whole weight.
    """
    left = per_weight(flows.capacity, flows.paths, flows.path_weight)
    return flows.path_weight * least_on_path(left, flows.paths)
