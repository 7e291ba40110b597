# SPDX-License-Identifier: Apache-2.0
"""What happens after a fixed delay: a queue for each length of delay, and bitmaps of who is to be looked at."""

from flitlab.models.jit import inner
from flitlab.models.rules.bits import lowest, popcount
from flitlab.sim.engines.compiled.wormhole.state import ONE, U

_SIX, _LOW = U(6), U(63)
_32, _LOW32 = U(32), U(0xFFFFFFFF)


@inner
def push(state, queue_index, flit, vc):
    """Put a flit, or 0, and a VC into a queue, to come out of it after the queue's delay; which: the queue."""
    queue = state.queue[queue_index]
    end = queue.end
    state.entries[end] = (flit << _32) | vc
    queue.end = end + ONE


@inner
def _slot(const, queue_index, tick):
    """Find the place in ``state.due_entries`` of what comes out of a queue at a tick; which: the queue."""
    return (queue_index << const.ticks) | (U(tick) & ((ONE << const.ticks) - ONE))


@inner
def due_entries(const, state, queue_index, tick):
    """Find the entries of a queue that come out in this tick: (place of the first, one past that of the last)."""
    entries = state.due[_slot(const, queue_index, tick)]
    return entries >> _32, entries & _LOW32


@inner
def flit_and_vc(state, index):
    """Read an entry of a queue: (flit, VC)."""
    entry = state.entries[index]
    return entry >> _32, entry & _LOW32


@inner
def close_tick(const, state, tick):
    """Note that nothing more is added to the queues in this tick."""
    for queue_index in range(U(len(state.queue))):
        queue = state.queue[queue_index]
        end = queue.end
        state.due[_slot(const, queue_index, tick + queue.delay)] = (queue.begun << _32) | end
        begin = end if end <= queue.last else queue.first
        queue.begun = begin
        queue.end = begin


@inner
def set_bit(bitmap, member, condition):
    """Add a member to a bitmap if a condition holds.

    bitmap: uint64, 64 members in each. condition: 0 or 1.
    """
    bitmap[member >> _SIX] |= U(condition) << (member & _LOW)


@inner
def drain_bitmap(bitmap, members):
    """Empty a bitmap into a list of its members, ascending; how many they are.

    bitmap: uint64, 64 members in each. members: uint32, with room for four more than there can be.
    """
    count = U(0)
    for w in range(U(len(bitmap))):
        bits = bitmap[w]
        bitmap[w] = U(0)
        end = count + U(popcount(bits))
        while count < end:  # a loop over single members would end in a mispredicted branch for every word
            for i in range(U(4)):
                members[count + i] = (w << _SIX) + U(lowest(bits))
                bits &= bits - ONE
            count += U(4)
        count = end
    return count
