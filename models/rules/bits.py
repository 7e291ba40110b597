# SPDX-License-Identifier: Apache-2.0
"""Sets of output ports: a 64-bit mask, or in a wide network a tuple of two, low and high.

A network is wide if a switch has more than 64 channels to other switches. Operations are compiled for either type:
the code for one mask has no trace of the other.
"""

from collections.abc import Callable, Iterable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from flitlab.models.arrays import Int, PortSet
from flitlab.models.jit import kernel
from flitlab.models.jit.intrinsics import BaseContext, Context, Intrinsic, IRBuilder, Signature, Value, Values

WORD = 64
"""Ports of a mask."""

_WORD, _WIDE = ir.IntType(WORD), ir.IntType(2 * WORD)


def integer_of(builder: IRBuilder, ports: Value) -> Value:
    """A set of ports in compiled code as one LLVM integer, of 64 or 128 bits."""
    if ports.type == _WORD:
        return ports
    low, high = (builder.zext(builder.extract_value(ports, k), _WIDE) for k in range(2))
    return builder.or_(builder.shl(high, _WIDE(WORD)), low)


def ports_of(builder: IRBuilder, integer: Value) -> Value:
    """A set of ports in compiled code from one LLVM integer, of 64 or 128 bits."""
    if integer.type == _WORD:
        return integer
    pair = ir.Constant(ir.ArrayType(_WORD, 2), ir.Undefined)
    for k in range(2):
        word = builder.trunc(builder.lshr(integer, _WIDE(WORD * k)), _WORD)
        pair = builder.insert_value(pair, word, k)
    return pair


def _operation(
    ports: types.Type, operate: Callable[..., Value], counts: bool = False, with_port: bool = False
) -> Intrinsic:
    """An operation on a set of ports as Numba takes it: its signature and its code.

    ports: the type of the set. operate: writes the code for an LLVM integer, and a port of the same width if
    ``with_port``. counts: whether the result is a number, and not another set.
    """
    own = types.UniTuple(types.uint64, 2) if isinstance(ports, types.BaseTuple) else types.uint64

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        integer = integer_of(builder, args[0])
        port = [args[1] if integer.type == _WORD else builder.zext(args[1], _WIDE)] if with_port else []
        result = operate(builder, integer, *port)
        if not counts:
            return ports_of(builder, result)
        return result if result.type == _WORD else builder.trunc(result, _WORD)

    return (types.int64 if counts else own)(own, *[types.uint64] * with_port), codegen


@intrinsic
def _population(typingctx: Context, ports: types.Type) -> Intrinsic:
    return _operation(ports, lambda builder, word: builder.ctpop(word), counts=True)


@intrinsic
def _trailing_zeros(typingctx: Context, ports: types.Type) -> Intrinsic:
    return _operation(ports, lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 0)), counts=True)


@intrinsic
def _without_lowest(typingctx: Context, ports: types.Type) -> Intrinsic:
    return _operation(ports, lambda builder, word: builder.and_(word, builder.sub(word, word.type(1))))


@intrinsic
def _has(typingctx: Context, ports: types.Type, port: types.Type) -> Intrinsic:
    def bit(builder: IRBuilder, word: Value, port: Value) -> Value:
        return builder.and_(builder.lshr(word, port), word.type(1))

    return _operation(ports, bit, counts=True, with_port=True)


@intrinsic
def _with_port(typingctx: Context, ports: types.Type, port: types.Type) -> Intrinsic:
    def joined(builder: IRBuilder, word: Value, port: Value) -> Value:
        return builder.or_(word, builder.shl(word.type(1), port))

    return _operation(ports, joined, with_port=True)


@intrinsic
def _without_port(typingctx: Context, ports: types.Type, port: types.Type) -> Intrinsic:
    def rest(builder: IRBuilder, word: Value, port: Value) -> Value:
        return builder.and_(word, builder.not_(builder.shl(word.type(1), port)))

    return _operation(ports, rest, with_port=True)


@intrinsic
def _same(typingctx: Context, ports: types.Type) -> Intrinsic:
    return _operation(ports, lambda builder, word: word)


@intrinsic
def _empty(typingctx: Context, ports: types.Type) -> Intrinsic:
    return _operation(ports, lambda builder, word: word.type(0))


@intrinsic
def _is_empty(typingctx: Context, ports: types.Type) -> Intrinsic:
    def compare(builder: IRBuilder, word: Value) -> Value:
        return builder.zext(builder.icmp_unsigned("==", word, word.type(0)), _WORD)

    return _operation(ports, compare, counts=True)


@kernel
def popcount(mask: Int | PortSet) -> int:
    """Number of set bits: of ports in a set."""
    return _population(mask)


@kernel
def lowest(mask: Int | PortSet) -> int:
    """Index of the lowest set bit; the number of bits for an empty mask."""
    return _trailing_zeros(mask)


@kernel
def select(mask: Int | PortSet, index: int) -> int:
    """Position of the set bit with ``index`` set bits below it (index < popcount)."""
    rest = _same(mask)
    for _ in range(index):
        rest = _without_lowest(rest)
    return _trailing_zeros(rest)


@kernel
def without_lowest(ports: PortSet) -> PortSet:
    """A set of ports without its lowest one; an empty set remains empty."""
    return _without_lowest(ports)


@kernel
def contains(ports: PortSet, port: Int) -> bool:
    """Whether a port is in a set."""
    return _has(ports, port) != 0


@kernel
def with_port(ports: PortSet, port: Int) -> PortSet:
    """A set of ports with one more, or the same if it has the port."""
    return _with_port(ports, port)


@kernel
def without_port(ports: PortSet, port: Int) -> PortSet:
    """A set of ports without one of them, or the same if it lacks the port."""
    return _without_port(ports, port)


@kernel
def empty_set(ports: PortSet) -> PortSet:
    """The empty set, of as many bits as ``ports``."""
    return _empty(ports)


@kernel
def is_empty(ports: PortSet) -> bool:
    """Whether a set of ports has none."""
    return _is_empty(ports) != 0


def port_set(ports: Iterable[int]) -> PortSet:
    """The set of some ports: a mask if all are below 64, else two."""
    bits = sum(1 << port for port in ports)
    low, high = np.uint64(bits & (1 << WORD) - 1), np.uint64(bits >> WORD)
    return (low, high) if high else low


def port_list(ports: PortSet) -> list[int]:
    """The ports of a set, ascending."""
    words = [int(word) for word in (ports if isinstance(ports, tuple) else (ports,))]
    bits = sum(word << WORD * k for k, word in enumerate(words))
    return [port for port in range(bits.bit_length()) if bits >> port & 1]
