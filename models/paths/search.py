# SPDX-License-Identifier: Apache-2.0
"""Searches for shortest paths: breadth-first by hops, and Dijkstra's by weights."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Integers, Ints
from flitlab.models.heap import sift_down, sift_up
from flitlab.models.jit import njit

UNREACHED = np.int64(1) << np.int64(62)
"""Distance of a switch without a path. The weight of a path times the number of switches must be less."""


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
