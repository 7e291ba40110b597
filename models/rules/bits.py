# SPDX-License-Identifier: Apache-2.0
"""Sets of output ports as 64-bit masks."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel


@intrinsic
def _population(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@kernel
def popcount(mask: Int) -> int:
    """Number of set bits of a 64-bit mask."""
    return _population(np.uint64(mask))


@kernel
def lowest(mask: Int) -> int:
    """Index of the lowest set bit; 64 for an empty mask."""
    return _trailing_zeros(np.uint64(mask))


@kernel
def select(mask: Int, index: int) -> int:
    """Position of the set bit with ``index`` set bits below it (index < popcount)."""
    rest = np.uint64(mask)
    for _ in range(index):
        rest &= rest - np.uint64(1)
    return _trailing_zeros(rest)


def port_set(ports: Iterable[int]) -> np.uint64:
    """The 64-bit mask of some ports, which are below 64."""
    return np.uint64(sum(1 << port for port in ports))
