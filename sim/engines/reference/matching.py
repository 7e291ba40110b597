# SPDX-License-Identifier: Apache-2.0
"""Matching of requesters and resources at a switch, by round-robin arbiters."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol, TypeVar


class RoundRobin:
    """A round-robin arbiter: the requester served last has the lowest priority."""

    def __init__(self) -> None:
        self.last_served = -1

    def select(self, indices: Iterable[int]) -> int:
        """Return the index with the highest priority among some indices (at least one)."""
        return min(indices, key=lambda place: (place <= self.last_served, place))


class Requester(Protocol):
    """One side of a matching: an indexed entity that serves the other side in round robin."""

    index: int
    arbiter: RoundRobin


A = TypeVar("A", bound=Requester)
B = TypeVar("B", bound=Requester)


def islip(requests: dict[A, list[B]], iterations: int) -> dict[A, B]:
    """Match inputs to the outputs that they request by iterated offers and acceptances (McKeown, iSLIP, 1999).

    requests: outputs by input. Returns the matched output by input (see ``flitlab.models.rules.allocate``).
    """
    matched: dict[A, B] = {}
    for iteration in range(iterations):
        by_output: dict[B, dict[int, A]] = defaultdict(dict)
        taken = set(matched.values())
        for requester, outputs in requests.items():
            for output in outputs:
                if requester not in matched and output not in taken:
                    by_output[output][requester.index] = requester
        offers: dict[A, dict[int, B]] = defaultdict(dict)
        for output, entries in by_output.items():
            offers[entries[output.arbiter.select(entries)]][output.index] = output
        for requester, offer in offers.items():
            output = matched[requester] = offer[requester.arbiter.select(offer)]
            if iteration == 0:
                output.arbiter.last_served, requester.arbiter.last_served = requester.index, output.index
    return matched
