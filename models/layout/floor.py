# SPDX-License-Identifier: Apache-2.0
"""Positions of cabinets, switches in cabinets, and lengths of the cables between them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.layout.constants import Floor
from flitlab.models.layout.nodes import are_of_hosts, are_on_boards, are_switches, standing_with
from flitlab.models.topology.graph import Topology

ROUNDS = 200
"""Iterations of the placement search."""

NOISE = 0.4
"""Initial noise of the assignment costs, in their standard deviations."""

MAX_MOVED = 300
"""Most switches that one iteration moves: the time of an assignment grows with its cube."""


class Cables(NamedTuple):
    """Cables of a network: one per bi-directional link, one per uni-directional channel.

    ends: int64 [cables, 2], nodes. capacity: float64 [cables]. unidirectional: bool [cables]. to_host: bool [cables],
    whether one end is a card or server with its host (:func:`~flitlab.models.layout.nodes.are_switches`).
    """

    ends: Ints
    capacity: Floats
    unidirectional: Bools
    to_host: Bools

    def only(self, chosen: Bools) -> "Cables":
        """Some of the cables. chosen: bool [cables]."""
        return Cables(self.ends[chosen], self.capacity[chosen], self.unidirectional[chosen], self.to_host[chosen])


def cables_of(topology: Topology) -> Cables:
    """Return the cables between nodes; a link's two channels share one, of the larger capacity. Boards have none."""
    reverse = topology.reverse
    channels = np.flatnonzero((reverse < np.arange(topology.channels)) & ~are_on_boards(topology))
    capacity = np.maximum(topology.capacity[channels], topology.capacity[reverse[channels]])
    unidirectional = reverse[channels] < 0
    return Cables(
        np.column_stack([topology.src[channels], topology.dst[channels]]),
        np.where(unidirectional, topology.capacity[channels], capacity),
        unidirectional,
        are_of_hosts(topology)[channels],
    )


def cabinet_places(cabinets: int, pitch: tuple[float, float]) -> Floats:
    """Return x and y of cabinets 0, 1, ... in metres, float64 [cabinets, 2], row by row, all rows from the same side.

    m cabinets stand in ceil(sqrt(m)) rows of ceil(m / rows). Source: UNI section IV-C.
    """
    rows = int(np.ceil(np.sqrt(cabinets)))
    row, column = np.divmod(np.arange(cabinets), -(-cabinets // rows))
    coordinates: Floats = np.column_stack([column, row]) * np.array(pitch)
    return coordinates


def lengths(cabinet: Ints, ends: Ints, floor: Floor) -> Floats:
    """Compute cable lengths in metres between pairs of switches.

    Parameters
    ----------
    cabinet: int64 [switches], the cabinet of each switch.
    ends: int64 [cables, 2], the switches of each cable.
    floor: dimensions.

    Returns
    -------
    float64 [cables]: a constant inside a cabinet, else the Manhattan distance plus the overhead.
    """
    coordinates = cabinet_places(int(cabinet.max()) + 1, floor.pitch)
    a, b = cabinet[ends[:, 0]], cabinet[ends[:, 1]]
    distance = np.abs(coordinates[a] - coordinates[b]).sum(axis=1)
    return np.where(a == b, floor.intra_cabinet, distance + floor.overhead)


def ordered_cabinets(topology: Topology, floor: Floor) -> Ints:
    """Return the cabinet of each node, int64 [switches], filled with switches in the order of their numbers.

    Cards and servers stand with a switch (:func:`~flitlab.models.layout.nodes.standing_with`).
    """
    number = np.maximum(np.cumsum(are_switches(topology)) - 1, 0)
    cabinet: Ints = number[standing_with(topology)] // floor.switches_per_cabinet
    return cabinet


@lru_cache(maxsize=8)
def optimised_cabinets(topology: Topology, floor: Floor, seed: int) -> Ints:
    """Search for cabinets that minimise the total length of cables between switches, by simulated annealing.

    From :func:`ordered_cabinets`, each iteration selects random switches of which no two are neighbours, and permutes
    their cabinets optimally while the others stay: a linear assignment problem. Decreasing noise on its costs escapes
    poor local minima.

    Parameters
    ----------
    topology: the network.
    floor: dimensions.
    seed: seed of all draws.

    Returns
    -------
    int64 [switches]: the best placement of all iterations, never longer than the initial one; not a proven minimum.
    """
    n, home = topology.switches, standing_with(topology)
    cabinet, cables = ordered_cabinets(topology, floor), cables_of(topology)
    ends = home[cables.ends[~cables.to_host]]
    ends = ends[ends[:, 0] != ends[:, 1]]
    both = np.concatenate([ends, ends[:, ::-1]])
    adjacency = csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n, n))
    coordinates = cabinet_places(int(cabinet.max()) + 1, floor.pitch)
    rng = np.random.default_rng(seed)
    best, least_total = cabinet.copy(), lengths(cabinet, ends, floor).sum()
    for i in range(ROUNDS):
        selected = _independent_switches(adjacency, rng.permutation(np.unique(home)))
        cabinets = cabinet[selected]
        metres = np.abs(coordinates[cabinet][:, None] - coordinates[cabinets]).sum(axis=2) + floor.overhead
        metres[cabinet[:, None] == cabinets] = floor.intra_cabinet
        cost = adjacency[selected] @ metres
        noise = NOISE * cost.std() * max(0.0, 1 - 1.25 * i / ROUNDS)
        _, chosen = linear_sum_assignment(cost + noise * rng.standard_normal(cost.shape))
        cabinet[selected] = cabinets[chosen]
        total = lengths(cabinet, ends, floor).sum()
        if total < least_total:
            best, least_total = cabinet.copy(), total
    moved: Ints = best[home]
    return moved


def _independent_switches(adjacency: csr_array, order: np.ndarray) -> np.ndarray:
    """Return the first :data:`MAX_MOVED` switches of an order that are not neighbours of earlier ones."""
    free = np.ones(adjacency.shape[0], bool)
    chosen = []
    for v in order.tolist():
        if free[v]:
            chosen.append(v)
            free[adjacency.indices[adjacency.indptr[v] : adjacency.indptr[v + 1]]] = False
            if len(chosen) == MAX_MOVED:
                break
    return np.array(chosen)
