# SPDX-License-Identifier: Apache-2.0
"""A timing wheel of bits: who is to be looked at, at which tick.

Slot ``tick & mask`` holds one bit per member and, before these, one bit per word of them that is not empty.
Waking somebody twice for the same tick costs nothing; no tick further ahead than the wheel is long
can be asked for.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Masks
from flitlab.models.jit import kernel
from flitlab.models.rules.bits import lowest, popcount
from flitlab.sim.engines.compiled.memory import prefetch

_MAX_BITS = 1 << 20
"""Bits of a wheel that is not made any longer."""


class TimingWheel(NamedTuple):
    """The bits of a timing wheel, and which of its words are not empty.

    words: uint64, for each tick a bit for each of the words of bits behind, and those. stride: words of a tick.
    summary: how many of them come before the bits. mask: ticks - 1.
    """

    words: Masks
    stride: int
    summary: int
    mask: int


def make_timing_wheel(members: int, ticks: int) -> TimingWheel:
    """Make an empty wheel for members 0 .. members - 1 over ``ticks``, a power of two."""
    bits = max(1, -(-members // 64))
    summary = -(-bits // 64)
    return TimingWheel(
        words=np.zeros(ticks * (summary + bits), np.uint64), stride=summary + bits, summary=summary, mask=ticks - 1
    )


def wheel_ticks(ticks: int, members: int, mean_gap: float) -> int:
    """Return for how many ticks, a power of two, a wheel of members that are to be looked at after a gap is made.

    Who waits for longer is looked at in vain before, unless the wheel is long enough for most of them; but one that is
    too large does not fit into caches. ticks: that are needed in any case, a power of two. gap: mean, in ticks.
    """
    while ticks < 3 * mean_gap and ticks * members < _MAX_BITS:
        ticks *= 2
    return ticks


@kernel
def _bucket(wheel, tick):
    """Find the first word of a tick."""
    return np.uint64((tick & wheel.mask) * wheel.stride)


@kernel
def schedule(wheel, member, tick):
    """Set a member's bit at a tick."""
    bucket, index, one = _bucket(wheel, tick), np.uint64(member), np.uint64(1)
    word = index >> np.uint64(6)
    wheel.words[bucket + np.uint64(wheel.summary) + word] |= one << (index & np.uint64(63))
    wheel.words[bucket + (word >> np.uint64(6))] |= one << (word & np.uint64(63))


@kernel
def schedule_all(wheel, members, tick):
    """Set the bits of many members at a tick."""
    for i in range(len(members)):
        schedule(wheel, members[i], tick)


@kernel
def prefetch_bucket(wheel, member, tick):
    """Begin to load the word that has a member's bit at a tick."""
    prefetch(wheel.words, np.int64(_bucket(wheel, tick)) + wheel.summary + (member >> 6))


@kernel
def drain(wheel, tick, members):
    """Clear a tick's bits, and list the members that had one, ascending, in ``members``; how many they are.

    members: with room for one more than there can be.
    """
    bucket, count, one = _bucket(wheel, tick), np.uint64(0), np.uint64(1)
    first = bucket + np.uint64(wheel.summary)
    for block in range(wheel.summary):
        words = wheel.words[bucket + np.uint64(block)]
        wheel.words[bucket + np.uint64(block)] = 0
        while words:
            word = np.uint64(block * 64 + lowest(words))
            words &= words - one
            bits = wheel.words[first + word]
            wheel.words[first + word] = 0
            end = count + np.uint64(popcount(bits))
            while count < end:  # two at a time: whether there is one or are two is what nobody foresees
                members[count] = (word << np.uint64(6)) + np.uint64(lowest(bits))
                bits &= bits - one
                members[count + one] = (word << np.uint64(6)) + np.uint64(lowest(bits))
                bits &= bits - one
                count += np.uint64(2)
            count = end
    return np.int64(count)
