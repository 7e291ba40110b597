# SPDX-License-Identifier: Apache-2.0
"""Counter-based random draws: ``draw(seed, stream, entity, counter)``.

The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
1, 2, 3, SC 2011, doi:10.1145/2063384.2063405), keyed by the seed, with the block counter
(counter low, counter high, entity, stream). A draw depends on nothing that was drawn before.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

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

_FACTORS = (0xD2511F53, 0xCD9E8D57)  # of the first and the third word
_STEPS = (0x9E3779B9, 0xBB67AE85)  # of the two words of the key, from round to round
_ROUNDS = 10
_LOW = uint64(0xFFFFFFFF)
_32 = uint64(32)
_PAIR = ir.VectorType(ir.IntType(64), 2)


@intrinsic
def _rounds(typingctx: Any, x0: Any, x1: Any, x2: Any, x3: Any, k0: Any, k1: Any) -> Any:
    """All rounds of a block: its four words, of which only the low 32 bits mean anything.

    Both multiplications of a round are made at once, as the two halves of one vector.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def pair(low: Any, high: Any) -> Any:
            half = builder.insert_element(ir.Constant(_PAIR, ir.Undefined), low, ir.IntType(32)(0))
            return builder.insert_element(half, high, ir.IntType(32)(1))

        def each(low: int, high: int) -> Any:
            return ir.Constant(_PAIR, [low, high])

        low_half, factors, steps, half = each(0xFFFFFFFF, 0xFFFFFFFF), each(*_FACTORS), each(*_STEPS), each(32, 32)
        swapped = ir.Constant(ir.VectorType(ir.IntType(32), 2), [1, 0])
        even, odd, key = pair(args[0], args[2]), pair(args[1], args[3]), pair(args[4], args[5])
        for _ in range(_ROUNDS):
            product = builder.mul(builder.and_(even, low_half), factors)
            product = builder.shuffle_vector(product, product, swapped)
            even = builder.xor(builder.lshr(product, half), builder.xor(odd, key))
            odd, key = product, builder.add(key, steps)
        words = [builder.extract_element(words, ir.IntType(32)(i)) for i in (0, 1) for words in (even, odd)]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 4)(*[types.uint64] * 6), codegen


@kernel
def philox(seed: Int, stream: Int, entity: Int, counter: Int) -> tuple[int, int, int, int]:
    """Four independent 32-bit words as int64: the Philox4x32-10 block of these coordinates.

    seed, counter: 64 bits each. stream, entity: the low 32 bits each.
    """
    place, key = uint64(counter), uint64(seed)
    x0, x1, x2, x3 = _rounds(place, place >> _32, uint64(entity), uint64(stream), key, key >> _32)
    return np.int64(x0 & _LOW), np.int64(x1 & _LOW), np.int64(x2 & _LOW), np.int64(x3 & _LOW)


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
