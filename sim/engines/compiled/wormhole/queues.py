# SPDX-License-Identifier: Apache-2.0
"""What happens after a fixed delay: a queue for each length of delay, and bitmaps of who is to be looked at."""

from flitlab.models.jit import inline
from flitlab.models.rules.bits import lowest, popcount
from flitlab.sim.engines.compiled.wormhole.state import ONE, U

_SIX, _LOW = U(6), U(63)
_32, _LOW32 = U(32), U(0xFFFFFFFF)


@inline
def push(state, which, flit, vc):
    """Put a flit, or 0, and a VC into a queue, to come out of it after the queue's delay; which: the queue."""
    queue = state.queue[which]
    end = queue.end
    state.entries[end] = (flit << _32) | vc
    queue.end = end + ONE


@inline
def _slot(const, which, tick):
    """Find the place in ``state.due`` of what comes out of a queue at a tick; which: the queue."""
    return (which << const.ticks) | (U(tick) & ((ONE << const.ticks) - ONE))


@inline
def due(const, state, which, tick):
    """Find the entries of a queue that come out in this tick: (place of the first, one past that of the last)."""
    entries = state.due[_slot(const, which, tick)]
    return entries >> _32, entries & _LOW32


@inline
def entry_of(state, place):
    """Read an entry of a queue: (flit, VC)."""
    entry = state.entries[place]
    return entry >> _32, entry & _LOW32


@inline
def close(const, state, tick):
    """Note that nothing more is added to the queues in this tick."""
    for which in range(U(len(state.queue))):
        queue = state.queue[which]
        end = queue.end
        state.due[_slot(const, which, tick + queue.delay)] = (queue.begun << _32) | end
        begin = end if end <= queue.last else queue.first
        queue.begun = begin
        queue.end = begin


@inline
def mark(bitmap, member, condition):
    """Add a member to a bitmap if a condition holds.

    bitmap: uint64, 64 members in each. condition: 0 or 1.
    """
    bitmap[member >> _SIX] |= U(condition) << (member & _LOW)


@inline
def take(bitmap, members):
    """Empty a bitmap into a list of its members, ascending; how many they are.

    bitmap: uint64, 64 members in each. members: uint32, with room for four more than there can be.
    """
    count = U(0)
    for w in range(U(len(bitmap))):
        word = bitmap[w]
        bitmap[w] = U(0)
        end = count + U(popcount(word))
        while count < end:  # a loop over single members would end in a mispredicted branch for every word
            for i in range(U(4)):
                members[count + i] = (w << _SIX) + U(lowest(word))
                word &= word - ONE
            count += U(4)
        count = end
    return count
