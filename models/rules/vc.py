# SPDX-License-Identifier: Apache-2.0
"""The virtual channels that a packet may take on a channel."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bytes, Int, Ints
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.bits import contains
from flitlab.models.rules.port_sets import PortSets, ports_towards
from flitlab.models.rules.route import LEG_SHIFT, ON_ESCAPE, channels_from, intermediate_of
from flitlab.models.rules.tables import ESCAPE_VC, RouteForm, Selection, Tables, VcPolicy
from flitlab.models.topology.graph import Topology


class Rings(NamedTuple):
    """Positions of the channels in the rings of a torus; empty arrays on other graphs.

    dimension, step: int64 [channels], step is +1 or -1. coordinate: int64 [switches, dimensions]. extent: int64
    [dimensions].
    """

    dimension: Ints
    step: Ints
    coordinate: Ints
    extent: Ints


def make_rings(topology: Topology) -> Rings:
    """Ring positions of the channels of a torus."""
    grid = topology.grid
    if grid is None or not grid.wrap:
        none = np.zeros(0, np.int64)
        return Rings(none, none, np.zeros((0, 0), np.int64), none)
    extent = np.array(grid.dims, np.int64)
    change = grid.coordinates[topology.dst] - grid.coordinates[topology.src]
    dimension = np.argmax(change != 0, axis=1)
    moved = change[np.arange(len(change)), dimension]
    # a step of extent - 1 is a step of 1 across the wrap-around, the other way
    step = np.where((moved == 1) | (moved < -1), 1, -1)
    return Rings(dimension, step, np.ascontiguousarray(grid.coordinates.astype(np.int64)), extent)


@kernel
def dateline_class(rings: Rings, crossing: bool, src_switch: Int, dst_switch: Int, channel: Int, tail: Int) -> int:
    """The half of the VCs, 0 or 1, for a dimension-ordered packet on a channel.

    Parameters
    ----------
    rings: from :func:`make_rings`.
    crossing: False: class 1 for packets that wrap in this dimension, fixed on entry; True: class 1 from the wrap-around
        channel on.
    src_switch: the packet's first switch.
    dst_switch: its destination switch.
    channel: the channel.
    tail: the switch that it leaves.

    Source: Dally and Seitz 1987, doi:10.1109/TC.1987.1676939.
    """
    d = rings.dimension[channel]
    start, end = rings.coordinate[src_switch, d], rings.coordinate[dst_switch, d]
    if rings.step[channel] > 0:
        if not crossing:
            return 1 if end < start else 0
        following = rings.coordinate[tail, d] + 1
        return 1 if following == rings.extent[d] or following <= start else 0
    if not crossing:
        return 1 if end > start else 0
    following = rings.coordinate[tail, d] - 1
    return 1 if following < 0 or following >= start else 0


@kernel
def share(vcs: Int, ranges: Int, index: Int) -> tuple[int, int]:
    """First VC, and one past the last, of one of several ranges of equal size; the first ranges have the remainder.

    With fewer VCs than ranges the last ranges share the last VC.

    Parameters
    ----------
    vcs: virtual channels per channel.
    ranges: number of ranges.
    index: of the range.
    """
    if vcs == ranges:
        return index, index + 1
    each = vcs // ranges
    rest = vcs - each * ranges
    first = min(index * each + min(index, rest), vcs - 1)
    return first, first + max(each + (index < rest), 1)


@device_function
def _layer_vcs(r: Tables, route: Int, vcs: Int, hop: Int, src_switch: Int, dst_switch: Int) -> tuple[int, int]:
    """The VCs of the layer of a packet's path or switch pair. With an intermediate switch each leg has its own."""
    if r.form == RouteForm.PATHS:
        return share(vcs, r.layers, np.int64(r.layer[route]))
    second = r.form == RouteForm.VIA and hop >= route >> LEG_SHIFT
    start, end = src_switch, dst_switch
    if r.form == RouteForm.VIA and route >> LEG_SHIFT > 0:
        start, end = (intermediate_of(route), dst_switch) if second else (src_switch, intermediate_of(route))
    layer = np.int64(r.layer[start * r.switches + end])
    if r.form == RouteForm.VIA:
        return share(vcs, 2 * r.layers, layer + r.layers * np.int64(second))
    return share(vcs, r.layers, layer)


@device_function
def _group_vcs(r: Tables, route: Int, vcs: Int, hop: Int, src_switch: Int, tail: Int) -> tuple[int, int]:
    """The VCs before, or after, a packet has left its source group; each of two legs has its own.

    PROGRESSIVE: its first channel has VCs of its own, as two legs may follow.
    """
    first_leg = route >> LEG_SHIFT if r.form == RouteForm.VIA else np.int64(0)
    second = first_leg > 0 and hop >= first_leg
    start = intermediate_of(route) if second else src_switch
    range_index = np.int64(r.group[tail] != r.group[start]) + 2 * np.int64(second)
    if r.form == RouteForm.VIA and r.rule == Selection.PROGRESSIVE:
        return share(vcs, np.int64(5), range_index + 1 if hop > 0 else np.int64(0))
    return share(vcs, np.int64(4 if r.form == RouteForm.VIA else 2), range_index)


@device_function
def _escape_vcs(
    ports: PortSets, escape: Bytes, route: Int, vcs: Int, dst_switch: Int, tail: Int, port: Int
) -> tuple[int, int]:
    """The escape VC on the escape channel, the others on channels that the routes allow."""
    if route == ON_ESCAPE:
        return ESCAPE_VC, ESCAPE_VC + 1
    adaptive = contains(ports_towards(ports, dst_switch, tail), port)
    return ESCAPE_VC + (port != escape[dst_switch, tail]), vcs if adaptive else ESCAPE_VC + 1


_UNRESERVED = np.int64(1) << np.int64(32)

NOT_HELD = np.int64(-1)
"""In place of the held VC of a packet on an injection channel."""


@device_function
def _may_revise_route(r: Tables, route: Int, hop: Int, src_switch: Int, dst_switch: Int, channel: Int) -> bool:
    """Whether a packet may be re-routed behind its ``hop``-th channel (PROGRESSIVE)."""
    if r.rule != Selection.PROGRESSIVE or hop != 0 or route >> LEG_SHIFT != 0:
        return False
    next_switch = np.int64(r.dst[channel])
    return bool(next_switch != dst_switch and r.group[next_switch] == r.group[src_switch])


@device_function
def _hops_left(r: Tables, route: Int, hop: Int, src_switch: Int, dst_switch: Int, channel: Int) -> int:
    """The most channels that a packet may take after its ``hop``-th one, ``channel``."""
    if r.form == RouteForm.TABLE:
        return np.int64(r.rest[dst_switch, r.dst[channel]])
    if r.form == RouteForm.PATHS:
        return r.path_start[route + 1] - r.path_start[route] - hop - 1
    if r.form == RouteForm.DIGITS:
        return channels_from(r.degree, r.shift, r.switches, np.int64(r.dst[channel]), dst_switch)
    if r.form == RouteForm.POLARIZED:
        return np.int64(0) if r.dst[channel] == dst_switch else r.classes - hop - 1
    if _may_revise_route(r, route, hop, src_switch, dst_switch, channel):
        return r.classes - 1
    first = route >> LEG_SHIFT
    start = intermediate_of(route) if first > 0 else src_switch
    return first + np.int64(r.leg[start, dst_switch]) - hop - 1


@kernel
def allowed_vcs(
    r: Tables,
    route: Int,
    policy: int,
    vcs: Int,
    hop: Int,
    rings: Rings,
    src_switch: Int,
    dst_switch: Int,
    channel: Int,
    tail: Int,
    port: Int,
    held_vc: Int,
) -> tuple[int, int]:
    """First VC, and one past the last, that a packet may take on a channel between switches.

    RESERVE: the VC of the hop, and all unreserved VCs; those between are not allowed (:func:`is_reserved_for_others`).
    RISING: VCs above the held one, with as many left above them as channels may follow. With fewer VCs than the longest
    route has channels there may be none; then the next VC, or the last.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    route: the packet's route (:func:`choose_route`).
    policy: ANY, HOP, ...
    vcs: virtual channels per channel.
    hop: channels between switches taken so far.
    rings: from :func:`make_rings`.
    src_switch: the packet's first switch.
    dst_switch: its destination switch.
    channel: the channel.
    tail: the switch that it leaves.
    port: its port there.
    held_vc: the VC that the packet holds on its last channel, or NOT_HELD.
    """
    if policy == VcPolicy.ANY:
        return np.int64(0), vcs
    if policy == VcPolicy.HOP:
        return share(vcs, r.classes, min(hop, r.classes - 1))
    if policy <= VcPolicy.DATELINE_CROSSING:
        if len(rings.dimension) == 0:
            return np.int64(0), vcs
        crossing = policy == VcPolicy.DATELINE_CROSSING
        return share(vcs, np.int64(2), dateline_class(rings, crossing, src_switch, dst_switch, channel, tail))
    if policy == VcPolicy.LAYERED:
        return _layer_vcs(r, route, vcs, hop, src_switch, dst_switch)
    if policy == VcPolicy.LEGS:
        return share(vcs, np.int64(2), np.int64(hop >= route >> LEG_SHIFT))
    if policy == VcPolicy.RISING:
        first = min(held_vc + 1, vcs - 1)
        return first, max(vcs - _hops_left(r, route, hop, src_switch, dst_switch, channel), first + 1)
    if policy == VcPolicy.RESERVE:
        return min(hop, r.classes - 1), vcs
    if policy == VcPolicy.GROUPS:
        return _group_vcs(r, route, vcs, hop, src_switch, tail)
    return _escape_vcs(r.ports, r.escape, route, vcs, dst_switch, tail, port)


@kernel
def is_reserved(score: Int) -> bool:
    """Whether a VC with this :func:`vc_score` is a reserved VC, where there are reserved VCs."""
    return score < _UNRESERVED


@kernel
def reserved_vcs(r: Tables, policy: int) -> int:
    """The number of reserved VCs, the first ones: they are taken only if no other VC has space."""
    if policy == VcPolicy.RESERVE:
        return np.int64(r.classes)
    return np.int64(ESCAPE_VC + 1 if policy == VcPolicy.ESCAPE else 0)


@kernel
def is_reserved_for_others(reserved: Int, first: Int, vc: Int) -> bool:
    """Whether a VC after a packet's ``first`` one is reserved for other packets.

    Parameters
    ----------
    reserved: number of reserved VCs.
    first: first VC of the packet.
    vc: the VC.
    """
    return first < vc and vc < reserved


@kernel
def vc_score(reserved: Int, vc: Int, credits: Int, flits: Int) -> int:
    """The score of a VC for a packet; 0: it cannot take the VC.

    More credits score higher. Reserved VCs score lowest. If there are reserved VCs, the others need space for the whole
    packet: then it leaves its buffer without waiting for packets downstream, every head packet reaches the front of its
    buffer, and can take the reserved VC there.

    Parameters
    ----------
    reserved: number of reserved VCs.
    vc: the VC.
    credits: its credits, flits.
    flits: length of the packet.
    """
    if vc < reserved or reserved == 0:
        return credits
    return credits + _UNRESERVED if credits >= flits else np.int64(0)
