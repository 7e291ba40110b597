# SPDX-License-Identifier: Apache-2.0
"""A calendar queue: entries by tick, in buckets that can be prefetched.

A bucket is a list of blocks of one cache line, each with up to thirteen entries and the number of the next block. In a
chain of single entries, none could be prefetched before its predecessor had come from memory. The first block of every
bucket is its own; when it is full, its entries move to an overflow block.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import device_function, inline, kernel
from flitlab.sim.engines.compiled.memory import aligned, prefetch, unlikely
from flitlab.sim.engines.compiled.pool import NONE, allocate_record, free_record, full_stack

# Words of a block: its entries; in the first block of a bucket, the first overflow block; the next block of a bucket
# that was taken. (NumPy integers: each Python integer would compile its own copy of a function.)
_COUNT, _OVERFLOW, _NEXT, _ENTRIES = np.arange(4)
_BLOCK_WORDS = 16

BLOCK_ENTRIES = np.int64(_BLOCK_WORDS - _ENTRIES)
"""Entries of a full block, as all of a bucket are but the first."""


class CalendarQueue(NamedTuple):
    """Entries by tick, within a horizon.

    words: uint32 or uint64 [16 * blocks], those of the buckets first. mask: ticks - 1. free: uint32, the stack of
    unused blocks, as of a :class:`~flitlab.sim.engines.compiled.pool.Pool`.
    """

    words: Words
    mask: int
    free: Words


def calendar_ticks(ticks: int) -> int:
    """Return the horizon for entries that are at most ``ticks`` - 1 ahead, a power of two."""
    return 1 << int(ticks - 1).bit_length()


def make_calendar_queue(ticks: int, entries: int, dtype: npt.DTypeLike = np.uint32) -> CalendarQueue:
    """Make an empty calendar queue.

    Parameters
    ----------
    ticks: horizon, a power of two.
    entries: capacity.
    dtype: of an entry, uint32 or uint64.
    """
    overflow_blocks = entries // int(BLOCK_ENTRIES) + 1
    blocks = aligned(ticks + overflow_blocks, _BLOCK_WORDS, dtype)
    blocks[:ticks, [_OVERFLOW, _NEXT]] = NONE
    free = full_stack(overflow_blocks)
    free[:-1] += np.uint32(ticks)
    return CalendarQueue(words=blocks.reshape(-1), mask=ticks - 1, free=free)


@inline
def _word_index(block, i):
    """Return the index in ``CalendarQueue.words`` of word ``i`` of a block."""
    return np.uint64(np.int64(block) * _BLOCK_WORDS + i)


@inline
def schedule_event(queue, entry, tick):
    """Add an entry at ``tick``, which is within the horizon.

    Parameters
    ----------
    queue: the calendar.
    entry: int64, a number below NONE.
    tick: int64, less than the horizon from now.
    """
    bucket = tick & queue.mask
    count = np.int64(queue.words[_word_index(bucket, _COUNT)])
    if unlikely(count == BLOCK_ENTRIES):
        _spill(queue, bucket)
        count = np.int64(0)
    queue.words[_word_index(bucket, _ENTRIES + count)] = entry
    queue.words[_word_index(bucket, _COUNT)] = count + 1


@device_function
def schedule_events(queue, entries, ticks):
    """Add entries, each at its own tick.

    Parameters
    ----------
    queue: the calendar.
    entries, ticks: int64 [entries].
    """
    for i in range(len(entries)):
        schedule_event(queue, entries[i], ticks[i])


@device_function
def _spill(queue, bucket):
    """Move the entries of a bucket's first block to an overflow block."""
    block = allocate_record(queue)
    for i in range(_ENTRIES, _BLOCK_WORDS):
        queue.words[_word_index(block, i)] = queue.words[_word_index(bucket, i)]
    queue.words[_word_index(block, _NEXT)] = queue.words[_word_index(bucket, _OVERFLOW)]
    queue.words[_word_index(bucket, _OVERFLOW)] = block


@inline
def take_bucket(queue, tick):
    """Take the bucket of a tick: (its first block, the entries in that)."""
    prefetch(queue.words, ((tick + 2) & queue.mask) * _BLOCK_WORDS)
    block = tick & queue.mask
    count = np.int64(queue.words[_word_index(block, _COUNT)])
    queue.words[_word_index(block, _NEXT)] = queue.words[_word_index(block, _OVERFLOW)]
    queue.words[_word_index(block, _OVERFLOW)] = NONE
    queue.words[_word_index(block, _COUNT)] = 0
    return block, count


@inline
def entry_in(queue, block, i):
    """Return entry ``i`` of a block, int64.

    Parameters
    ----------
    queue: the calendar.
    block: int64, of :func:`take_bucket` or :func:`release_block`.
    i: int64, below the block's count.
    """
    return np.int64(queue.words[_word_index(block, _ENTRIES + i)])


@inline
def next_block(queue, block):
    """Return the next block of a taken bucket, which is full; NONE at the end."""
    return np.int64(queue.words[_word_index(block, _NEXT)])


@inline
def prefetch_next_block(queue, block):
    """Prefetch the next block of a taken bucket."""
    following = next_block(queue, block)
    if following != NONE:
        prefetch(queue.words, following * _BLOCK_WORDS)


@inline
def release_block(queue, block):
    """Free a block of a taken bucket, and return the next one."""
    if block > queue.mask:
        free_record(queue, block)
    return next_block(queue, block)


@kernel
def remove_events(queue, removed):
    """Remove some entries of all ticks.

    Parameters
    ----------
    queue: the calendar.
    removed: bool, whether each entry is removed, by its number.
    """
    for tick in range(queue.mask + 1):
        block, count = take_bucket(queue, tick)
        while block != NONE:
            for i in range(count):
                entry = entry_in(queue, block, i)
                if not removed[entry]:
                    schedule_event(queue, entry, tick)
            block, count = release_block(queue, block), BLOCK_ENTRIES


def list_events(queue: CalendarQueue) -> Ints:
    """List all entries, which stay: (entries, ticks modulo the horizon), int64 [2, entries]."""
    events = [(entries, tick) for tick in range(queue.mask + 1) for entries in events_at(queue, tick)]
    return np.array(events, np.int64).reshape(-1, 2).T.copy()


def events_at(queue: CalendarQueue, tick: int) -> list[int]:
    """List the entries of a tick, which stay."""
    blocks = queue.words.reshape(-1, _BLOCK_WORDS)
    bucket = blocks[tick & queue.mask]
    entries: list[int] = bucket[_ENTRIES : _ENTRIES + int(bucket[_COUNT])].tolist()
    block = int(bucket[_OVERFLOW])
    while block != NONE:
        entries += blocks[block, _ENTRIES:].tolist()
        block = int(blocks[block, _NEXT])
    return entries
