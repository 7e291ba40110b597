# SPDX-License-Identifier: Apache-2.0
"""Draws and small decisions of the switching mode datagram."""

import numpy as np
from numba import uint64

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import Stream, draw

RATIO_BITS = 16
"""The time of a byte on a channel is in units of 2**-16 ticks."""

NEARLY_FULL = 3
"""Packets of free queue space below which a queue with random drop may drop."""

_GAMMA, _DELTA = uint64(0x9E3779B97F4A7C15), uint64(0xD1B54A32D192ED03)
_MIX1, _MIX2 = uint64(0xBF58476D1CE4E5B9), uint64(0x94D049BB133111EB)
_27, _30, _33 = uint64(27), uint64(30), uint64(33)

_ONE_IN_TEN = np.int64((1 << 63) // 10)


@kernel
def service_ticks(ratio: Int, size: Int) -> int:
    """Ticks that a channel takes to send ``size`` bytes."""
    return (size * ratio + 65535) >> 16


@kernel
def rest_ticks(rest: Int, before: Int, ratio: Int, size: Int) -> int:
    """Ticks for the rest of a packet whose channel changes its rate.

    Parameters
    ----------
    rest: remaining ticks at the old rate.
    before: old ticks per byte, times 2**RATIO_BITS.
    ratio: new ticks per byte, times 2**RATIO_BITS.
    size: bytes of the whole packet, whose time is the maximum.
    """
    return min((rest * ratio + before - 1) // before, service_ticks(ratio, size))


@kernel
def precedence(seed: Int, tick: Int, number: Int) -> int:
    """Random order of simultaneous events at a tick: the least value goes first.

    The upper 31 bits are drawn for every tick, so of two packets that always arrive together each is first half of the
    time. The value ends in the 32 bits of ``number``. It is the mix of SplitMix64 instead of Philox, for speed.

    Parameters
    ----------
    seed: of the run.
    tick: the tick.
    number: of the entity.

    Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014,
    doi:10.1145/2714064.2660195.
    """
    word = uint64(seed) + uint64(tick) * _GAMMA + uint64(number) * _DELTA
    word = (word ^ (word >> _30)) * _MIX1
    word = (word ^ (word >> _27)) * _MIX2
    return np.int64(word >> _33) << 32 | number


@kernel
def drops_early(seed: Int, link: Int, decision: Int) -> bool:
    """Whether a nearly full queue drops a packet.

    Parameters
    ----------
    seed: of the run.
    link: the link of the queue.
    decision: index of the decision at this link.
    """
    return draw(seed, Stream.EARLY_DROP, link, decision) < _ONE_IN_TEN
