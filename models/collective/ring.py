# SPDX-License-Identifier: Apache-2.0
"""Rings: orders of the hosts of a network in which consecutive ones are near each other."""

from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.collective.cycle import hamiltonian_cycle
from flitlab.models.collective.local_search import least_loaded_order
from flitlab.models.collective.minimal_path_load import MinimalPathLoad
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator

LEVELS = 3
"""Cycles that are looked for: one of the fastest channels, one of those and the next slower ones, one of all."""


@dataclass(frozen=True, eq=False)
class Ring:
    """An order of hosts: each sends to the next one, and the last to the first.

    order: int64 [hosts]. hamiltonian: whether consecutive hosts are on one switch or on neighbours, and the hosts of a
    switch follow each other, so that the switches form a Hamiltonian cycle. load: of the channel between switches that
    is busiest for its capacity, if each host sends 1 by minimal routing. It is 1 on a Hamiltonian cycle of channels of
    capacity 1.
    """

    order: Ints
    hamiltonian: bool
    load: float


def ring_of(topology: Topology, order: Ints) -> Ring:
    """The ring that some hosts, int64, form in this order. Raises ``ValueError`` if one cannot reach the next."""
    switches = topology.host_switch[order].tolist()
    arcs = list(zip(switches[-1:] + switches[:-1], switches, strict=True))
    changes = [(u, v) for u, v in arcs if u != v]
    together = len(changes) <= max(len(set(switches)), 1)
    return Ring(
        order, together and _channels(topology).issuperset(changes), MinimalPathLoad(topology).max_load(switches)
    )


def ring_segment(topology: Topology, order: Ints, hosts: int) -> Ints:
    """The first ``hosts`` hosts of a ring from some switch on, the last of them next to the first where possible.

    order: int64, of the ring. The earliest switch for which it is possible, else the first one.
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
    """The ring of all hosts in which the busiest channel is least loaded, as far as one is found.

    Hosts of a switch follow each other. Their switches follow a Hamiltonian cycle if
    :func:`~flitlab.models.collective.cycle.hamiltonian_cycle` finds one; where capacities differ, one of the fastest
    channels, if it finds that. Where there is none, or a channel on it is slower than a host, the best of three orders
    is improved (:func:`~flitlab.models.collective.local_search.least_loaded`): the one nearest to a cycle, the one in which
    a depth-first search meets the switches, and that of their numbers. The first is the switch of host 0.

    seed: of all draws. Raises ``ValueError`` for a network that is not strongly connected or, if it has no such cycle,
    too large.
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
    """Switches along a cycle of channels as fast as possible, and whether all of them are of the fastest, or as hosts.

    Where there is no cycle, the order that comes nearest to one.
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
    """The capacity of all channels from one of some switches to another, which are numbered as in the list."""
    number = np.full(topology.switches, -1)
    number[switches] = np.arange(len(switches))
    capacities: dict[tuple[int, int], float] = {}
    ends = zip(number[topology.src].tolist(), number[topology.dst].tolist(), strict=True)
    for (u, v), capacity in zip(ends, topology.capacity.tolist(), strict=True):
        if u >= 0 and v >= 0:
            capacities[u, v] = capacities.get((u, v), 0.0) + capacity
    return capacities


def _depth_first(topology: Topology, switches: list[int]) -> list[int]:
    """Switches in the order in which a depth-first search of the whole network meets them."""
    members, visited, order = set(switches), np.zeros(topology.switches, bool), []
    waiting = [*reversed(switches)]
    while waiting:
        v = waiting.pop()
        if not visited[v]:
            visited[v] = True
            order += [v] * (v in members)
            waiting += topology.dst[topology.out_start[v] : topology.out_start[v + 1]][::-1].tolist()
    return order
