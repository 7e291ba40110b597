# SPDX-License-Identifier: Apache-2.0
"""Timers: a heap of keys, of which the least, the tick and who is meant, comes first.

heap: int64 [keys + 1]; how many there are is in the last entry.
"""

import numpy as np

from flitlab.models.jit import inline


@inline
def put_timer(heap, key):
    """Put a key into a heap."""
    place = heap[len(heap) - 1]
    heap[len(heap) - 1] += 1
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent] <= key:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = key


@inline
def take_timer(heap):
    """Remove the least key from a heap, which is not empty."""
    top = heap[0]
    heap[len(heap) - 1] -= 1
    count = heap[len(heap) - 1]
    key, place = heap[count], np.int64(0)
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = key
    return top
