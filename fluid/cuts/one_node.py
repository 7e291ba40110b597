"""Cuts around single switches: networks are often sparse at their edges."""

import numpy as np

from flitlab.fluid.cuts.cut import Network


def search(network: Network) -> np.ndarray | None:
    """The sparsest cut between one switch and all others; bool [switches]."""
    room, wanted = network.capacity, network.demand
    found = network.ratio(np.array([room.rows, room.columns]), np.array([wanted.rows, wanted.columns]))
    way, v = np.unravel_index(found.argmin(), found.shape)
    if np.isinf(found[way, v]):
        return None
    return (np.arange(found.shape[1]) == v) ^ bool(way)
