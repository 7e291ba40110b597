# SPDX-License-Identifier: Apache-2.0
"""Hosts: whose turn it is to send at a network interface, and what packets and timers do."""

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
from flitlab.sim.engines.compiled.pool import NOBODY, free_record, take_record
from flitlab.sim.engines.compiled.spray.chosen import rules_of
from flitlab.sim.engines.compiled.spray.links import (
    append,
    begin,
    end_service,
    is_answer,
    take_first,
)
from flitlab.sim.engines.compiled.spray.messages import note_received, note_sent
from flitlab.sim.engines.compiled.spray.state import (
    ACK,
    AGAIN,
    ASKED,
    BITS,
    CONTROL,
    CYCLE,
    DATA,
    ENDS,
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
    MARK,
    NACK,
    NOT_LISTED,
    NUMBER,
    PACE_TIMER,
    PROBE_TIMER,
    PULL,
    PULL_TIMER,
    RECEIVED,
    REQUEST,
    SERVING,
    SETTLE_TIMER,
    SIZE,
    START,
    TAKEN,
    TIMEOUT_TIMER,
    TRACE,
    TRACED,
    TRIM,
    VALUE,
    WAITING,
)
from flitlab.sim.engines.compiled.timers import put_timer

_LOW, _32, _NO_NUMBER = np.int64(0xFFFFFFFF), np.int64(32), np.int64(-1)
_TIMEOUT, _PROBE = np.uint8(1), np.uint8(2)  # bits of ``state.alarm``


@inline
def set_timer(const, state, tick, kind, index):
    """Have a timer of a kind ring in a tick for a flow or a host; those of one tick ring by kind and then index."""
    put_timer(state.timers, (min(tick, const.latest) << KIND_BITS | kind) << const.index_bits | index)


@inline
def settle_nic(const, state, host, now):
    """Find out what a network interface has done up to and in this tick."""
    line = state.link[const.inject + host]
    while line[SERVING] != NOBODY and line[ENDS] <= now:
        ended = line[ENDS]
        end_service(state, line)
        _serve(const, state, host, ended)


@inline
def _serve(const, state, host, tick):
    """Let a network interface, which is idle, begin with a packet; of ten control packets each lets data go first."""
    link = const.inject + host
    line, nic = state.link[link], state.nic[host]
    control, packet = line[CONTROL] != NOBODY, NOBODY
    data = nic[WAITING] > 0
    if control and data:
        data = nic[CYCLE] == 0
        nic[CYCLE] = next_turn(nic[CYCLE])
    if data:
        packet = _next_data(const, state, host, tick)
    if packet == NOBODY and control:
        packet = take_first(state, line, CONTROL)
    if packet != NOBODY:
        line[TAKEN] += 1
        begin(const, state, link, packet, tick)
        if const.watched:
            set_timer(const, state, line[ENDS], SETTLE_TIMER, host)


@inline
def _next_data(const, state, host, tick):
    """Let the first flow in turn that still may send send; its packet, or NOBODY."""
    nic = state.nic[host]
    while nic[WAITING] > 0:
        flow = nic[FIRST_TURN]
        nic[FIRST_TURN] = state.turn[flow]
        nic[WAITING] -= 1
        state.turn[flow] = NOT_LISTED
        rules = rules_of(const, flow)
        if may_send(rules, state.senders, flow):
            number, size, flags, entropy, target = send(rules, state.senders, flow, nic[WAITING] + 1, tick)
            kind = DATA
            if flags & ASKS != 0:
                kind |= ASKED
            if flags & IS_AGAIN != 0:
                kind |= AGAIN
            else:
                note_sent(state.talk, state, flow, number, tick)
            packet = _packet(const, state, flow, kind, size, entropy, number)
            state.packet[packet, VALUE] = target
            _watch(const, state, flow, tick)
            _line_up(const, state, host, flow)
            return packet
    return NOBODY


@inline
def _line_up(const, state, host, flow):
    """Let a flow wait for its turn if it may send and does not wait yet."""
    if state.turn[flow] == NOT_LISTED and may_send(rules_of(const, flow), state.senders, flow):
        nic = state.nic[host]
        state.turn[flow] = -1
        if nic[WAITING] == 0:
            nic[FIRST_TURN] = flow
        else:
            state.turn[nic[LAST_TURN]] = flow
        nic[LAST_TURN] = flow
        nic[WAITING] += 1


@inline
def _ask(const, state, host, flow, now):
    """Let a flow send, at its turn, what it may."""
    _line_up(const, state, host, flow)
    if state.link[const.inject + host, SERVING] == NOBODY:
        _serve(const, state, host, now)


@inline
def _post(const, state, host, packet, now):
    """Let a host send a packet without data."""
    line = state.link[const.inject + host]
    append(state, line, CONTROL, packet)
    if line[SERVING] == NOBODY:
        _serve(const, state, host, now)


@inline
def _packet(const, state, flow, kind, size, entropy, number):
    """Make a packet of a flow."""
    packet = take_record(state)
    record = state.packet[packet]
    record[KIND], record[FLOW], record[SIZE], record[ENTROPY] = kind, flow, size, entropy
    record[HOST] = const.ends[flow, 0 if is_answer(kind) else 1]
    record[HOP], record[NUMBER] = 0, number
    return packet


@inline
def _watch(const, state, flow, tick):
    """Set the timer of a sender that has none."""
    rules = rules_of(const, flow)
    if state.alarm[flow] & _TIMEOUT == 0 and rules.acknowledges != 0:
        state.alarm[flow] |= _TIMEOUT
        set_timer(const, state, tick + rules.timeout, TIMEOUT_TIMER, flow)


@inline
def deliver(const, state, host, packet, now):
    """Take in a packet at a host, whose interface is settled."""
    if is_answer(state.packet[packet, KIND]):
        _hear(const, state, host, packet, now)
    else:
        _receive(const, state, host, packet, now)


@inline
def _receive(const, state, host, packet, now):
    """Take in data or a request at its receiver; its record becomes that of the answer."""
    record = state.packet[packet]
    kind, flow, number = record[KIND], np.int64(record[FLOW]), np.int64(record[NUMBER])
    value, rules = np.int64(record[VALUE]), rules_of(const, flow)
    marked, asks, trimmed = kind & MARK != 0, kind & ASKED != 0, kind & TRIM != 0
    answers, answer, exact = True, ACK, marked or asks
    if kind & KINDS == REQUEST:
        on_request(rules, state.receivers, flow)
        number, exact = np.int64(np.int32(record[NUMBER])), False
    elif trimmed:
        if on_trimmed(rules, state.receivers, flow, number, marked):
            answer = NACK
    else:
        _trace(const, state, flow, number, now)
        answers = on_data(rules, state.receivers, flow, number, np.int64(record[SIZE]), marked, asks, now)
        note_received(state.talk, state, flow, now)
    if answers:
        record[KIND] = answer | kind & (MARK | AGAIN | LAST_HOP)
        record[SIZE], record[HOST], record[HOP] = rules.control, const.ends[flow, 0], 0
        if answer == ACK:
            got = state.receivers.got[flow]
            start = bits_from(state.receivers, flow, number, exact)
            bits = bits_of(state.receivers, flow, start)
            record[NUMBER], record[VALUE], record[START] = number & _LOW, got[EXPECTED], start
            record[RECEIVED], record[RECEIVED + 1] = got[BYTES] & _LOW, got[BYTES] >> _32
            record[BITS], record[BITS + 1] = bits & _LOW, bits >> _32 & _LOW
    else:
        free_record(state, packet)
    if rules.credit == RCCC or rules.credit == NDP:
        waits = state.pacers.due[host] >= 0
        claim(rules, state.receivers, state.pacers, host, flow, value, trimmed or kind & KINDS == REQUEST, now)
        if not waits and state.pacers.due[host] >= 0:
            set_timer(const, state, state.pacers.due[host], PULL_TIMER, host)
    if throttles(rules) and kind & KINDS == DATA:
        what = np.int64(marked)
        if trimmed:
            what = np.int64(TIMED_OUT if kind & LAST_HOP != 0 else TRIMMED)
        count_arrival(const.rules, state.pacers, host, what, now)
    if answers:
        _post(const, state, host, packet, now)


@inline
def _trace(const, state, flow, number, now):
    """Record that a whole data packet came, if that is wanted."""
    if len(state.trace):
        entry = state.trace[state.wants[TRACED]]
        entry[0], entry[1], entry[2] = now, flow, number
        state.wants[TRACED] += 1
        if state.wants[TRACED] + len(state.nic) > len(state.trace):
            state.wants[TRACE] = 1


@inline
def _hear(const, state, host, packet, now):
    """Take in an acknowledgement, its contrary or a pull at its sender."""
    record, senders = state.packet[packet], state.senders
    kind, flow, number = record[KIND], np.int64(record[FLOW]), np.int64(np.int32(record[NUMBER]))
    rules = rules_of(const, flow)
    entropy, value = np.int64(record[ENTROPY]), np.int64(record[VALUE])
    marked, again, last_hop = kind & MARK != 0, kind & AGAIN != 0, kind & LAST_HOP != 0
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
        _ask(const, state, host, flow, now)
        on_nack_entropy(rules, senders, flow, entropy, marked, last_hop, now)
    free_record(state, packet)
    _ask(const, state, host, flow, now)


@inline
def expire(const, state, host, flow, now):
    """Look at the timer of a flow, whose interface is settled."""
    rules, senders = rules_of(const, flow), state.senders
    tick = deadline(rules, senders, flow)
    if tick >= 0 and tick <= now:
        if on_timeout(rules, senders, flow, now):
            entropy, target = request(rules, senders, flow, state.nic[host, WAITING], now)
            packet = _packet(const, state, flow, REQUEST, rules.control, entropy, _NO_NUMBER & _LOW)
            state.packet[packet, VALUE] = target
            _post(const, state, host, packet, now)
        _ask(const, state, host, flow, now)
        tick = deadline(rules, senders, flow)
    if tick < 0:
        state.alarm[flow] &= ~_TIMEOUT
    else:
        set_timer(const, state, max(tick, now + 1), TIMEOUT_TIMER, flow)


@inline
def _await_probe(const, state, flow, now):
    """Look at the timer for probes of a sender, if it runs and nobody will."""
    if state.alarm[flow] & _PROBE == 0:
        tick = next_probe_check(rules_of(const, flow), state.senders, flow, now)
        if tick >= 0:
            state.alarm[flow] |= _PROBE
            set_timer(const, state, tick, PROBE_TIMER, flow)


@inline
def look_for_probe(const, state, host, flow, now):
    """Let a sender, whose interface is settled, send a probe if it is time."""
    state.alarm[flow] &= ~_PROBE
    entropy = probe(rules_of(const, flow), state.senders, flow, now)
    if entropy >= 0:
        packet = _packet(const, state, flow, REQUEST, const.rules.control, entropy, PROBE & _LOW)
        state.packet[packet, VALUE] = 0
        _post(const, state, host, packet, now)
    _await_probe(const, state, flow, now)


@inline
def begin_flow(const, state, host, flow, paced, now):
    """Let a flow begin or, where the clock gives it credit, go on."""
    begin_sending(state.senders, flow, now)
    rules = rules_of(const, flow)
    more = paced and pace(rules, state.senders, flow)
    _ask(const, state, host, flow, now)
    if more:
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
        packet = _packet(const, state, flow, PULL, const.rules.control, entropy, np.int64(0))
        state.packet[packet, VALUE] = got[CREDIT_GRANTED]
        _post(const, state, host, packet, now)
