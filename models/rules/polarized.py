# SPDX-License-Identifier: Apache-2.0
"""Where a polarized packet may go on its way from one switch to another, and what that costs it."""

import numpy as np

from flitlab.models.arrays import Bytes, Int, Integers
from flitlab.models.jit import kernel, routine
from flitlab.models.rules.tables import Tables

_ONE = np.uint64(1)


@kernel
def gain(leg: Bytes, origin: Int, target: Int, here: Int, there: Int) -> int:
    """By how much a channel from ``here`` to ``there`` takes a packet away from its origin and towards its target.

    leg: uint8 [switches, switches], as ``leg`` of the tables.
    """
    away = np.int64(leg[origin, there]) - np.int64(leg[origin, here])
    return away + np.int64(leg[here, target]) - np.int64(leg[there, target])


@kernel
def _outwards(leg: Bytes, origin: Int, target: Int, here: Int, there: Int) -> int:
    """1 if a channel takes a packet farther from both its ends, -1 if nearer to both, else 0."""
    away = np.int64(leg[origin, there]) - np.int64(leg[origin, here])
    nearer = np.int64(leg[here, target]) - np.int64(leg[there, target])
    if away > 0 and nearer < 0:
        return 1
    return -1 if away < 0 and nearer > 0 else 0


@routine
def _ports(
    leg: Bytes, out_start: Integers, dst: Integers, longest: Int, origin: Int, hop: Int, here: Int, target: Int
) -> np.uint64:
    """What :func:`polarized_ports` returns; longest: channels that a packet may take."""
    ports, shortest = np.uint64(0), np.uint64(0)
    near, far = np.int64(leg[origin, here]), np.int64(leg[here, target])
    for c in range(out_start[here], out_start[here + 1]):
        there, bit = np.int64(dst[c]), _ONE << np.uint64(c - out_start[here])
        left = np.int64(leg[there, target])
        if left < far:
            shortest |= bit
        if left >= longest - hop:
            continue
        won = gain(leg, origin, target, here, there)
        direction = 1 if near < far else -1
        if won > 0 or (won == 0 and _outwards(leg, origin, target, here, there) == direction):
            ports |= bit
    return ports if ports else shortest


@kernel
def polarized_ports(r: Tables, origin: Int, hop: Int, here: Int, target: Int) -> np.uint64:
    """The set of ports by which a packet that is not at its target may go on (POLARIZED).

    Those that gain; and those that gain nothing, outwards as long as it is nearer to its origin, inwards then. None
    leads to where the channels that it has left would not do; the shortest are the set where that leaves none. hop:
    channels that it has taken; r.classes: those that it may take.
    """
    return _ports(r.leg, r.out_start, r.dst, r.classes, origin, hop, here, target)


@kernel
def detour(r: Tables, origin: Int, target: Int, here: Int, there: Int, flits: Int) -> int:
    """Flits by which a packet of ``flits`` puts a channel back whose gain is less than 2: r.threshold packets for each.

    2 is the gain of a channel that takes it away from its origin and as much nearer to its target.
    """
    return r.threshold * flits * (2 - gain(r.leg, origin, target, here, there))
