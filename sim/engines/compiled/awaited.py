# SPDX-License-Identifier: Apache-2.0
"""Links that await a packet: a wheel with a slot for each tick, and the order in which links of one tick come.

Functions take any discipline's constants, which have the wheel's ``mask``, the number of its slots less 1, and its
state: ``slot``, uint32 [slots], the first of the links that await something then; ``after``, uint32 [links], the next
link in the same slot; ``bits``, uint64 [slots / 64], the slots that are not empty; ``members``, int64, scratch.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.datagram import precedence
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.pool import NOBODY

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_SLOT_BITS, _WORD_BITS = np.uint64(63), np.uint64(6)

_FEW = 8
"""Up to so many are put in order by exchanging neighbours."""


@inline
def await_packet(const, state, link, tick):
    """Note that a link awaits a packet at ``tick``; it awaits nothing else until then."""
    slot = np.uint64(tick & const.mask)
    state.after[link] = state.slot[slot]
    state.slot[slot] = link
    state.bits[slot >> _WORD_BITS] |= _ONE << (slot & _SLOT_BITS)


@inline
def forget_packet(const, state, link, tick):
    """Let a link not await the packet any more that it awaits at ``tick``; a bit left behind does no harm."""
    slot = np.uint64(tick & const.mask)
    if state.slot[slot] == link:
        state.slot[slot] = state.after[link]
        return
    k = np.int64(state.slot[slot])
    while state.after[k] != link:
        k = np.int64(state.after[k])
    state.after[k] = state.after[link]


@inline
def next_slot(const, state, tick, until):
    """Find the first tick from ``tick`` on, and before ``until``, in which a link awaits a packet; else ``until``."""
    around = min(tick + const.mask + 1, until)
    while tick < around:
        slot = np.uint64(tick & const.mask)
        word = state.bits[slot >> _WORD_BITS] & (_ALL << (slot & _SLOT_BITS))
        if word:
            return min(tick - (tick & 63) + lowest(word), until)
        tick += 64 - (tick & 63)
    return until


@inline
def has_members(const, state, tick):
    """Tell whether a link may await a packet in a tick."""
    slot = np.uint64(tick & const.mask)
    return state.bits[slot >> _WORD_BITS] >> (slot & _SLOT_BITS) & _ONE != 0


@inline
def gather(const, state, tick):
    """List the links that await a packet in a tick in ``state.members``; how many they are.

    Their records in ``state.link`` begin to be loaded.
    """
    slot = np.uint64(tick & const.mask)
    link = np.int64(state.slot[slot])
    state.slot[slot] = NOBODY
    state.bits[slot >> _WORD_BITS] &= ~(_ONE << (slot & _SLOT_BITS))
    count = np.int64(0)
    while link != NOBODY:
        state.members[count] = link
        count += 1
        prefetch(state.link, link)
        link = np.int64(state.after[link])
    return count


@inline
def line_up(members, scratch, count, seed, tick):
    """Put those who do something in a tick in the order of precedence.

    Where they are several, the precedence is put above their numbers. members: int64, the first ``count`` are used.
    scratch: int64 [2 * members + 1].
    """
    if count == 1:
        return
    for k in range(count):
        members[k] = precedence(seed, tick, members[k])
    if count > _FEW:
        _sort(members, scratch, count)
        return
    for i in range(1, count):
        for k in range(i, 0, -1):  # to exchange always is quicker than to mispredict whether
            low, high = min(members[k - 1], members[k]), max(members[k - 1], members[k])
            members[k - 1], members[k] = low, high


@device_function
def _sort(members, scratch, count):
    """Sort many by distributing them over as many buckets by what was drawn, which is even.

    The little left to do is done by insertion. members: int64, the first ``count`` are used. scratch: int64 [2 *
    members + 1].
    """
    ends, spread = scratch[: count + 1], scratch[count + 1 :]
    ends[:] = 0
    for k in range(count):
        ends[((members[k] >> 32) * count >> 31) + 1] += 1
    for k in range(count):
        ends[k + 1] += ends[k]
    for k in range(count):
        bucket = (members[k] >> 32) * count >> 31
        spread[ends[bucket]] = members[k]
        ends[bucket] += 1
    for k in range(count):
        key, place = spread[k], np.int64(k)
        while place > 0 and members[place - 1] > key:
            members[place] = members[place - 1]
            place -= 1
        members[place] = key
