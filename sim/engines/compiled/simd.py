# SPDX-License-Identifier: Apache-2.0
"""SIMD operations that Numba does not generate by itself.

Arrays, and the vectors in them, begin with a cache line (:func:`flitlab.sim.engines.compiled.memory.aligned`).
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from flitlab.models.jit.intrinsics import BaseContext, Context, Intrinsic, IRBuilder, Signature, Value, Values

KEYS_PER_VECTOR = 16
"""Int64 keys per vector operation."""

RATES_PER_VECTOR = 8
"""Float64 rates per vector operation."""

_INT1, _INT32, _INT64, _DOUBLE = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.DoubleType()
_KEYS, _NUMBERS = ir.VectorType(_INT64, KEYS_PER_VECTOR), ir.VectorType(_DOUBLE, RATES_PER_VECTOR)


def _load(
    context: BaseContext, builder: IRBuilder, array_type: types.Type, array: Value, start: Value, vector: ir.VectorType
) -> Value:
    """Load a vector from an array, from index ``start`` on."""
    view = context.make_array(array_type)(context, builder, array)
    block = builder.bitcast(builder.gep(view.data, [start]), vector.as_pointer())
    return builder.load(block, align=vector.count * (4 if vector.element == _INT32 else 8))


def _broadcast(builder: IRBuilder, number: Value, vector: ir.VectorType) -> Value:
    """Broadcast a number to a vector."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, _INT32(0))
    return builder.shuffle_vector(
        first, undefined, ir.Constant(ir.VectorType(_INT32, vector.count), [0] * vector.count)
    )


def _reduce(builder: IRBuilder, reduction: str, vector: Value, *start: Value, flags: tuple[str, ...] = ()) -> Value:
    """Reduce a vector to a number by one of LLVM's reductions."""
    signature_type = ir.FunctionType(vector.type.element, [*(it.type for it in start), vector.type])
    suffix = f"v{vector.type.count}{'f64' if vector.type.element == _DOUBLE else 'i64'}"
    function = builder.module.declare_intrinsic(f"llvm.vector.reduce.{reduction}.{suffix}", (), signature_type)
    return builder.call(function, [*start, vector], fastmath=flags)


@intrinsic
def minimum(typingctx: Context, array: types.Type, start: types.Type) -> Intrinsic:
    """Return the smallest of ``KEYS_PER_VECTOR`` int64s from ``start`` on."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        return _reduce(builder, "smin", _load(context, builder, signature.args[0], args[0], args[1], _KEYS))

    return types.int64(array, types.int64), codegen


@intrinsic
def minimum_with(
    typingctx: Context, array: types.Type, start: types.Type, position: types.Type, number: types.Type
) -> Intrinsic:
    """Return what :func:`minimum` would if ``number`` were at a position of the vector.

    The number need not be stored and loaded again first.

    Parameters
    ----------
    array: int64, aligned.
    start: int64, a multiple of the vector length.
    position: int64, in the vector.
    number: int64.
    """

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        keys = _load(context, builder, signature.args[0], args[0], args[1], _KEYS)
        return _reduce(builder, "smin", builder.insert_element(keys, args[3], args[2]))

    return types.int64(array, types.int64, types.int64, types.int64), codegen


@intrinsic
def index_of(typingctx: Context, array: types.Type, start: types.Type, number: types.Type) -> Intrinsic:
    """Return the index of the first of ``KEYS_PER_VECTOR`` int64s from ``start`` on that equals ``number``.

    Parameters
    ----------
    array: int64, aligned.
    start: int64, a multiple of the vector length.
    number: int64, one of the vector's.
    """

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        keys = _load(context, builder, signature.args[0], args[0], args[1], _KEYS)
        equal = builder.bitcast(
            builder.icmp_signed("==", keys, _broadcast(builder, args[2], _KEYS)), ir.IntType(KEYS_PER_VECTOR)
        )
        return builder.add(args[1], builder.cttz(builder.zext(equal, _INT64), _INT1(1)))

    return types.int64(array, types.int64, types.int64), codegen


def _rates_of(
    context: BaseContext, builder: IRBuilder, signature: Signature, rate: Value, member: Value, start: Value
) -> Value:
    """Gather the rates of ``RATES_PER_VECTOR`` members; rate, member: the first two arguments."""
    members = _load(context, builder, signature.args[1], member, start, ir.VectorType(_INT32, RATES_PER_VECTOR))
    view = context.make_array(signature.args[0])(context, builder, rate)
    rates = ir.Constant(_NUMBERS, ir.Undefined)
    for position in range(RATES_PER_VECTOR):
        member_index = builder.zext(builder.extract_element(members, _INT32(position)), _INT64)
        rates = builder.insert_element(rates, builder.load(builder.gep(view.data, [member_index])), _INT32(position))
    return rates


@intrinsic
def faster_than(
    typingctx: Context, rate: types.Type, member: types.Type, start: types.Type, limit: types.Type
) -> Intrinsic:
    """Return which of ``RATES_PER_VECTOR`` members from ``start`` on have a rate above ``limit``, a bit each.

    Parameters
    ----------
    rate: float64, by member.
    member: int32, aligned.
    start: int64, a multiple of the vector length.
    limit: float64.
    """

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        rates = _rates_of(context, builder, signature, args[0], args[1], args[2])
        fast = builder.fcmp_ordered(">", rates, _broadcast(builder, args[3], _NUMBERS))
        return builder.zext(builder.bitcast(fast, ir.IntType(RATES_PER_VECTOR)), _INT64)

    return types.int64(rate, member, types.int64, types.float64), codegen


@intrinsic
def load_at_rate(
    typingctx: Context,
    rate: types.Type,
    member: types.Type,
    share: types.Type,
    begin: types.Type,
    end: types.Type,
    rate_reached: types.Type,
    level: types.Type,
) -> Intrinsic:
    """Return the load of a channel's members when its fair rate has reached a value.

    Parameters
    ----------
    rate: float64, by message: its present rate.
    member: int32, share: float64, the messages of the channel and their shares, from ``begin`` to ``end`` - 1, which
    are whole vectors.
    rate_reached: members with at most this rate keep theirs.
    level: members with at least this rate rise on.

    Returns
    -------
    (load of the members that keep their rate, total share of those that rise, least rate between ``rate_reached`` and
    ``level``, inf if there is none).
    """

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        _, _, _, first, last, reached_at, level_at = args
        zeros, infinities = (
            ir.Constant(_NUMBERS, [0.0] * RATES_PER_VECTOR),
            ir.Constant(_NUMBERS, [float("inf")] * RATES_PER_VECTOR),
        )
        sums = [cgutils.alloca_once_value(builder, it) for it in (zeros, zeros, infinities)]
        limits = _broadcast(builder, reached_at, _NUMBERS), _broadcast(builder, level_at, _NUMBERS)
        with cgutils.for_range_slice(builder, first, last, _INT64(RATES_PER_VECTOR), _INT64) as (start, _):
            rates = _rates_of(context, builder, signature, args[0], args[1], start)
            shares = _load(context, builder, signature.args[2], args[2], start, _NUMBERS)
            held = builder.fcmp_ordered("<", rates, limits[1])
            stopped = builder.and_(held, builder.fcmp_ordered("<=", rates, limits[0]))
            fixed_load, rising_share, next_rate = (builder.load(it) for it in sums)
            builder.store(
                builder.fadd(fixed_load, builder.select(stopped, builder.fmul(shares, rates), zeros)), sums[0]
            )
            builder.store(builder.fadd(rising_share, builder.select(stopped, zeros, shares)), sums[1])
            later = builder.and_(builder.not_(stopped), builder.and_(held, builder.fcmp_ordered("<", rates, next_rate)))
            builder.store(builder.select(later, rates, next_rate), sums[2])
        fixed_load, rising_share, next_rate = (builder.load(it) for it in sums)
        zero, any_order = ir.Constant(_DOUBLE, 0.0), ("reassoc",)
        results = [_reduce(builder, "fadd", it, zero, flags=any_order) for it in (fixed_load, rising_share)]
        results.append(_reduce(builder, "fmin", next_rate, flags=("nnan", "nsz")))
        return context.make_tuple(builder, signature.return_type, results)

    numbers = types.UniTuple(types.float64, 3)
    signature_type = numbers(rate, member, share, types.int64, types.int64, types.float64, types.float64)
    return signature_type, codegen
