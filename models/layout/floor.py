# SPDX-License-Identifier: Apache-2.0
"""Cabinets on a machine room floor, switches in cabinets, and the lengths of the cables between them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.layout.constants import Floor
from flitlab.models.topology.graph import Topology

ROUNDS = 200
"""Rearrangements that the search for a better placement tries."""

NOISE = 0.4
"""Noise on the costs of an assignment at the start of the search, in their standard deviations."""

MAX_MOVED = 300
"""Most switches that one rearrangement moves: the time of an assignment grows with its cube."""


class Cables(NamedTuple):
    """Cables between switches: one per bi-directional link, one per uni-directional channel.

    ends: int64 [cables, 2]. capacity: float64 [cables]. one_way: bool [cables].
    """

    ends: Ints
    capacity: Floats
    unidirectional: Bools


def cables_of(topology: Topology) -> Cables:
    """The cables that a topology needs; a link's two channels share one, of the larger capacity."""
    reverse = topology.reverse
    channels = np.flatnonzero(reverse < np.arange(topology.channels))
    capacity = np.maximum(topology.capacity[channels], topology.capacity[reverse[channels]])
    unidirectional = reverse[channels] < 0
    return Cables(
        np.column_stack([topology.src[channels], topology.dst[channels]]),
        np.where(unidirectional, topology.capacity[channels], capacity),
        unidirectional,
    )


def cabinet_places(cabinets: int, pitch: tuple[float, float]) -> Floats:
    """float64 [cabinets, 2]: x and y of cabinets 0, 1, ... in metres, row by row, all rows from the same side.

    m cabinets stand in ceil(sqrt(m)) rows of ceil(m / rows). Source: UNI section IV-C.
    """
    rows = int(np.ceil(np.sqrt(cabinets)))
    row, column = np.divmod(np.arange(cabinets), -(-cabinets // rows))
    place: Floats = np.column_stack([column, row]) * np.array(pitch)
    return place


def lengths(cabinet: Ints, ends: Ints, floor: Floor) -> Floats:
    """float64 [cables]: metres of cable between pairs of switches.

    cabinet: int64 [switches]. ends: int64 [cables, 2]. Inside a cabinet the same length always, else the Manhattan
    distance plus the overhead.
    """
    place = cabinet_places(int(cabinet.max()) + 1, floor.pitch)
    a, b = cabinet[ends[:, 0]], cabinet[ends[:, 1]]
    distance = np.abs(place[a] - place[b]).sum(axis=1)
    return np.where(a == b, floor.intra_cabinet, distance + floor.overhead)


def ordered_cabinets(switches: int, floor: Floor) -> Ints:
    """int64 [switches]: the cabinet of each switch, filled in the order of the switches' numbers."""
    return np.arange(switches) // floor.switches_per_cabinet


@lru_cache(maxsize=8)
def optimised_cabinets(topology: Topology, floor: Floor, seed: int) -> Ints:
    """int64 [switches]: cabinets that a local search found for a small total cable length.

    Starting from :func:`in_order`, it again and again takes a random set of switches of which no two are
    joined and gives them each other's cabinets in the best possible way: with the others standing still, a
    linear assignment problem. Noise on its costs, which fades away, leads out of poor local minima. Returns the
    best placement seen, so never one longer than the order; a minimum is not claimed.
    """
    n = topology.switches
    cabinet = ordered_cabinets(n, floor)
    ends = cables_of(topology).ends
    both = np.concatenate([ends, ends[:, ::-1]])
    adjacency = csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n, n))
    place = cabinet_places(int(cabinet.max()) + 1, floor.pitch)
    rng = np.random.default_rng(seed)
    best, least = cabinet.copy(), lengths(cabinet, ends, floor).sum()
    for i in range(ROUNDS):
        moved = _independent_switches(adjacency, rng.permutation(n))
        cabinets = cabinet[moved]
        metres = np.abs(place[cabinet][:, None] - place[cabinets]).sum(axis=2) + floor.overhead
        metres[cabinet[:, None] == cabinets] = floor.intra_cabinet
        cost = adjacency[moved] @ metres
        noise = NOISE * cost.std() * max(0.0, 1 - 1.25 * i / ROUNDS)
        _, chosen = linear_sum_assignment(cost + noise * rng.standard_normal(cost.shape))
        cabinet[moved] = cabinets[chosen]
        total = lengths(cabinet, ends, floor).sum()
        if total < least:
            best, least = cabinet.copy(), total
    return best


def _independent_switches(adjacency: csr_array, order: np.ndarray) -> np.ndarray:
    """The first :data:`MOVED` switches of an order that are joined to none chosen before."""
    free = np.ones(len(order), bool)
    chosen = []
    for v in order.tolist():
        if free[v]:
            chosen.append(v)
            free[adjacency.indices[adjacency.indptr[v] : adjacency.indptr[v + 1]]] = False
            if len(chosen) == MAX_MOVED:
                break
    return np.array(chosen)
