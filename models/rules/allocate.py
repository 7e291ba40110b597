# SPDX-License-Identifier: Apache-2.0
"""Allocators, which match the inputs of a switch to the outputs that they request, and orders of arbitration.

``islip`` (McKeown 1999, doi:10.1109/90.769767): every output grants one of the inputs that request it, and every input
accepts one of its grants, both by rotating priority: the last match comes last. Priorities advance only with accepted
grants, and only in the first iteration of a tick; otherwise an input could starve.

``separable_output_first`` is one iteration of it. ``separable_input_first``: every input selects one of the outputs
that it requests, then every output one of the inputs that selected it; likewise by rotating priority, which advances
with matches only.

``wavefront``: input i and output o are on diagonal (i + o) mod n, n the greater of the numbers of inputs and outputs.
From a first diagonal on, each pair is matched whose input and output are both free. The first diagonal advances by one
with every allocation that has requests.

With priorities each choice is among the most urgent requests, and ``wavefront`` goes through all diagonals for each
urgency, the greatest first.

Source: Becker and Dally, Allocator implementations for network-on-chip routers, SC 2009, doi:10.1145/1654059.1654112;
BookSim2.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.bits import lowest


class _AllocatorKind(NamedTuple):
    """Names of allocators, as in the configuration."""

    ISLIP: str = "islip"
    INPUT_FIRST: str = "separable_input_first"
    OUTPUT_FIRST: str = "separable_output_first"
    WAVEFRONT: str = "wavefront"


AllocatorKind = _AllocatorKind()

_ALL_BUT_FIRST = np.uint64(0xFFFFFFFFFFFFFFFE)


@kernel
def above(mask: Int, last: Int) -> np.uint64:
    """The members of a 64-bit set that are greater than ``last`` (0 .. 63)."""
    return np.uint64(mask) & (_ALL_BUT_FIRST << np.uint64(last))


@kernel
def first_after(mask: Int, last: Int) -> int:
    """The member of a non-empty 64-bit set that comes first, counting from ``last`` + 1 with wrap-around."""
    later = above(mask, last)
    return lowest(later if later else np.uint64(mask))


@kernel
def age_key(eligible: Int, input_vc: Int) -> int:
    """Sort key of a waiting head: oldest eligibility first, ties by input port, then VC.

    eligible: tick. input_vc: index of the VC in the numbering of ``flitlab.models.rules.ports``.
    """
    return (eligible << 32) | input_vc


@kernel
def outranks(
    rank: Int, created_at: Int, number: Int, other_rank: Int, other_created_at: Int, other_number: Int
) -> bool:
    """Whether a packet goes before another: of the greater rank, then older, then of the lower number.

    Parameters
    ----------
    rank, created_at, number: of the packet: its hops in hot-potato switching, its priority in a source queue; tick; id.
    other_rank, other_created_at, other_number: of the other one.
    """
    if rank != other_rank:
        return rank > other_rank
    if created_at != other_created_at:
        return created_at < other_created_at
    return number < other_number
