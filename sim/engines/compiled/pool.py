# SPDX-License-Identifier: Apache-2.0
"""Packet records that are used again: an array of them, and the stack of those that hold no packet.

Functions take anything that has both, a :class:`Pool` or the state of a discipline: ``packet``, uint32 [records,
words] or records with named fields [records], and ``free``, uint32 [records + 1], the unused records with the height of
the stack in the last entry.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.memory import aligned, records_in_lines


class Pool(NamedTuple):
    """The records of the packets in a network."""

    packet: np.ndarray
    free: np.ndarray


def make_pool(records: int, words: int, order: Literal["C", "F"] = "C") -> Pool:
    """Make a pool of unused records.

    order: of memory; C keeps the fields of one packet together, from the beginning of a cache line on, F one field of
    all packets.
    """
    packet = aligned(records, words, np.uint32) if order == "C" else np.zeros((records, words), np.uint32, order="F")
    return Pool(packet=packet, free=all_unused(records))


def all_unused(records: int) -> Words:
    """Make the stack of unused records of which the first is taken first."""
    return np.append(np.arange(records)[::-1], records).astype(np.uint32)


@inner
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


@inner
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
        words = pool.packet.shape[1]
        packet = make_pool(2 * records, words, "C" if pool.packet.flags.c_contiguous else "F").packet
    packet[:records] = pool.packet
    unused = pool.free[: pool.free[-1]]
    more = np.arange(2 * records - 1, records - 1, -1)
    free = np.zeros(2 * records + 1, np.uint32)
    free[: len(unused) + records] = np.concatenate([more, unused])
    free[-1] = len(unused) + records
    return pool._replace(packet=packet, free=free)
