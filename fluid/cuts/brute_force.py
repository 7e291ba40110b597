# SPDX-License-Identifier: Apache-2.0
"""Exhaustive search of the cuts of a small network."""

import numpy as np

from flitlab.fluid.cuts.cut import Crossing, CutNetwork
from flitlab.models.arrays import Floats

MAX_SWITCHES = 25
"""Switches up to which all cuts are searched: 33 million."""

FIRST_SWITCHES = 16
"""Switches whose subsets are evaluated together."""


def search(network: CutNetwork) -> np.ndarray | None:
    """The sparsest of all cuts; bool [switches]. None above MAX_SWITCHES switches."""
    n = network.topology.switches
    if not 2 <= n <= MAX_SWITCHES:
        return None
    capacity, demand = _Subsets(network.capacity), _Subsets(network.demand)
    least, best = np.inf, 0
    for others in range(1 << max(n - FIRST_SWITCHES, 0)):
        sparsity = network.ratio(capacity.leaving(others), demand.leaving(others))
        first = int(sparsity.argmin())
        if sparsity[first] < least * (1 - 1e-12):
            least, best = float(sparsity[first]), others << FIRST_SWITCHES | first
    return (best >> np.arange(n) & 1).astype(bool) if np.isfinite(least) else None


class _Subsets:
    """What leaves sets of switches. A set is an integer: bit v is set if it contains switch v."""

    def __init__(self, crossing: Crossing):
        self._matrix = crossing.dense()
        first = min(len(self._matrix), FIRST_SWITCHES)
        self._among_first = np.zeros(1)
        for v in range(first):
            # outside, v receives from the set; inside, it sends to switches outside
            sent, sends = subset_sums(self._matrix[:v, v]), subset_sums(self._matrix[v, :v])
            self._among_first = np.concatenate([self._among_first + sent, self._among_first + sends[::-1]])
        self._first = slice(0, first)

    def leaving(self, others: int) -> Floats:
        """float64 [sets]: what leaves every subset of the first switches, united with the set ``others`` of the other
        switches.
        """
        later = np.arange(FIRST_SWITCHES, len(self._matrix))
        if len(later) == 0:
            crossing: Floats = self._among_first
            return crossing
        chosen = others >> np.arange(len(later)) & 1 == 1
        inside, outside = later[chosen], later[~chosen]
        sent = subset_sums(self._matrix[self._first, outside].sum(axis=1))
        received = subset_sums(self._matrix[inside, self._first].sum(axis=0))
        crossing = self._among_first + sent + received[::-1] + self._matrix[np.ix_(inside, outside)].sum()
        return crossing


def subset_sums(weight: np.ndarray) -> Floats:
    """Sums over all subsets of weights.

    Parameters
    ----------
    weight : float64 [n]
        Weights.

    Returns
    -------
    float64 [2**n]
        Sum over the subset whose bits are the index.
    """
    sums = np.zeros(1)
    for one in weight:
        sums = np.concatenate([sums, sums + one])
    return sums
