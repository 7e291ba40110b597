# SPDX-License-Identifier: Apache-2.0
"""Sparse cuts: the capacity across a cut bounds theta. One function per heuristic.

A cut is a set of switches, ``side``. Its sparsity is the capacity of the channels that leave it over the demand that
leaves it. Both directions of every bipartition count as cuts. Each cut is a certificate: price 1 on the channels that
leave ``side`` and 0 elsewhere proves a bound at least as tight. A heuristic returns its sparsest cut, bool [switches],
or None where it does not apply or no demand crosses.

Source: MUT section III-B; SIN appendix D.
"""

from collections.abc import Collection
from math import ceil

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from flitlab.fluid.cut import Cut, CutNetwork
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Floats
from flitlab.models.metrics.cuts import metis_halves
from flitlab.models.topology.distances import distances, host_distance_counts
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.traffic import Traffic

METIS_TRIES = 10
"""Bisections of each kind that METIS computes."""

MAX_BRUTE_FORCE_SWITCHES = 25
"""Switches up to which all cuts are searched: 33 million."""

MAX_BRUTE_FORCE_CUTS = 100_000
"""Cuts that are searched in larger networks. Source: SIN section 3.2.1.1."""

FIRST_SWITCHES = 16
"""Switches whose subsets are evaluated together."""

VECTORS = 4
"""Eigenvectors that are swept, from the second smallest eigenvalue on, which may be degenerate."""

DENSE = 500
"""Switches up to which all eigenvectors are computed."""


def one_node(network: CutNetwork) -> Bools | None:
    """The sparsest cut between one switch and all others; bool [switches]."""
    capacity, demand = network.capacity, network.demand
    sparsity = network.ratio(np.array([capacity.rows, capacity.columns]), np.array([demand.rows, demand.columns]))
    direction, v = np.unravel_index(sparsity.argmin(), sparsity.shape)
    if np.isinf(sparsity[direction, v]):
        return None
    inside: Bools = (np.arange(sparsity.shape[1]) == v) ^ bool(direction)
    return inside


def two_node(network: CutNetwork) -> np.ndarray | None:
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


def expanding(network: CutNetwork) -> np.ndarray | None:
    """The sparsest cut around the switches within k hops from (or to) a switch, for every k; bool [switches]."""
    hops = distances(network.topology)
    tables = [hops, hops.T] if network.topology.directed else [hops]
    farthest = len(host_distance_counts(network.topology)) if network.topology.is_multistage else int(hops.max())
    return network.sparsest(table <= k for table in tables for k in range(farthest))


def bisection(network: CutNetwork) -> np.ndarray | None:
    """The sparsest bisection of METIS, with equally many switches, or hosts, on both sides; bool [switches]."""
    topology = network.topology
    if topology.switches < 2:
        return None
    one = np.ones(topology.switches, np.int64)
    sizes = [one]
    if topology.host_count.min() != topology.host_count.max() and topology.hosts > 1:
        sizes.append(topology.host_count)
    value = np.where(topology.reverse >= 0, 0.5, 1.0) * topology.capacity
    halves = [half for size in sizes for half in metis_halves(topology, size, value, METIS_TRIES, seed=1)]
    return network.sparsest([np.array(halves)])


def brute_force(network: CutNetwork) -> Bools | None:
    """The sparsest of all cuts; bool [switches]. Above MAX_BRUTE_FORCE_SWITCHES switches of MAX_BRUTE_FORCE_CUTS cuts.

    A set is numbered by its bits, bit v for switch v; those of the lowest numbers are searched, in both directions.
    """
    n = network.topology.switches
    if n < 2:
        return None
    if n <= MAX_BRUTE_FORCE_SWITCHES:
        sets, tables = 1 << n, [(network.capacity.dense(), network.demand.dense())]
    else:
        sets, bits = MAX_BRUTE_FORCE_CUTS + 1, MAX_BRUTE_FORCE_CUTS.bit_length()  # set 0 is empty
        outwards = network.capacity.of_first(bits), network.demand.of_first(bits)
        tables = [outwards, (outwards[0].T, outwards[1].T)]
    least, best, reverse = np.inf, 0, False
    for direction, (capacity, demand) in enumerate(tables):
        channels, flows = _Subsets(capacity), _Subsets(demand)
        for others in range(ceil(sets / (1 << FIRST_SWITCHES))):
            sparsity = network.ratio(channels.leaving(others), flows.leaving(others))
            first = int(sparsity[: sets - (others << FIRST_SWITCHES)].argmin())
            if sparsity[first] < least * (1 - 1e-12):
                least, best, reverse = float(sparsity[first]), others << FIRST_SWITCHES | first, bool(direction)
    inside: Bools = np.array([best >> v & 1 == 1 for v in range(n)]) ^ reverse
    return inside if np.isfinite(least) else None


class _Subsets:
    """What leaves sets of switches. A set is an integer: bit v is set if it contains switch v."""

    def __init__(self, matrix: Floats):
        """float64 [switches, switches]: what every switch sends to every other."""
        self._matrix = matrix
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


def eigenvector(network: CutNetwork) -> np.ndarray | None:
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


HEURISTICS = {
    "brute_force": brute_force,
    "one_node": one_node,
    "two_node": two_node,
    "expanding": expanding,
    "eigenvector": eigenvector,
    "bisection": bisection,
}
"""Heuristics by name; each returns its sparsest cut, or None where it does not apply or no demand crosses."""


def all_cuts(topology: Topology, traffic: Traffic, heuristics: Collection[str] | None = None) -> list[Cut]:
    """The sparsest cut of each heuristic, in the order of HEURISTICS; empty if no demand leaves its switch.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    heuristics : collection of str or None
        Names of the heuristics; None for all.

    Raises
    ------
    FluidError
        The network is not strongly connected.
    """
    if (pair := topology.unreachable_pair()) is not None:
        reason = "cuts are looked for in strongly connected networks"
        u, v = map(switch_names(topology).label, pair)
        raise FluidError(f"no path leads from switch {u} to switch {v}: {reason}")
    network = CutNetwork.of(topology, traffic)
    tried = HEURISTICS if heuristics is None else [name for name in HEURISTICS if name in heuristics]
    sides = ((name, HEURISTICS[name](network)) for name in tried)
    return [network.cut(name, side) for name, side in sides if side is not None]


def best(cuts: list[Cut]) -> Cut:
    """The sparsest cut; of equal ones (to 1e-9) the first."""
    least = min(cut.upper for cut in cuts)
    return next(cut for cut in cuts if cut.upper <= least * (1 + 1e-9))
