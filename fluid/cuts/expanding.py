# SPDX-License-Identifier: Apache-2.0
"""Cuts around regions: all switches within some hops of one, for clustered networks."""

import numpy as np

from flitlab.fluid.cuts.cut import CutNetwork
from flitlab.models.topology.distances import distances


def search(network: CutNetwork) -> np.ndarray | None:
    """The sparsest cut around the switches within k hops from (or to) a switch, for every k; bool [switches]."""
    hops = distances(network.topology)
    tables = [hops, hops.T] if network.topology.directed else [hops]
    return network.sparsest(table <= k for table in tables for k in range(int(hops.max())))
