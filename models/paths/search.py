# SPDX-License-Identifier: Apache-2.0
"""Breadth-first search against the direction of channels."""

from flitlab.models.arrays import Integers
from flitlab.models.jit import njit


@njit
def search_to(dst_switch: int, in_start: Integers, in_tail: Integers, hops: Integers, order: Integers) -> int:
    """Compute the hops from every switch to one switch; return how many switches have a path to it.

    Parameters
    ----------
    dst_switch: the destination.
    in_start, in_tail: the switches with a channel to v are in_tail[in_start[v]:in_start[v + 1]].
    hops: integers [switches], becomes the hops to the destination, -1 without a path.
    order: integers [switches], becomes the switches that have a path, nearest first.
    """
    hops[:] = -1
    hops[dst_switch] = 0
    order[0] = dst_switch
    done, reached = 0, 1
    while done < reached:
        v = order[done]
        done += 1
        for i in range(in_start[v], in_start[v + 1]):
            u = in_tail[i]
            if hops[u] < 0:
                hops[u] = hops[v] + 1
                order[reached] = u
                reached += 1
    return reached
