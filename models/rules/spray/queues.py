# SPDX-License-Identifier: Apache-2.0
"""What a queue of a switch decides: whom it trims and whom it marks."""

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import below_wide, draw
from flitlab.models.rules.spray.streams import ECN, TRIM


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
