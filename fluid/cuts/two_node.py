# SPDX-License-Identifier: Apache-2.0
"""Cuts around two switches."""

import numpy as np

from flitlab.fluid.cuts.cut import CutNetwork


def search(network: CutNetwork) -> np.ndarray | None:
    """The sparsest cut between any two switches and all others; bool [switches]. None below three switches."""
    n = network.topology.switches
    if n < 3:
        return None
    least, side = np.inf, None
    for u in range(n - 1):
        sparsity = network.ratio(network.capacity.of_pair(u), network.demand.of_pair(u))[:, u + 1 :]
        direction, v = map(int, np.unravel_index(sparsity.argmin(), sparsity.shape))
        if sparsity[direction, v] < least * (1 - 1e-12):
            least, side = float(sparsity[direction, v]), np.isin(np.arange(n), [u, u + 1 + v]) ^ bool(direction)
    return side
