# SPDX-License-Identifier: Apache-2.0
"""Walks over routes: which channels a packet may hold while it waits for which."""

import numpy as np

from flitlab.models.arrays import Bools, Int, Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.route import next_hops
from flitlab.models.rules.tables import Tables


@njit
def path_dependencies(r: Tables, out_start: Integers, dst: Integers, p: Int, switch: Int, edges: Ints) -> int:
    """Dependencies of path p, which starts at ``switch``, as rows (channel, next channel) of ``edges``; how many."""
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
    """Dependencies of all routes by next hops from the switches ``starts`` to t, as rows of ``edges``; how many.

    A row is (channel, next channel).

    r: :class:`~flitlab.models.rules.tables.Tables`. edges: int64 [channels * largest degree, 2] is enough. Scratch:
    seen: bool [switches], all False before and after; stack: int64 [switches].
    """
    one, unused = np.uint64(1), np.int64(0)
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
        while ports:
            c = out_start[v] + lowest(ports)
            ports &= ports - one
            w = dst[c]
            if w == t:
                continue
            if not seen[w]:
                seen[w] = True
                stack[top] = w
                top += 1
            onward = next_hops(r, unused, unused, w, t)
            while onward:
                edges[count, 0], edges[count, 1] = c, out_start[w] + lowest(onward)
                onward &= onward - one
                count += 1
    for i in range(top):
        seen[stack[i]] = False
    return count
