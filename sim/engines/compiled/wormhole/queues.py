"""What happens after a fixed delay: a queue for each length of delay, and bitmaps of who is to be looked at."""

from flitlab.models.jit import inner
from flitlab.models.rules.bits import lowest, popcount
from flitlab.sim.engines.compiled.wormhole.state import ONE, U

_SIX, _LOW = U(6), U(63)
_32, _LOW32 = U(32), U(0xFFFFFFFF)


@inner
def place_in(c, which, i):
    """Place of the i-th entry of a queue."""
    return (which << c.places) | (i & ((ONE << c.places) - ONE))


@inner
def push(c, s, which, flit, v):
    """Put a flit, or 0, and a VC into a queue, to come out of it after the queue's delay."""
    queue = s.queue[which]
    end = queue.end
    s.entries[place_in(c, which, end)] = (flit << _32) | v
    queue.end = end + ONE


@inner
def due(c, s, which, tick):
    """The entries of a queue that come out now: (first, one past the last)."""
    queue = s.queue[which]
    first = queue.first
    end = s.due[(which << c.ticks) | (U(tick) & ((ONE << c.ticks) - ONE))]
    queue.first = end
    return first, end


@inner
def entry_of(c, s, which, i):
    """The i-th entry of a queue: (flit, VC)."""
    entry = s.entries[place_in(c, which, i)]
    return entry >> _32, entry & _LOW32


@inner
def close(c, s, tick):
    """Nothing is added any more to the queues in this tick."""
    for which in range(U(len(s.queue))):
        queue = s.queue[which]
        s.due[(which << c.ticks) | (U(tick + queue.delay) & ((ONE << c.ticks) - ONE))] = queue.end


@inner
def mark(bitmap, member, condition):
    """Add a member to a bitmap if a condition holds."""
    bitmap[member >> _SIX] |= U(condition) << (member & _LOW)


@inner
def take(bitmap, members):
    """Empty a bitmap into a list of its members, ascending, that has room for four more; how many there are."""
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
