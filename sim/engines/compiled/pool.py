# SPDX-License-Identifier: Apache-2.0
"""Packet records that are used again: an array of them, and the stack of those that hold no packet.

Functions take anything that has both, a :class:`Pool` or the state of a discipline: ``packet``, the records, and
``free``, uint32 [records + 1], the unused records with the height of the stack in the last entry.
"""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.memory import aligned, records_in_lines

# records are unsigned, so that indices read from them need no check of sign; int64 rather than a Python int: each
# literal would compile its own copy of a function
NOBODY: Any = np.int64(0xFFFFFFFF)


class Pool(NamedTuple):
    """The records of the packets in a network."""

    packet: np.ndarray
    free: np.ndarray


def make_pool(records: int, dtype: Any) -> Pool:
    """Make a pool of unused records; dtype: of one."""
    return Pool(packet=records_in_lines(records, dtype), free=all_unused(records))


def all_unused(records: int) -> Words:
    """Make the stack of unused records of which the first is taken first."""
    return np.append(np.arange(records)[::-1], records).astype(np.uint32)


@inline
def take_record(pool):
    """Take an unused record."""
    top = len(pool.free) - 1
    pool.free[top] -= np.uint32(1)
    return np.int64(pool.free[pool.free[top]])


def take_records(pool: Any, count: int) -> Words:
    """Take so many unused records, of which there have to be enough; uint32 [count]."""
    pool.free[-1] -= np.uint32(count)
    top = int(pool.free[-1])
    records: Words = pool.free[top : top + count].copy()
    return records


@inline
def free_record(pool, packet):
    """Give a record back."""
    top = len(pool.free) - 1
    pool.free[pool.free[top]] = packet
    pool.free[top] += np.uint32(1)


def free_records(pool: Any, records: Ints) -> None:
    """Give records back."""
    top = int(pool.free[-1])
    pool.free[top : top + len(records)] = records
    pool.free[-1] += np.uint32(len(records))


def doubled(pool: Any) -> Any:
    """Return a pool, or a state, with the same packets and as many unused records more as there are in all."""
    records = len(pool.packet)
    if pool.packet.dtype.names:
        packet = records_in_lines(2 * records, pool.packet.dtype)
    else:
        packet = aligned(2 * records, pool.packet.shape[1], pool.packet.dtype)
    packet[:records] = pool.packet
    unused = pool.free[: pool.free[-1]]
    more = np.arange(2 * records - 1, records - 1, -1)
    free = np.zeros(2 * records + 1, np.uint32)
    free[: len(unused) + records] = np.concatenate([more, unused])
    free[-1] = len(unused) + records
    return pool._replace(packet=packet, free=free)
