# SPDX-License-Identifier: Apache-2.0
"""Hosts: senders and receivers; windows follow NewReno (:mod:`flitlab.models.transport.newreno`)."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.transport.law import AckPath
from flitlab.models.transport.newreno import (
    NEVER,
    ConnectionState,
    acknowledge,
    fits_window,
    open_up,
    opened,
    time_out,
)
from flitlab.models.transport.session import LATEST
from flitlab.sim.engines.compiled.datagram.links import accept, append_packet
from flitlab.sim.engines.compiled.datagram.messages import record_received, record_sent_packet
from flitlab.sim.engines.compiled.datagram.state import Kind
from flitlab.sim.engines.compiled.pool import allocate_record, free_record
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits
from flitlab.sim.engines.compiled.transport import Growth, push_timer, rules_of, trace_packet

_ONE = np.uint64(1)


@device_function
def _emit_packet(const, state, subflow, sequence, kind, stamp, path_index, now):
    """Create a packet of a subflow, and put it into the queue of the link at ``path_index`` of ``state.path``.

    kind: Kind. stamp: low 32 bits of the tick at which the data left the sender.
    """
    packet = allocate_record(state)
    record = state.packet[packet]
    record.path_index, record.next_link = path_index, state.path[path_index + 1]
    record.subflow, record.sequence, record.stamp, record.kind = subflow, sequence, stamp, kind
    accept(const, state, np.int64(state.path[path_index]), packet, now)


@inline
def _send(const, state, subflow, sequence, now):
    """Send a data packet of a subflow."""
    subflow_record = state.subflow[subflow]
    subflow_record.sent += 1
    _emit_packet(
        const, state, subflow, sequence, np.int64(Kind.DATA), low_bits(now), np.int64(subflow_record.path_start), now
    )


@inline
def _reserve_window(state, sent):
    """Make sure that a receiver can store ``sent`` packets, all those in flight."""
    if sent > 64 * state.reorder_bits.shape[1]:
        state.growth_needed[Growth.WINDOW] = max(state.growth_needed[Growth.WINDOW], sent)


@inline
def send_on(const, state, subflow, now):
    """Send what the window of a subflow allows: first retransmissions after a timeout, then new data."""
    seq, flow = state.senders.seq[subflow], np.int64(state.subflow[subflow].flow)
    while fits_window(state.senders.win[subflow].cwnd, seq.una, seq.next, rules_of(const, subflow).mss):
        if seq.next == seq.high:
            if state.unsent[flow] == 0:
                return
            state.unsent[flow] -= 1
            seq.high += 1
            _reserve_window(state, seq.high - seq.una)
            record_sent_packet(state.program, const, state, flow, now)
        else:
            state.subflow[subflow].retransmissions += 1
        _send(const, state, subflow, seq.next, now)
        seq.next += 1


@inline
def _process_ack(const, state, subflow, kind, first_missing, stamp, now):
    """Process an ACK at the sender of a subflow.

    first_missing: first packet that the receiver lacks. stamp: low 32 bits of the tick at which the data left the
    sender.
    """
    phase = state.senders.seq[subflow].state
    if kind == Kind.SYN_ACK and phase != ConnectionState.OPENING:
        return
    sample = elapsed(now, stamp)
    subflow_record = state.subflow[subflow]
    subflow_record.samples += 1
    subflow_record.rtt += sample
    if phase == ConnectionState.OPENING:
        opened(rules_of(const, subflow), state.senders, subflow, sample, now)
    else:
        rules, marked = rules_of(const, subflow), kind == Kind.MARKED_ACK
        first, last = np.int64(subflow_record.first), np.int64(subflow_record.last)
        if acknowledge(rules, state.senders, subflow, first, last, first_missing, sample, marked, now):
            subflow_record.retransmissions += 1
            _send(const, state, subflow, state.senders.seq[subflow].una, now)
    send_on(const, state, subflow, now)


@inline
def _is_new(state, subflow, sequence):
    """Tell whether the receiver of a subflow lacked a packet, and record that it has it."""
    subflow_record = state.subflow[subflow]
    expected = np.int64(subflow_record.expected)
    if sequence < expected:
        return False
    held = state.reorder_bits[subflow]
    mask = np.uint64(64 * len(held) - 1)
    bit_index = np.uint64(sequence) & mask
    if sequence > expected:
        bit = _ONE << (bit_index & np.uint64(63))
        if held[bit_index >> np.uint64(6)] & bit:
            return False
        held[bit_index >> np.uint64(6)] |= bit
        subflow_record.out_of_order = np.int64(subflow_record.out_of_order) + 1
        return True
    expected, beyond = expected + 1, np.int64(subflow_record.out_of_order)
    while beyond > 0:
        bit_index = np.uint64(expected) & mask
        bit = _ONE << (bit_index & np.uint64(63))
        if not held[bit_index >> np.uint64(6)] & bit:
            break
        held[bit_index >> np.uint64(6)] ^= bit
        beyond -= 1
        expected += 1
    subflow_record.expected, subflow_record.out_of_order = expected, beyond
    return True


@inline
def _receive(const, state, subflow, sequence, now):
    """Receive a data packet."""
    subflow_record = state.subflow[subflow]
    trace_packet(state, subflow, sequence, const.links, now)
    if const.no_retransmissions or _is_new(state, subflow, sequence):
        subflow_record.received += 1
        flow = np.int64(subflow_record.flow)
        state.undelivered[flow] -= 1
        if state.undelivered[flow] == 0:
            state.finished[flow] = now
        record_received(state.program, const, state, flow, now)
    else:
        subflow_record.duplicates += 1


@inline
def _send_ack(const, state, subflow, kind, first_missing, stamp, now):
    """Send an ACK from the receiver of a subflow, through queues or past them.

    first_missing: first packet that the receiver lacks. stamp: of the data.
    """
    if const.ack_path == AckPath.REVERSE_PATH:
        _emit_packet(
            const, state, subflow, first_missing, kind, stamp, np.int64(state.subflow[subflow].ack_path_start), now
        )
        return
    packet = allocate_record(state)
    record = state.packet[packet]
    record.subflow, record.sequence, record.stamp, record.kind = subflow, first_missing, stamp, kind
    record.next_link = state.path[np.int64(state.subflow[subflow].path_start)]
    append_packet(const, state, np.int64(state.subflow[subflow].pipe), packet, now)


@inline
def deliver(const, state, packet, now):
    """Deliver a packet to the host at the end of a link, or (behind the links) of a pipe.

    Parameters
    ----------
    packet: int64; its record is freed.
    now: int64, tick.
    """
    record = state.packet[packet]
    subflow, kind, stamp = np.int64(record.subflow), record.kind, record.stamp
    sequence = np.int64(record.sequence)
    free_record(state, packet)
    if not kind & Kind.ACK_BIT:
        if kind != Kind.SYN:
            _receive(const, state, subflow, sequence, now)
        if const.paced:
            return
        kind |= Kind.ACK_BIT
        sequence = np.int64(state.subflow[subflow].expected)
        if const.ack_path != AckPath.INSTANT:
            _send_ack(const, state, subflow, kind, sequence, stamp, now)
            return
    _process_ack(const, state, subflow, kind, sequence, stamp, now)


@inline
def set_timer(state, tick, subflow):
    """Set a timer of a subflow."""
    push_timer(state.timers, min(tick, LATEST) << 24 | subflow)


@device_function
def expire(const, state, subflow, now):
    """Handle the expired timer of a subflow: start, lost SYN, timeout, or a deadline that has moved.

    The next timer is set no later than the shortest timeout from now, as an ACK may move the deadline forward.
    """
    if const.paced:
        pace(const, state, subflow, now)
        return
    seq = state.senders.seq[subflow]
    if seq.deadline <= now:
        if seq.state <= ConnectionState.OPENING:
            state.subflow[subflow].timeouts += seq.state
            open_up(rules_of(const, subflow), state.senders, subflow, now)
            path_start = np.int64(state.subflow[subflow].path_start)
            _emit_packet(const, state, subflow, 0, np.int64(Kind.SYN), low_bits(now), path_start, now)
        elif seq.una == seq.next:
            seq.deadline = NEVER
            return
        else:
            state.subflow[subflow].timeouts += 1
            time_out(rules_of(const, subflow), state.senders, subflow, now)
            send_on(const, state, subflow, now)
    set_timer(state, min(seq.deadline, now + np.int64(np.ceil(rules_of(const, subflow).min_rto))), subflow)


@inline
def pace(const, state, subflow, now):
    """Send the next packet of a constant-rate sender, which is closed while there is none."""
    subflow_record, seq = state.subflow[subflow], state.senders.seq[subflow]
    flow = np.int64(subflow_record.flow)
    seq.state = ConnectionState.CLOSED
    if state.unsent[flow] > 0:
        state.unsent[flow] -= 1
        _send(const, state, subflow, seq.high, now)
        seq.high += 1
        if not const.no_retransmissions:
            _reserve_window(state, seq.high - np.int64(subflow_record.expected))
        record_sent_packet(state.program, const, state, flow, now)
        seq.state = ConnectionState.OPEN
        set_timer(state, now + const.gap[subflow], subflow)
