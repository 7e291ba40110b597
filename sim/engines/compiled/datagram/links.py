# SPDX-License-Identifier: Apache-2.0
"""Queues and links. A packet's departure is known when a queue accepts it, so that a hop is one event.

That event is the arrival at the next queue or host, after service and propagation; a link schedules only that of its
first packet.
"""

import numpy as np

from flitlab.models.jit import inline, njit
from flitlab.models.rules.datagram import drops_early, rest_ticks, service_ticks
from flitlab.models.transport.session import SYN_BYTES
from flitlab.sim.engines.compiled.datagram.messages import add_busy_ticks
from flitlab.sim.engines.compiled.datagram.state import ODD_SIZE_BITS, Kind
from flitlab.sim.engines.compiled.link_wheel import cancel_arrival, schedule_arrival
from flitlab.sim.engines.compiled.pool import NONE, free_record
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits, whole_tick


@inline
def has_odd_size(kind):
    """Tell whether packets of a kind have another size than data packets."""
    return kind & ODD_SIZE_BITS != 0


@inline
def _size(const, kind):
    """Return the bytes of a packet of a kind in a queue."""
    if not has_odd_size(kind):
        return const.packet_bytes
    return SYN_BYTES if kind == Kind.SYN else const.ack_bytes


@inline
def _service(const, link_record, kind):
    """Return the service time of a packet of a kind on a link, in ticks."""
    return (
        service_ticks(link_record.ratio, _size(const, kind)) if has_odd_size(kind) else np.int64(link_record.data_ticks)
    )


@inline
def _settle_queue(const, state, link_record, now):
    """Remove the packets that have left a link's queue by now, some of odd size, from its occupancy."""
    run, packet, served, occupied = (
        np.int64(link_record.data_run),
        np.int64(link_record.first_in_queue),
        link_record.first_departure,
        link_record.occupied_bytes,
    )
    while run > 0 and served <= now:
        occupied -= const.packet_bytes
        run -= 1
        served += (
            np.int64(link_record.data_ticks) if run > 0 else _service(const, link_record, state.packet[packet].kind)
        )
    if run == 0:
        while packet != NONE and served <= now:
            record = state.packet[packet]
            occupied -= _size(const, record.kind)
            served += elapsed(record.followed, served)
            packet = np.int64(record.next)
    link_record.data_run, link_record.first_in_queue, link_record.first_departure, link_record.occupied_bytes = (
        run,
        packet,
        served,
        occupied,
    )


@inline
def _occupied(const, state, link_record, now):
    """Return the bytes in a link's queue, with the packet in service."""
    if link_record.odd_size_packets == 0:
        busy = np.uint64(max(np.int64(0), link_record.free_at - now))
        service = np.uint64(link_record.data_ticks)
        return np.int64((busy + service - np.uint64(1)) // service) * const.packet_bytes
    _settle_queue(const, state, link_record, now)
    return link_record.occupied_bytes


@inline
def _add_odd_size(const, link_record, packet, odd, size, occupied, departs_at):
    """Account for a packet of odd size, or for any packet in a queue that has one.

    size, occupied: bytes of the packet, and of those before it. departs_at: tick at which it leaves the queue.
    """
    if odd:
        if link_record.odd_size_packets == 0:
            link_record.data_run, link_record.first_in_queue = occupied // const.packet_bytes, NONE
            link_record.first_departure = link_record.free_at - (np.int64(link_record.data_run) - 1) * np.int64(
                link_record.data_ticks
            )
        link_record.odd_size_packets = np.int64(link_record.odd_size_packets) + 1
    link_record.occupied_bytes = occupied + size
    if link_record.first_in_queue == NONE:
        link_record.first_in_queue = packet
        if link_record.data_run == 0:
            link_record.first_departure = departs_at


@inline
def _drop(state, link, packet):
    """Drop a packet at a link's queue."""
    state.link[link].drops += 1
    record = state.packet[packet]
    if record.kind == Kind.DATA or record.kind == Kind.MARKED_DATA:
        state.subflow[np.int64(record.subflow)].dropped += 1
    free_record(state, packet)


@inline
def append_packet(const, state, link, packet, departs_at):
    """Append a packet to a link.

    Parameters
    ----------
    link, packet: int64.
    departs_at: int64, tick at which the packet leaves the queue.
    """
    link_record = state.link[link]
    state.packet[packet].next = NONE
    if link_record.first_packet == NONE:
        link_record.first_packet, link_record.left = packet, low_bits(departs_at)
        schedule_arrival(const, state, link, departs_at + np.int64(link_record.delay))
    else:
        last = state.packet[np.int64(link_record.last_packet)]
        last.next, last.followed = packet, low_bits(departs_at)
    link_record.last_packet = packet


@inline
def accept(const, state, link, packet, now):
    """Accept a packet into the queue of a link, or drop it.

    Parameters
    ----------
    link, packet: int64.
    now: int64, tick.
    """
    link_record, kind = state.link[link], state.packet[packet].kind
    odd, size, occupied_before = has_odd_size(kind), _size(const, kind), _occupied(const, state, link_record, now)
    occupied = occupied_before + size
    if occupied > np.int64(link_record.capacity):
        _drop(state, link, packet)
        return
    if occupied > const.early_drop_bytes and link < const.feeders:
        link_record.decisions += 1
        if drops_early(const.seed, link, link_record.decisions):
            _drop(state, link, packet)
            return
    if const.mark_bytes > 0 and occupied > const.mark_bytes and link < const.feeders and kind == Kind.DATA:
        state.packet[packet].kind = Kind.MARKED_DATA
        link_record.marks += 1
    service = _service(const, link_record, kind)
    departs_at = max(now, link_record.free_at) + service
    if odd or link_record.odd_size_packets > 0:
        _add_odd_size(const, link_record, packet, odd, size, occupied_before, departs_at)
    link_record.free_at = departs_at
    link_record.accepted += 1
    link_record.queueing_ticks += departs_at - now
    link_record.accepted_bytes += size
    if occupied > np.int64(link_record.max_occupancy):
        link_record.max_occupancy = occupied
    append_packet(const, state, link, packet, departs_at)
    add_busy_ticks(state.program, link, service)


@inline
def is_internal(const, link):
    """Tell whether a link ends at another queue, not at a host."""
    return link < const.eject or const.feeders <= link < const.links


@inline
def take_first_packet(const, state, link, now):
    """Remove the first packet, which arrives now, from a link, and schedule the arrival of the next."""
    link_record = state.link[link]
    packet = np.int64(link_record.first_packet)
    record = state.packet[packet]
    if link_record.odd_size_packets > 0:
        if link_record.first_in_queue == packet:
            _settle_queue(const, state, link_record, now)
        link_record.odd_size_packets = np.int64(link_record.odd_size_packets) - has_odd_size(record.kind)
    next_packet = np.int64(record.next)
    if next_packet != NONE:
        schedule_arrival(const, state, link, now + elapsed(record.followed, link_record.left))
    link_record.first_packet, link_record.left = next_packet, record.followed
    return packet


@inline
def _left_queue_at(link_record, now):
    """Return the tick at which the first packet on a link leaves the queue."""
    return whole_tick(link_record.left, now)


@njit
def queued(const, state, link, now):
    """Return counts of the packets still in a link's queue: their number, ticks to departure, unsent bytes."""
    link_record = state.link[link]
    packets = ticks = size_left = np.int64(0)
    packet, leaves_at = np.int64(link_record.first_packet), _left_queue_at(link_record, now)
    while packet != NONE:
        record = state.packet[packet]
        if leaves_at > now:
            size = np.int64(_size(const, record.kind))
            service = service_ticks(link_record.ratio, size)
            packets += 1
            ticks += leaves_at - now
            size_left += size * min(service, leaves_at - now) // service
        leaves_at += elapsed(record.followed, leaves_at)
        packet = np.int64(record.next)
    return packets, ticks, size_left


@njit
def break_link(const, state, link, now):
    """Fail a link: drop all its packets, and accept no more."""
    link_record = state.link[link]
    packets, ticks, size_left = queued(const, state, link, now)
    link_record.accepted -= packets
    link_record.queueing_ticks -= ticks
    link_record.accepted_bytes -= size_left
    packet = np.int64(link_record.first_packet)
    if packet != NONE:
        cancel_arrival(const, state, link, _left_queue_at(link_record, now) + np.int64(link_record.delay))
    while packet != NONE:
        next_packet = np.int64(state.packet[packet].next)
        _drop(state, link, packet)
        packet = next_packet
    link_record.first_packet = link_record.first_in_queue = NONE
    link_record.data_run = link_record.occupied_bytes = link_record.capacity = 0
    link_record.odd_size_packets = const.mixed
    add_busy_ticks(state.program, link, min(0, now - link_record.free_at))
    link_record.free_at = now


@njit
def change_rate(const, state, link, ratio, now):
    """Change the rate of a link, also for the packets in its queue.

    Parameters
    ----------
    link: int64.
    ratio: int64, ticks per byte times 2**RATIO_BITS.
    now: int64, tick.
    """
    link_record = state.link[link]
    if link_record.odd_size_packets > 0:
        _settle_queue(const, state, link_record, now)
    occupied_before, link_record.ratio, link_record.data_ticks = (
        link_record.ratio,
        ratio,
        service_ticks(ratio, const.packet_bytes),
    )
    free_at, previous, first_moved, packet, leaves_at = (
        now,
        NONE,
        NONE,
        np.int64(link_record.first_packet),
        _left_queue_at(link_record, now),
    )
    while packet != NONE:
        record = state.packet[packet]
        next_packet, next_leaves_at = np.int64(record.next), leaves_at + elapsed(record.followed, leaves_at)
        if leaves_at > now:
            size = _size(const, record.kind)
            free_at += (
                rest_ticks(leaves_at - now, occupied_before, ratio, size)
                if first_moved == NONE
                else service_ticks(ratio, size)
            )
            link_record.queueing_ticks += free_at - leaves_at
            if first_moved == NONE:
                first_moved, link_record.first_departure = packet, free_at
            if packet == link_record.first_packet:
                cancel_arrival(const, state, link, leaves_at + np.int64(link_record.delay))
                link_record.left = low_bits(free_at)
                schedule_arrival(const, state, link, free_at + np.int64(link_record.delay))
            else:
                state.packet[previous].followed = low_bits(free_at)
        previous, packet, leaves_at = packet, next_packet, next_leaves_at
    link_record.first_in_queue, link_record.data_run = first_moved, 0
    if first_moved != NONE:
        add_busy_ticks(state.program, link, free_at - link_record.free_at)
        link_record.free_at = free_at
