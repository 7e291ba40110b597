# SPDX-License-Identifier: Apache-2.0
"""Wavefront allocation: requests in the order of their diagonals (see :mod:`flitlab.models.rules.allocate`).

Requests of all switches are sorted together, as those of two switches have nothing in common. Functions take
``state.wavefront`` as their first argument. It is None with other allocators: Numba then omits their code.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.allocate import AllocatorKind
from flitlab.models.rules.ports import Ports
from flitlab.models.switching.wormhole import Wormhole


class Diagonals(NamedTuple):
    """Diagonals of one allocator of every switch, all int64 [switches].

    first: the one that comes first. step: of the last allocation with requests. count: how many there are.
    first_input, first_output: numbers of the first requester and resource of a switch.
    """

    first: Ints
    step: Ints
    count: Ints
    first_input: Ints
    first_output: Ints


class Wavefront(NamedTuple):
    """State of wavefront allocation.

    vc, crossbar: of the two allocators. request, diagonal, order: scratch, int64 [pairs of an input VC and an output
    VC]: what is requested, the distance of its diagonal from the first one, and the requests by diagonal. bucket_end:
    scratch, int64 [diagonals]. rank, merged: scratch, int64 [pairs]: the urgency of each request, and the order while
    it is merged; None without priorities.
    """

    vc: Diagonals
    crossbar: Diagonals
    request: Ints
    diagonal: Ints
    order: Ints
    bucket_end: Ints
    rank: Ints | None
    merged: Ints | None


def make_wavefront(model: Wormhole, ports: Ports) -> Wavefront | None:
    """Make the state of wavefront allocation; None with another allocator.

    Parameters
    ----------
    model: its ``matching``, ``vcs``, ``inputs_per_port`` and ``priority``.
    ports: the port numbering.
    """
    if model.matching != AllocatorKind.WAVEFRONT:
        return None
    inputs, outputs = ports.in_base.astype(np.int64), ports.out_base.astype(np.int64)
    vc = _diagonals(inputs * model.vcs, outputs * model.vcs)
    crossbar = _diagonals(inputs * model.inputs_per_port, outputs)
    pairs = len(ports.in_switch) * model.vcs * model.vcs
    return Wavefront(
        vc=vc,
        crossbar=crossbar,
        request=np.zeros(pairs, np.int64),
        diagonal=np.zeros(pairs, np.int64),
        order=np.zeros(pairs, np.int64),
        bucket_end=np.zeros(int(vc.count.max(initial=1)), np.int64),
        rank=None if model.priority == "none" else np.zeros(pairs, np.int64),
        merged=None if model.priority == "none" else np.zeros(pairs, np.int64),
    )


def _diagonals(inputs: Ints, outputs: Ints) -> Diagonals:
    """Make the diagonals of switches; inputs, outputs: int64 [switches + 1], numbers of their first ones."""
    count = np.maximum(np.diff(inputs), np.diff(outputs))
    return Diagonals(
        first=count - 1,
        step=np.full(len(count), -1, np.int64),
        count=count,
        first_input=inputs[:-1].copy(),
        first_output=outputs[:-1].copy(),
    )


@inline
def turn_diagonals(diagonals, switch, step):
    """Advance the first diagonal of a switch that has a request in a step; the second one of a step changes nothing.

    Before the first allocation, the first diagonal is the last one.
    """
    if diagonals.step[switch] != step:
        diagonals.step[switch] = step
        following = diagonals.first[switch] + 1
        diagonals.first[switch] = following if following < diagonals.count[switch] else 0


@inline
def distance_of(diagonals, switch, requester, resource):
    """Return the distance of the diagonal of a pair from the first one; arguments: int64."""
    entry, exit_ = requester - diagonals.first_input[switch], resource - diagonals.first_output[switch]
    count = diagonals.count[switch]
    return (entry + exit_ + count - diagonals.first[switch]) % count


@inline
def sort_by_diagonal(wavefront, requests):
    """Sort the first ``requests`` entries of ``wavefront.diagonal`` into ``wavefront.order``; equal ones keep theirs.

    ``bucket_end`` has the end of the requests of each distance.
    """
    buckets = len(wavefront.bucket_end)
    for d in range(buckets):
        wavefront.bucket_end[d] = 0
    for i in range(requests):
        wavefront.bucket_end[wavefront.diagonal[i]] += 1
    begin = np.int64(0)
    for d in range(buckets):
        size = wavefront.bucket_end[d]
        wavefront.bucket_end[d] = begin
        begin += size
    for i in range(requests):
        place = wavefront.bucket_end[wavefront.diagonal[i]]
        wavefront.bucket_end[wavefront.diagonal[i]] = place + 1
        wavefront.order[place] = i


@inline
def note_rank(rank, urgency, entry, vc):
    """Store the urgency of a request.

    Parameters
    ----------
    rank, urgency: ``state.wavefront.rank``, ``state.urgency``.
    entry: of the request.
    vc: the input VC that makes it.
    """
    if rank is None:
        return
    rank[entry] = urgency.of_vc[vc]


@inline
def have_equal_ranks(rank, entry, other):
    """Tell whether two requests are equally urgent. rank: ``state.wavefront.rank``."""
    if rank is None:
        return True
    return rank[entry] == rank[other]


@inline
def sort_by_rank(rank, wavefront, requests):
    """Sort the first ``requests`` entries of ``wavefront.order``, the most urgent first; equal ones keep their order.

    rank: ``wavefront.rank``.
    """
    if rank is None:
        return
    order, merged, width = wavefront.order, wavefront.merged, np.int64(1)
    while width < requests:
        for begin in range(0, requests, 2 * width):
            middle, end = min(begin + width, requests), min(begin + 2 * width, requests)
            left, right = begin, middle
            for place in range(begin, end):
                if right == end or (left < middle and rank[order[left]] >= rank[order[right]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        for place in range(requests):
            order[place] = merged[place]
        width *= 2
