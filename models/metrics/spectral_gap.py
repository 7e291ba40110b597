# SPDX-License-Identifier: Apache-2.0
"""Spectral measures of expansion."""

from math import ceil, sqrt

import numpy as np
from scipy.linalg import eigvalsh, svdvals
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh, svds

from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology

DENSE = 300
"""Most switches for which all eigenvalues are computed."""


@register("metric", "spectral_gap")
class SpectralGap(MetricSpec):
    """Gap between the two largest eigenvalues of the adjacency matrix A, and what follows from such gaps.

    A counts parallel channels; capacities play no part. With uni-directional channels the metric itself and ``second``
    are of the singular values of A instead, which bound expansion where eigenvalues do not.

    The metric itself: largest - second. ``second``: the second largest eigenvalue (singular value). ``expansion``: the
    largest modulus of an eigenvalue besides the largest, and besides -largest in a bipartite graph; with
    uni-directional channels the second singular value. ``ramanujan``: expansion / (2 sqrt(d - 1)) of a d-regular
    bi-directional graph, at most 1 for a Ramanujan graph; else None.
    ``algebraic_connectivity``: second smallest eigenvalue of the Laplacian of the links (uni-directional channels
    count as links); ``bisection_bound``: the bisection that it implies, ceil(connectivity * |half| |other half| / n).

    Example: ``metrics: [{kind: spectral_gap}]``

    Source: Fiedler, Czechoslovak Math. J. 23, 1973 (algebraic connectivity); Lubotzky, Phillips and Sarnak,
    Combinatorica 8, 1988, doi:10.1007/BF02126799 (Ramanujan graphs).
    """

    def measure(self, topology: Topology) -> Row:
        n = topology.switches
        if n < 3:
            raise ValueError("spectral_gap: needs three switches")
        matrix = csr_array((np.ones(topology.channels), (topology.src, topology.dst)), shape=(n, n))
        if topology.directed:
            largest, second = _largest_singular(matrix)
            expansion, ramanujan = second, None
        else:
            low, second, largest = _extreme_eigenvalues(matrix)
            bipartite = abs(low[0] + largest) < 1e-9 * largest
            expansion = float(max(abs(second), abs(low[1] if bipartite else low[0])))
            degree = topology.out_degree
            regular = degree.min() == degree.max() > 1
            ramanujan = expansion / (2 * sqrt(degree.max() - 1)) if regular else None
        connectivity = _algebraic_connectivity(topology)
        return {
            "": largest - second,
            "second": second,
            "expansion": expansion,
            "ramanujan": ramanujan,
            "algebraic_connectivity": connectivity,
            "bisection_bound": max(ceil(connectivity * (n // 2) * (n - n // 2) / n - 1e-6), 0),
        }


def _start_vector(n: int) -> np.ndarray:
    """Return the start vector of the iterations; constant, so that results are reproducible."""
    return np.random.Generator(np.random.Philox(0)).random(n)


def _largest_singular(matrix: csr_array) -> tuple[float, float]:
    if matrix.shape[0] <= DENSE:
        values = svdvals(matrix.toarray())
    else:
        values = np.sort(svds(matrix, 2, return_singular_vectors=False, v0=_start_vector(matrix.shape[0])))[::-1]
    return float(values[0]), float(values[1])


def _extreme_eigenvalues(matrix: csr_array) -> tuple[np.ndarray, float, float]:
    """Return (the two smallest eigenvalues, ascending; the second largest; the largest)."""
    n = matrix.shape[0]
    if n <= DENSE:
        values = eigvalsh(matrix.toarray())
    else:
        ends = [eigsh(matrix, 2, which=which, return_eigenvectors=False, v0=_start_vector(n)) for which in ("SA", "LA")]
        values = np.sort(np.concatenate(ends))
    return values[:2], float(values[-2]), float(values[-1])


def _algebraic_connectivity(topology: Topology) -> float:
    n = topology.switches
    one = np.where(topology.reverse >= 0, 0.5, 1.0)
    links = csr_array((one, (topology.src, topology.dst)), shape=(n, n))
    links = links + links.T
    degree = links.sum(axis=1)
    if n <= DENSE:
        return max(float(eigvalsh(np.diag(degree) - links.toarray())[1]), 0.0)
    # the smallest eigenvalues of the Laplacian are the largest of (upper bound - Laplacian)
    above = 2 * degree.max()
    flipped = links + diags_array(above - degree)
    values = eigsh(csr_array(flipped), 2, which="LA", return_eigenvectors=False, v0=_start_vector(n))
    return max(float(above - values.min()), 0.0)
