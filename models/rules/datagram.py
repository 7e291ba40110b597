# SPDX-License-Identifier: Apache-2.0
"""Draws and small decisions of the datagram discipline."""

import numpy as np
from numba import uint64

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import draw

# Streams of draws, beside those of :mod:`flitlab.models.rules.draw`.
START = np.int64(32)
SUBFLOW_PATH = np.int64(33)
EARLY_DROP = np.int64(34)
FLOW_SIZE = np.int64(35)

RATIO_BITS = 16
"""The time a channel takes for a byte is in units of 2**-16 ticks."""

NEARLY_FULL = 3
"""Packets of room below which a queue with random drop may drop."""

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
    """Ticks for the rest of a packet whose channel goes at another rate from now on.

    rest: ticks that were left at the rate before. before, ratio: ticks of a byte at either, times 2**RATIO_BITS. size:
    bytes of the whole packet, which takes no longer.
    """
    return min((rest * ratio + before - 1) // before, service_ticks(ratio, size))


@kernel
def precedence(seed: Int, tick: Int, number: Int) -> int:
    """What decides who of those that do something in a tick comes first: the least, which ends in its number (32 bits).

    The 31 bits above are drawn anew for every tick, so that of two who always come together to a queue each is first
    half of the time. As this is asked for more often than anything else, they are no block of Philox, but the mix of
    SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014,
    doi:10.1145/2714064.2660195).
    """
    word = uint64(seed) + uint64(tick) * _GAMMA + uint64(number) * _DELTA
    word = (word ^ (word >> _30)) * _MIX1
    word = (word ^ (word >> _27)) * _MIX2
    return np.int64(word >> _33) << 32 | number


@kernel
def drops_early(seed: Int, link: Int, decision: Int) -> bool:
    """Whether a nearly full queue drops the packet of its so-many-th decision."""
    return draw(seed, EARLY_DROP, link, decision) < _ONE_IN_TEN
