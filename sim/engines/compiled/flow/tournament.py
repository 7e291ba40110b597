# SPDX-License-Identifier: Apache-2.0
"""A tournament: which of many items has the smallest key, where keys change all the time.

An array of int64, at the places of which there is a tree: 16 items or winners play each other, and the smallest key
goes up. Items are numbered from 0, keys below ``OUT``, which is that of items that take no part. Finding the first item
and setting a key look at one block of 16 keys a level, two cache lines, and most keys that are set reach the lowest
level only. The order of items with equal keys is theirs.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.lanes import least_with, place_of
from flitlab.sim.engines.compiled.memory import aligned

OUT = (1 << 63) - 1
"""The key of an item that takes no part."""

_TOP = 15  # the place of the smallest of all keys; the places before are free, so that blocks begin with cache lines
_FIRST = 0  # the place at which it stands where the items begin


def make_tournament(items: int) -> Ints:
    """Make a tournament in which as many items may take part, and none does."""
    first, width = 16, 16
    while width < items:
        first, width = first + width, width * 16
    tree: Ints = aligned(first + -(-items // 16) * 16, 1, np.int64).ravel()
    tree[:] = OUT
    tree[_FIRST] = first
    return tree


def keys_of(tree: Ints) -> Ints:
    """The keys of all items, by item."""
    return tree[tree[_FIRST] :]


def enlarged(tree: Ints, items: int) -> Ints:
    """Copy a tournament to one in which as many items may take part."""
    copy = make_tournament(items)
    keys_of(copy)[: len(keys_of(tree))] = keys_of(tree)
    place, keys = int(copy[_FIRST]), keys_of(copy)
    while place > _TOP:
        above = (place >> 4) + 14
        copy[above : above + len(keys) // 16] = keys.reshape(-1, 16).min(axis=1)
        place, keys = above, copy[above:place]
    return copy


@inline
def smallest(tree):
    """Return the smallest key, ``OUT`` if no item takes part."""
    return tree[_TOP]


@inline
def key_of(tree, item):
    """Return the key of an item."""
    return tree[tree[_FIRST] + item]


@inline
def set_key(tree, item, key):
    """Give an item another key."""
    place = tree[_FIRST] + item
    while place > _TOP:
        old, above = tree[place], (place >> 4) + 14
        winner, least = tree[above], key
        if key > winner:
            least = winner if old > winner else least_with(tree, (above - 14) << 4, place & 15, key)
        tree[place] = key
        if least == winner:
            return
        place, key = above, least
    tree[_TOP] = key


@inline
def first(tree):
    """Find an item with the smallest key."""
    key, place, items = tree[_TOP], _TOP, tree[_FIRST]
    while place < items:
        place = place_of(tree, (place - 14) << 4, key)
    return place - items
