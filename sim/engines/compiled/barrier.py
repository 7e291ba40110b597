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
from flitlab.models.jit import inner

# Places in a meeting's numbers: how often threads have come to it; a cache line away, whether it is called off, and
# after how many looks at the others a thread lets another one have its processor.
ARRIVED, CANCELLED, SPIN_LIMIT = 0, 8, 9

_LONG_SPIN, _SHORT_SPIN = 1 << 14, 1 << 6
"""Looks where every thread has a processor, some 30 microseconds of them, and where it has not.

With a processor for each, sooner would be dear on a busy machine: whoever gets the processor keeps it for hundreds of
windows.
"""

_64 = ir.IntType(64)


def make_barrier(threads: int) -> Ints:
    """Make a meeting to which nobody has come, int64 [16]."""
    barrier = np.zeros(16, np.int64)
    barrier[SPIN_LIMIT] = _LONG_SPIN if threads <= cores() else _SHORT_SPIN
    return barrier


def _address_of(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The address of an entry of an array, of the arguments (array, place)."""
    view = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(view.data, [args[1]])


@intrinsic
def _fetch_add(typingctx: Any, array: Any, index: Any) -> Any:
    """Add 1 to an entry; what was written before is seen by whoever reads the sum."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address_of(context, builder, signature, args)
        return builder.atomic_rmw("add", address, ir.Constant(_64, 1), "seq_cst")

    return types.int64(array, types.int64), codegen


@intrinsic
def _load_acquire(typingctx: Any, array: Any, index: Any) -> Any:
    """Read an entry that other threads change; what they wrote before is seen from here on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_address_of(context, builder, signature, args), "acquire", 8)

    return types.int64(array, types.int64), codegen


@intrinsic
def _yield_processor(typingctx: Any) -> Any:
    """Let another thread have this processor, if one waits for it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if os.name == "posix":
            signature_type = ir.FunctionType(ir.IntType(32), [])
            builder.call(get_or_insert_function(builder.module, signature_type, "sched_yield"), [])
        return context.get_dummy_value()

    return types.none(), codegen


@inner
def wait_at_barrier(barrier, arrivals):
    """Wait until every thread has come so often that all of them together make it ``arrivals``.

    Returns whether it took place, False if it is called off.
    """
    _fetch_add(barrier, ARRIVED)
    spins = np.int64(0)
    while _load_acquire(barrier, ARRIVED) < arrivals:
        if _load_acquire(barrier, CANCELLED):
            return False
        spins += 1
        if spins % barrier[SPIN_LIMIT] == 0:
            _yield_processor()
    return True
