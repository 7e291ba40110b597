# SPDX-License-Identifier: Apache-2.0
"""A timing wheel of bits: which members (outputs, hosts, switches) to evaluate at which tick.

The bucket of a tick has a bit for each member and, before these, a bit for each word of them that is not empty.
Scheduling a member twice for a tick has no effect. Ticks beyond the horizon cannot be scheduled.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Masks
from flitlab.models.jit import kernel
from flitlab.models.rules.bits import lowest, popcount
from flitlab.sim.engines.compiled.memory import prefetch

_MAX_BITS = 1 << 20
"""Bits from which on a wheel is not made longer."""


class TimingWheel(NamedTuple):
    """Bits of a timing wheel.

    words: uint64; per tick the summary bits, then the member bits. stride: words of a tick. summary: words of summary
    bits. mask: ticks - 1.
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
    """Choose the horizon of a wheel, a power of two, for members that wait for ``mean_gap`` ticks on average.

    A member that waits longer than the horizon is evaluated in vain in between; a wheel that is too large misses the
    cache.

    Parameters
    ----------
    ticks: least horizon, a power of two.
    members: how many.
    mean_gap: ticks.
    """
    while ticks < 3 * mean_gap and ticks * members < _MAX_BITS:
        ticks *= 2
    return ticks


@kernel
def _bucket(wheel, tick):
    """Return the first word of a tick's bucket."""
    return np.uint64((tick & wheel.mask) * wheel.stride)


@kernel
def schedule(wheel, member, tick):
    """Schedule a member at a tick.

    Parameters
    ----------
    wheel: of the members.
    member: integer.
    tick: int64, less than the horizon from now.
    """
    bucket, index, one = _bucket(wheel, tick), np.uint64(member), np.uint64(1)
    word = index >> np.uint64(6)
    wheel.words[bucket + np.uint64(wheel.summary) + word] |= one << (index & np.uint64(63))
    wheel.words[bucket + (word >> np.uint64(6))] |= one << (word & np.uint64(63))


@kernel
def schedule_all(wheel, members, tick):
    """Schedule members at a tick.

    Parameters
    ----------
    wheel: of the members.
    members: integer array.
    tick: int64.
    """
    for i in range(len(members)):
        schedule(wheel, members[i], tick)


@kernel
def prefetch_bucket(wheel, member, tick):
    """Prefetch the word with a member's bit at a tick.

    Parameters
    ----------
    wheel: of the members.
    member: int64.
    tick: int64.
    """
    prefetch(wheel.words, np.int64(_bucket(wheel, tick)) + wheel.summary + (member >> 6))


@kernel
def drain(wheel, tick, members):
    """Empty the bucket of a tick, and return the number of its members.

    Parameters
    ----------
    wheel: of the members.
    tick: int64.
    members: integer array with room for one more than there are members; they are listed ascending.
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
            while count < end:  # two at a time, which saves mispredicted branches
                members[count] = (word << np.uint64(6)) + np.uint64(lowest(bits))
                bits &= bits - one
                members[count + one] = (word << np.uint64(6)) + np.uint64(lowest(bits))
                bits &= bits - one
                count += np.uint64(2)
            count = end
    return np.int64(count)
