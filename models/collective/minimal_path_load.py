# SPDX-License-Identifier: Apache-2.0
"""Channel loads of a ring when each member sends the same amount to the next one along shortest paths."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology

MAX_SWITCHES = 20_000
"""Most switches of a network for which a table of distances is built."""

MAX_CACHED_PAIRS = 100_000
"""Pairs of switches whose channel shares are cached."""


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
