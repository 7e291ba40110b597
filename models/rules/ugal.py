# SPDX-License-Identifier: Apache-2.0
"""Which of two ways a packet takes that its host sends, by what is queued for them."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.route import middle_of
from flitlab.models.rules.tables import PROGRESSIVE, UGAL_GLOBAL, Tables

MINIMALLY = np.int64(0)
"""The way of a packet that goes over no intermediate switch."""


@kernel
def better_way(r: Tables, via: Int, origin: Int, target: Int, minimal_flits: Int, via_flits: Int) -> int:
    """MINIMALLY or ``via``, whichever is expected to wait less; r.threshold favours MINIMALLY.

    minimal_flits, via_flits: flits queued for the first channel of either, which stands for all channels of the way
    (UGAL_LOCAL, PROGRESSIVE: multiplied by their number), or for all of them (UGAL_GLOBAL: as they are). origin,
    target: the switch where this is decided, and that of the destination.
    """
    if r.rule != UGAL_GLOBAL:
        middle = middle_of(via)
        minimal_flits *= np.int64(r.leg[origin, target])
        via_flits *= np.int64(r.leg[origin, middle]) + np.int64(r.leg[middle, target])
    if minimal_flits <= via_flits + r.threshold:
        return MINIMALLY
    return np.int64(via)


@kernel
def thinks_again(r: Tables, way: Int, hop: Int, origin: Int, here: Int, target: Int) -> bool:
    """Whether the way of a packet is decided once more at a switch, to which it has taken ``hop`` channels.

    It is (PROGRESSIVE) at the second switch, in the group that it came from, if it is on its way minimally.
    """
    if r.rule != PROGRESSIVE or hop != 1 or way != MINIMALLY or here == target:
        return False
    return bool(r.group[here] == r.group[origin])


@kernel
def lesser_path(r: Tables, first: Int, second: Int, first_flits: Int, second_flits: Int, flits: Int) -> int:
    """The path on which a packet of ``flits`` is expected to take less time; ``first`` if that is equal.

    first_flits, second_flits: flits queued for the first channel of either. The wait for a channel, and the packet's
    own time on it, stand for those of all channels of a path.
    """
    first_cost = (first_flits + flits) * (r.path_start[first + 1] - r.path_start[first])
    second_cost = (second_flits + flits) * (r.path_start[second + 1] - r.path_start[second])
    return np.int64(second if second_cost < first_cost else first)
