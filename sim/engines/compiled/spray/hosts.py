# SPDX-License-Identifier: Apache-2.0
"""Hosts: scheduling of their network interfaces, and handling of packets and timers."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.spray.credit import (
    PULL_ENTROPIES,
    claim,
    count_arrival,
    next_pull,
    on_pull,
    throttles,
)
from flitlab.models.rules.spray.layout import (
    BYTES,
    CREDIT_GRANTED,
    EXPECTED,
    NDP,
    PULLS,
    RCCC,
    TIMED_OUT,
    TRIMMED,
)
from flitlab.models.rules.spray.queues import next_turn
from flitlab.models.rules.spray.receiver import bits_from, bits_of, on_data, on_request, on_trimmed
from flitlab.models.rules.spray.recovery import PROBE, next_probe_check, probe
from flitlab.models.rules.spray.sender import (
    ASKS,
    IS_AGAIN,
    begin_sending,
    deadline,
    may_send,
    on_ack,
    on_nack,
    on_nack_entropy,
    on_timeout,
    pace,
    request,
    send,
)
from flitlab.sim.engines.compiled.pool import NONE, allocate_record, free_record
from flitlab.sim.engines.compiled.spray.flow_rules import rules_of
from flitlab.sim.engines.compiled.spray.links import (
    append,
    end_service,
    is_response,
    start_service,
    take_first,
)
from flitlab.sim.engines.compiled.spray.messages import record_first_send, record_received
from flitlab.sim.engines.compiled.spray.state import (
    ACCEPTED,
    ACK,
    ACK_REQUESTED,
    BITS,
    CONTROL_FIFO,
    CYCLE,
    DATA,
    ECN_MARK,
    ENTROPY,
    FIRST_TURN,
    FLOW,
    HOP,
    HOST,
    KIND,
    KIND_BITS,
    KINDS,
    LAST_HOP,
    LAST_TURN,
    NACK,
    NOT_LISTED,
    NUMBER,
    PACE_TIMER,
    PROBE_TIMER,
    PULL,
    PULL_TIMER,
    RECEIVED,
    REQUEST,
    RETRANSMISSION,
    SERVICE_END,
    SERVING,
    SETTLE_TIMER,
    SIZE,
    START,
    TIMEOUT_TIMER,
    TRACE,
    TRACED,
    TRIMMED_FLAG,
    VALUE,
    WAITING,
)
from flitlab.sim.engines.compiled.timers import push_timer

_LOW, _32, _NO_NUMBER = np.int64(0xFFFFFFFF), np.int64(32), np.int64(-1)
_TIMEOUT, _PROBE = np.uint8(1), np.uint8(2)  # bits of ``state.timers_set``


@inline
def set_timer(const, state, tick, kind, index):
    """Set a timer of a flow or a host; timers of a tick expire by kind and then index.

    Parameters
    ----------
    tick: int64; at most ``const.latest`` is set.
    kind: START_TIMER ...
    index: int64, flow or host.
    """
    push_timer(state.timers, (min(tick, const.latest) << KIND_BITS | kind) << const.index_bits | index)


@inline
def settle_nic(const, state, host, now):
    """Settle a network interface: account for what it has done up to and in this tick."""
    link_record = state.link[const.inject + host]
    while link_record[SERVING] != NONE and link_record[SERVICE_END] <= now:
        ended = link_record[SERVICE_END]
        end_service(state, link_record)
        _serve(const, state, host, ended)


@inline
def _serve(const, state, host, tick):
    """Let an idle network interface start a packet; of ten control packets, each lets data go first."""
    link = const.inject + host
    link_record, nic = state.link[link], state.nic[host]
    control, packet = link_record[CONTROL_FIFO] != NONE, NONE
    data = nic[WAITING] > 0
    if control and data:
        data = nic[CYCLE] == 0
        nic[CYCLE] = next_turn(nic[CYCLE])
    if data:
        packet = _next_data(const, state, host, tick)
    if packet == NONE and control:
        packet = take_first(state, link_record, CONTROL_FIFO)
    if packet != NONE:
        link_record[ACCEPTED] += 1
        start_service(const, state, link, packet, tick)
        if const.watched:
            set_timer(const, state, link_record[SERVICE_END], SETTLE_TIMER, host)


@inline
def _next_data(const, state, host, tick):
    """Let the next flow in turn send, if one may; returns its packet, or NONE."""
    nic = state.nic[host]
    while nic[WAITING] > 0:
        flow = nic[FIRST_TURN]
        nic[FIRST_TURN] = state.next_in_turn[flow]
        nic[WAITING] -= 1
        state.next_in_turn[flow] = NOT_LISTED
        rules = rules_of(const, flow)
        if may_send(rules, state.senders, flow):
            number, size, flags, entropy, pull_target = send(rules, state.senders, flow, nic[WAITING] + 1, tick)
            kind = DATA
            if flags & ASKS != 0:
                kind |= ACK_REQUESTED
            if flags & IS_AGAIN != 0:
                kind |= RETRANSMISSION
            else:
                record_first_send(state.program, state, flow, number, tick)
            packet = _make_packet(const, state, flow, kind, size, entropy, number)
            state.packet[packet, VALUE] = pull_target
            _start_timeout(const, state, flow, tick)
            _join_turns(const, state, host, flow)
            return packet
    return NONE


@inline
def _join_turns(const, state, host, flow):
    """Append a flow to the round robin of its host if it may send and is not in it."""
    if state.next_in_turn[flow] == NOT_LISTED and may_send(rules_of(const, flow), state.senders, flow):
        nic = state.nic[host]
        state.next_in_turn[flow] = -1
        if nic[WAITING] == 0:
            nic[FIRST_TURN] = flow
        else:
            state.next_in_turn[nic[LAST_TURN]] = flow
        nic[LAST_TURN] = flow
        nic[WAITING] += 1


@inline
def _request_turn(const, state, host, flow, now):
    """Let a flow send, at its turn, what it may."""
    _join_turns(const, state, host, flow)
    if state.link[const.inject + host, SERVING] == NONE:
        _serve(const, state, host, now)


@inline
def _send_control(const, state, host, packet, now):
    """Let a host send a control packet."""
    link_record = state.link[const.inject + host]
    append(state, link_record, CONTROL_FIFO, packet)
    if link_record[SERVING] == NONE:
        _serve(const, state, host, now)


@inline
def _make_packet(const, state, flow, kind, size, entropy, number):
    """Create a packet of a flow."""
    packet = allocate_record(state)
    record = state.packet[packet]
    record[KIND], record[FLOW], record[SIZE], record[ENTROPY] = kind, flow, size, entropy
    record[HOST] = const.hosts_of_flow[flow, 0 if is_response(kind) else 1]
    record[HOP], record[NUMBER] = 0, number
    return packet


@inline
def _start_timeout(const, state, flow, tick):
    """Set the timeout of a sender that has none."""
    rules = rules_of(const, flow)
    if state.timers_set[flow] & _TIMEOUT == 0 and rules.acknowledges != 0:
        state.timers_set[flow] |= _TIMEOUT
        set_timer(const, state, tick + rules.timeout, TIMEOUT_TIMER, flow)


@inline
def deliver(const, state, host, packet, now):
    """Deliver a packet to a host, whose interface is settled.

    Parameters
    ----------
    host, packet: int64.
    now: int64, tick.
    """
    if is_response(state.packet[packet, KIND]):
        _process_response(const, state, host, packet, now)
    else:
        _receive(const, state, host, packet, now)


@inline
def _receive(const, state, host, packet, now):
    """Receive data or a request; its record becomes that of the response."""
    record = state.packet[packet]
    kind, flow, number = record[KIND], np.int64(record[FLOW]), np.int64(record[NUMBER])
    value, rules = np.int64(record[VALUE]), rules_of(const, flow)
    marked, asks, trimmed = kind & ECN_MARK != 0, kind & ACK_REQUESTED != 0, kind & TRIMMED_FLAG != 0
    responds, response_kind, exact = True, ACK, marked or asks
    if kind & KINDS == REQUEST:
        on_request(rules, state.receivers, flow)
        number, exact = np.int64(np.int32(record[NUMBER])), False
    elif trimmed:
        if on_trimmed(rules, state.receivers, flow, number, marked):
            response_kind = NACK
    else:
        _trace(const, state, flow, number, now)
        responds = on_data(rules, state.receivers, flow, number, np.int64(record[SIZE]), marked, asks, now)
        record_received(state.program, state, flow, now)
    if responds:
        record[KIND] = response_kind | kind & (ECN_MARK | RETRANSMISSION | LAST_HOP)
        record[SIZE], record[HOST], record[HOP] = rules.control, const.hosts_of_flow[flow, 0], 0
        if response_kind == ACK:
            got = state.receivers.got[flow]
            start = bits_from(state.receivers, flow, number, exact)
            bits = bits_of(state.receivers, flow, start)
            record[NUMBER], record[VALUE], record[START] = number & _LOW, got[EXPECTED], start
            record[RECEIVED], record[RECEIVED + 1] = got[BYTES] & _LOW, got[BYTES] >> _32
            record[BITS], record[BITS + 1] = bits & _LOW, bits >> _32 & _LOW
    else:
        free_record(state, packet)
    if rules.credit == RCCC or rules.credit == NDP:
        was_scheduled = state.pacers.due[host] >= 0
        claim(rules, state.receivers, state.pacers, host, flow, value, trimmed or kind & KINDS == REQUEST, now)
        if not was_scheduled and state.pacers.due[host] >= 0:
            set_timer(const, state, state.pacers.due[host], PULL_TIMER, host)
    if throttles(rules) and kind & KINDS == DATA:
        what = np.int64(marked)
        if trimmed:
            what = np.int64(TIMED_OUT if kind & LAST_HOP != 0 else TRIMMED)
        count_arrival(const.rules, state.pacers, host, what, now)
    if responds:
        _send_control(const, state, host, packet, now)


@inline
def _trace(const, state, flow, number, now):
    """Record the arrival of an untrimmed data packet, if traced."""
    if len(state.trace):
        entry = state.trace[state.growth_needed[TRACED]]
        entry[0], entry[1], entry[2] = now, flow, number
        state.growth_needed[TRACED] += 1
        if state.growth_needed[TRACED] + len(state.nic) > len(state.trace):
            state.growth_needed[TRACE] = 1


@inline
def _process_response(const, state, host, packet, now):
    """Process an ACK, a NACK or a pull at its sender."""
    record, senders = state.packet[packet], state.senders
    kind, flow, number = record[KIND], np.int64(record[FLOW]), np.int64(np.int32(record[NUMBER]))
    rules = rules_of(const, flow)
    entropy, value = np.int64(record[ENTROPY]), np.int64(record[VALUE])
    marked, again, last_hop = kind & ECN_MARK != 0, kind & RETRANSMISSION != 0, kind & LAST_HOP != 0
    if kind & KINDS == ACK:
        received = np.int64(record[RECEIVED + 1]) << _32 | np.int64(record[RECEIVED])
        bits = np.int64(record[BITS + 1]) << _32 | np.int64(record[BITS])
        start = np.int64(record[START])
        on_ack(rules, senders, flow, value, received, number, again, entropy, marked, start, bits, now)
        if rules.sleek != 0:
            _await_probe(const, state, flow, now)
    elif kind & KINDS == PULL:
        on_pull(rules, senders, flow, value)
    elif on_nack(rules, senders, flow, number, again, last_hop, now):
        _request_turn(const, state, host, flow, now)
        on_nack_entropy(rules, senders, flow, entropy, marked, last_hop, now)
    free_record(state, packet)
    _request_turn(const, state, host, flow, now)


@inline
def check_timeout(const, state, host, flow, now):
    """Handle the timer of a flow, whose interface is settled.

    Parameters
    ----------
    host, flow: int64.
    now: int64, tick.
    """
    rules, senders = rules_of(const, flow), state.senders
    tick = deadline(rules, senders, flow)
    if tick >= 0 and tick <= now:
        if on_timeout(rules, senders, flow, now):
            entropy, pull_target = request(rules, senders, flow, state.nic[host, WAITING], now)
            packet = _make_packet(const, state, flow, REQUEST, rules.control, entropy, _NO_NUMBER & _LOW)
            state.packet[packet, VALUE] = pull_target
            _send_control(const, state, host, packet, now)
        _request_turn(const, state, host, flow, now)
        tick = deadline(rules, senders, flow)
    if tick < 0:
        state.timers_set[flow] &= ~_TIMEOUT
    else:
        set_timer(const, state, max(tick, now + 1), TIMEOUT_TIMER, flow)


@inline
def _await_probe(const, state, flow, now):
    """Set the probe timer of a sender, if it is due and not set."""
    if state.timers_set[flow] & _PROBE == 0:
        tick = next_probe_check(rules_of(const, flow), state.senders, flow, now)
        if tick >= 0:
            state.timers_set[flow] |= _PROBE
            set_timer(const, state, tick, PROBE_TIMER, flow)


@inline
def check_probe(const, state, host, flow, now):
    """Let a sender, whose interface is settled, send a probe if it is time.

    Parameters
    ----------
    host, flow: int64.
    now: int64, tick.
    """
    state.timers_set[flow] &= ~_PROBE
    entropy = probe(rules_of(const, flow), state.senders, flow, now)
    if entropy >= 0:
        packet = _make_packet(const, state, flow, REQUEST, const.rules.control, entropy, PROBE & _LOW)
        state.packet[packet, VALUE] = 0
        _send_control(const, state, host, packet, now)
    _await_probe(const, state, flow, now)


@inline
def begin_flow(const, state, host, flow, paced, now):
    """Start a flow or, where the clock gives it credit, continue it.

    Parameters
    ----------
    host, flow: int64.
    paced: whether the clock gives the flow credit.
    now: int64, tick.
    """
    begin_sending(state.senders, flow, now)
    rules = rules_of(const, flow)
    continues = paced and pace(rules, state.senders, flow)
    _request_turn(const, state, host, flow, now)
    if continues:
        set_timer(const, state, now + rules.gap, PACE_TIMER, flow)


@inline
def pull(const, state, host, now):
    """Let the pacer of a host, whose interface is settled, grant credit."""
    flow = next_pull(const.rules, state.receivers, state.pacers, host, now)
    if state.pacers.due[host] >= 0:
        set_timer(const, state, state.pacers.due[host], PULL_TIMER, host)
    if flow >= 0:
        got = state.receivers.got[flow]
        entropy = (got[PULLS] - 1) % PULL_ENTROPIES
        packet = _make_packet(const, state, flow, PULL, const.rules.control, entropy, np.int64(0))
        state.packet[packet, VALUE] = got[CREDIT_GRANTED]
        _send_control(const, state, host, packet, now)
