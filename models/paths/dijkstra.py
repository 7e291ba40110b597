# SPDX-License-Identifier: Apache-2.0
"""Dijkstra's algorithm with a binary heap of integers."""

import numpy as np

from flitlab.models.arrays import Int, Integers, Ints
from flitlab.models.heap import sift_down, sift_up
from flitlab.models.jit import njit

UNREACHED = np.int64(1) << np.int64(62)
"""Distance of a switch without a path. The weight of a path times the number of switches must be less."""


@njit
def settle(
    root: Int,
    start: Integers,
    end: Integers,
    weight: Ints,
    far: Ints,
    before: Ints,
    by_channel: Ints,
    heap: Ints,
    order: Ints,
) -> int:
    """Dijkstra's algorithm from a switch over channels i from v to end[i], i from start[v] to start[v + 1] - 1.

    far: int64 [switches], becomes the distances. before, by_channel: int64 [switches], become the switch, and the
    channel, by which each was reached first. order: int64 [switches], becomes the switches by distance, then number.
    heap: int64 [more than channels], scratch. Returns the number of reached switches.
    """
    n = len(far)
    far[:] = UNREACHED
    far[root] = 0
    heap[0], size, done = root, 1, 0
    while size > 0:
        distance, v = heap[0] // n, heap[0] % n
        size -= 1
        heap[0] = heap[size]
        if size > 0:
            sift_down(heap, size)
        if distance > far[v]:
            continue  # a shorter path was found since
        order[done] = v
        done += 1
        for i in range(start[v], start[v + 1]):
            w, length = end[i], distance + weight[i]
            if length < far[w]:
                far[w], before[w], by_channel[w] = length, v, i
                heap[size] = length * n + w
                sift_up(heap, size)
                size += 1
    return done
