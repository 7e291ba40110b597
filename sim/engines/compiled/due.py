# SPDX-License-Identifier: Apache-2.0
"""Packets by the tick at which they are due, in lists that show many of them at once.

A list consists of chunks of one cache line, which hold thirteen packets and name the next chunk. Were it a chain
through the packets, none could be asked for before the one ahead of it had come from memory. Every tick has a chunk of
its own, which comes first; when it is full, its packets move to a chunk behind it.
"""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import device_function, inline
from flitlab.sim.engines.compiled.memory import aligned, prefetch, seldom
from flitlab.sim.engines.compiled.pool import NOBODY, all_unused, free_record, take_record

# Words of a chunk: packets in it and the chunk behind it, both of a tick's own chunk, and the chunk that comes after it
# where the list has been taken away. (NumPy's numbers: of Python's each would compile its own copy of a function.)
_FILLED, _BEHIND, _AFTER, _FIRST = np.arange(4)
_CHUNK = 16

FULL = np.int64(_CHUNK - _FIRST)
"""Packets in a chunk that is full, as all of a list are but the first."""


class Due(NamedTuple):
    """Packets that are due within some ticks.

    words: uint32 or uint64 [16 * chunks], first the chunk of each tick. mask: ticks - 1. free: uint32, the stack of the
    unused chunks, as of a :class:`~flitlab.sim.engines.compiled.pool.Pool`.
    """

    words: Words
    mask: int
    free: Words


def make_due(ticks: int, packets: int, dtype: Any = np.uint32) -> Due:
    """Make empty lists of ``ticks``, a power of two, for so many packets in all; dtype: of what is in lists."""
    behind = packets // int(FULL) + 1
    chunks = aligned(ticks + behind, _CHUNK, dtype)
    chunks[:ticks, [_BEHIND, _AFTER]] = NOBODY
    free = all_unused(behind)
    free[:-1] += np.uint32(ticks)
    return Due(words=chunks.reshape(-1), mask=ticks - 1, free=free)


@inline
def _at(chunk, i):
    """Find the place in ``Due.words`` of the i-th word of a chunk."""
    return np.uint64(np.int64(chunk) * _CHUNK + i)


@inline
def put(due, packet, tick):
    """Let a packet be due at ``tick``, which is less than all the ticks ahead."""
    own = tick & due.mask
    filled = np.int64(due.words[_at(own, _FILLED)])
    if seldom(filled == FULL):
        _move(due, own)
        filled = np.int64(0)
    due.words[_at(own, _FIRST + filled)] = packet
    due.words[_at(own, _FILLED)] = filled + 1


@device_function
def put_all(lists, what, ticks):
    """Let things be due, each at a tick of its own, int64 [things] each."""
    for i in range(len(what)):
        put(lists, what[i], ticks[i])


@device_function
def _move(due, own):
    """Move the packets of a tick's own chunk to one behind it."""
    chunk = take_record(due)
    for i in range(_FIRST, _CHUNK):
        due.words[_at(chunk, i)] = due.words[_at(own, i)]
    due.words[_at(chunk, _AFTER)] = due.words[_at(own, _BEHIND)]
    due.words[_at(own, _BEHIND)] = chunk


@inline
def take(due, tick):
    """Take the list of a tick away: (its first chunk, how many packets are in that)."""
    prefetch(due.words, ((tick + 2) & due.mask) * _CHUNK)
    chunk = tick & due.mask
    filled = np.int64(due.words[_at(chunk, _FILLED)])
    due.words[_at(chunk, _AFTER)] = due.words[_at(chunk, _BEHIND)]
    due.words[_at(chunk, _BEHIND)] = NOBODY
    due.words[_at(chunk, _FILLED)] = 0
    return chunk, filled


@inline
def packet_in(due, chunk, i):
    """Return the i-th packet in a chunk."""
    return np.int64(due.words[_at(chunk, _FIRST + i)])


@inline
def next_chunk(due, chunk):
    """Return the chunk that comes after one in a list taken away, which is full; NOBODY if there is none."""
    return np.int64(due.words[_at(chunk, _AFTER)])


@inline
def ask_for_next(due, chunk):
    """Begin to load the chunk that comes after one."""
    following = next_chunk(due, chunk)
    if following != NOBODY:
        prefetch(due.words, following * _CHUNK)


@inline
def release(due, chunk):
    """Let a chunk of a list taken away be used again, and return the next one."""
    if chunk > due.mask:
        free_record(due, chunk)
    return next_chunk(due, chunk)


def listed(lists: Due) -> Ints:
    """List what is due, all of which stays so: (what, the tick modulo the number of ticks), int64 [2, things]."""
    found = [(what, tick) for tick in range(lists.mask + 1) for what in due_at(lists, tick)]
    return np.array(found, np.int64).reshape(-1, 2).T.copy()


def due_at(due: Due, tick: int) -> list[int]:
    """List the packets that are due at ``tick``, which stay so."""
    chunks = due.words.reshape(-1, _CHUNK)
    own = chunks[tick & due.mask]
    packets: list[int] = own[_FIRST : _FIRST + int(own[_FILLED])].tolist()
    chunk = int(own[_BEHIND])
    while chunk != NOBODY:
        packets += chunks[chunk, _FIRST:].tolist()
        chunk = int(chunks[chunk, _AFTER])
    return packets
