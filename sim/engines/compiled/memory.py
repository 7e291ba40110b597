# SPDX-License-Identifier: Apache-2.0
"""Where records lie in memory: at the beginning of cache lines, which can be asked for before they are needed.

And where code does: what is seldom done does not stand in the way of the rest.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_CACHE_LINE_BYTES = 64  # bytes

PREFETCH_BATCH = 32
"""So many records begin to be loaded before the first is used; with 16 and 64 differences were within the noise."""

MIN_BATCH = 64
"""For so many it does not pay to go through them twice; networks in which so few come at a time fit into caches."""


def aligned(records: int, words: int, dtype: Any) -> np.ndarray:
    """Make an array of zeros [records, words] that begins with a cache line, as every record does of whole lines."""
    size = np.dtype(dtype).itemsize
    padded = np.zeros(records * words + _CACHE_LINE_BYTES // size, dtype)
    first = -padded.ctypes.data % _CACHE_LINE_BYTES // size
    return padded[first : first + records * words].reshape(records, words)


def aligned_records(count: int, dtype: Any) -> np.ndarray:
    """Make an array of zeroed records [count] that begins with a cache line; dtype: of one, with named fields."""
    size = np.dtype(dtype).itemsize
    return aligned(count, size, np.uint8).reshape(-1).view(dtype)


def copy_aligned(records: np.ndarray) -> np.ndarray:
    """Copy records so that they begin with a cache line."""
    count, words = records.shape
    copy = aligned(count, words, records.dtype)
    copy[:] = records
    return copy


def round_to_cache_lines(words: int, dtype: Any) -> int:
    """Round the words of a record up to whole cache lines."""
    line: int = _CACHE_LINE_BYTES // np.dtype(dtype).itemsize
    return -(-words // line) * line


@intrinsic
def unlikely(typingctx: Any, condition: Any) -> Any:
    """Return a condition that holds seldom, so that what is done then is kept away from all other code."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bit = ir.IntType(1)
        expect = builder.module.declare_intrinsic("llvm.expect", [bit], ir.FunctionType(bit, [bit, bit]))
        return builder.call(expect, [args[0], bit(0)])

    return types.boolean(types.boolean), codegen


@intrinsic
def prefetch(typingctx: Any, array: Any, record: Any) -> Any:
    """Begin to load the first cache line of a record of an array, which may be written soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _prefetch(context, builder, array, args, ir.IntType(64)(0))

    return types.none(array, types.int64), codegen


@intrinsic
def prefetch_line(typingctx: Any, array: Any, record: Any, line: Any) -> Any:
    """Begin to load a cache line of a record of an array, 0 for its first, which may be written soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _prefetch(context, builder, array, args, builder.mul(args[2], ir.IntType(64)(_CACHE_LINE_BYTES)))

    return types.none(array, types.int64, types.int64), codegen


def _prefetch(context: Any, builder: Any, array: Any, args: Any, offset: Any) -> Any:
    """Begin to load what is so many bytes beyond the beginning of a record; args: an array and the record."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    view = context.make_array(array)(context, builder, args[0])
    address = builder.add(builder.mul(args[1], builder.extract_value(view.strides, 0)), offset)
    signature_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte], signature_type)
    to_write, locality, data_cache = number(1), number(3), number(1)
    builder.call(function, [builder.gep(builder.bitcast(view.data, byte), [address]), to_write, locality, data_cache])
    return context.get_dummy_value()
