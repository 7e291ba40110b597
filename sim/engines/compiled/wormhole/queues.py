# SPDX-License-Identifier: Apache-2.0
"""What happens after a fixed delay: a queue for each length of delay, and bitmaps of who is to be looked at."""

from flitlab.models.jit import inner
from flitlab.models.rules.bits import lowest, popcount
from flitlab.sim.engines.compiled.wormhole.state import ONE, U

_SIX, _LOW = U(6), U(63)
_32, _LOW32 = U(32), U(0xFFFFFFFF)


@inner
def place_in(const, which, i):
    """Find the place in ``state.entries`` of the i-th entry of a queue; which: the queue."""
    return (which << const.places) | (i & ((ONE << const.places) - ONE))


@inner
def push(const, state, which, flit, vc):
    """Put a flit, or 0, and a VC into a queue, to come out of it after the queue's delay."""
    queue = state.queue[which]
    end = queue.end
    state.entries[place_in(const, which, end)] = (flit << _32) | vc
    queue.end = end + ONE


@inner
def due(const, state, which, tick):
    """Take out the entries of a queue that come out in this tick: (first, one past the last)."""
    queue = state.queue[which]
    first = queue.first
    end = state.due[(which << const.ticks) | (U(tick) & ((ONE << const.ticks) - ONE))]
    queue.first = end
    return first, end


@inner
def entry_of(const, state, which, i):
    """Read the i-th entry of a queue: (flit, VC)."""
    entry = state.entries[place_in(const, which, i)]
    return entry >> _32, entry & _LOW32


@inner
def close(const, state, tick):
    """Note that nothing more is added to the queues in this tick."""
    for which in range(U(len(state.queue))):
        queue = state.queue[which]
        state.due[(which << const.ticks) | (U(tick + queue.delay) & ((ONE << const.ticks) - ONE))] = queue.end


@inner
def mark(bitmap, member, condition):
    """Add a member to a bitmap if a condition holds.

    bitmap: uint64, 64 members in each. condition: 0 or 1.
    """
    bitmap[member >> _SIX] |= U(condition) << (member & _LOW)


@inner
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
