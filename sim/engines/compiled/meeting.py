# SPDX-License-Identifier: Apache-2.0
"""Where threads that run parts of one simulation wait for each other, without Python."""

import os
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from flitlab.models.arrays import Ints
from flitlab.models.cores import cores
from flitlab.models.jit import inline

# Places in a meeting's numbers: how often threads have come to it; a cache line away, whether it is called off, and
# after how many looks at the others a thread lets another one have its processor.
COME, CALLED_OFF, LOOKS = 0, 8, 9

_MANY, _FEW = 1 << 14, 1 << 6
"""Looks where every thread has a processor, some 30 microseconds of them, and where it has not.

With a processor for each, sooner would be dear on a busy machine: whoever gets the processor keeps it for hundreds of
windows.
"""

_64 = ir.IntType(64)


def make_meeting(threads: int) -> Ints:
    """Make a meeting to which nobody has come, int64 [16]."""
    meeting = np.zeros(16, np.int64)
    meeting[LOOKS] = _MANY if threads <= cores() else _FEW
    return meeting


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The address of an entry of an array, of the arguments (array, place)."""
    view = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(view.data, [args[1]])


@intrinsic
def _come(typingctx: Any, array: Any, place: Any) -> Any:
    """Add 1 to an entry; what was written before is seen by whoever reads the sum."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _place(context, builder, signature, args)
        return builder.atomic_rmw("add", address, ir.Constant(_64, 1), "seq_cst")

    return types.int64(array, types.int64), codegen


@intrinsic
def _seen(typingctx: Any, array: Any, place: Any) -> Any:
    """Read an entry that other threads change; what they wrote before is seen from here on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", 8)

    return types.int64(array, types.int64), codegen


@intrinsic
def _give_way(typingctx: Any) -> Any:
    """Let another thread have this processor, if one waits for it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.none(), codegen


@inline
def meet(meeting, times):
    """Wait until every thread has come so often that all of them together make it ``times``.

    Returns whether it took place, False if it is called off.
    """
    _come(meeting, COME)
    looks = np.int64(0)
    while _seen(meeting, COME) < times:
        if _seen(meeting, CALLED_OFF):
            return False
        looks += 1
        if looks % meeting[LOOKS] == 0:
            _give_way()
    return True
