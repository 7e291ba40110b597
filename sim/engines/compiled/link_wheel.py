# SPDX-License-Identifier: Apache-2.0
"""A timing wheel of links, by the tick of their next arrival, and the order of arrivals within a tick.

Functions take the constants of a switching mode, with ``mask`` (buckets - 1), and its state: ``bucket``, uint32
[buckets], the first link of each; ``next_in_bucket``, uint32 [links], the next link in the same bucket; ``occupied``,
uint64 [buckets / 64], a bit for each bucket in use; ``members``, int64, scratch.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.datagram import precedence
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.pool import NONE

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_BIT_MASK, _WORD_SHIFT = np.uint64(63), np.uint64(6)

_INSERTION_SORT_MAX = 8
"""Largest number of members that insertion sort orders."""


@inline
def schedule_arrival(const, state, link, tick):
    """Schedule the next arrival from a link at ``tick``; a link has at most one."""
    bucket = np.uint64(tick & const.mask)
    state.next_in_bucket[link] = state.bucket[bucket]
    state.bucket[bucket] = link
    state.occupied[bucket >> _WORD_SHIFT] |= _ONE << (bucket & _BIT_MASK)


@inline
def cancel_arrival(const, state, link, tick):
    """Cancel the arrival from a link scheduled at ``tick``; the bucket's bit may stay set, harmlessly."""
    bucket = np.uint64(tick & const.mask)
    if state.bucket[bucket] == link:
        state.bucket[bucket] = state.next_in_bucket[link]
        return
    k = np.int64(state.bucket[bucket])
    while state.next_in_bucket[k] != link:
        k = np.int64(state.next_in_bucket[k])
    state.next_in_bucket[k] = state.next_in_bucket[link]


@inline
def next_arrival_tick(const, state, tick, until):
    """Return the first tick in ``tick`` .. ``until`` - 1 whose bucket is in use; else ``until``."""
    limit = min(tick + const.mask + 1, until)
    while tick < limit:
        bucket = np.uint64(tick & const.mask)
        word = state.occupied[bucket >> _WORD_SHIFT] & (_ALL << (bucket & _BIT_MASK))
        if word:
            return min(tick - (tick & 63) + lowest(word), until)
        tick += 64 - (tick & 63)
    return until


@inline
def has_arrivals(const, state, tick):
    """Tell whether the bucket of a tick is in use."""
    bucket = np.uint64(tick & const.mask)
    return state.occupied[bucket >> _WORD_SHIFT] >> (bucket & _BIT_MASK) & _ONE != 0


@inline
def take_due_links(const, state, tick):
    """Empty the bucket of a tick into ``state.members``, and return the number of links.

    Their records in ``state.link`` are prefetched.
    """
    bucket = np.uint64(tick & const.mask)
    link = np.int64(state.bucket[bucket])
    state.bucket[bucket] = NONE
    state.occupied[bucket >> _WORD_SHIFT] &= ~(_ONE << (bucket & _BIT_MASK))
    count = np.int64(0)
    while link != NONE:
        state.members[count] = link
        count += 1
        prefetch(state.link, link)
        link = np.int64(state.next_in_bucket[link])
    return count


@inline
def sort_by_precedence(members, scratch, count, seed, tick):
    """Sort members of a tick by precedence (:func:`flitlab.models.rules.datagram.precedence`).

    Parameters
    ----------
    members: int64; the first ``count`` are sorted. Of several, the precedence is put into the upper 32 bits.
    scratch: int64 [2 * members + 1].
    count: int64.
    seed, tick: of the draws.
    """
    if count == 1:
        return
    for k in range(count):
        members[k] = precedence(seed, tick, members[k])
    if count > _INSERTION_SORT_MAX:
        _sort(members, scratch, count)
        return
    for i in range(1, count):
        for k in range(i, 0, -1):  # branchless: mispredictions would cost more
            low, high = min(members[k - 1], members[k]), max(members[k - 1], members[k])
            members[k - 1], members[k] = low, high


@device_function
def _sort(members, scratch, count):
    """Sort many members: a bucket sort by precedence, which is uniform, then insertion sort.

    members: int64; the first ``count`` are sorted. scratch: int64 [2 * members + 1].
    """
    bucket_end, bucketed = scratch[: count + 1], scratch[count + 1 :]
    bucket_end[:] = 0
    for k in range(count):
        bucket_end[((members[k] >> 32) * count >> 31) + 1] += 1
    for k in range(count):
        bucket_end[k + 1] += bucket_end[k]
    for k in range(count):
        bucket = (members[k] >> 32) * count >> 31
        bucketed[bucket_end[bucket]] = members[k]
        bucket_end[bucket] += 1
    for k in range(count):
        key, index = bucketed[k], np.int64(k)
        while index > 0 and members[index - 1] > key:
            members[index] = members[index - 1]
            index -= 1
        members[index] = key
