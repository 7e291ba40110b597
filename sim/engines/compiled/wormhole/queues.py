# SPDX-License-Identifier: Apache-2.0
"""Delay queues, one for each length of delay, and bitmaps as work lists."""

from flitlab.models.jit import inline
from flitlab.models.rules.bits import lowest, popcount
from flitlab.sim.engines.compiled.wormhole.layout import U

_SIX, _LOW = U(6), U(63)
_32, _LOW32 = U(32), U(0xFFFFFFFF)


@inline
def push(state, queue_index, flit, vc):
    """Push (flit or 0, VC) into a delay queue, to leave it after the queue's delay.

    Parameters
    ----------
    queue_index: of the queue.
    flit: uint64, or 0.
    vc: uint64.
    """
    queue = state.queue[queue_index]
    end = queue.end
    state.entries[end] = (flit << _32) | vc
    queue.end = end + U(1)


@inline
def _slot(const, queue_index, tick):
    """Return the index in ``state.due`` of the entries that leave a queue at a tick."""
    return (queue_index << const.due_bits) | (U(tick) & ((U(1) << const.due_bits) - U(1)))


@inline
def due_entries(const, state, queue_index, tick):
    """Return the entries that leave a queue at a tick: (first index, end)."""
    entries = state.due[_slot(const, queue_index, tick)]
    return entries >> _32, entries & _LOW32


@inline
def flit_and_vc(state, index):
    """Read an entry of a queue: (flit, VC)."""
    entry = state.entries[index]
    return entry >> _32, entry & _LOW32


@inline
def close_tick(const, state, tick):
    """Close all queues for a tick: later entries belong to the next one."""
    for queue_index in range(U(len(state.queue))):
        queue = state.queue[queue_index]
        end = queue.end
        state.due[_slot(const, queue_index, tick + queue.delay)] = (queue.tick_begin << _32) | end
        begin = end if end <= queue.last else queue.first
        queue.tick_begin = begin
        queue.end = begin


@inline
def set_bit(bitmap, member, condition):
    """Set a member's bit in a bitmap if a condition holds.

    Parameters
    ----------
    bitmap: uint64, 64 members each.
    member: uint64.
    condition: 0 or 1.
    """
    bitmap[member >> _SIX] |= U(condition) << (member & _LOW)


@inline
def drain_bitmap(bitmap, members):
    """Clear a bitmap, list its members ascending, and return their number.

    Parameters
    ----------
    bitmap: uint64, 64 members each.
    members: uint32, with room for four more than there can be.
    """
    count = U(0)
    for w in range(U(len(bitmap))):
        bits = bitmap[w]
        bitmap[w] = U(0)
        end = count + U(popcount(bits))
        while count < end:  # a loop over single members mispredicts a branch for every word
            for i in range(U(4)):
                members[count + i] = (w << _SIX) + U(lowest(bits))
                bits &= bits - U(1)
            count += U(4)
        count = end
    return count
