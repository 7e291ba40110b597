# SPDX-License-Identifier: Apache-2.0
"""The choice between two routes by the queues on them."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.route import intermediate_of
from flitlab.models.rules.tables import Selection, Tables

MINIMAL_ROUTE = np.int64(0)
"""The route of a packet without an intermediate switch."""


@kernel
def choose_leg_count(
    r: Tables, via_route: Int, src_switch: Int, dst_switch: Int, minimal_flits: Int, via_flits: Int
) -> int:
    """MINIMAL_ROUTE or ``via_route``, whichever has the lower expected wait; r.threshold favours MINIMAL_ROUTE.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    via_route: route over an intermediate switch.
    src_switch: the switch of the decision.
    dst_switch: its destination switch.
    minimal_flits, via_flits: flits queued for the first channel of each route, to be multiplied by its channels
        (UGAL_LOCAL, PROGRESSIVE), or for all of its channels (UGAL_GLOBAL).

    Source: Singh, PhD thesis, Stanford 2005; Kim, Dally, Scott, Abts, ISCA 2008, doi:10.1109/ISCA.2008.19.
    """
    if r.rule != Selection.UGAL_GLOBAL:
        middle = intermediate_of(via_route)
        minimal_flits *= np.int64(r.leg[src_switch, dst_switch])
        via_flits *= np.int64(r.leg[src_switch, middle]) + np.int64(r.leg[middle, dst_switch])
    if minimal_flits <= via_flits + r.threshold:
        return MINIMAL_ROUTE
    return np.int64(via_route)


@kernel
def revises_route(r: Tables, route: Int, hop: Int, src_switch: Int, switch: Int, dst_switch: Int) -> bool:
    """Whether a packet is re-routed at its second switch (PROGRESSIVE): in the source group, on a minimal route.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    route: the packet's route (:func:`choose_route`).
    hop: channels between switches taken so far.
    src_switch: the packet's first switch.
    switch: its present switch.
    dst_switch: its destination switch.
    """
    if r.rule != Selection.PROGRESSIVE or hop != 1 or route != MINIMAL_ROUTE or switch == dst_switch:
        return False
    return bool(r.group[switch] == r.group[src_switch])


@kernel
def cheaper_path(r: Tables, first: Int, second: Int, first_flits: Int, second_flits: Int, flits: Int) -> int:
    """The path with the least expected time; ``first`` if both are equal.

    The queue of the first channel, and the packet's time on it, stand for those of all channels of the path.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    first, second: paths.
    first_flits, second_flits: flits queued for the first channel of each.
    flits: length of the packet.
    """
    first_cost = (first_flits + flits) * (r.path_start[first + 1] - r.path_start[first])
    second_cost = (second_flits + flits) * (r.path_start[second + 1] - r.path_start[second])
    return np.int64(second if second_cost < first_cost else first)
