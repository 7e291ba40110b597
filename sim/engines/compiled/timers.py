# SPDX-License-Identifier: Apache-2.0
"""Timers: a heap of keys, of which the least, the tick and who is meant, comes first.

heap: int64 [keys + 1]; how many there are is in the last entry.
"""

import numpy as np

from flitlab.models.jit import inner


@inner
def push_timer(heap, key):
    """Put a key into a heap."""
    index = heap[len(heap) - 1]
    heap[len(heap) - 1] += 1
    while index > 0:
        parent = (index - 1) >> 1
        if heap[parent] <= key:
            break
        heap[index] = heap[parent]
        index = parent
    heap[index] = key


@inner
def pop_timer(heap):
    """Remove the least key from a heap, which is not empty."""
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
