# SPDX-License-Identifier: Apache-2.0
"""Matching of requesters and resources at a switch (see :mod:`flitlab.models.rules.allocate`)."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from flitlab.models.rules.allocate import AllocatorKind


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


C = TypeVar("C")


def islip(requests: dict[A, list[B]], iterations: int, urgency: Callable[[A, B], int] | None = None) -> dict[A, B]:
    """Match inputs to the outputs that they request by iterated offers and acceptances (McKeown, iSLIP, 1999).

    requests: outputs by input. urgency: of the request of an input for an output; both sides choose among their most
    urgent ones. Returns the matched output by input (see ``flitlab.models.rules.allocate``).
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
            if urgency is not None:
                entries = most_urgent(entries, [urgency(entry, output) for entry in entries.values()])
            offers[entries[output.arbiter.select(entries)]][output.index] = output
        for requester, offer in offers.items():
            if urgency is not None:
                offer = most_urgent(offer, [urgency(requester, output) for output in offer.values()])
            output = matched[requester] = offer[requester.arbiter.select(offer)]
            if iteration == 0:
                output.arbiter.last_served, requester.arbiter.last_served = requester.index, output.index
    return matched


def most_urgent(entries: dict[int, C], urgencies: list[int]) -> dict[int, C]:
    """The entries of the greatest urgency; urgencies: of each, in their order."""
    greatest = max(urgencies)
    return {index: entry for (index, entry), one in zip(entries.items(), urgencies, strict=True) if one == greatest}


def separable_input_first(requests: dict[A, list[B]], urgency: Callable[[A, B], int] | None = None) -> dict[A, B]:
    """Match requesters to outputs: each requester selects one of its outputs, then each output one of these requesters.

    requests: outputs by requester. urgency: see :func:`islip`. Returns the matched output by requester.
    """
    selected: dict[B, dict[int, A]] = defaultdict(dict)
    for requester, outputs in requests.items():
        if outputs:
            by_index = {output.index: output for output in outputs}
            if urgency is not None:
                by_index = most_urgent(by_index, [urgency(requester, output) for output in by_index.values()])
            selected[by_index[requester.arbiter.select(by_index)]][requester.index] = requester
    matched: dict[A, B] = {}
    for output, entries in selected.items():
        if urgency is not None:
            entries = most_urgent(entries, [urgency(entry, output) for entry in entries.values()])
        requester = entries[output.arbiter.select(entries)]
        matched[requester] = output
        output.arbiter.last_served, requester.arbiter.last_served = requester.index, output.index
    return matched


def wavefront(
    requests: dict[A, list[B]], diagonal: int, size: int, urgency: Callable[[A, B], int] | None = None
) -> dict[A, B]:
    """Match requesters to outputs diagonal by diagonal, from a first one on; the requests of each urgency in turn.

    requests: outputs by requester. diagonal: the first; requester i and output o are on diagonal (i + o) mod ``size``.
    urgency: of a request; the greatest go first. Returns the matched output by requester.
    """
    pairs = [
        (
            0 if urgency is None else -urgency(requester, output),
            (requester.index + output.index - diagonal) % size,
            requester,
            output,
        )
        for requester, outputs in requests.items()
        for output in outputs
    ]
    matched: dict[A, B] = {}
    taken = set[B]()
    for _, _, requester, output in sorted(pairs, key=lambda pair: pair[:2]):
        if requester not in matched and output not in taken:
            matched[requester] = output
            taken.add(output)
    return matched


class Matcher:
    """The allocator of a switch for one kind of resources.

    allocator, iterations: of the switching mode. size: indices of requesters and outputs are below it. diagonal: of
    the wavefront, the next first one.
    """

    def __init__(self, allocator: str, iterations: int, size: int):
        self.allocator, self.iterations, self.size = allocator, iterations, size
        self.diagonal = 0

    def match(self, requests: dict[A, list[B]], urgency: Callable[[A, B], int] | None = None) -> dict[A, B]:
        """Match requesters to the outputs that they request. urgency: see :func:`islip`."""
        if self.allocator == AllocatorKind.INPUT_FIRST:
            return separable_input_first(requests, urgency)
        if self.allocator != AllocatorKind.WAVEFRONT:
            return islip(requests, self.iterations, urgency)
        matched = wavefront(requests, self.diagonal, self.size, urgency)
        if matched:
            self.diagonal = (self.diagonal + 1) % self.size
        return matched
