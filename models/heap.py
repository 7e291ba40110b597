# SPDX-License-Identifier: Apache-2.0
"""Binary heaps of int64 keys in compiled code; the least key comes first."""

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline


@inline
def sift_up(heap: Ints, last: int) -> None:
    """Restore the order of a binary heap whose last entry is new."""
    i, key = last, heap[last]
    while i > 0 and heap[(i - 1) >> 1] > key:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = key


@inline
def sift_down(heap: Ints, size: int) -> None:
    """Restore the order of a binary heap of ``size`` entries whose first is new."""
    i, key = 0, heap[0]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = key
