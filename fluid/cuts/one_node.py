# SPDX-License-Identifier: Apache-2.0
"""Cuts around single switches: networks are often sparse at their edges."""

import numpy as np

from flitlab.fluid.cuts.cut import CutNetwork
from flitlab.models.arrays import Bools


def search(network: CutNetwork) -> Bools | None:
    """The sparsest cut between one switch and all others; bool [switches]."""
    capacity, demand = network.capacity, network.demand
    sparsity = network.ratio(np.array([capacity.rows, capacity.columns]), np.array([demand.rows, demand.columns]))
    direction, v = np.unravel_index(sparsity.argmin(), sparsity.shape)
    if np.isinf(sparsity[direction, v]):
        return None
    inside: Bools = (np.arange(sparsity.shape[1]) == v) ^ bool(direction)
    return inside
