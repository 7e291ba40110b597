# SPDX-License-Identifier: Apache-2.0
"""Dijkstra's algorithm with a binary heap of integers."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Integers, Ints
from flitlab.models.heap import sift_down, sift_up
from flitlab.models.jit import njit

UNREACHED = np.int64(1) << np.int64(62)
"""Distance of a switch without a path. The weight of a path times the number of switches must be less."""


class Star(NamedTuple):
    """Channels by switch: those of v are start[v] to start[v + 1] - 1; ``end`` is their other switch."""

    start: Integers
    end: Integers
    weight: Ints


class Tree(NamedTuple):
    """Result of a search.

    far: int64 [switches], the distances. before, by_channel: int64 [switches], the switch, and the channel, by which
    each was reached first. order: int64 [switches], the switches by distance, then number. heap: int64 [more than
    channels], scratch.
    """

    far: Ints
    before: Ints
    by_channel: Ints
    order: Ints
    heap: Ints


@njit
def new_tree(switches: int, channels: int) -> Tree:
    """A tree of zeros."""
    far, before, by_channel = np.zeros(switches, np.int64), np.zeros(switches, np.int64), np.zeros(switches, np.int64)
    return Tree(far, before, by_channel, np.zeros(switches, np.int64), np.zeros(channels + 2, np.int64))


@njit
def settle(root: Int, star: Star, tree: Tree) -> int:
    """Dijkstra's algorithm from a switch over the channels of ``star``; fills ``tree``.

    Returns the number of reached switches.
    """
    start, end, weight = star
    far, before, by_channel, order, heap = tree
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
