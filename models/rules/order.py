# SPDX-License-Identifier: Apache-2.0
"""Arbitration order: by age in virtual cut-through, and by rank in hot-potato switching."""

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
    hops: Int, created_at: Int, packet_id: Int, other_hops: Int, other_created_at: Int, other_packet_id: Int
) -> bool:
    """Whether a packet goes before another in hot-potato switching: more hops, then older, then lower id.

    Parameters
    ----------
    hops, created_at, packet_id: of the packet.
    other_hops, other_created_at, other_packet_id: of the other one.
    """
    if hops != other_hops:
        return hops > other_hops
    if created_at != other_created_at:
        return created_at < other_created_at
    return packet_id < other_packet_id
