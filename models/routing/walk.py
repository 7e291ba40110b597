# SPDX-License-Identifier: Apache-2.0
"""Channel dependencies of routes: which channels a packet may hold while it requests others."""

import numpy as np

from flitlab.models.arrays import Bools, Int, Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.route import next_hops
from flitlab.models.rules.tables import Tables


@njit
def path_dependencies(r: Tables, out_start: Integers, dst: Integers, p: Int, switch: Int, edges: Ints) -> int:
    """Write the dependencies of a path as rows (channel, next channel); returns their number.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    out_start: int64 [switches + 1], first channel of each switch.
    dst: int64 [channels], end of each channel.
    p: the path.
    switch: its first switch.
    edges: int64 [rows, 2], filled.
    """
    last, count = -1, 0
    for i in range(r.path_start[p], r.path_start[p + 1]):
        c = out_start[switch] + np.int64(r.path_port[i])
        if last >= 0:
            edges[count, 0], edges[count, 1] = last, c
            count += 1
        last, switch = c, dst[c]
    return count


@njit
def hop_dependencies(
    r: Tables, out_start: Integers, dst: Integers, starts: Ints, t: Int, seen: Bools, stack: Ints, edges: Ints
) -> int:
    """Write the dependencies of all routes by next hops from some switches to t; returns their number.

    A row is (channel, next channel).

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    out_start: int64 [switches + 1], first channel of each switch.
    dst: int64 [channels], end of each channel.
    starts: int64, the switches.
    t: the destination.
    seen: bool [switches], all False before and after, scratch.
    stack: int64 [switches], scratch.
    edges: int64 [channels * largest degree, 2], filled.
    """
    unused = np.int64(0)
    top, done, count = 0, 0, 0
    for s in starts:
        if s != t:
            seen[s] = True
            stack[top] = s
            top += 1
    while done < top:
        v = stack[done]
        done += 1
        ports = next_hops(r, unused, unused, v, t)
        while not is_empty(ports):
            c = out_start[v] + lowest(ports)
            ports = without_lowest(ports)
            w = dst[c]
            if w == t:
                continue
            if not seen[w]:
                seen[w] = True
                stack[top] = w
                top += 1
            onward = next_hops(r, unused, unused, w, t)
            while not is_empty(onward):
                edges[count, 0], edges[count, 1] = c, out_start[w] + lowest(onward)
                onward = without_lowest(onward)
                count += 1
    for i in range(top):
        seen[stack[i]] = False
    return count
