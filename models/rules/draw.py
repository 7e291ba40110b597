# SPDX-License-Identifier: Apache-2.0
"""Counter-based random draws: ``draw(seed, stream, entity, counter)``.

The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
1, 2, 3, SC 2011, doi:10.1145/2063384.2063405), keyed by the seed, with the block counter
(counter low, counter high, entity, stream). A draw depends on nothing that was drawn before.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.core import cgutils
from numba.extending import intrinsic

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.jit.intrinsics import BaseContext, Context, Intrinsic, IRBuilder, Signature, Value, Values


class _Stream(NamedTuple):
    """One stream per purpose: draws of different streams never share a block.

    int64, not Python ints, of which Numba would compile one copy of every caller each.
    """

    ARRIVAL: np.int64 = np.int64(1)
    DESTINATION: np.int64 = np.int64(2)
    LENGTH: np.int64 = np.int64(3)
    ROUTE: np.int64 = np.int64(4)
    FLOW_HASH: np.int64 = np.int64(5)
    ARRIVAL_TAIL: np.int64 = np.int64(6)
    THINNING: np.int64 = np.int64(7)
    PATH_TIES: np.int64 = np.int64(8)
    PLACEMENT: np.int64 = np.int64(9)
    DEFLECT: np.int64 = np.int64(11)
    BURST: np.int64 = np.int64(12)
    SUBNET: np.int64 = np.int64(13)
    # Flows and queues. After each: the entity; what the counter counts.
    START: np.int64 = np.int64(32)  # subflow
    SUBFLOW_PATH: np.int64 = np.int64(33)  # group of subflows; those drawn before
    EARLY_DROP: np.int64 = np.int64(34)  # link; earlier decisions
    FLOW_SIZE: np.int64 = np.int64(35)  # flow
    TRIM: np.int64 = np.int64(48)  # link; how often it was full before
    ECN: np.int64 = np.int64(49)  # link; how often that was drawn before
    ROUND_MASK: np.int64 = np.int64(50)  # flow; rounds
    ENTROPY: np.int64 = np.int64(51)  # flow; how many were drawn before
    SALT: np.int64 = np.int64(52)  # switch
    SWITCH: np.int64 = np.int64(53)  # switch; how much it has drawn before
    CREDIT_RATE: np.int64 = np.int64(54)  # host; earlier adjustments of its rate
    TRANSPORT: np.int64 = np.int64(55)  # flow


Stream = _Stream()

_FACTORS = (0xD2511F53, 0xCD9E8D57)  # of the first and the third word
_STEPS = (0x9E3779B9, 0xBB67AE85)  # of the two words of the key, from round to round
_ROUNDS = 10
_LOW = uint64(0xFFFFFFFF)
_32 = uint64(32)


@intrinsic
def _rounds(typingctx: Context, key: types.Type, words: types.UniTuple) -> Intrinsic:
    """All rounds of one block or two: four words each, of which only the low 32 bits matter.

    key: two words. All multiplications of a round are elements of one vector.
    """
    vector = ir.VectorType(ir.IntType(64), words.count // 2)

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        def gather(elements: Values) -> Value:
            gathered = ir.Constant(vector, ir.Undefined)
            for i, element in enumerate(elements):
                gathered = builder.insert_element(gathered, element, ir.IntType(32)(i))
            return gathered

        def each(low: int, high: int) -> ir.Constant:
            return ir.Constant(vector, [low, high] * (vector.count // 2))

        low_half, factors, steps, half = each(0xFFFFFFFF, 0xFFFFFFFF), each(*_FACTORS), each(*_STEPS), each(32, 32)
        swapped = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [i ^ 1 for i in range(vector.count)])
        keys, input_words = (cgutils.unpack_tuple(builder, arg) for arg in args)
        even, odd, keys = gather(input_words[::2]), gather(input_words[1::2]), gather(list(keys) * (vector.count // 2))
        for _ in range(_ROUNDS):
            product = builder.mul(builder.and_(even, low_half), factors)
            product = builder.shuffle_vector(product, product, swapped)
            even = builder.xor(builder.lshr(product, half), builder.xor(odd, keys))
            odd, keys = product, builder.add(keys, steps)
        indices = [ir.IntType(32)(i) for i in range(vector.count)]
        output_words = [builder.extract_element(half, index) for index in indices for half in (even, odd)]
        return context.make_tuple(builder, signature.return_type, output_words)

    return words(key, words), codegen


@kernel
def _key_words(seed: Int) -> tuple[int, int]:
    """The two key words of a seed."""
    key = uint64(seed)
    return key, key >> _32


@kernel
def _counter_words(stream: Int, entity: Int, counter: Int) -> tuple[int, int, int, int]:
    """The four counter words of a block."""
    counter_word = uint64(counter)
    return counter_word, counter_word >> _32, uint64(entity), uint64(stream)


@kernel
def philox(seed: Int, stream: Int, entity: Int, counter: Int) -> tuple[int, int, int, int]:
    """Four independent 32-bit words as int64: the Philox4x32-10 block of these coordinates.

    Parameters
    ----------
    seed: 64 bits.
    stream: purpose of the draw, low 32 bits.
    entity: host, switch, link or flow, low 32 bits.
    counter: 64 bits.

    Returns
    -------
    Four words, int64.

    Source: Salmon, Moraes, Dror, Shaw, SC 2011, doi:10.1145/2063384.2063405.
    """
    x0, x1, x2, x3 = _rounds(_key_words(seed), _counter_words(stream, entity, counter))
    return _signed(x0, x1, x2, x3)


@device_function
def philox_out_of_line(seed: Int, stream: Int, entity: Int, counter: Int) -> tuple[int, int, int, int]:
    """The block of :func:`philox` for rare use: compiled code calls this function instead of inlining it.

    Parameters
    ----------
    seed, stream, entity, counter: as in :func:`philox`.
    """
    return philox(seed, stream, entity, counter)


@kernel
def draw_out_of_line(seed: Int, stream: Int, entity: Int, counter: Int) -> int:
    """The draw of :func:`draw` for rare use: compiled code calls it instead of inlining it.

    Parameters
    ----------
    seed, stream, entity, counter: as in :func:`philox`.
    """
    x0, x1, _, _ = philox_out_of_line(seed, stream, entity, counter)
    return uniform(x0, x1)


@kernel
def draw_with_block(
    seed: Int, entity: Int, stream: Int, counter: Int, other: Int, other_counter: Int
) -> tuple[int, tuple[int, int, int, int]]:
    """A draw and a block of the same entity, in the time of one.

    Parameters
    ----------
    seed: 64 bits.
    entity: of both.
    stream, counter: of the draw.
    other, other_counter: stream and counter of the block.

    Returns
    -------
    :func:`draw` of ``stream`` and ``counter``, and :func:`philox` of ``other`` and ``other_counter``.
    """
    words = _rounds(
        _key_words(seed), _counter_words(stream, entity, counter) + _counter_words(other, entity, other_counter)
    )
    x0, x1, x2, x3, y0, y1, y2, y3 = words
    low, high, _, _ = _signed(x0, x1, x2, x3)
    return uniform(low, high), _signed(y0, y1, y2, y3)


@kernel
def _signed(x0: int, x1: int, x2: int, x3: int) -> tuple[int, int, int, int]:
    """Make int64 of the words that the rounds leave, uint64, of which the low 32 bits mean something."""
    return np.int64(x0 & _LOW), np.int64(x1 & _LOW), np.int64(x2 & _LOW), np.int64(x3 & _LOW)


@kernel
def uniform(low: Int, high: Int) -> int:
    """Make a uniform integer in [0, 2**63) of two words of 32 bits, int64."""
    return ((high << 32) | low) & 0x7FFFFFFFFFFFFFFF


@kernel
def draw(seed: Int, stream: Int, entity: Int, counter: Int) -> int:
    """A uniform integer in [0, 2**63).

    Parameters
    ----------
    seed, stream, entity, counter: as in :func:`philox`.
    """
    x0, x1, _, _ = philox(seed, stream, entity, counter)
    return uniform(x0, x1)


@kernel
def below(word: Int, n: Int) -> int:
    """Map a uniform 63-bit ``word`` to 0 .. n - 1, where n is at most 2**31 (bias below n / 2**31)."""
    return ((word >> 31) * n) >> 32


@kernel
def below_wide(word: Int, n: Int) -> int:
    """Map a uniform 63-bit ``word`` to 0 .. n - 1, where n is at most 2**61: word * n / 2**63 in limbs of 31 bits.

    Up to 2**31 it is :func:`below`.
    """
    mask = np.int64(0x7FFFFFFF)
    high, low = word >> 31, word & mask
    quotient, rest = n >> 31, n & mask
    carried = ((high * rest) >> 31) + ((low * quotient) >> 31)
    return (high * quotient + carried) >> 1


@kernel
def paired(major: Int, minor: Int, bits: Int) -> int:
    """A counter for :func:`draw` from two numbers below 2**32. Different pairs give different counters.

    It is major * 2**bits + minor for ``minor`` below 2**bits.

    Parameters
    ----------
    major: first number.
    minor: second number.
    bits: typical bits of ``minor``.
    """
    return (minor >> bits) << (bits + 32) | major << bits | minor & ((1 << bits) - 1)
