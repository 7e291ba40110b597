# SPDX-License-Identifier: Apache-2.0
"""Timers: a binary heap of int64 keys, of which the least, the earliest tick, comes first.

heap: int64 [keys + 1]; the number of keys is in the last entry.
"""

import numpy as np

from flitlab.models.jit import inline


@inline
def push_timer(heap, key):
    """Push a key onto the heap."""
    index = heap[len(heap) - 1]
    heap[len(heap) - 1] += 1
    while index > 0:
        parent = (index - 1) >> 1
        if heap[parent] <= key:
            break
        heap[index] = heap[parent]
        index = parent
    heap[index] = key


@inline
def pop_timer(heap):
    """Pop the least key off the heap, which is not empty."""
    least = heap[0]
    heap[len(heap) - 1] -= 1
    count = heap[len(heap) - 1]
    key, index = heap[count], np.int64(0)
    while True:
        child = 2 * index + 1
        if child >= count:
            break
        if child + 1 < count and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[index] = heap[child]
        index = child
    heap[index] = key
    return least
