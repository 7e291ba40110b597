# SPDX-License-Identifier: Apache-2.0
"""Queues and links: two FIFOs, a server, and a fixed delay behind it.

A server is settled, brought up to date, when its link is used, at the latest when its first packet in flight arrives:
that arrival is the only event of a packet on a link, and a link schedules one at a time.
"""

import numpy as np

from flitlab.models.jit import inline, njit
from flitlab.models.rules.datagram import rest_ticks, service_ticks
from flitlab.models.rules.spray.queues import evicts, is_marked, next_turn
from flitlab.sim.engines.compiled.link_wheel import cancel_arrival, schedule_arrival
from flitlab.sim.engines.compiled.pool import NONE, free_record
from flitlab.sim.engines.compiled.spray.lossless import LinkEvent, add_event
from flitlab.sim.engines.compiled.spray.state import (
    NO_CAPACITY,
    Fifo,
    Flag,
    is_untrimmed,
)
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits, whole_tick


@inline
def append(state, link_record, fifo, packet):
    """Append a packet to a list of a link: see Fifo.

    Parameters
    ----------
    link_record: int64 [LINK].
    fifo: the list.
    packet: int64.
    """
    record = state.packet[packet]
    record.next = NONE
    if link_record.first[fifo] == NONE:
        link_record.first[fifo] = packet
    else:
        state.packet[link_record.last[fifo]].next = packet
        if fifo == Fifo.DATA:
            record.previous = link_record.last[fifo]
    link_record.last[fifo] = packet


@inline
def take_first(state, link_record, fifo):
    """Remove the first packet from a list of a link, which is not empty."""
    packet = link_record.first[fifo]
    link_record.first[fifo] = np.int64(state.packet[packet].next)
    return packet


@inline
def _take_last(state, link_record):
    """Remove the last packet from the data FIFO of a link, which is not empty."""
    packet = link_record.last[Fifo.DATA]
    if packet == link_record.first[Fifo.DATA]:
        link_record.first[Fifo.DATA] = NONE
    else:
        before = np.int64(state.packet[packet].previous)
        state.packet[before].next = NONE
        link_record.last[Fifo.DATA] = before
    return packet


@inline
def start_service(const, state, link, packet, tick):
    """Let the idle server of a link start a packet.

    Parameters
    ----------
    link, packet: int64.
    tick: int64.
    """
    link_record, fixed, size = state.link[link], const.fixed[link], np.int64(state.packet[packet].size)
    if size == const.rules.mtu:
        service = fixed.mtu_ticks
    elif size == const.rules.control:
        service = fixed.control_ticks
    else:
        service = service_ticks(fixed.ratio, size)
    link_record.serving, link_record.service_end = packet, tick + service
    link_record.busy_ticks += service
    _schedule_service(state.lossless, const, state, link, tick + service)


@inline
def _schedule_service(lossless, const, state, link, ends):
    """Schedule the end of a service or, where it needs no event, the arrival of the packet if it is the link's next."""
    if lossless is not None:
        add_event(lossless, const, state, ends, link, LinkEvent.SERVICE_END)
    elif state.link[link].first[Fifo.IN_FLIGHT] == NONE:
        schedule_arrival(const, state, link, ends + const.fixed[link].delay)


@inline
def end_service(state, link_record):
    """End the service of a link's packet, which is in flight then, and return it."""
    packet = link_record.serving
    append(state, link_record, Fifo.IN_FLIGHT, packet)
    state.packet[packet].ended = low_bits(link_record.service_end)
    link_record.serving = NONE
    return packet


@inline
def settle(const, state, link, now):
    """Settle the server of a switch's output: account for what it has done up to and in this tick."""
    _settle(state.lossless, const, state, link, now)


@inline
def _settle(lossless, const, state, link, now):
    """Settle a server; those of lossless queues need not be: their services end by events."""
    if lossless is not None:
        return
    link_record = state.link[link]
    while link_record.serving != NONE and link_record.service_end <= now:
        ended, packet = link_record.service_end, end_service(state, link_record)
        record = state.packet[packet]
        if is_untrimmed(record.kind):
            link_record.data_bytes -= np.int64(record.size)
            if link_record.data_bytes > const.fixed[link].mark_low:
                _mark(const, state, link, record)
        else:
            link_record.control_bytes -= np.int64(record.size)
        _start_next(const, state, link, ended)


@inline
def _start_next(const, state, link, tick):
    """Let the idle server of a switch's output start the next packet."""
    link_record = state.link[link]
    control = link_record.first[Fifo.CONTROL] != NONE
    if const.rules.weighted != 0 and control and link_record.first[Fifo.DATA] != NONE:
        control = state.cycle[link] != 0
        state.cycle[link] = next_turn(state.cycle[link])
    if control:
        start_service(const, state, link, take_first(state, link_record, Fifo.CONTROL), tick)
    elif link_record.first[Fifo.DATA] != NONE:
        start_service(const, state, link, take_first(state, link_record, Fifo.DATA), tick)


@inline
def _mark(const, state, link, record):
    """Mark a packet (ECN) if it leaves a long queue behind; between the thresholds at random."""
    link_record, low, high = state.link[link], const.fixed[link].mark_low, const.fixed[link].mark_high
    marked = is_marked(const.rules.seed, link, link_record.mark_draws, link_record.data_bytes, low, high)
    if link_record.data_bytes <= high:
        link_record.mark_draws += 1
    if marked and record.kind & Flag.ECN_MARK == 0:
        record.kind |= Flag.ECN_MARK
        link_record.marked += 1


@inline
def take_first_in_flight(const, state, link, now):
    """Remove the packet that arrives now from a settled link, and schedule the next arrival."""
    link_record = state.link[link]
    packet = take_first(state, link_record, Fifo.IN_FLIGHT)
    if link_record.first[Fifo.IN_FLIGHT] != NONE:
        later = elapsed(state.packet[link_record.first[Fifo.IN_FLIGHT]].ended, state.packet[packet].ended)
        schedule_arrival(const, state, link, now + later)
    elif link_record.serving != NONE:
        schedule_arrival(const, state, link, link_record.service_end + const.fixed[link].delay)
    return packet


@inline
def drop(state, link, packet):
    """Drop a packet at a link."""
    state.dropped[link].drops += 1
    free_record(state, packet)


@inline
def accept(const, state, link, packet, now):
    """Accept a packet into the queue of a switch's output, or trim or drop one if the queue is full.

    Parameters
    ----------
    link, packet: int64.
    now: int64, tick.
    """
    settle(const, state, link, now)
    link_record = state.link[link]
    size, victim = np.int64(state.packet[packet].size), packet
    if is_untrimmed(state.packet[packet].kind):
        victim = NONE
        if link_record.data_bytes + size > const.fixed[link].capacity:
            if const.fixed[link].capacity == NO_CAPACITY:
                drop(state, link, packet)
                return
            victim = packet
            heads = evicts(const.rules.seed, link, link_record.full_count)
            link_record.full_count += 1
            if heads and link_record.first[Fifo.DATA] != NONE:
                victim = _take_last(state, link_record)
                link_record.data_bytes -= np.int64(state.packet[victim].size)
                link_record.accepted -= 1
        if victim != packet:
            append(state, link_record, Fifo.DATA, packet)
            link_record.data_bytes += size
            link_record.accepted += 1
            link_record.max_data_bytes = max(link_record.max_data_bytes, link_record.data_bytes)
        if victim != NONE:
            if const.rules.trims == 0:
                drop(state, link, victim)
                victim = NONE
            else:
                state.dropped[link].trims += 1
                state.packet[victim].size = const.rules.control
                state.packet[victim].kind |= (Flag.TRIMMED | Flag.LAST_HOP) if link >= const.eject else Flag.TRIMMED
    if victim != NONE:
        size = np.int64(state.packet[victim].size)
        if link_record.control_bytes + size > 2 * const.fixed[link].capacity:
            drop(state, link, victim)
        else:
            append(state, link_record, Fifo.CONTROL, victim)
            link_record.control_bytes += size
            link_record.accepted += 1
    if link_record.serving == NONE:
        _start_next(const, state, link, now)


@njit
def break_link(const, state, link, now):
    """Fail a settled link: drop all its packets, and accept no more."""
    link_record, fixed = state.link[link], const.fixed[link]
    _cancel_arrival(const, state, link, now)
    for fifo in (Fifo.IN_FLIGHT, Fifo.CONTROL, Fifo.DATA):
        while link_record.first[fifo] != NONE:
            drop(state, link, take_first(state, link_record, fifo))
    if link_record.serving != NONE:
        link_record.busy_ticks -= link_record.service_end - now
        drop(state, link, link_record.serving)
        link_record.serving = NONE
    link_record.data_bytes = link_record.control_bytes = 0
    fixed.capacity = NO_CAPACITY


@inline
def _cancel_arrival(const, state, link, now):
    """Cancel the scheduled arrival of a link's first packet, if there is one."""
    link_record, delay = state.link[link], const.fixed[link].delay
    if link_record.first[Fifo.IN_FLIGHT] != NONE:
        cancel_arrival(
            const, state, link, whole_tick(state.packet[link_record.first[Fifo.IN_FLIGHT]].ended, now) + delay
        )
    elif link_record.serving != NONE:
        cancel_arrival(const, state, link, link_record.service_end + delay)


@njit
def change_link(const, state, link, ratio, capacity, low, high, now):
    """Change rate, capacity and ECN thresholds of a settled link, also for the packet in service.

    Parameters
    ----------
    link: int64.
    ratio: int64, ticks per byte times 2**RATIO_BITS.
    capacity: int64, bytes.
    low, high: int64, ECN thresholds in bytes.
    now: int64, tick.
    """
    link_record, fixed = state.link[link], const.fixed[link]
    before = fixed.ratio
    fixed.ratio, fixed.capacity, fixed.mark_low, fixed.mark_high = ratio, capacity, low, high
    fixed.mtu_ticks, fixed.control_ticks = (
        service_ticks(ratio, const.rules.mtu),
        service_ticks(ratio, const.rules.control),
    )
    if link_record.serving != NONE:
        size = np.int64(state.packet[link_record.serving].size)
        ends = now + rest_ticks(link_record.service_end - now, before, ratio, size)
        link_record.busy_ticks += ends - link_record.service_end
        _reschedule_service(state.lossless, const, state, link, ends, now)
        link_record.service_end = ends


@inline
def _reschedule_service(lossless, const, state, link, ends, now):
    """Move the event of a packet in service to another end of it; of lossless queues the former one is ignored."""
    if lossless is not None:
        add_event(lossless, const, state, ends, link, LinkEvent.SERVICE_END)
    elif state.link[link].first[Fifo.IN_FLIGHT] == NONE:
        _cancel_arrival(const, state, link, now)
        schedule_arrival(const, state, link, ends + const.fixed[link].delay)
