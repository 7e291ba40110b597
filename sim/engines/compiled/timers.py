# SPDX-License-Identifier: Apache-2.0
"""Timers: a binary heap of int64 keys, of which the least, the earliest tick, comes first.

heap: int64 [keys + 1]; the number of keys is in the last entry.
"""

from flitlab.models.heap import sift_down, sift_up
from flitlab.models.jit import inline


@inline
def push_timer(heap, key):
    """Push a key onto the heap."""
    last = heap[len(heap) - 1]
    heap[len(heap) - 1] += 1
    heap[last] = key
    sift_up(heap, last)


@inline
def pop_timer(heap):
    """Pop the least key off the heap, which is not empty."""
    least = heap[0]
    heap[len(heap) - 1] -= 1
    size = heap[len(heap) - 1]
    heap[0] = heap[size]
    sift_down(heap, size)
    return least
