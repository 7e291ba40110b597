"""Queues and links: a packet's departure is known when a queue accepts it, so that one event a hop suffices.

That event is the packet's arrival at the next place, service and propagation merged; a link has at most one pending,
that of its first packet.
"""

import numpy as np

from flitlab.models.jit import inner, njit
from flitlab.models.rules.datagram import drops_early, service_ticks
from flitlab.sim.engines.compiled.datagram.messages import note_busy
from flitlab.sim.engines.compiled.datagram.state import (
    AFTER,
    DATA,
    DECISIONS,
    DELAY,
    DEPARTS,
    FREE_AT,
    HEAD,
    KIND,
    LIMIT,
    MARKED_DATA,
    NEXT,
    NOBODY,
    OCCUPIED,
    RATIO,
    SERVICE,
    SERVING,
    SIZE,
    SUBFLOW,
    TAIL,
)
from flitlab.sim.engines.datagram.base import ACCEPTED, DROPPED, DROPS, MARKS, MOST, STAY

_LOW = np.int64(0xFFFFFFFF)
_ONE = np.uint64(1)


@inner
def make_packet(s):
    """An unused record."""
    top = len(s.free) - 1
    s.free[top] -= np.uint32(1)
    return np.int64(s.free[s.free[top]])


@inner
def free_packet(s, p):
    """Give a record back."""
    top = len(s.free) - 1
    s.free[s.free[top]] = p
    s.free[top] += np.uint32(1)


@inner
def await_head(c, s, link, tick):
    """The first packet of a link arrives at ``tick``."""
    slot = np.uint64(tick & c.mask)
    s.link[link, AFTER] = s.slot[slot]
    s.slot[slot] = link
    s.bits[slot >> np.uint64(6)] |= _ONE << (slot & np.uint64(63))


@inner
def _let_go(c, s, link, now):
    """Forget the packets that have left the queue by now."""
    line = s.link[link]
    p = line[SERVING]
    while p != NOBODY and np.int32(np.uint32(s.packet[p, DEPARTS]) - np.uint32(now & _LOW)) <= 0:
        line[OCCUPIED] -= np.int64(s.packet[p, SIZE])
        p = np.int64(s.packet[p, NEXT])
    line[SERVING] = p


@inner
def _drop(c, s, link, p):
    s.link_counts[link, DROPS] += 1
    if s.packet[p, KIND] == DATA or s.packet[p, KIND] == MARKED_DATA:
        s.subflow_counts[s.packet[p, SUBFLOW], DROPPED] += 1
    free_packet(s, p)


@inner
def join(c, s, link, p, departs):
    """Packet p is the last one on a link, and leaves its queue at a tick."""
    line = s.link[link]
    s.packet[p, DEPARTS] = departs & _LOW
    s.packet[p, NEXT] = NOBODY
    if line[SERVING] == NOBODY:
        line[SERVING] = p
    if line[HEAD] == NOBODY:
        line[HEAD] = p
        await_head(c, s, link, departs + c.fixed[link, DELAY])
    else:
        s.packet[line[TAIL], NEXT] = p
    line[TAIL] = p


@inner
def accept(c, s, link, p, now):
    """Packet p comes to the queue of a link."""
    _let_go(c, s, link, now)
    line = s.link[link]
    size = np.int64(s.packet[p, SIZE])
    occupied = line[OCCUPIED] + size
    if occupied > c.fixed[link, LIMIT]:
        _drop(c, s, link, p)
        return
    if occupied > c.early and link < c.feeders:
        line[DECISIONS] += 1
        if drops_early(c.seed, link, line[DECISIONS]):
            _drop(c, s, link, p)
            return
    if c.mark > 0 and occupied > c.mark and link < c.feeders and s.packet[p, KIND] == DATA:
        s.packet[p, KIND] = MARKED_DATA
        s.link_counts[link, MARKS] += 1
    service = c.fixed[link, SERVICE] if size == c.packet_bytes else service_ticks(c.fixed[link, RATIO], size)
    departs = max(now, line[FREE_AT]) + service
    line[FREE_AT] = departs
    line[OCCUPIED] = occupied
    join(c, s, link, p, departs)
    counts = s.link_counts[link]
    counts[ACCEPTED] += 1
    counts[STAY] += departs - now
    note_busy(s.talk, link, service)
    if occupied > counts[MOST]:
        counts[MOST] = occupied


@inner
def take_head(c, s, link, now):
    """The first packet of a link, which arrives now; the link awaits its next one."""
    line = s.link[link]
    p = line[HEAD]
    behind = np.int64(s.packet[p, NEXT])
    line[HEAD] = behind
    if line[SERVING] == p:
        line[SERVING] = behind
        line[OCCUPIED] -= np.int64(s.packet[p, SIZE])
    if behind != NOBODY:
        later = np.int64(np.uint32(s.packet[behind, DEPARTS]) - np.uint32(s.packet[p, DEPARTS]))
        await_head(c, s, link, now + later)
    return p


@njit
def break_link(c, s, link, now):
    """Lose what is on a link, which takes nothing any more."""
    line = s.link[link]
    p = line[HEAD]
    if p != NOBODY:
        ago = np.int64(np.int32(np.uint32(s.packet[p, DEPARTS]) - np.uint32(now & _LOW)))
        slot = np.uint64((now + ago + c.fixed[link, DELAY]) & c.mask)
        _unlink(s, slot, link)
    while p != NOBODY:
        behind = np.int64(s.packet[p, NEXT])
        _drop(c, s, link, p)
        p = behind
    line[HEAD] = NOBODY
    line[SERVING] = NOBODY
    line[OCCUPIED] = 0
    note_busy(s.talk, link, min(0, now - line[FREE_AT]))
    line[FREE_AT] = now
    c.fixed[link, LIMIT] = 0


@inner
def _unlink(s, slot, link):
    """Take a link out of a slot of the wheel; a bit left behind does no harm."""
    if s.slot[slot] == link:
        s.slot[slot] = s.link[link, AFTER]
        return
    k = np.int64(s.slot[slot])
    while s.link[k, AFTER] != link:
        k = s.link[k, AFTER]
    s.link[k, AFTER] = s.link[link, AFTER]
