# SPDX-License-Identifier: Apache-2.0
"""Balanced cuts by the partitioner METIS."""

import numpy as np

from flitlab.fluid.cuts.cut import CutNetwork
from flitlab.models.metrics.bisection import metis_halves

TRIES = 10


def search(network: CutNetwork) -> np.ndarray | None:
    """The sparsest bisection of METIS, with equally many switches, or hosts, on both sides; bool [switches]."""
    topology = network.topology
    if topology.switches < 2:
        return None
    one = np.ones(topology.switches, np.int64)
    sizes = [one]
    if topology.host_count.min() != topology.host_count.max() and topology.hosts > 1:
        sizes.append(topology.host_count)
    value = np.where(topology.reverse >= 0, 0.5, 1.0) * topology.capacity
    halves = [half for size in sizes for half in metis_halves(topology, size, value, TRIES, seed=1)]
    return network.sparsest([np.array(halves)])
