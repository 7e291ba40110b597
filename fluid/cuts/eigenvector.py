# SPDX-License-Identifier: Apache-2.0
"""Spectral cuts: a sweep over the switches in the order of an eigenvector."""

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from flitlab.fluid.cuts.cut import CutNetwork
from flitlab.models.arrays import Bools, Floats

VECTORS = 4
"""Eigenvectors that are swept, from the second smallest eigenvalue on, which may be degenerate."""

DENSE = 500
"""Switches up to which all eigenvectors are computed."""


def search(network: CutNetwork) -> np.ndarray | None:
    """The sparsest cut between the first k and the other switches in the order of an eigenvector; bool [switches].

    The eigenvectors are those of the normalised Laplacian of the capacities (of both directions together). Source:
    Chung, Spectral Graph Theory, 1997, chapter 2.
    """
    n = network.topology.switches
    if n < 3:
        return None
    orders = np.argsort(np.round(_vectors(network), 9), axis=0, kind="stable").T
    return network.sparsest(_sweep(order) for order in orders)


def _sweep(order: np.ndarray) -> Bools:
    """bool [switches - 1, switches]: the first 1, 2, ... switches of an order."""
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position < np.arange(1, len(order))[:, None]


def _vectors(network: CutNetwork) -> Floats:
    """float64 [switches, vectors]: D**-1/2 times the eigenvectors of the Laplacian I - D**-1/2 A D**-1/2."""
    topology = network.topology
    n = topology.switches
    links = csr_array((topology.capacity, (topology.src, topology.dst)), (n, n))
    links = csr_array(links + links.T)
    scale = 1 / np.sqrt(links.sum(axis=1))
    normalised = csr_array(diags_array(scale) @ links @ diags_array(scale))  # the largest eigenvalues of this one
    count = min(VECTORS, n - 1)
    if n <= DENSE:
        vectors = eigh(normalised.toarray(), subset_by_index=[n - 1 - count, n - 2])[1]
    else:
        start = np.random.Generator(np.random.Philox(0)).random(n)
        values, every = eigsh(normalised, count + 1, which="LA", v0=start)
        vectors = every[:, np.argsort(values)[:-1]]
    scaled: Floats = vectors[:, ::-1] * scale[:, None]
    return scaled
