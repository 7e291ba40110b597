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

_LARGEST = 1 << 20
"""Bits of a wheel that is not made any longer."""


class Wheel(NamedTuple):
    """The bits of a timing wheel, and which of its words are not empty.

    words: uint64, for each tick a bit for each of the words of bits behind, and those. stride: words of a tick.
    summary: how many of them come before the bits. mask: ticks - 1.
    """

    words: Masks
    stride: int
    summary: int
    mask: int


def make_wheel(members: int, ticks: int) -> Wheel:
    """Make an empty wheel for members 0 .. members - 1 over ``ticks``, a power of two."""
    bits = max(1, -(-members // 64))
    summary = -(-bits // 64)
    return Wheel(
        words=np.zeros(ticks * (summary + bits), np.uint64), stride=summary + bits, summary=summary, mask=ticks - 1
    )


def ticks_for(ticks: int, members: int, gap: float) -> int:
    """Return for how many ticks, a power of two, a wheel of members that are to be looked at after a gap is made.

    Who waits for longer is looked at in vain before, unless the wheel is long enough for most of them; but one that is
    too large does not fit into caches. ticks: that are needed in any case, a power of two. gap: mean, in ticks.
    """
    while ticks < 3 * gap and ticks * members < _LARGEST:
        ticks *= 2
    return ticks


@kernel
def _slot(wheel, tick):
    """Find the first word of a tick."""
    return np.uint64((tick & wheel.mask) * wheel.stride)


@kernel
def wake(wheel, member, tick):
    """Set a member's bit at a tick."""
    slot, who, one = _slot(wheel, tick), np.uint64(member), np.uint64(1)
    word = who >> np.uint64(6)
    wheel.words[slot + np.uint64(wheel.summary) + word] |= one << (who & np.uint64(63))
    wheel.words[slot + (word >> np.uint64(6))] |= one << (word & np.uint64(63))


@kernel
def wake_all(wheel, members, tick):
    """Set the bits of many members at a tick."""
    for i in range(len(members)):
        wake(wheel, members[i], tick)


@kernel
def ask_for_bit(wheel, member, tick):
    """Begin to load the word that has a member's bit at a tick."""
    prefetch(wheel.words, np.int64(_slot(wheel, tick)) + wheel.summary + (member >> 6))


@kernel
def drain(wheel, tick, members):
    """Clear a tick's bits, and list the members that had one, ascending, in ``members``; how many they are.

    members: with room for one more than there can be.
    """
    slot, count, one = _slot(wheel, tick), np.uint64(0), np.uint64(1)
    first = slot + np.uint64(wheel.summary)
    for block in range(wheel.summary):
        words = wheel.words[slot + np.uint64(block)]
        wheel.words[slot + np.uint64(block)] = 0
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
