# SPDX-License-Identifier: Apache-2.0
"""Rings: cyclic orders of hosts in which consecutive hosts are close."""

from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.collective.cycle import hamiltonian_cycle
from flitlab.models.collective.local_search import least_loaded_order
from flitlab.models.collective.minimal_path_load import MinimalPathLoad
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator

LEVELS = 3
"""Number of channel speeds that are tried for a cycle: only the fastest, those and the next slower ones, all."""


@dataclass(frozen=True, eq=False)
class Ring:
    """A cyclic order of hosts; each sends to the next.

    order: int64 [hosts]. hamiltonian: whether consecutive hosts share a switch or have neighbouring switches, and the
    hosts of a switch are consecutive, so that the switches form a Hamiltonian cycle. load: the greatest load over
    capacity of a channel between switches, if each host sends 1 by minimal routing; 1 on a Hamiltonian cycle of
    channels of capacity 1.
    """

    order: Ints
    hamiltonian: bool
    load: float


def ring_of(topology: Topology, order: Ints) -> Ring:
    """Return the ring of hosts in this order, int64 [hosts]. Raises ``ValueError`` if a host cannot reach the next.

    Parameters
    ----------
    topology: the network.
    order: int64 [hosts of the ring], different hosts.
    """
    switches = topology.host_switch[order].tolist()
    arcs = list(zip(switches[-1:] + switches[:-1], switches, strict=True))
    changes = [(u, v) for u, v in arcs if u != v]
    is_contiguous = len(changes) <= max(len(set(switches)), 1)
    return Ring(
        order, is_contiguous and _channels(topology).issuperset(changes), MinimalPathLoad(topology).max_load(switches)
    )


def ring_segment(topology: Topology, order: Ints, hosts: int) -> Ints:
    """Return consecutive hosts of a ring; the last is next to the first where possible.

    Parameters
    ----------
    topology: the network.
    order: int64 [hosts of the ring], in ring order.
    hosts: length of the segment.

    Returns
    -------
    int64 [hosts]: the segment from the first switch for which that is possible, else from the first host.
    """
    switches = topology.host_switch[order]
    starts = np.flatnonzero(switches != np.roll(switches, 1)) if hosts < len(order) else np.zeros(0, np.int64)
    channels = _channels(topology)
    for start in starts.tolist():
        ends = int(switches[(start + hosts - 1) % len(order)]), int(switches[start])
        if ends[0] == ends[1] or ends in channels:
            return np.roll(order, -start)[:hosts]
    return order[:hosts]


def _channels(topology: Topology) -> set[tuple[int, int]]:
    return set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))


def find_ring(topology: Topology, seed: int = 1) -> Ring:
    """Search for the ring of all hosts that minimises the load of the busiest channel.

    Hosts of a switch are consecutive. The switches follow a Hamiltonian cycle if
    :func:`~flitlab.models.collective.cycle.hamiltonian_cycle` finds one, preferably of the fastest channels. If there
    is none, or if it has a channel slower than a host,
    :func:`~flitlab.models.collective.local_search.least_loaded_order` improves the best of three orders: the closest to
    a cycle, depth-first order, and ascending numbers. The ring begins at the switch of host 0.

    Parameters
    ----------
    topology: the network.
    seed: seed of all draws.

    Raises
    ------
    ValueError: the network is not strongly connected, or has no such cycle and is too large for the local search.
    """
    switches = np.unique(topology.host_switch).tolist()
    order, is_fastest = _cycle(topology, switches, generator(seed))
    if not is_fastest:
        orders = [order, _depth_first(topology, switches), switches]
        order = least_loaded_order(MinimalPathLoad(topology), orders, 1 / topology.host_capacity, generator(seed, 1))
    first = order.index(switches[0]) if switches else 0
    hosts = [np.arange(topology.host_start[v], topology.host_start[v + 1]) for v in order[first:] + order[:first]]
    return ring_of(topology, np.concatenate([np.zeros(0, np.int64), *hosts]))


def _cycle(topology: Topology, switches: list[int], rng: np.random.Generator) -> tuple[list[int], bool]:
    """Return switches along a cycle of channels as fast as possible, and whether all are as fast as the fastest or a
    host.

    Without a cycle, return the order with the most consecutive neighbours.
    """
    capacity = _switch_capacities(topology, switches)
    levels = sorted({min(c, topology.host_capacity) for c in capacity.values()}, reverse=True)
    order = list(range(len(switches)))
    for level in dict.fromkeys([*levels[: LEVELS - 1], *levels[-1:]]):
        out: list[list[int]] = [[] for _ in switches]
        for (u, v), c in capacity.items():
            if c >= level:
                out[u].append(v)
        order, is_cycle = hamiltonian_cycle(out, rng)
        if is_cycle:
            return [switches[i] for i in order], level == levels[0]
    return [switches[i] for i in order], len(switches) < 2


def _switch_capacities(topology: Topology, switches: list[int]) -> dict[tuple[int, int], float]:
    """Return the total capacity of the channels between each two switches, numbered as in the list."""
    number = np.full(topology.switches, -1)
    number[switches] = np.arange(len(switches))
    capacities: dict[tuple[int, int], float] = {}
    ends = zip(number[topology.src].tolist(), number[topology.dst].tolist(), strict=True)
    for (u, v), capacity in zip(ends, topology.capacity.tolist(), strict=True):
        if u >= 0 and v >= 0:
            capacities[u, v] = capacities.get((u, v), 0.0) + capacity
    return capacities


def _depth_first(topology: Topology, switches: list[int]) -> list[int]:
    """Return switches in the order of a depth-first search of the whole network."""
    members, visited, order = set(switches), np.zeros(topology.switches, bool), []
    stack = [*reversed(switches)]
    while stack:
        v = stack.pop()
        if not visited[v]:
            visited[v] = True
            order += [v] * (v in members)
            stack += topology.dst[topology.out_start[v] : topology.out_start[v + 1]][::-1].tolist()
    return order
