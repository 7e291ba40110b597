# SPDX-License-Identifier: Apache-2.0
"""Which of two ways a packet takes that its host sends, by what is queued for them."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.route import intermediate_of
from flitlab.models.rules.tables import PROGRESSIVE, UGAL_GLOBAL, Tables

MINIMAL_ROUTE = np.int64(0)
"""The way of a packet that goes over no intermediate switch."""


@kernel
def choose_leg_count(
    r: Tables, via_route: Int, src_switch: Int, dst_switch: Int, minimal_flits: Int, via_flits: Int
) -> int:
    """MINIMALLY or ``via_route``, whichever is expected to wait less; r.threshold favours MINIMALLY.

    minimal_flits, via_flits: flits queued for the first channel of either, which stands for all channels of the way
    (UGAL_LOCAL, PROGRESSIVE: multiplied by their number), or for all of them (UGAL_GLOBAL: as they are). origin,
    target: the switch where this is decided, and that of the destination.
    """
    if r.rule != UGAL_GLOBAL:
        middle = intermediate_of(via_route)
        minimal_flits *= np.int64(r.leg[src_switch, dst_switch])
        via_flits *= np.int64(r.leg[src_switch, middle]) + np.int64(r.leg[middle, dst_switch])
    if minimal_flits <= via_flits + r.threshold:
        return MINIMAL_ROUTE
    return np.int64(via_route)


@kernel
def revises_route(r: Tables, route: Int, hop: Int, src_switch: Int, switch: Int, dst_switch: Int) -> bool:
    """Whether the way of a packet is decided once more at a switch, to which it has taken ``hop`` channels.

    It is (PROGRESSIVE) at the second switch, in the group that it came from, if it is on its way minimally.
    """
    if r.rule != PROGRESSIVE or hop != 1 or route != MINIMAL_ROUTE or switch == dst_switch:
        return False
    return bool(r.group[switch] == r.group[src_switch])


@kernel
def cheaper_path(r: Tables, first: Int, second: Int, first_flits: Int, second_flits: Int, flits: Int) -> int:
    """The path on which a packet of ``flits`` is expected to take less time; ``first`` if that is equal.

    first_flits, second_flits: flits queued for the first channel of either. The wait for a channel, and the packet's
    own time on it, stand for those of all channels of a path.
    """
    first_cost = (first_flits + flits) * (r.path_start[first + 1] - r.path_start[first])
    second_cost = (second_flits + flits) * (r.path_start[second + 1] - r.path_start[second])
    return np.int64(second if second_cost < first_cost else first)
