# SPDX-License-Identifier: Apache-2.0
"""How much consecutive members of a ring load channels when each sends the next one the same along shortest paths."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology

MOST_SWITCHES = 20_000
"""Switches of a network in which ways of several channels are looked for."""

MAX_CACHED_PAIRS = 100_000
"""Pairs of switches whose ways are remembered."""


class MinimalPathLoad:
    """The shortest ways between switches, and what part of the traffic takes which channel.

    At every switch all channels that lie on a shortest path get the same part, as minimal routing shares it on average.
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
        """How many channels a shortest path from each switch to one has.

        Raises ``ValueError`` if the network is not strongly connected, or has so many switches that a table of all
        distances would not fit into memory.
        """
        return self._hops_to[dst_switch]

    @cached_property
    def _hops_to(self) -> Sequence[Sequence[int]]:
        """For every target the hops from all switches; a view of an array is quicker to index one by one."""
        if self._topology.switches > MOST_SWITCHES:
            raise ValueError(f"{self._topology.switches} switches; distances are looked up for at most {MOST_SWITCHES}")
        return [memoryview(row) for row in np.ascontiguousarray(distances(self._topology).T)]

    def shares(self, src_switch: int, dst_switch: int) -> dict[int, float]:
        """Channel -> the part of what goes from a switch to another that crosses it, over its capacity.

        Raises ``ValueError`` as :meth:`hops` does, unless the switches are neighbours.
        """
        key = (src_switch, dst_switch)
        if key not in self._shares:
            if len(self._shares) >= MAX_CACHED_PAIRS:
                self._shares.clear()
            self._shares[key] = dict(self._channel_shares(src_switch, dst_switch))
        return self._shares[key]

    def load(self, ring: Sequence[int]) -> Floats:
        """float64 [channels]: load over capacity if every switch of a ring sends 1 to the next one, none to itself."""
        total = np.zeros(len(self._capacity))
        for i, target in enumerate(ring):
            for channel, share in self.shares(ring[i - 1], target).items():
                total[channel] += share
        return total

    def max_load(self, ring: Sequence[int]) -> float:
        """The greatest :meth:`load` of a channel; 0 if there is none."""
        return float(self.load(ring).max(initial=0.0))

    def _channel_shares(self, src_switch: int, dst_switch: int) -> Iterator[tuple[int, float]]:
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
        """(channel, head) of those that lie on a shortest path from a switch to another."""
        direct = [end for end in self._out[switch] if end[1] == dst_switch]
        if direct:
            return direct
        hops = self.hops(dst_switch)
        return [end for end in self._out[switch] if hops[end[1]] == hops[switch] - 1]
