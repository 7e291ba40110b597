# SPDX-License-Identifier: Apache-2.0
"""Packets created by hosts, counted by a cursor over each host's arrivals.

A source queue is not stored: a host knows its oldest unsent packet, and draws the packets behind it again when they are
counted.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import njit
from flitlab.models.rules.arrivals import next_arrival
from flitlab.models.rules.packets import length

COUNTER, POSITION, SEQUENCE, FLITS = range(4)


@njit
def count_created(arrivals, packets, seed, now, sent, cursor):
    """Advance every host's cursor past the packets created before tick ``now``.

    Parameters
    ----------
    arrivals, packets: when hosts create packets, and which.
    seed: of the draws.
    now: tick.
    sent: int64 [hosts, 4], the first unsent packet: (counter, position, sequence, flits of all packets before it).
    cursor: int64 [hosts, 4], the first packet not yet created, in the same form; advanced.
    """
    for h in range(len(sent)):
        if arrivals.keep[h] < 0:
            continue
        if cursor[h, SEQUENCE] <= sent[h, SEQUENCE]:
            for column in range(4):  # copying a row costs 2 s of compilation, for its error message
                cursor[h, column] = sent[h, column]
        while cursor[h, POSITION] >> arrivals.shift < now:
            cursor[h, FLITS] += length(packets, seed, h, cursor[h, COUNTER])
            cursor[h, SEQUENCE] += 1
            counter, position = next_arrival(arrivals, packets, seed, h, cursor[h, COUNTER] + 1, cursor[h, POSITION])
            cursor[h, COUNTER] = counter
            cursor[h, POSITION] = position


def start_cursor(hosts: int) -> Ints:
    """Make cursors before the first packet: int64 [hosts, 4]."""
    cursor = np.zeros((hosts, 4), np.int64)
    cursor[:, SEQUENCE] = -1
    return cursor
