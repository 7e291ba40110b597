# SPDX-License-Identifier: Apache-2.0
"""Queues and links: a packet's departure is known when a queue accepts it, so that one event a hop suffices.

That event is the packet's arrival at the next place, service and propagation merged; a link has at most one pending,
that of its first packet.
"""

import numpy as np

from flitlab.models.jit import inline, njit
from flitlab.models.rules.datagram import drops_early, rest_ticks, service_ticks
from flitlab.models.transport.session import SYN_BYTES
from flitlab.sim.engines.compiled.awaited import await_packet, forget_packet
from flitlab.sim.engines.compiled.datagram.messages import note_busy
from flitlab.sim.engines.compiled.datagram.state import DATA, MARKED_DATA, ODD_BITS, SYN
from flitlab.sim.engines.compiled.pool import NOBODY, free_record
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits, whole_tick


@inline
def is_odd(kind):
    """Tell whether packets of a kind are not as long as data packets."""
    return kind & ODD_BITS != 0


@inline
def _size(const, kind):
    """Return the bytes of packets of a kind in a queue."""
    if not is_odd(kind):
        return const.packet_bytes
    return SYN_BYTES if kind == SYN else const.ack_bytes


@inline
def _service(const, line, kind):
    """Return the ticks that a link takes for a packet of a kind."""
    return service_ticks(line.ratio, _size(const, kind)) if is_odd(kind) else np.int64(line.service)


@inline
def _let_go(const, state, line, now):
    """Forget the packets that have left a link's queue by now, some of which may be odd."""
    run, packet, served, occupied = np.int64(line.run), np.int64(line.serving), line.served, line.occupied
    while run > 0 and served <= now:
        occupied -= const.packet_bytes
        run -= 1
        served += np.int64(line.service) if run > 0 else _service(const, line, state.packet[packet].kind)
    if run == 0:
        while packet != NOBODY and served <= now:
            record = state.packet[packet]
            occupied -= _size(const, record.kind)
            served += elapsed(record.followed, served)
            packet = np.int64(record.next)
    line.run, line.serving, line.served, line.occupied = run, packet, served, occupied


@inline
def _occupied(const, state, line, now):
    """Return the bytes in a link's queue, the packet in service included."""
    if line.odd == 0:
        busy = np.uint64(max(np.int64(0), line.free_at - now))
        service = np.uint64(line.service)
        return np.int64((busy + service - np.uint64(1)) // service) * const.packet_bytes
    _let_go(const, state, line, now)
    return line.occupied


@inline
def _mix(const, line, packet, odd, size, occupied, departs):
    """Note that a packet is put into a queue in which packets of other sizes than data are, or that it is one.

    size, occupied: bytes of the packet, and of those before it. departs: tick at which it has left the queue.
    """
    if odd:
        if line.odd == 0:
            line.run, line.serving = occupied // const.packet_bytes, NOBODY
            line.served = line.free_at - (np.int64(line.run) - 1) * np.int64(line.service)
        line.odd = np.int64(line.odd) + 1
    line.occupied = occupied + size
    if line.serving == NOBODY:
        line.serving = packet
        if line.run == 0:
            line.served = departs


@inline
def _drop(const, state, link, packet):
    """Drop a packet at a link's queue."""
    state.link[link].drops += 1
    record = state.packet[packet]
    if record.kind == DATA or record.kind == MARKED_DATA:
        state.subflow[np.int64(record.subflow)].dropped += 1
    free_record(state, packet)


@inline
def join(const, state, link, packet, departs):
    """Put a packet at the end of a link; departs: tick at which it has left the queue."""
    line = state.link[link]
    state.packet[packet].next = NOBODY
    if line.head == NOBODY:
        line.head, line.left = packet, low_bits(departs)
        await_packet(const, state, link, departs + np.int64(line.delay))
    else:
        last = state.packet[np.int64(line.tail)]
        last.next, last.followed = packet, low_bits(departs)
    line.tail = packet


@inline
def accept(const, state, link, packet, now):
    """Take a packet into the queue of a link, or drop it."""
    line, kind = state.link[link], state.packet[packet].kind
    odd, size, before = is_odd(kind), _size(const, kind), _occupied(const, state, line, now)
    occupied = before + size
    if occupied > np.int64(line.limit):
        _drop(const, state, link, packet)
        return
    if occupied > const.early and link < const.feeders:
        line.decisions += 1
        if drops_early(const.seed, link, line.decisions):
            _drop(const, state, link, packet)
            return
    if const.mark > 0 and occupied > const.mark and link < const.feeders and kind == DATA:
        state.packet[packet].kind = MARKED_DATA
        line.marks += 1
    service = _service(const, line, kind)
    departs = max(now, line.free_at) + service
    if odd or line.odd > 0:
        _mix(const, line, packet, odd, size, before, departs)
    line.free_at = departs
    line.accepted += 1
    line.stay += departs - now
    if occupied > np.int64(line.most):
        line.most = occupied
    join(const, state, link, packet, departs)
    note_busy(state.talk, link, service)


@inline
def goes_on(const, link):
    """Tell whether what comes off a link goes on another."""
    return link < const.eject or const.feeders <= link < const.links


@inline
def take_head(const, state, link, now):
    """Take the first packet, which arrives now, off a link; the link awaits its next one."""
    line = state.link[link]
    packet = np.int64(line.head)
    record = state.packet[packet]
    if line.odd > 0:
        if line.serving == packet:
            _let_go(const, state, line, now)
        line.odd = np.int64(line.odd) - is_odd(record.kind)
    behind = np.int64(record.next)
    if behind != NOBODY:
        await_packet(const, state, link, now + elapsed(record.followed, line.left))
    line.head, line.left = behind, record.followed
    return packet


@inline
def _left(line, now):
    """Return the tick at which the first packet on a link has left the queue, or will."""
    return whole_tick(line.left, now)


@njit
def break_link(const, state, link, now):
    """Lose what is on a link, which takes nothing any more."""
    line = state.link[link]
    packet = np.int64(line.head)
    if packet != NOBODY:
        forget_packet(const, state, link, _left(line, now) + np.int64(line.delay))
    while packet != NOBODY:
        behind = np.int64(state.packet[packet].next)
        _drop(const, state, link, packet)
        packet = behind
    line.head = line.serving = NOBODY
    line.run = line.occupied = line.limit = 0
    line.odd = const.mixed
    note_busy(state.talk, link, min(0, now - line.free_at))
    line.free_at = now


@njit
def change_rate(const, state, link, ratio, now):
    """Let a link take ``ratio`` for a byte from now on, also for the packets in its queue."""
    line = state.link[link]
    if line.odd > 0:
        _let_go(const, state, line, now)
    before, line.ratio, line.service = line.ratio, ratio, service_ticks(ratio, const.packet_bytes)
    free, previous, first, packet, leaves_at = now, NOBODY, NOBODY, np.int64(line.head), _left(line, now)
    while packet != NOBODY:
        record = state.packet[packet]
        behind, next_leaves_at = np.int64(record.next), leaves_at + elapsed(record.followed, leaves_at)
        if leaves_at > now:
            size = _size(const, record.kind)
            free += rest_ticks(leaves_at - now, before, ratio, size) if first == NOBODY else service_ticks(ratio, size)
            line.stay += free - leaves_at
            if first == NOBODY:
                first, line.served = packet, free
            if packet == line.head:
                forget_packet(const, state, link, leaves_at + np.int64(line.delay))
                line.left = low_bits(free)
                await_packet(const, state, link, free + np.int64(line.delay))
            else:
                state.packet[previous].followed = low_bits(free)
        previous, packet, leaves_at = packet, behind, next_leaves_at
    line.serving, line.run = first, 0
    if first != NOBODY:
        note_busy(state.talk, link, free - line.free_at)
        line.free_at = free
