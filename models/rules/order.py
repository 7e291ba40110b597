# SPDX-License-Identifier: Apache-2.0
"""Arbitration order: by age in virtual cut-through, and by rank in hot-potato switching and shared source queues."""

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel


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
