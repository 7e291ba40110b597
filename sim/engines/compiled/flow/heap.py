"""A binary heap of records that know their place in it, so that the key of any of them may change.

``keys[item, k]`` is an item's key and ``records[item, p]`` its place; ``k`` and ``p`` are constants.
"""

from flitlab.models.jit import inner


@inner
def rise(heap, i, item, keys, key_field, records, place_field):
    """Put an item at place ``i``, which is free, or nearer to the top."""
    key = keys[item, key_field]
    while i > 0:
        above = heap[(i - 1) >> 1]
        if keys[above, key_field] <= key:
            break
        heap[i] = above
        records[above, place_field] = i
        i = (i - 1) >> 1
    heap[i] = item
    records[item, place_field] = i


@inner
def sink(heap, size, i, item, keys, key_field, records, place_field):
    """Put an item at place ``i``, which is free, or further from the top; size: of the heap."""
    key = keys[item, key_field]
    while True:
        j = 2 * i + 1
        if j >= size:
            break
        if j + 1 < size and keys[heap[j + 1], key_field] < keys[heap[j], key_field]:
            j += 1
        below = heap[j]
        if key <= keys[below, key_field]:
            break
        heap[i] = below
        records[below, place_field] = i
        i = j
    heap[i] = item
    records[item, place_field] = i


@inner
def move(heap, size, item, keys, key_field, records, place_field):
    """Put an item whose key has changed where it belongs now; size: of the heap."""
    i = records[item, place_field]
    if i > 0 and keys[item, key_field] < keys[heap[(i - 1) >> 1], key_field]:
        rise(heap, i, item, keys, key_field, records, place_field)
    else:
        sink(heap, size, i, item, keys, key_field, records, place_field)


@inner
def take_first(heap, size, keys, key_field, records, place_field):
    """Remove the first of ``size`` items, which has place -1 then."""
    records[heap[0], place_field] = -1
    if size > 1:
        sink(heap, size - 1, 0, heap[size - 1], keys, key_field, records, place_field)
