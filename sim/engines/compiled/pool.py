# SPDX-License-Identifier: Apache-2.0
"""Pools of packet records: an array of records, and a stack of those in no use.

Functions take anything with both fields, a :class:`Pool` or the state of a switching mode: ``packet``, the records, and
``free``, uint32 [records + 1], the unused records, with the height of the stack in the last entry.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inline
from flitlab.sim.engines.compiled import State
from flitlab.sim.engines.compiled.memory import aligned, aligned_records

# No entity. Records are unsigned, so that indices read from them need no check of sign. An int64, as each Python
# integer would compile its own copy of a function.
NONE: Any = np.int64(0xFFFFFFFF)


class Pool(NamedTuple):
    """Records of the packets in a network. replies: that hosts have yet to send; None where no class has replies."""

    packet: np.ndarray
    free: np.ndarray
    replies: Any = None


def make_pool(records: int, dtype: npt.DTypeLike) -> Pool:
    """Make a pool of unused records of a type."""
    return Pool(packet=aligned_records(records, dtype), free=full_stack(records))


def full_stack(records: int) -> Words:
    """Make the stack of unused records; record 0 is allocated first."""
    return np.append(np.arange(records)[::-1], records).astype(np.uint32)


@inline
def allocate_record(pool):
    """Allocate an unused record, and return its index."""
    top = len(pool.free) - 1
    pool.free[top] -= np.uint32(1)
    return np.int64(pool.free[pool.free[top]])


def allocate_records(pool: State, count: int) -> Words:
    """Allocate ``count`` unused records, which have to exist; uint32 [count]."""
    pool.free[-1] -= np.uint32(count)
    top = int(pool.free[-1])
    records: Words = pool.free[top : top + count].copy()
    return records


@inline
def free_record(pool, packet):
    """Return a record to the pool."""
    top = len(pool.free) - 1
    pool.free[pool.free[top]] = packet
    pool.free[top] += np.uint32(1)


def free_records(pool: State, records: Ints) -> None:
    """Return records to the pool.

    Parameters
    ----------
    pool: a pool or a state.
    records: int64 [records].
    """
    top = int(pool.free[-1])
    pool.free[top : top + len(records)] = records
    pool.free[-1] += np.uint32(len(records))


def doubled(pool: State) -> State:
    """Return a pool, or a state, with the same packets and twice the records."""
    records = len(pool.packet)
    if pool.packet.dtype.names:
        packet = aligned_records(2 * records, pool.packet.dtype)
    else:
        packet = aligned(2 * records, pool.packet.shape[1], pool.packet.dtype)
    packet[:records] = pool.packet
    unused = pool.free[: pool.free[-1]]
    added = np.arange(2 * records - 1, records - 1, -1)
    free = np.zeros(2 * records + 1, np.uint32)
    free[: len(unused) + records] = np.concatenate([added, unused])
    free[-1] = len(unused) + records
    return pool._replace(packet=packet, free=free)
