# SPDX-License-Identifier: Apache-2.0
"""Cuts around single switches: networks are often sparse at their edges."""

import numpy as np

from flitlab.fluid.cuts.cut import Network
from flitlab.models.arrays import Bools


def search(network: Network) -> Bools | None:
    """The sparsest cut between one switch and all others; bool [switches]."""
    room, wanted = network.capacity, network.demand
    found = network.ratio(np.array([room.rows, room.columns]), np.array([wanted.rows, wanted.columns]))
    way, v = np.unravel_index(found.argmin(), found.shape)
    if np.isinf(found[way, v]):
        return None
    inside: Bools = (np.arange(found.shape[1]) == v) ^ bool(way)
    return inside
