# SPDX-License-Identifier: Apache-2.0
"""A timing wheel of bits: who is to be looked at, at which tick.

Slot ``tick & mask`` holds one bit per member and, above it, one bit per word that is not empty.
Waking somebody twice for the same tick costs nothing; no tick further ahead than the wheel is long
can be asked for.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.jit import kernel
from flitlab.models.rules.bits import lowest

_LARGEST = 1 << 20
"""Bits of a wheel that is not made any longer."""


class Wheel(NamedTuple):
    """The bits of a timing wheel, and which of its words are not empty.

    bits: uint64 [ticks, words]. summary: uint64 [ticks, words / 64]. mask: ticks - 1.
    """

    bits: np.ndarray
    summary: np.ndarray
    mask: int


def make_wheel(members: int, ticks: int) -> Wheel:
    """Make an empty wheel for members 0 .. members - 1 over ``ticks``, a power of two."""
    words = max(1, -(-members // 64))
    return Wheel(
        bits=np.zeros((ticks, words), np.uint64),
        summary=np.zeros((ticks, -(-words // 64)), np.uint64),
        mask=ticks - 1,
    )


def ticks_for(ticks: int, members: int, gap: float) -> int:
    """Return for how many ticks, a power of two, a wheel of members that are to be looked at after a gap is made.

    Who waits for longer is looked at in vain before, unless the wheel is long enough for most of them; but one that is
    too large does not fit into caches. ticks: that are needed in any case, a power of two. gap: mean, in ticks.
    """
    while ticks < 1.5 * gap and ticks * members < _LARGEST:
        ticks *= 2
    return ticks


@kernel
def wake(wheel, member, tick):
    """Set a member's bit at a tick."""
    slot = np.uint64(tick & wheel.mask)
    who = np.uint64(member)
    one = np.uint64(1)
    wheel.bits[slot, who >> np.uint64(6)] |= one << (who & np.uint64(63))
    wheel.summary[slot, who >> np.uint64(12)] |= one << ((who >> np.uint64(6)) & np.uint64(63))


@kernel
def drain(wheel, tick, members):
    """Clear a tick's bits, and list the members that had one, ascending, in ``members``; how many they are."""
    slot = np.uint64(tick & wheel.mask)
    count = np.uint64(0)
    for block in range(wheel.summary.shape[1]):
        words = wheel.summary[slot, block]
        wheel.summary[slot, block] = 0
        while words:
            word = block * 64 + lowest(words)
            words &= words - np.uint64(1)
            bits = wheel.bits[slot, word]
            wheel.bits[slot, word] = 0
            while bits:
                members[count] = word * 64 + lowest(bits)
                bits &= bits - np.uint64(1)
                count += np.uint64(1)
    return np.int64(count)
