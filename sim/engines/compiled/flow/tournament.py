# SPDX-License-Identifier: Apache-2.0
"""A tournament tree: the item with the smallest key, where keys change often.

Nodes of a tree in an int64 array compare 16 items or winners each, and the smallest key goes up. Items are numbered
from 0; keys are below ``NO_KEY``, which is the key of an item without an event. Finding the first item, and setting a
key, touch one block of 16 keys per level, two cache lines, and most updates stop at the lowest level. The order of
items with equal keys is arbitrary.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.memory import aligned
from flitlab.sim.engines.compiled.simd import index_of, minimum_with

NO_KEY = (1 << 63) - 1
"""Key of an item without an event."""

_TOP = 15  # index of the smallest key; entries before are free, so that blocks begin with cache lines
_FIRST = 0  # entry with the index of the first item


def make_tournament(items: int) -> Ints:
    """Make a tournament for a number of items, none of which has a key."""
    leaf_start, width = 16, 16
    while width < items:
        leaf_start, width = leaf_start + width, width * 16
    tree: Ints = aligned(leaf_start + -(-items // 16) * 16, 1, np.int64).ravel()
    tree[:] = NO_KEY
    tree[_FIRST] = leaf_start
    return tree


def keys_of(tree: Ints) -> Ints:
    """Keys of all items, by item.

    Parameters
    ----------
    tree: int64, of :func:`make_tournament`.

    Returns
    -------
    int64 [items], a view.
    """
    return tree[tree[_FIRST] :]


def enlarged(tree: Ints, items: int) -> Ints:
    """Copy a tournament to one for more items.

    Parameters
    ----------
    tree: int64, of :func:`make_tournament`.
    items: number, no less than before.
    """
    copy = make_tournament(items)
    keys_of(copy)[: len(keys_of(tree))] = keys_of(tree)
    index, keys = int(copy[_FIRST]), keys_of(copy)
    while index > _TOP:
        parent = (index >> 4) + 14
        copy[parent : parent + len(keys) // 16] = keys.reshape(-1, 16).min(axis=1)
        index, keys = parent, copy[parent:index]
    return copy


@inline
def smallest(tree):
    """Return the smallest key, ``NO_KEY`` if no item has one."""
    return tree[_TOP]


@inline
def key_of(tree, item):
    """Return the key of an item."""
    return tree[tree[_FIRST] + item]


@inline
def set_key(tree, item, key):
    """Set the key of an item.

    Parameters
    ----------
    tree: int64, of :func:`make_tournament`.
    item: int64.
    key: int64, at most ``NO_KEY``.
    """
    index = tree[_FIRST] + item
    while index > _TOP:
        old, parent = tree[index], (index >> 4) + 14
        winner, smallest_key = tree[parent], key
        if key > winner:
            smallest_key = winner if old > winner else minimum_with(tree, (parent - 14) << 4, index & 15, key)
        tree[index] = key
        if smallest_key == winner:
            return
        index, key = parent, smallest_key
    tree[_TOP] = key


@inline
def first(tree):
    """Return an item with the smallest key."""
    key, index, items = tree[_TOP], _TOP, tree[_FIRST]
    while index < items:
        index = index_of(tree, (index - 14) << 4, key)
    return index - items
