# SPDX-License-Identifier: Apache-2.0
"""A barrier for the threads of one simulation, without Python."""

import os

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.jit.intrinsics import BaseContext, Context, Intrinsic, IRBuilder, Signature, Value, Values
from flitlab.models.threads import cores

# Entries of a barrier: arrivals so far; a cache line away, whether the run is cancelled, and the polls after which a
# thread yields its processor.
ARRIVED, CANCELLED, SPIN_LIMIT = 0, 8, 9

_LONG_SPIN, _SHORT_SPIN = 1 << 14, 1 << 6
"""Polls before a thread yields, with a processor for each thread (about 30 microseconds) and without.

Yielding sooner is expensive on a busy machine: another process keeps the processor for hundreds of windows.
"""

_64 = ir.IntType(64)


def make_barrier(threads: int) -> Ints:
    """Make a barrier for a number of threads: int64 [16]."""
    barrier = np.zeros(16, np.int64)
    barrier[SPIN_LIMIT] = _LONG_SPIN if threads <= cores() else _SHORT_SPIN
    return barrier


def _address_of(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
    """The address of an entry of an array; args: (array, index)."""
    view = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(view.data, [args[1]])


@intrinsic
def _fetch_add(typingctx: Context, array: types.Type, index: types.Type) -> Intrinsic:
    """Add 1 to an entry, atomically; readers of the sum see all earlier writes."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        address = _address_of(context, builder, signature, args)
        return builder.atomic_rmw("add", address, ir.Constant(_64, 1), "seq_cst")

    return types.int64(array, types.int64), codegen


@intrinsic
def _load_acquire(typingctx: Context, array: types.Type, index: types.Type) -> Intrinsic:
    """Read an entry that other threads change; their earlier writes are visible from here on."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        return builder.load_atomic(_address_of(context, builder, signature, args), "acquire", 8)

    return types.int64(array, types.int64), codegen


@intrinsic
def _yield_processor(typingctx: Context) -> Intrinsic:
    """Yield the processor to another thread."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        if os.name == "posix":
            signature_type = ir.FunctionType(ir.IntType(32), [])
            builder.call(get_or_insert_function(builder.module, signature_type, "sched_yield"), [])
        return context.get_dummy_value()

    return types.none(), codegen


@inline
def wait_at_barrier(barrier, arrivals):
    """Arrive at the barrier, and wait for all other threads.

    Parameters
    ----------
    barrier: int64 [16], of :func:`make_barrier`.
    arrivals: int64, arrivals of all threads, since the beginning, with which the wait ends.

    Returns
    -------
    False if the run is cancelled.
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
