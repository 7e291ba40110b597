# SPDX-License-Identifier: Apache-2.0
"""Hosts: what senders send and receivers hold; the windows themselves are NewReno's."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.transport.law import INSTANT, REVERSE_PATH
from flitlab.models.transport.newreno import (
    CLOSED,
    CWND,
    DEADLINE,
    HIGH,
    NEVER,
    OPEN,
    OPENING,
    STATE,
    UNA,
    acknowledge,
    fits_window,
    open_up,
    opened,
    time_out,
)
from flitlab.models.transport.newreno import NEXT as NEXT_SEQUENCE
from flitlab.models.transport.session import LATEST
from flitlab.sim.engines.compiled.datagram.links import accept, join
from flitlab.sim.engines.compiled.datagram.messages import note_received, note_taken
from flitlab.sim.engines.compiled.datagram.state import (
    ACK_BIT,
    DATA,
    MARKED_ACK,
    SYN,
    SYN_ACK,
    TRACE,
    TRACED,
    WINDOW,
)
from flitlab.sim.engines.compiled.pool import free_record, take_record
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits
from flitlab.sim.engines.compiled.timers import put_timer

_ONE = np.uint64(1)


@device_function
def _emit(const, state, subflow, sequence, kind, stamp, at, now):
    """Put a new packet of a subflow into the queue of the link at a place of ``state.path``.

    kind: DATA ... stamp: tick at which the data left the sender, its low 32 bits. at: the place.
    """
    packet = take_record(state)
    record = state.packet[packet]
    record.at, record.onto = at, state.path[at + 1]
    record.subflow, record.sequence, record.stamp, record.kind = subflow, sequence, stamp, kind
    accept(const, state, np.int64(state.path[at]), packet, now)


@inline
def _send(const, state, subflow, sequence, now):
    """Send a data packet of a subflow."""
    mine = state.subflow[subflow]
    mine.sent += 1
    _emit(const, state, subflow, sequence, DATA, low_bits(now), np.int64(mine.start), now)


@inline
def _make_room(state, sent):
    """Make sure that a receiver can hold ``sent`` packets: all sent beyond what it is known to have."""
    if sent > 64 * state.held.shape[1]:
        state.wants[WINDOW] = max(state.wants[WINDOW], sent)


@inline
def send_on(const, state, subflow, now):
    """Send what the window of a subflow admits: again what has been sent before a timeout, then new data."""
    seq, flow = state.senders.seq[subflow], np.int64(state.subflow[subflow].flow)
    while fits_window(state.senders.win[subflow, CWND], seq[UNA], seq[NEXT_SEQUENCE], const.rules.mss):
        if seq[NEXT_SEQUENCE] == seq[HIGH]:
            if state.left[flow] == 0:
                return
            state.left[flow] -= 1
            seq[HIGH] += 1
            _make_room(state, seq[HIGH] - seq[UNA])
            note_taken(state.talk, const, state, flow, now)
        else:
            state.subflow[subflow].resent += 1
        _send(const, state, subflow, seq[NEXT_SEQUENCE], now)
        seq[NEXT_SEQUENCE] += 1


@inline
def _hear(const, state, subflow, kind, una, stamp, now):
    """Take in an acknowledgement at the sender of a subflow.

    una: first packet that the receiver lacks. stamp: tick at which the data left the sender, its low 32 bits.
    """
    phase = state.senders.seq[subflow, STATE]
    if kind == SYN_ACK and phase != OPENING:
        return
    sample = elapsed(now, stamp)
    mine = state.subflow[subflow]
    mine.samples += 1
    mine.rtt += sample
    if phase == OPENING:
        opened(const.rules, state.senders, subflow, sample, now)
    else:
        first, last = np.int64(mine.first), np.int64(mine.last)
        marked = kind == MARKED_ACK
        if acknowledge(const.rules, state.senders, subflow, first, last, una, sample, marked, now):
            mine.resent += 1
            _send(const, state, subflow, state.senders.seq[subflow, UNA], now)
    send_on(const, state, subflow, now)


@inline
def _hold(state, subflow, sequence):
    """Tell whether the receiver of a subflow did not have a packet yet; it has it from now on."""
    mine = state.subflow[subflow]
    expected = np.int64(mine.expected)
    if sequence < expected:
        return False
    held = state.held[subflow]
    mask = np.uint64(64 * len(held) - 1)
    place = np.uint64(sequence) & mask
    if sequence > expected:
        bit = _ONE << (place & np.uint64(63))
        if held[place >> np.uint64(6)] & bit:
            return False
        held[place >> np.uint64(6)] |= bit
        mine.beyond = np.int64(mine.beyond) + 1
        return True
    expected, beyond = expected + 1, np.int64(mine.beyond)
    while beyond > 0:
        place = np.uint64(expected) & mask
        bit = _ONE << (place & np.uint64(63))
        if not held[place >> np.uint64(6)] & bit:
            break
        held[place >> np.uint64(6)] ^= bit
        beyond -= 1
        expected += 1
    mine.expected, mine.beyond = expected, beyond
    return True


@inline
def _receive(const, state, subflow, sequence, now):
    """Take in a data packet at its receiver."""
    mine = state.subflow[subflow]
    if len(state.trace):
        entry = state.trace[state.wants[TRACED]]
        entry[0], entry[1], entry[2] = now, subflow, sequence
        state.wants[TRACED] += 1
        if state.wants[TRACED] + const.links > len(state.trace):
            state.wants[TRACE] = 1
    if const.once or _hold(state, subflow, sequence):
        mine.received += 1
        flow = np.int64(mine.flow)
        state.missing[flow] -= 1
        if state.missing[flow] == 0:
            state.finished[flow] = now
        note_received(state.talk, const, state, flow, now)
    else:
        mine.again += 1


@inline
def _answer(const, state, subflow, kind, una, stamp, now):
    """Send an acknowledgement from the receiver of a subflow, through the queues or past them.

    una: first packet that the receiver lacks. stamp: of the data.
    """
    if const.ack_path == REVERSE_PATH:
        _emit(const, state, subflow, una, kind, stamp, np.int64(state.subflow[subflow].back), now)
        return
    packet = take_record(state)
    record = state.packet[packet]
    record.subflow, record.sequence, record.stamp, record.kind = subflow, una, stamp, kind
    record.onto = state.path[np.int64(state.subflow[subflow].start)]
    join(const, state, const.links + subflow, packet, now)


@inline
def deliver(const, state, link, packet, now):
    """Take in a packet at the host at the end of a link, or (past the links) of a pipe."""
    record = state.packet[packet]
    subflow, kind, stamp = np.int64(record.subflow), record.kind, record.stamp
    sequence = np.int64(record.sequence)
    free_record(state, packet)
    if not kind & ACK_BIT:
        if kind != SYN:
            _receive(const, state, subflow, sequence, now)
        if const.paced:
            return
        kind |= ACK_BIT
        sequence = np.int64(state.subflow[subflow].expected)
        if const.ack_path != INSTANT:
            _answer(const, state, subflow, kind, sequence, stamp, now)
            return
    _hear(const, state, subflow, kind, sequence, stamp, now)


@inline
def set_timer(state, tick, subflow):
    """Have a subflow looked at in a tick, by putting it into the heap of timers."""
    put_timer(state.timers, min(tick, LATEST) << 24 | subflow)


@device_function
def ring(const, state, subflow, now):
    """Look at a subflow: it starts, its first packet was lost, a timeout, or the deadline has moved since.

    It is looked at no later than the shortest timeout from now, as an acknowledgement may bring the deadline forward.
    """
    if const.paced:
        pace(const, state, subflow, now)
        return
    seq = state.senders.seq[subflow]
    if seq[DEADLINE] <= now:
        if seq[STATE] <= OPENING:
            state.subflow[subflow].timeouts += seq[STATE]
            open_up(const.rules, state.senders, subflow, now)
            _emit(const, state, subflow, 0, SYN, low_bits(now), np.int64(state.subflow[subflow].start), now)
        elif seq[UNA] == seq[NEXT_SEQUENCE]:
            seq[DEADLINE] = NEVER
            return
        else:
            state.subflow[subflow].timeouts += 1
            time_out(const.rules, state.senders, subflow, now)
            send_on(const, state, subflow, now)
    set_timer(state, min(seq[DEADLINE], now + np.int64(np.ceil(const.rules.min_rto))), subflow)


@inline
def pace(const, state, subflow, now):
    """Send the next packet of a constant-rate sender, which is closed as long as there is none."""
    mine, seq = state.subflow[subflow], state.senders.seq[subflow]
    flow = np.int64(mine.flow)
    seq[STATE] = CLOSED
    if state.left[flow] > 0:
        state.left[flow] -= 1
        _send(const, state, subflow, seq[HIGH], now)
        seq[HIGH] += 1
        if not const.once:
            _make_room(state, seq[HIGH] - np.int64(mine.expected))
        note_taken(state.talk, const, state, flow, now)
        seq[STATE] = OPEN
        set_timer(state, now + const.gap[subflow], subflow)
