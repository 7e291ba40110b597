# SPDX-License-Identifier: Apache-2.0
"""Links that await a packet: a wheel with a slot for each tick, and the order in which links of one tick come.

Functions take any discipline's constants, which have the wheel's ``mask``, the number of its slots less 1, and its
state: ``bucket``, uint32 [slots], the first of the links that await something then; ``next_link``, uint32 [links], the
next
link in the same slot; ``occupied``, uint64 [slots / 64], the slots that are not empty; ``members``, int64, scratch.
"""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.datagram import precedence
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.pool import NONE

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_BIT_MASK, _WORD_SHIFT = np.uint64(63), np.uint64(6)

_INSERTION_SORT_MAX = 8
"""Up to so many are put in order by exchanging neighbours."""


@inner
def schedule_arrival(const, state, link, tick):
    """Note that a link awaits a packet at ``tick``; it awaits nothing else until then."""
    bucket = np.uint64(tick & const.mask)
    state.next_link[link] = state.bucket[bucket]
    state.bucket[bucket] = link
    state.occupied[bucket >> _WORD_SHIFT] |= _ONE << (bucket & _BIT_MASK)


@inner
def cancel_arrival(const, state, link, tick):
    """Let a link not await the packet any more that it awaits at ``tick``; a bit left behind does no harm."""
    bucket = np.uint64(tick & const.mask)
    if state.bucket[bucket] == link:
        state.bucket[bucket] = state.next_link[link]
        return
    k = np.int64(state.bucket[bucket])
    while state.next_link[k] != link:
        k = np.int64(state.next_link[k])
    state.next_link[k] = state.next_link[link]


@inner
def next_arrival_tick(const, state, tick, until):
    """Find the first tick from ``tick`` on, and before ``until``, in which a link awaits a packet; else ``until``."""
    limit = min(tick + const.mask + 1, until)
    while tick < limit:
        bucket = np.uint64(tick & const.mask)
        word = state.occupied[bucket >> _WORD_SHIFT] & (_ALL << (bucket & _BIT_MASK))
        if word:
            return min(tick - (tick & 63) + lowest(word), until)
        tick += 64 - (tick & 63)
    return until


@inner
def has_arrivals(const, state, tick):
    """Tell whether a link may await a packet in a tick."""
    bucket = np.uint64(tick & const.mask)
    return state.occupied[bucket >> _WORD_SHIFT] >> (bucket & _BIT_MASK) & _ONE != 0


@inner
def take_due_links(const, state, tick):
    """List the links that await a packet in a tick in ``state.members``; how many they are.

    Their records in ``state.link`` begin to be loaded.
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
        link = np.int64(state.next_link[link])
    return count


@inner
def sort_by_precedence(members, scratch, count, seed, tick):
    """Put those who do something in a tick in the order of precedence.

    Where they are several, the precedence is put above their numbers. members: int64, the first ``count`` are used.
    scratch: int64 [2 * members + 1].
    """
    if count == 1:
        return
    for k in range(count):
        members[k] = precedence(seed, tick, members[k])
    if count > _INSERTION_SORT_MAX:
        _sort(members, scratch, count)
        return
    for i in range(1, count):
        for k in range(i, 0, -1):  # to exchange always is quicker than to mispredict whether
            low, high = min(members[k - 1], members[k]), max(members[k - 1], members[k])
            members[k - 1], members[k] = low, high


@routine
def _sort(members, scratch, count):
    """Sort many by distributing them over as many buckets by what was drawn, which is even.

    The little left to do is done by insertion. members: int64, the first ``count`` are used. scratch: int64 [2 *
    members + 1].
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
