# SPDX-License-Identifier: Apache-2.0
"""What queues decide: which packet is trimmed, which is marked, and whether control or data is served."""

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import below_wide, draw
from flitlab.models.rules.spray.streams import ECN, TRIM

CONTROL_TURNS = 10
"""Control packets that a server with weighted turns serves for each data packet, while both wait.

Of hosts as in the simulator of Ultra Ethernet; of NDP's switches as in Handley et al., SIGCOMM 2017, section 3.1,
doi:10.1145/3098822.3098825.
"""


@kernel
def evicts(seed: Int, link: Int, times: Int) -> bool:
    """Whether a full queue puts an arriving packet in the place of its youngest one; times: it was full before."""
    return draw(seed, TRIM, link, times) & 1 == 1


@kernel
def is_marked(seed: Int, link: Int, times: Int, behind: Int, low: Int, high: Int) -> bool:
    """Whether a data packet is marked that leaves ``behind`` bytes of data behind it.

    low, high: bytes, up to which none is and above which all are. times: how often it lay between them before at this
    link, as only then there is a draw.
    """
    if behind > high:
        return True
    return behind > low and below_wide(draw(seed, ECN, link, times), high - low) < behind - low


@kernel
def next_turn(turn: Int) -> int:
    """The turn after ``turn`` of a server for which control and data wait; data is served in turn 0, else control."""
    return (turn + 1) % (CONTROL_TURNS + 1)
