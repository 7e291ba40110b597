# SPDX-License-Identifier: Apache-2.0
"""A tournament: which of many items has the smallest key, where keys change all the time.

An array of int64, at the places of which there is a tree: 16 items or winners play each other, and the smallest key
goes up. Items are numbered from 0, keys below ``NO_KEY``, which is that of items that take no part. Finding the first
item
and setting a key look at one block of 16 keys a level, two cache lines, and most keys that are set reach the lowest
level only. The order of items with equal keys is theirs.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.memory import aligned
from flitlab.sim.engines.compiled.simd import index_of, minimum_with

NO_KEY = (1 << 63) - 1
"""The key of an item that takes no part."""

_TOP = 15  # the place of the smallest of all keys; the places before are free, so that blocks begin with cache lines
_FIRST = 0  # the place at which it stands where the items begin


def make_tournament(items: int) -> Ints:
    """Make a tournament in which as many items may take part, and none does."""
    leaf_start, width = 16, 16
    while width < items:
        leaf_start, width = leaf_start + width, width * 16
    tree: Ints = aligned(leaf_start + -(-items // 16) * 16, 1, np.int64).ravel()
    tree[:] = NO_KEY
    tree[_FIRST] = leaf_start
    return tree


def keys_of(tree: Ints) -> Ints:
    """The keys of all items, by item."""
    return tree[tree[_FIRST] :]


def enlarged(tree: Ints, items: int) -> Ints:
    """Copy a tournament to one in which as many items may take part."""
    copy = make_tournament(items)
    keys_of(copy)[: len(keys_of(tree))] = keys_of(tree)
    index, keys = int(copy[_FIRST]), keys_of(copy)
    while index > _TOP:
        parent = (index >> 4) + 14
        copy[parent : parent + len(keys) // 16] = keys.reshape(-1, 16).min(axis=1)
        index, keys = parent, copy[parent:index]
    return copy


@inner
def smallest(tree):
    """Return the smallest key, ``NO_KEY`` if no item takes part."""
    return tree[_TOP]


@inner
def key_of(tree, item):
    """Return the key of an item."""
    return tree[tree[_FIRST] + item]


@inner
def set_key(tree, item, key):
    """Give an item another key."""
    index = tree[_FIRST] + item
    while index > _TOP:
        old, parent = tree[index], (index >> 4) + 14
        winner, minimum = tree[parent], key
        if key > winner:
            minimum = winner if old > winner else minimum_with(tree, (parent - 14) << 4, index & 15, key)
        tree[index] = key
        if minimum == winner:
            return
        index, key = parent, minimum
    tree[_TOP] = key


@inner
def first(tree):
    """Find an item with the smallest key."""
    key, index, items = tree[_TOP], _TOP, tree[_FIRST]
    while index < items:
        index = index_of(tree, (index - 14) << 4, key)
    return index - items
