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
from flitlab.sim.engines.compiled.spray.state import (
    ACCEPTED,
    BUSY_TICKS,
    CAPACITY,
    CONTROL_BYTES,
    CONTROL_FIFO,
    CONTROL_TICKS,
    DATA,
    DATA_BYTES,
    DATA_FIFO,
    DELAY,
    DROPS,
    ECN_MARK,
    ENDED,
    FULL_COUNT,
    IN_FLIGHT,
    KIND,
    KINDS,
    LAST_HOP,
    MARK_DRAWS,
    MARK_HIGH,
    MARK_LOW,
    MARKED,
    MAX_DATA_BYTES,
    MTU_TICKS,
    NEXT,
    NO_CAPACITY,
    PREVIOUS,
    RATIO,
    REQUEST,
    SERVICE_END,
    SERVING,
    SIZE,
    TRIMMED_FLAG,
    TRIMS,
)
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits, whole_tick


@inline
def is_untrimmed(kind):
    """Tell whether a packet of a kind is data that was not trimmed."""
    return kind & (KINDS | TRIMMED_FLAG) == DATA


@inline
def is_response(kind):
    """Tell whether a packet of a kind goes from the destination of its flow to the source."""
    return kind & KINDS != DATA and kind & KINDS != REQUEST


@inline
def append(state, link_record, fifo, packet):
    """Append a packet to a list of a link: IN_FLIGHT, CONTROL_FIFO or DATA_FIFO.

    Parameters
    ----------
    link_record: int64 [LINK].
    fifo: the list.
    packet: int64.
    """
    record = state.packet[packet]
    record[NEXT] = NONE
    if link_record[fifo] == NONE:
        link_record[fifo] = packet
    else:
        state.packet[link_record[fifo + 1], NEXT] = packet
        if fifo == DATA_FIFO:
            record[PREVIOUS] = link_record[fifo + 1]
    link_record[fifo + 1] = packet


@inline
def take_first(state, link_record, fifo):
    """Remove the first packet from a list of a link, which is not empty."""
    packet = link_record[fifo]
    link_record[fifo] = np.int64(state.packet[packet, NEXT])
    return packet


@inline
def _take_last(state, link_record):
    """Remove the last packet from the data FIFO of a link, which is not empty."""
    packet = link_record[DATA_FIFO + 1]
    if packet == link_record[DATA_FIFO]:
        link_record[DATA_FIFO] = NONE
    else:
        before = np.int64(state.packet[packet, PREVIOUS])
        state.packet[before, NEXT] = NONE
        link_record[DATA_FIFO + 1] = before
    return packet


@inline
def start_service(const, state, link, packet, tick):
    """Let the idle server of a link start a packet.

    Parameters
    ----------
    link, packet: int64.
    tick: int64.
    """
    link_record, fixed, size = state.link[link], const.fixed[link], np.int64(state.packet[packet, SIZE])
    if size == const.rules.mtu:
        service = fixed[MTU_TICKS]
    elif size == const.rules.control:
        service = fixed[CONTROL_TICKS]
    else:
        service = service_ticks(fixed[RATIO], size)
    link_record[SERVING], link_record[SERVICE_END] = packet, tick + service
    link_record[BUSY_TICKS] += service
    if link_record[IN_FLIGHT] == NONE:
        schedule_arrival(const, state, link, tick + service + fixed[DELAY])


@inline
def end_service(state, link_record):
    """End the service of a link's packet, which is in flight then, and return it."""
    packet = link_record[SERVING]
    append(state, link_record, IN_FLIGHT, packet)
    state.packet[packet, ENDED] = low_bits(link_record[SERVICE_END])
    link_record[SERVING] = NONE
    return packet


@inline
def settle(const, state, link, now):
    """Settle the server of a switch's output: account for what it has done up to and in this tick."""
    link_record = state.link[link]
    while link_record[SERVING] != NONE and link_record[SERVICE_END] <= now:
        ended, packet = link_record[SERVICE_END], end_service(state, link_record)
        record = state.packet[packet]
        if is_untrimmed(record[KIND]):
            link_record[DATA_BYTES] -= np.int64(record[SIZE])
            if link_record[DATA_BYTES] > const.fixed[link, MARK_LOW]:
                _mark(const, state, link, record)
        else:
            link_record[CONTROL_BYTES] -= np.int64(record[SIZE])
        _start_next(const, state, link, ended)


@inline
def _start_next(const, state, link, tick):
    """Let the idle server of a switch's output start the next packet."""
    link_record = state.link[link]
    control = link_record[CONTROL_FIFO] != NONE
    if const.rules.weighted != 0 and control and link_record[DATA_FIFO] != NONE:
        control = state.cycle[link] != 0
        state.cycle[link] = next_turn(state.cycle[link])
    if control:
        start_service(const, state, link, take_first(state, link_record, CONTROL_FIFO), tick)
    elif link_record[DATA_FIFO] != NONE:
        start_service(const, state, link, take_first(state, link_record, DATA_FIFO), tick)


@inline
def _mark(const, state, link, record):
    """Mark a packet (ECN) if it leaves a long queue behind; between the thresholds at random."""
    link_record, low, high = state.link[link], const.fixed[link, MARK_LOW], const.fixed[link, MARK_HIGH]
    marked = is_marked(const.rules.seed, link, link_record[MARK_DRAWS], link_record[DATA_BYTES], low, high)
    if link_record[DATA_BYTES] <= high:
        link_record[MARK_DRAWS] += 1
    if marked and record[KIND] & ECN_MARK == 0:
        record[KIND] |= ECN_MARK
        link_record[MARKED] += 1


@inline
def take_first_in_flight(const, state, link, now):
    """Remove the packet that arrives now from a settled link, and schedule the next arrival."""
    link_record = state.link[link]
    packet = take_first(state, link_record, IN_FLIGHT)
    if link_record[IN_FLIGHT] != NONE:
        later = elapsed(state.packet[link_record[IN_FLIGHT], ENDED], state.packet[packet, ENDED])
        schedule_arrival(const, state, link, now + later)
    elif link_record[SERVING] != NONE:
        schedule_arrival(const, state, link, link_record[SERVICE_END] + const.fixed[link, DELAY])
    return packet


@inline
def _drop(state, link, packet):
    """Drop a packet at a link."""
    state.dropped[link, DROPS] += 1
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
    size, victim = np.int64(state.packet[packet, SIZE]), packet
    if is_untrimmed(state.packet[packet, KIND]):
        victim = NONE
        if link_record[DATA_BYTES] + size > const.fixed[link, CAPACITY]:
            if const.fixed[link, CAPACITY] == NO_CAPACITY:
                _drop(state, link, packet)
                return
            victim = packet
            heads = evicts(const.rules.seed, link, link_record[FULL_COUNT])
            link_record[FULL_COUNT] += 1
            if heads and link_record[DATA_FIFO] != NONE:
                victim = _take_last(state, link_record)
                link_record[DATA_BYTES] -= np.int64(state.packet[victim, SIZE])
                link_record[ACCEPTED] -= 1
        if victim != packet:
            append(state, link_record, DATA_FIFO, packet)
            link_record[DATA_BYTES] += size
            link_record[ACCEPTED] += 1
            link_record[MAX_DATA_BYTES] = max(link_record[MAX_DATA_BYTES], link_record[DATA_BYTES])
        if victim != NONE:
            if const.rules.trims == 0:
                _drop(state, link, victim)
                victim = NONE
            else:
                state.dropped[link, TRIMS] += 1
                state.packet[victim, SIZE] = const.rules.control
                state.packet[victim, KIND] |= (TRIMMED_FLAG | LAST_HOP) if link >= const.eject else TRIMMED_FLAG
    if victim != NONE:
        size = np.int64(state.packet[victim, SIZE])
        if link_record[CONTROL_BYTES] + size > 2 * const.fixed[link, CAPACITY]:
            _drop(state, link, victim)
        else:
            append(state, link_record, CONTROL_FIFO, victim)
            link_record[CONTROL_BYTES] += size
            link_record[ACCEPTED] += 1
    if link_record[SERVING] == NONE:
        _start_next(const, state, link, now)


@njit
def break_link(const, state, link, now):
    """Fail a settled link: drop all its packets, and accept no more."""
    link_record, fixed = state.link[link], const.fixed[link]
    _cancel_arrival(const, state, link, now)
    for fifo in (IN_FLIGHT, CONTROL_FIFO, DATA_FIFO):
        while link_record[fifo] != NONE:
            _drop(state, link, take_first(state, link_record, fifo))
    if link_record[SERVING] != NONE:
        link_record[BUSY_TICKS] -= link_record[SERVICE_END] - now
        _drop(state, link, link_record[SERVING])
        link_record[SERVING] = NONE
    link_record[DATA_BYTES] = link_record[CONTROL_BYTES] = 0
    fixed[CAPACITY] = NO_CAPACITY


@inline
def _cancel_arrival(const, state, link, now):
    """Cancel the scheduled arrival of a link's first packet, if there is one."""
    link_record, delay = state.link[link], const.fixed[link, DELAY]
    if link_record[IN_FLIGHT] != NONE:
        cancel_arrival(const, state, link, whole_tick(state.packet[link_record[IN_FLIGHT], ENDED], now) + delay)
    elif link_record[SERVING] != NONE:
        cancel_arrival(const, state, link, link_record[SERVICE_END] + delay)


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
    before = fixed[RATIO]
    fixed[RATIO], fixed[CAPACITY], fixed[MARK_LOW], fixed[MARK_HIGH] = ratio, capacity, low, high
    fixed[MTU_TICKS], fixed[CONTROL_TICKS] = (
        service_ticks(ratio, const.rules.mtu),
        service_ticks(ratio, const.rules.control),
    )
    if link_record[SERVING] != NONE:
        size = np.int64(state.packet[link_record[SERVING], SIZE])
        ends = now + rest_ticks(link_record[SERVICE_END] - now, before, ratio, size)
        link_record[BUSY_TICKS] += ends - link_record[SERVICE_END]
        if link_record[IN_FLIGHT] == NONE:
            _cancel_arrival(const, state, link, now)
            schedule_arrival(const, state, link, ends + fixed[DELAY])
        link_record[SERVICE_END] = ends
