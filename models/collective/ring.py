# SPDX-License-Identifier: Apache-2.0
"""Rings: cyclic orders of hosts in which consecutive hosts are close."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.collective.cycle import hamiltonian_cycle
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator

MAX_SWITCHES = 20_000
"""Most switches of a network for which a table of distances is built."""

MAX_CACHED_PAIRS = 100_000
"""Pairs of switches whose channel shares are cached."""

LEVELS = 3
"""Number of channel speeds that are tried for a cycle: only the fastest, those and the next slower ones, all."""
MAX_CHANNEL_EVALUATIONS = 1_000_000
"""Limit of channel evaluations over all tried moves; two or three seconds."""
MAX_FAILED_CHANGES = 10
"""Consecutive moves without improvement, per pair of switches, after which the search stops; small orders get more."""
POWER = 8
"""The search minimises the sum of this power of all channel loads: busy channels dominate, the others count a
little.
"""
TOURNAMENT_SIZE = 8
"""Candidates of a tournament: the start of a move is the busiest of them, its end the nearest."""


class MinimalPathLoad:
    """Shares of channels in the traffic between two switches under minimal routing.

    Every switch divides traffic evenly over all its channels on shortest paths, as minimal routing does on average.
    """

    def __init__(self, topology: Topology) -> None:
        ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
        self._out: list[list[tuple[int, int]]] = [[] for _ in range(topology.switches)]
        for channel, (tail, head) in enumerate(ends):
            self._out[tail].append((channel, head))
        self._capacity: list[float] = topology.capacity.tolist()
        self._topology = topology
        self._shares: dict[tuple[int, int], dict[int, float]] = {}

    def hops(self, dst_switch: int) -> Sequence[int]:
        """Return the hops of a shortest path from each switch to one switch.

        Raises ``ValueError`` if the network is not strongly connected, or too large for a table of all distances.
        """
        return self._hops_to[dst_switch]

    @cached_property
    def _hops_to(self) -> Sequence[Sequence[int]]:
        """For every destination the hops from all switches; a memory view, which is faster to index than an array."""
        if self._topology.switches > MAX_SWITCHES:
            raise ValueError(f"{self._topology.switches} switches; a table of distances is limited to {MAX_SWITCHES}")
        return [memoryview(row) for row in np.ascontiguousarray(distances(self._topology).T)]

    def shares(self, src_switch: int, dst_switch: int) -> dict[int, float]:
        """Return channel -> share over capacity of one unit from a switch to another.

        Raises ``ValueError`` as :meth:`hops` does, unless the switches are neighbours.
        """
        key = (src_switch, dst_switch)
        if key not in self._shares:
            if len(self._shares) >= MAX_CACHED_PAIRS:
                self._shares.clear()
            self._shares[key] = dict(self._channel_shares(src_switch, dst_switch))
        return self._shares[key]

    def load(self, ring: Sequence[int]) -> Floats:
        """Return load over capacity, float64 [channels], if every switch of a ring sends 1 to the next other one."""
        total = np.zeros(len(self._capacity))
        for i, target in enumerate(ring):
            for channel, share in self.shares(ring[i - 1], target).items():
                total[channel] += share
        return total

    def max_load(self, ring: Sequence[int]) -> float:
        """Return the greatest :meth:`load` of a channel; 0 without channels."""
        return float(self.load(ring).max(initial=0.0))

    def _channel_shares(self, src_switch: int, dst_switch: int) -> Iterator[tuple[int, float]]:
        """Yield (channel, share over capacity) of one unit between two switches."""
        amount_at = {src_switch: 1.0} if src_switch != dst_switch else {}
        while amount_at:
            next_amount_at: dict[int, float] = {}
            for v, amount in amount_at.items():
                next_hops = self._next_hops(v, dst_switch)
                for channel, head in next_hops:
                    yield channel, amount / len(next_hops) / self._capacity[channel]
                    if head != dst_switch:
                        next_amount_at[head] = next_amount_at.get(head, 0.0) + amount / len(next_hops)
            amount_at = next_amount_at

    def _next_hops(self, switch: int, dst_switch: int) -> list[tuple[int, int]]:
        """Return (channel, head) of the channels of a switch on shortest paths to another."""
        direct = [end for end in self._out[switch] if end[1] == dst_switch]
        if direct:
            return direct
        hops = self.hops(dst_switch)
        return [end for end in self._out[switch] if hops[end[1]] == hops[switch] - 1]


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
    :func:`~flitlab.models.collective.ring.least_loaded_order` improves the best of three orders: the closest to
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


def least_loaded_order(
    path_load: MinimalPathLoad, orders: Iterable[list[int]], sufficient_load: float, rng: np.random.Generator
) -> list[int]:
    """Improve the best of some cyclic orders of the same switches while the load of busy channels decreases.

    Each switch sends 1 to the next one by minimal routing.

    Parameters
    ----------
    path_load: channel loads of minimal routing.
    orders: cyclic orders of the same switches.
    sufficient_load: loads up to this count as equal; among orders with equal loads the one with fewer hops is better.
    rng: source of all draws.

    Returns
    -------
    The best order.
    """

    def rank(order: list[int]) -> tuple[float, float]:
        loads = path_load.load(order)
        return max(round(float(loads.max(initial=0.0)), 9), sufficient_load), float(loads.sum())

    best = min(orders, key=rank)
    if len(best) < 3 or rank(best)[0] <= sufficient_load:
        return best
    search = _LocalSearch(path_load, best, rng)
    search.run(sufficient_load)
    return min(best, search.order, key=rank)


class _LocalSearch:
    """Moves segments of an order wherever that decreases the sum of powers of all loads."""

    def __init__(self, path_load: MinimalPathLoad, order: list[int], rng: np.random.Generator) -> None:
        self.path_load, self.order, self.rng = path_load, order, rng
        self.load: list[float] = path_load.load(order).tolist()
        self.evaluations = 0

    def run(self, sufficient_load: float) -> None:
        """Try moves until the busiest channel carries at most ``sufficient_load``, or many moves have not improved the
        order.
        """
        max_failed = MAX_FAILED_CHANGES * len(self.order) ** 2 + 1000
        failed = 0
        while failed < max_failed and self.evaluations < MAX_CHANNEL_EVALUATIONS:
            improved = self._try_move(*self._draw_move())
            failed = 0 if improved else failed + 1
            if improved and max(self.load) <= sufficient_load * (1 + 1e-9):
                break

    def _draw_move(self) -> tuple[int, int, int]:
        """Draw (first index of a segment, its length, how many of the other switches precede its new position)."""
        count = len(self.order)
        first = max(self.rng.integers(count, size=TOURNAMENT_SIZE).tolist(), key=self._max_load_before)
        max_length = count - 2 if self.rng.random() < 0.5 else min(3, count - 2)
        length = 1 + int(self.rng.integers(max_length))
        hops = self.path_load.hops(self.order[first])
        candidates = self.rng.integers(count - length - 1, size=TOURNAMENT_SIZE).tolist()
        return first, length, 1 + min(candidates, key=lambda k: hops[self.order[(first + length + k) % count]])

    def _max_load_before(self, index: int) -> float:
        """Return the load of the busiest channel on the paths to the switch at an index of the order."""
        shares = self.path_load.shares(self.order[index - 1], self.order[index])
        return max(map(self.load.__getitem__, shares), default=0.0)

    def _try_move(self, first: int, length: int, offset: int) -> bool:
        """Move a segment if that decreases the objective; return whether it did."""
        order, count = self.order, len(self.order)
        a, b = order[first - 1], order[first]
        c, d = order[(first + length - 1) % count], order[(first + length) % count]
        e, f = order[(first + length + offset - 1) % count], order[(first + length + offset) % count]
        change: dict[int, float] = {}
        for pairs, sign in ((((a, b), (c, d), (e, f)), -1.0), (((a, d), (e, b), (c, f)), 1.0)):
            for pair in pairs:
                for channel, share in self.path_load.shares(*pair).items():
                    change[channel] = change.get(channel, 0.0) + sign * share
        self.evaluations += len(change)
        before = sum(self.load[channel] ** POWER for channel in change)
        after = sum((self.load[channel] + difference) ** POWER for channel, difference in change.items())
        if after >= before * (1 - 1e-9):
            return False
        for channel, difference in change.items():
            self.load[channel] += difference
        rotated = order[first:] + order[:first]
        segment, others = rotated[:length], rotated[length:]
        self.order = others[:offset] + segment + others[offset:]
        return True
