# SPDX-License-Identifier: Apache-2.0
"""Decisions of queues: which packet is trimmed, which is marked, and whether control or data is served."""

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import Stream, below_wide, draw

CONTROL_TURNS = 10
"""Control packets that a weighted round-robin server sends per data packet, while both wait.

Of hosts as in the Ultra Ethernet simulator; of NDP's switches as in Handley et al., SIGCOMM 2017, section 3.1,
doi:10.1145/3098822.3098825.
"""


@kernel
def evicts(seed: Int, link: Int, times: Int) -> bool:
    """Whether an arriving packet replaces the youngest one of a full queue.

    Parameters
    ----------
    seed: of draws.
    link: the link of the queue.
    times: how often the queue was full before.
    """
    return draw(seed, Stream.TRIM, link, times) & 1 == 1


@kernel
def is_marked(seed: Int, link: Int, times: Int, behind: Int, low: Int, high: Int) -> bool:
    """Whether a data packet gets an ECN mark.

    Parameters
    ----------
    seed: of draws.
    link: the link of the queue.
    times: earlier draws of this link; a draw happens only between ``low`` and ``high``.
    behind: bytes of data in the queue behind the packet.
    low: bytes up to which no packet is marked.
    high: bytes above which all packets are marked.
    """
    if behind > high:
        return True
    return behind > low and below_wide(draw(seed, Stream.ECN, link, times), high - low) < behind - low


@kernel
def next_turn(turn: Int) -> int:
    """The turn after ``turn`` of a server with control and data waiting. Turn 0 serves data, the others control."""
    return (turn + 1) % (CONTROL_TURNS + 1)
