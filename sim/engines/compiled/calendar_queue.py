# SPDX-License-Identifier: Apache-2.0
"""Packets by the tick at which they are due, in lists that show many of them at once.

A list consists of chunks of one cache line, which hold thirteen packets and name the next chunk. Were it a chain
through the packets, none could be asked for before the one ahead of it had come from memory. Every tick has a chunk of
its own, which comes first; when it is full, its packets move to a chunk behind it.
"""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inner, routine
from flitlab.sim.engines.compiled.memory import aligned, prefetch, unlikely
from flitlab.sim.engines.compiled.pool import NONE, allocate_record, free_record, full_stack

# Words of a chunk: packets in it and the chunk behind it, both of a tick's own chunk, and the chunk that comes after it
# where the list has been taken away. (NumPy's numbers: of Python's each would compile its own copy of a function.)
_COUNT, _OVERFLOW, _NEXT, _ENTRIES = np.arange(4)
_BLOCK_WORDS = 16

BLOCK_ENTRIES = np.int64(_BLOCK_WORDS - _ENTRIES)
"""Packets in a chunk that is full, as all of a list are but the first."""


class CalendarQueue(NamedTuple):
    """Packets that are due within some ticks.

    words: uint32 or uint64 [16 * chunks], first the chunk of each tick. mask: ticks - 1. free: uint32, the stack of the
    unused chunks, as of a :class:`~flitlab.sim.engines.compiled.pool.Pool`.
    """

    words: Words
    mask: int
    free: Words


def make_calendar_queue(ticks: int, entries: int, dtype: Any = np.uint32) -> CalendarQueue:
    """Make empty lists of ``ticks``, a power of two, for so many packets in all; dtype: of what is in lists."""
    overflow_blocks = entries // int(BLOCK_ENTRIES) + 1
    blocks = aligned(ticks + overflow_blocks, _BLOCK_WORDS, dtype)
    blocks[:ticks, [_OVERFLOW, _NEXT]] = NONE
    free = full_stack(overflow_blocks)
    free[:-1] += np.uint32(ticks)
    return CalendarQueue(words=blocks.reshape(-1), mask=ticks - 1, free=free)


@inner
def _word_index(block, i):
    """Find the place in ``CalendarQueue.words`` of the i-th word of a chunk."""
    return np.uint64(np.int64(block) * _BLOCK_WORDS + i)


@inner
def schedule_event(queue, entry, tick):
    """Let a packet be due at ``tick``, which is less than all the ticks ahead."""
    bucket = tick & queue.mask
    count = np.int64(queue.words[_word_index(bucket, _COUNT)])
    if unlikely(count == BLOCK_ENTRIES):
        _spill(queue, bucket)
        count = np.int64(0)
    queue.words[_word_index(bucket, _ENTRIES + count)] = entry
    queue.words[_word_index(bucket, _COUNT)] = count + 1


@routine
def schedule_events(queue, entries, ticks):
    """Let things be due, each at a tick of its own, int64 [things] each."""
    for i in range(len(entries)):
        schedule_event(queue, entries[i], ticks[i])


@routine
def _spill(queue, bucket):
    """Move the packets of a tick's own chunk to one behind it."""
    block = allocate_record(queue)
    for i in range(_ENTRIES, _BLOCK_WORDS):
        queue.words[_word_index(block, i)] = queue.words[_word_index(bucket, i)]
    queue.words[_word_index(block, _NEXT)] = queue.words[_word_index(bucket, _OVERFLOW)]
    queue.words[_word_index(bucket, _OVERFLOW)] = block


@inner
def take_bucket(queue, tick):
    """Take the list of a tick away: (its first chunk, how many packets are in that)."""
    prefetch(queue.words, ((tick + 2) & queue.mask) * _BLOCK_WORDS)
    block = tick & queue.mask
    count = np.int64(queue.words[_word_index(block, _COUNT)])
    queue.words[_word_index(block, _NEXT)] = queue.words[_word_index(block, _OVERFLOW)]
    queue.words[_word_index(block, _OVERFLOW)] = NONE
    queue.words[_word_index(block, _COUNT)] = 0
    return block, count


@inner
def entry_in(queue, block, i):
    """Return the i-th packet in a chunk."""
    return np.int64(queue.words[_word_index(block, _ENTRIES + i)])


@inner
def next_block(queue, block):
    """Return the chunk that comes after one in a list taken away, which is full; NOBODY if there is none."""
    return np.int64(queue.words[_word_index(block, _NEXT)])


@inner
def prefetch_next_block(queue, block):
    """Begin to load the chunk that comes after one."""
    following = next_block(queue, block)
    if following != NONE:
        prefetch(queue.words, following * _BLOCK_WORDS)


@inner
def release_block(queue, block):
    """Let a chunk of a list taken away be used again, and return the next one."""
    if block > queue.mask:
        free_record(queue, block)
    return next_block(queue, block)


def list_events(queue: CalendarQueue) -> Ints:
    """List what is due, all of which stays so: (what, the tick modulo the number of ticks), int64 [2, things]."""
    events = [(entries, tick) for tick in range(queue.mask + 1) for entries in events_at(queue, tick)]
    return np.array(events, np.int64).reshape(-1, 2).T.copy()


def events_at(queue: CalendarQueue, tick: int) -> list[int]:
    """List the packets that are due at ``tick``, which stay so."""
    blocks = queue.words.reshape(-1, _BLOCK_WORDS)
    bucket = blocks[tick & queue.mask]
    entries: list[int] = bucket[_ENTRIES : _ENTRIES + int(bucket[_COUNT])].tolist()
    block = int(bucket[_OVERFLOW])
    while block != NONE:
        entries += blocks[block, _ENTRIES:].tolist()
        block = int(blocks[block, _NEXT])
    return entries
