# SPDX-License-Identifier: Apache-2.0
"""Cache-line alignment, prefetch instructions, and branch hints."""

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from flitlab.models.jit.intrinsics import BaseContext, Context, Intrinsic, IRBuilder, Signature, Value, Values

A = TypeVar("A", bound=np.ndarray)

_CACHE_LINE_BYTES = 64  # bytes


class _Batch(NamedTuple):
    """Batches of records that are prefetched before the first of them is used.

    SIZE: records of a batch; 16 and 64 gave the same speed within noise. MIN: prefetching pays for more records than
    this at a time, as smaller networks fit into the caches.
    """

    SIZE: int = 32
    MIN: int = 64


Batch = _Batch()


def aligned(records: int, words: int, dtype: npt.DTypeLike) -> np.ndarray:
    """Make an array of zeros whose rows begin with a cache line, if they are whole cache lines.

    Parameters
    ----------
    records, words: shape of the array.
    dtype: of its elements.

    Returns
    -------
    [records, words] of that type.
    """
    size = np.dtype(dtype).itemsize
    padded = np.zeros(records * words + _CACHE_LINE_BYTES // size, dtype)
    first = -padded.ctypes.data % _CACHE_LINE_BYTES // size
    return padded[first : first + records * words].reshape(records, words)


def aligned_records(count: int, dtype: npt.DTypeLike) -> np.ndarray:
    """Make an array of zeroed records, dtype [count], that begins with a cache line."""
    size = np.dtype(dtype).itemsize
    return aligned(count, size, np.uint8).reshape(-1).view(dtype)


def copy_aligned(records: A) -> A:
    """Copy records, or the rows of an array, to an array that begins with a cache line.

    Parameters
    ----------
    records: [records] or [records, words] of any type.

    Returns
    -------
    The copy, of the same shape and type.
    """
    row_bytes = records.dtype.itemsize * int(np.prod(records.shape[1:]))
    copy = aligned(len(records), row_bytes, np.uint8).reshape(-1).view(records.dtype).reshape(records.shape)
    copy[:] = records
    same_type: A = copy.view(type(records))
    return same_type


def round_to_cache_lines(words: int, dtype: npt.DTypeLike) -> int:
    """Round a number of words of a type up to whole cache lines."""
    line: int = _CACHE_LINE_BYTES // np.dtype(dtype).itemsize
    return -(-words // line) * line


@intrinsic
def unlikely(typingctx: Context, condition: types.Type) -> Intrinsic:
    """Mark a condition as unlikely, so that its branch is laid out away from the common path."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        bit = ir.IntType(1)
        expect = builder.module.declare_intrinsic("llvm.expect", [bit], ir.FunctionType(bit, [bit, bit]))
        return builder.call(expect, [args[0], bit(0)])

    return types.boolean(types.boolean), codegen


@intrinsic
def prefetch(typingctx: Context, array: types.Type, record: types.Type) -> Intrinsic:
    """Prefetch, for writing, the first cache line of a record of an array."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        return _prefetch(context, builder, array, args, ir.IntType(64)(0))

    return types.none(array, types.int64), codegen


@intrinsic
def prefetch_line(typingctx: Context, array: types.Type, record: types.Type, line: types.Type) -> Intrinsic:
    """Prefetch, for writing, cache line ``line`` of a record of an array; 0 is its first."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        return _prefetch(context, builder, array, args, builder.mul(args[2], ir.IntType(64)(_CACHE_LINE_BYTES)))

    return types.none(array, types.int64, types.int64), codegen


def _prefetch(context: BaseContext, builder: IRBuilder, array: types.Type, args: Values, offset: Value) -> Value:
    """Emit a prefetch of the address ``offset`` bytes behind the beginning of a record; args: (array, record)."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    view = context.make_array(array)(context, builder, args[0])
    address = builder.add(builder.mul(args[1], builder.extract_value(view.strides, 0)), offset)
    signature_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte], signature_type)
    to_write, locality, data_cache = number(1), number(3), number(1)
    builder.call(function, [builder.gep(builder.bitcast(view.data, byte), [address]), to_write, locality, data_cache])
    return context.get_dummy_value()
