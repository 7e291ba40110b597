# SPDX-License-Identifier: Apache-2.0
"""Counter-based random draws: ``draw(seed, stream, entity, counter)``.

The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
1, 2, 3, SC 2011, doi:10.1145/2063384.2063405), keyed by the seed, with the block counter
(counter low, counter high, entity, stream). A draw depends on nothing that was drawn before.
"""

import numpy as np
from numba import uint64

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel

# One stream for each purpose: draws of different streams never share a block. (int64, not
# Python ints, of which Numba would compile one copy of every caller each.)
ARRIVAL = np.int64(1)
DESTINATION = np.int64(2)
LENGTH = np.int64(3)
ROUTE = np.int64(4)
FLOW_HASH = np.int64(5)
ARRIVAL_TAIL = np.int64(6)
THINNING = np.int64(7)
PATH_TIES = np.int64(8)
PLACEMENT = np.int64(9)

_M0 = uint64(0xD2511F53)
_M1 = uint64(0xCD9E8D57)
_W0 = uint64(0x9E3779B9)
_W1 = uint64(0xBB67AE85)
_LOW = uint64(0xFFFFFFFF)
_32 = uint64(32)


@kernel
def philox(seed: Int, stream: Int, entity: Int, counter: Int) -> tuple[int, int, int, int]:
    """Four independent 32-bit words as int64: the Philox4x32-10 block of these coordinates.

    seed, counter: 64 bits each. stream, entity: the low 32 bits each.
    """
    x0 = uint64(counter) & _LOW
    x1 = uint64(counter) >> _32
    x2 = uint64(entity) & _LOW
    x3 = uint64(stream) & _LOW
    k0 = uint64(seed) & _LOW
    k1 = uint64(seed) >> _32
    for _ in range(10):
        p0 = _M0 * x0
        p1 = _M1 * x2
        x0, x1, x2, x3 = (p1 >> _32) ^ x1 ^ k0, p1 & _LOW, (p0 >> _32) ^ x3 ^ k1, p0 & _LOW
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    return np.int64(x0), np.int64(x1), np.int64(x2), np.int64(x3)


@kernel
def draw(seed: Int, stream: Int, entity: Int, counter: Int) -> int:
    """A uniform integer in [0, 2**63)."""
    x0, x1, _, _ = philox(seed, stream, entity, counter)
    return ((x1 << 32) | x0) & 0x7FFFFFFFFFFFFFFF


@kernel
def below(word: Int, n: Int) -> int:
    """Map a uniform 63-bit ``word`` to 0 .. n - 1 (bias below n / 2**31)."""
    return ((word >> 31) * n) >> 32


@kernel
def paired(major: Int, minor: Int, bits: Int) -> int:
    """A counter for :func:`draw` of two numbers below 2**32: no other two of them have the same.

    It is major * 2**bits + minor for all ``minor`` below 2**bits.
    """
    return (minor >> bits) << (bits + 32) | major << bits | minor & ((1 << bits) - 1)
