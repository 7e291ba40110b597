"""All cuts of a small network."""

import numpy as np

from fluid.cuts.cut import Crossing, Network

MOST = 25
"""Switches up to which all cuts are looked at: 33 million."""

TOGETHER = 16
"""The first so many switches are in or out of a set in all ways at once."""


def search(network: Network) -> np.ndarray | None:
    """The sparsest of all cuts; bool [switches]. None above MOST switches."""
    n = network.topology.switches
    if not 2 <= n <= MOST:
        return None
    capacity, demand = _Subsets(network.capacity), _Subsets(network.demand)
    least, best = np.inf, 0
    for others in range(1 << max(n - TOGETHER, 0)):
        found = network.ratio(capacity.leaving(others), demand.leaving(others))
        first = int(found.argmin())
        if found[first] < least * (1 - 1e-12):
            least, best = float(found[first]), others << TOGETHER | first
    return (best >> np.arange(n) & 1).astype(bool) if np.isfinite(least) else None


class _Subsets:
    """What leaves sets of switches. A set is a number whose bit v says whether switch v belongs to it."""

    def __init__(self, crossing: Crossing):
        self._total = crossing.rows
        self._between = np.array([crossing.exchanged(v) for v in range(len(self._total))])
        self._among_first = np.zeros(1)
        for v in range(min(len(self._total), TOGETHER)):
            # v adds what it sends in all, and takes out what it and the set exchange
            joined = self._among_first + self._total[v] - subset_sums(self._between[v, :v])
            self._among_first = np.concatenate([self._among_first, joined])

    def leaving(self, others: int) -> np.ndarray:
        """float64 [sets]: for every set of the first switches, together with ``others`` of the later ones."""
        if others == 0:
            return self._among_first
        later = TOGETHER + np.flatnonzero(others >> np.arange(len(self._total) - TOGETHER) & 1)
        alone = self._total[later].sum() - self._between[np.ix_(later, later)].sum() / 2
        return self._among_first + alone - subset_sums(self._between[later, :TOGETHER].sum(axis=0))


def subset_sums(weight: np.ndarray) -> np.ndarray:
    """float64 [2**n]: the sum over every subset of n weights, by its number."""
    sums = np.zeros(1)
    for one in weight:
        sums = np.concatenate([sums, sums + one])
    return sums
