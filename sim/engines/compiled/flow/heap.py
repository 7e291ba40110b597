"""A binary heap of records that know their place in it, so that the key of any of them may change.

``keys[item, k]`` is an item's key and ``records[item, p]`` its place; ``k`` and ``p`` are constants.
"""

from flitlab.models.jit import inner


@inner
def rise(heap, i, item, keys, k, records, p):
    """Put an item at place i, which is free, or nearer to the top."""
    key = keys[item, k]
    while i > 0:
        above = heap[(i - 1) >> 1]
        if keys[above, k] <= key:
            break
        heap[i] = above
        records[above, p] = i
        i = (i - 1) >> 1
    heap[i] = item
    records[item, p] = i


@inner
def sink(heap, size, i, item, keys, k, records, p):
    """Put an item at place i, which is free, or further from the top."""
    key = keys[item, k]
    while True:
        j = 2 * i + 1
        if j >= size:
            break
        if j + 1 < size and keys[heap[j + 1], k] < keys[heap[j], k]:
            j += 1
        below = heap[j]
        if key <= keys[below, k]:
            break
        heap[i] = below
        records[below, p] = i
        i = j
    heap[i] = item
    records[item, p] = i


@inner
def move(heap, size, item, keys, k, records, p):
    """Put an item whose key has changed where it belongs now."""
    i = records[item, p]
    if i > 0 and keys[item, k] < keys[heap[(i - 1) >> 1], k]:
        rise(heap, i, item, keys, k, records, p)
    else:
        sink(heap, size, i, item, keys, k, records, p)


@inner
def take_first(heap, size, keys, k, records, p):
    """Remove the first of ``size`` items; it has place -1 then."""
    records[heap[0], p] = -1
    if size > 1:
        sink(heap, size - 1, 0, heap[size - 1], keys, k, records, p)
