# SPDX-License-Identifier: Apache-2.0
"""Cuts around two switches."""

import numpy as np

from flitlab.fluid.cuts.cut import Network


def search(network: Network) -> np.ndarray | None:
    """The sparsest cut between any two switches and all others; bool [switches]. None below three switches."""
    n = network.topology.switches
    if n < 3:
        return None
    least, side = np.inf, None
    for u in range(n - 1):
        found = network.ratio(network.capacity.of_pair(u), network.demand.of_pair(u))[:, u + 1 :]
        way, v = map(int, np.unravel_index(found.argmin(), found.shape))
        if found[way, v] < least * (1 - 1e-12):
            least, side = float(found[way, v]), np.isin(np.arange(n), [u, u + 1 + v]) ^ bool(way)
    return side
