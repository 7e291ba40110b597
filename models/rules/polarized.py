# SPDX-License-Identifier: Apache-2.0
"""Next hops of polarized routing, and their costs."""

import numpy as np

from flitlab.models.arrays import Bytes, Int, Integers, PortSet
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.bits import empty_set, is_empty, with_port
from flitlab.models.rules.tables import Tables


@kernel
def gain(leg: Bytes, src_switch: Int, dst_switch: Int, switch: Int, next_switch: Int) -> int:
    """How much a channel takes a packet away from its source and towards its destination, in hops.

    Parameters
    ----------
    leg: uint8 [switches, switches], as ``leg`` of the tables.
    src_switch: the packet's first switch.
    dst_switch: its destination switch.
    switch: its present switch.
    next_switch: the switch at the end of the channel.
    """
    away = np.int64(leg[src_switch, next_switch]) - np.int64(leg[src_switch, switch])
    return away + np.int64(leg[switch, dst_switch]) - np.int64(leg[next_switch, dst_switch])


@kernel
def _outwards(leg: Bytes, src_switch: Int, dst_switch: Int, switch: Int, next_switch: Int) -> int:
    """1 if a channel leads farther from both ends of the route, -1 if nearer to both, else 0."""
    away = np.int64(leg[src_switch, next_switch]) - np.int64(leg[src_switch, switch])
    nearer = np.int64(leg[switch, dst_switch]) - np.int64(leg[next_switch, dst_switch])
    if away > 0 and nearer < 0:
        return 1
    return -1 if away < 0 and nearer > 0 else 0


@device_function
def _ports(
    leg: Bytes,
    out_start: Integers,
    dst: Integers,
    longest: Int,
    src_switch: Int,
    hop: Int,
    switch: Int,
    dst_switch: Int,
    mask: PortSet,
) -> PortSet:
    """The result of :func:`polarized_ports`, as wide as ``mask``; longest: channels that a packet may take."""
    ports, shortest = empty_set(mask), empty_set(mask)
    src_hops, dst_hops = np.int64(leg[src_switch, switch]), np.int64(leg[switch, dst_switch])
    for c in range(out_start[switch], out_start[switch + 1]):
        next_switch, port = np.int64(dst[c]), c - out_start[switch]
        hops_left = np.int64(leg[next_switch, dst_switch])
        if hops_left < dst_hops:
            shortest = with_port(shortest, port)
        if hops_left >= longest - hop:
            continue
        gained = gain(leg, src_switch, dst_switch, switch, next_switch)
        direction = 1 if src_hops < dst_hops else -1
        if gained > 0 or (gained == 0 and _outwards(leg, src_switch, dst_switch, switch, next_switch) == direction):
            ports = with_port(ports, port)
    return shortest if is_empty(ports) else ports


@kernel
def polarized_ports(r: Tables, src_switch: Int, hop: Int, switch: Int, dst_switch: Int) -> PortSet:
    """The set of ports by which a packet that is not at its destination may continue (POLARIZED).

    These are ports with a gain, and ports without one that lead outwards in the first half and inwards in the second.
    None leads to a switch from which the remaining channels would not suffice. If there is no such port, all minimal
    ones.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    src_switch: the packet's first switch.
    hop: channels between switches taken so far.
    switch: its present switch.
    dst_switch: its destination switch.
    """
    return _ports(r.leg, r.out_start, r.dst, r.classes, src_switch, hop, switch, dst_switch, r.ports.mask)


@kernel
def detour(r: Tables, src_switch: Int, dst_switch: Int, switch: Int, next_switch: Int, flits: Int) -> int:
    """Flits added to the cost of a channel whose gain is below 2: ``r.threshold`` packets for each hop less.

    2 is the gain of a channel away from the source and towards the destination.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    src_switch: the packet's first switch.
    dst_switch: its destination switch.
    switch: its present switch.
    next_switch: the switch at the end of the channel.
    flits: length of the packet.
    """
    return r.threshold * flits * (2 - gain(r.leg, src_switch, dst_switch, switch, next_switch))
