# SPDX-License-Identifier: Apache-2.0
"""Queues and links: a packet's departure is known when a queue accepts it, so that one event a hop suffices.

That event is the packet's arrival at the next place, service and propagation merged; a link has at most one pending,
that of its first packet.
"""

import numpy as np

from flitlab.models.jit import inner, njit
from flitlab.models.rules.datagram import drops_early, rest_ticks, service_ticks
from flitlab.sim.engines.compiled.awaited import NOBODY, await_packet, forget_packet
from flitlab.sim.engines.compiled.datagram.messages import note_busy
from flitlab.sim.engines.compiled.datagram.state import (
    DATA,
    DECISIONS,
    DELAY,
    FOLLOWED,
    FREE_AT,
    HEAD,
    KIND,
    LEFT,
    LIMIT,
    MARKED_DATA,
    NEXT,
    OCCUPIED,
    RATIO,
    SERVED,
    SERVICE,
    SERVING,
    SIZE,
    SUBFLOW,
    TAIL,
)
from flitlab.sim.engines.compiled.pool import free_record
from flitlab.sim.engines.datagram.base import ACCEPTED, DROPPED, DROPS, MARKS, MOST, STAY

_LOW = np.int64(0xFFFFFFFF)


@inner
def _after(state, packet, left):
    """Return the tick at which the packet behind one has left their queue; left: the tick at which that one has."""
    return left + np.int64(np.uint32(state.packet[packet, FOLLOWED] - np.uint32(left & _LOW)))


@inner
def _let_go(const, state, link, now):
    """Forget the packets that have left a link's queue by now."""
    line = state.link[link]
    packet, served = line[SERVING], line[SERVED]
    while packet != NOBODY and served <= now:
        line[OCCUPIED] -= np.int64(state.packet[packet, SIZE])
        served = _after(state, packet, served)
        packet = np.int64(state.packet[packet, NEXT])
    line[SERVING], line[SERVED] = packet, served


@inner
def _drop(const, state, link, packet):
    """Drop a packet at a link's queue."""
    state.link_counts[link, DROPS] += 1
    if state.packet[packet, KIND] == DATA or state.packet[packet, KIND] == MARKED_DATA:
        state.subflow_counts[state.packet[packet, SUBFLOW], DROPPED] += 1
    free_record(state, packet)


@inner
def join(const, state, link, packet, departs):
    """Put a packet at the end of a link; departs: tick at which it has left the queue."""
    line = state.link[link]
    state.packet[packet, NEXT] = NOBODY
    if line[SERVING] == NOBODY:
        line[SERVING], line[SERVED] = packet, departs
    if line[HEAD] == NOBODY:
        line[HEAD], line[LEFT] = packet, departs
        await_packet(const, state, link, departs + const.fixed[link, DELAY])
    else:
        state.packet[line[TAIL], NEXT] = packet
        state.packet[line[TAIL], FOLLOWED] = departs & _LOW
    line[TAIL] = packet


@inner
def accept(const, state, link, packet, now):
    """Take a packet into the queue of a link, or drop it."""
    _let_go(const, state, link, now)
    line = state.link[link]
    size = np.int64(state.packet[packet, SIZE])
    occupied = line[OCCUPIED] + size
    if occupied > const.fixed[link, LIMIT]:
        _drop(const, state, link, packet)
        return
    if occupied > const.early and link < const.feeders:
        line[DECISIONS] += 1
        if drops_early(const.seed, link, line[DECISIONS]):
            _drop(const, state, link, packet)
            return
    if const.mark > 0 and occupied > const.mark and link < const.feeders and state.packet[packet, KIND] == DATA:
        state.packet[packet, KIND] = MARKED_DATA
        state.link_counts[link, MARKS] += 1
    service = (
        const.fixed[link, SERVICE] if size == const.packet_bytes else service_ticks(const.fixed[link, RATIO], size)
    )
    departs = max(now, line[FREE_AT]) + service
    line[FREE_AT] = departs
    line[OCCUPIED] = occupied
    join(const, state, link, packet, departs)
    counts = state.link_counts[link]
    counts[ACCEPTED] += 1
    counts[STAY] += departs - now
    note_busy(state.talk, link, service)
    if occupied > counts[MOST]:
        counts[MOST] = occupied


@inner
def take_head(const, state, link, now):
    """Take the first packet, which arrives now, off a link; the link awaits its next one."""
    line = state.link[link]
    packet = line[HEAD]
    behind, left = np.int64(state.packet[packet, NEXT]), _after(state, packet, line[LEFT])
    if line[SERVING] == packet:
        line[SERVING], line[SERVED] = behind, left
        line[OCCUPIED] -= np.int64(state.packet[packet, SIZE])
    if behind != NOBODY:
        await_packet(const, state, link, now + left - line[LEFT])
    line[HEAD], line[LEFT] = behind, left
    return packet


@njit
def break_link(const, state, link, now):
    """Lose what is on a link, which takes nothing any more."""
    line = state.link[link]
    packet = line[HEAD]
    if packet != NOBODY:
        forget_packet(const, state, link, line[LEFT] + const.fixed[link, DELAY])
    while packet != NOBODY:
        behind = np.int64(state.packet[packet, NEXT])
        _drop(const, state, link, packet)
        packet = behind
    line[HEAD] = NOBODY
    line[SERVING] = NOBODY
    line[OCCUPIED] = 0
    note_busy(state.talk, link, min(0, now - line[FREE_AT]))
    line[FREE_AT] = now
    const.fixed[link, LIMIT] = 0


@njit
def change_rate(const, state, link, ratio, now):
    """Let a link take ``ratio`` for a byte from now on, also for the packets in its queue."""
    fixed, line = const.fixed[link], state.link[link]
    before = fixed[RATIO]
    fixed[RATIO] = ratio
    fixed[SERVICE] = service_ticks(ratio, const.packet_bytes)
    _let_go(const, state, link, now)
    free, previous, packet, left = now, NOBODY, line[HEAD], line[LEFT]
    while packet != NOBODY:
        behind, next_left = np.int64(state.packet[packet, NEXT]), _after(state, packet, left)
        if left > now:
            size = np.int64(state.packet[packet, SIZE])
            first = packet == line[SERVING]
            free += rest_ticks(left - now, before, ratio, size) if first else service_ticks(ratio, size)
            state.link_counts[link, STAY] += free - left
            if first:
                line[SERVED] = free
            if packet == line[HEAD]:
                forget_packet(const, state, link, line[LEFT] + fixed[DELAY])
                line[LEFT] = free
                await_packet(const, state, link, free + fixed[DELAY])
            else:
                state.packet[previous, FOLLOWED] = free & _LOW
        previous, packet, left = packet, behind, next_left
    if line[SERVING] != NOBODY:
        note_busy(state.talk, link, free - line[FREE_AT])
        line[FREE_AT] = free
