# SPDX-License-Identifier: Apache-2.0
"""Where a polarized packet may go on its way from one switch to another, and what that costs it."""

import numpy as np

from flitlab.models.arrays import Bytes, Int, Integers
from flitlab.models.jit import kernel, routine
from flitlab.models.rules.tables import Tables

_ONE = np.uint64(1)


@kernel
def gain(leg: Bytes, src_switch: Int, dst_switch: Int, switch: Int, next_switch: Int) -> int:
    """By how much a channel from ``switch`` to ``next_switch`` takes a packet away from its origin and towards its target.

    leg: uint8 [switches, switches], as ``leg`` of the tables.
    """
    away = np.int64(leg[src_switch, next_switch]) - np.int64(leg[src_switch, switch])
    return away + np.int64(leg[switch, dst_switch]) - np.int64(leg[next_switch, dst_switch])


@kernel
def _outwards(leg: Bytes, src_switch: Int, dst_switch: Int, switch: Int, next_switch: Int) -> int:
    """1 if a channel takes a packet farther from both its ends, -1 if nearer to both, else 0."""
    away = np.int64(leg[src_switch, next_switch]) - np.int64(leg[src_switch, switch])
    nearer = np.int64(leg[switch, dst_switch]) - np.int64(leg[next_switch, dst_switch])
    if away > 0 and nearer < 0:
        return 1
    return -1 if away < 0 and nearer > 0 else 0


@routine
def _ports(
    leg: Bytes,
    out_start: Integers,
    dst: Integers,
    longest: Int,
    src_switch: Int,
    hop: Int,
    switch: Int,
    dst_switch: Int,
) -> np.uint64:
    """What :func:`polarized_ports` returns; longest: channels that a packet may take."""
    ports, shortest = np.uint64(0), np.uint64(0)
    src_hops, dst_hops = np.int64(leg[src_switch, switch]), np.int64(leg[switch, dst_switch])
    for c in range(out_start[switch], out_start[switch + 1]):
        next_switch, bit = np.int64(dst[c]), _ONE << np.uint64(c - out_start[switch])
        hops_left = np.int64(leg[next_switch, dst_switch])
        if hops_left < dst_hops:
            shortest |= bit
        if hops_left >= longest - hop:
            continue
        gained = gain(leg, src_switch, dst_switch, switch, next_switch)
        direction = 1 if src_hops < dst_hops else -1
        if gained > 0 or (gained == 0 and _outwards(leg, src_switch, dst_switch, switch, next_switch) == direction):
            ports |= bit
    return ports if ports else shortest


@kernel
def polarized_ports(r: Tables, src_switch: Int, hop: Int, switch: Int, dst_switch: Int) -> np.uint64:
    """The set of ports by which a packet that is not at its target may go on (POLARIZED).

    Those that gain; and those that gain nothing, outwards as long as it is nearer to its origin, inwards then. None
    leads to where the channels that it has left would not do; the shortest are the set where that leaves none. hop:
    channels that it has taken; r.classes: those that it may take.
    """
    return _ports(r.leg, r.out_start, r.dst, r.classes, src_switch, hop, switch, dst_switch)


@kernel
def detour(r: Tables, src_switch: Int, dst_switch: Int, switch: Int, next_switch: Int, flits: Int) -> int:
    """Flits by which a packet of ``flits`` puts a channel back whose gain is less than 2: r.threshold packets for each.

    2 is the gain of a channel that takes it away from its origin and as much nearer to its target.
    """
    return r.threshold * flits * (2 - gain(r.leg, src_switch, dst_switch, switch, next_switch))
