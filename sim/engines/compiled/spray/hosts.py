# SPDX-License-Identifier: Apache-2.0
"""Hosts: scheduling of their network interfaces, and handling of packets and timers."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.priority_classes import NO_CLASS, count_sent, next_class
from flitlab.models.rules.rdma.sender import is_ready
from flitlab.models.rules.spray.credit import (
    PULL_ENTROPIES,
    claim,
    count_arrival,
    next_pull,
    on_pull,
    throttles,
)
from flitlab.models.rules.spray.layout import Ack, Credit, Feedback, PacketKind
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
from flitlab.sim.engines.compiled.pool import NONE, free_record
from flitlab.sim.engines.compiled.spray.links import append, end_service, start_service, take_first
from flitlab.sim.engines.compiled.spray.lossless import (
    class_of,
    is_paused,
    pauses_control,
    port_of,
)
from flitlab.sim.engines.compiled.spray.messages import record_first_send, record_received
from flitlab.sim.engines.compiled.spray.rdma import make_rdma_data, set_sender_timers
from flitlab.sim.engines.compiled.spray.state import (
    NOT_LISTED,
    Fifo,
    Flag,
    Timer,
    is_response,
    make_packet,
    set_timer,
)
from flitlab.sim.engines.compiled.transport import rules_of, trace_packet

_LOW, _NO_NUMBER = np.int64(0xFFFFFFFF), np.int64(-1)
_TIMEOUT, _PROBE = np.uint8(1), np.uint8(2)  # bits of ``state.timers_set``


@inline
def settle_nic(const, state, host, now):
    """Settle a network interface: account for what it has done up to and in this tick."""
    _settle_nic(state.lossless, const, state, host, now)


@inline
def _settle_nic(lossless, const, state, host, now):
    """Settle an interface; before lossless queues it need not be: its services end by events."""
    if lossless is not None:
        return
    link_record = state.link[const.inject + host]
    while link_record.serving != NONE and link_record.service_end <= now:
        ended = link_record.service_end
        end_service(state, link_record)
        serve_nic(const, state, host, ended)


@inline
def serve_nic(const, state, host, tick):
    """Let an idle network interface start a packet, unless it is paused."""
    link = const.inject + host
    packet = _next_packet(state.classes, const, state, link, host, tick)
    if packet != NONE:
        state.link[link].accepted += 1
        start_service(const, state, link, packet, tick)
        if const.watched:
            set_timer(const, state, state.link[link].service_end, Timer.SETTLE, host)


@inline
def _next_packet(classes, const, state, link, host, tick):
    """Return the packet that an idle interface sends next, removed from its queue; NONE if there is none."""
    if classes is not None:
        return _next_of_classes(classes, const, state, link, host, tick)
    paused = is_paused(state.lossless, link)
    if paused and pauses_control(state.lossless):
        return NONE
    link_record, nic = state.link[link], state.nic[host]
    control, packet = link_record.first[Fifo.CONTROL] != NONE, NONE
    data = nic.waiting > 0 and not paused
    if control and data:
        data = pauses_control(state.lossless) and _serves_data(state.rdma, nic)
    if data:
        packet = _next_data(const, state, host, host, tick)
    if packet == NONE and control:
        packet = take_first(state, link_record, Fifo.CONTROL)
    return packet


@inline
def _next_of_classes(classes, const, state, link, host, tick):
    """Return the next packet of an interface, where there are several classes."""
    if state.link[link].first[Fifo.CONTROL] != NONE:  # of a strict class
        return take_first(state, state.link[link], Fifo.CONTROL)
    ready = np.int64(0)
    for number in range(classes.count):
        port = link * classes.count + number
        if is_paused(state.lossless, port):
            continue
        if (
            _has_data(const, state, host * classes.count + number, tick)
            or classes.queue[port].first[Fifo.CONTROL] != NONE
        ):
            ready |= np.int64(1) << number
    number = next_class(classes.service, link, ready)
    if number == NO_CLASS:
        return NONE
    turns, queue = host * classes.count + number, classes.queue[link * classes.count + number]
    data = state.nic[turns].waiting > 0
    if data and queue.first[Fifo.CONTROL] != NONE:
        data = _serves_data(state.rdma, state.nic[turns])
    packet = _next_data(const, state, host, turns, tick) if data else take_first(state, queue, Fifo.CONTROL)
    count_sent(classes.service, link, number, np.int64(state.packet[packet].size))
    return packet


@inline
def _has_data(const, state, turns, tick):
    """Tell whether a flow of a round robin may send; flows before it that may not leave it."""
    nic = state.nic[turns]
    while nic.waiting > 0 and not _may_send(state.rdma, const, state, nic.first_turn, tick):
        _take_turn(state, nic)
    return nic.waiting > 0


@inline
def _take_turn(state, nic):
    """Remove the first flow from a round robin, and return it."""
    flow = nic.first_turn
    nic.first_turn = state.next_in_turn[flow]
    nic.waiting -= 1
    state.next_in_turn[flow] = NOT_LISTED
    return flow


@inline
def _serves_data(rdma, nic):
    """Tell whether an interface with control and data serves data: after ten control packets; RDMA: never."""
    if rdma is not None:
        return False
    data = nic.cycle == 0
    nic.cycle = next_turn(nic.cycle)
    return data


@inline
def _may_send(rdma, const, state, flow, now):
    """Tell whether a flow may send a packet."""
    if rdma is not None:
        return is_ready(rdma, state.senders, flow, now)
    return may_send(rules_of(const, flow), state.senders, flow)


@inline
def _next_data(const, state, host, turns, tick):
    """Let the next flow in turn send, if one may; returns its packet, or NONE. turns: index of its round robin."""
    nic = state.nic[turns]
    while nic.waiting > 0:
        flow = _take_turn(state, nic)
        if _may_send(state.rdma, const, state, flow, tick):
            packet = _make_data(state.rdma, const, state, flow, nic.waiting + 1, tick)
            _join_turns(const, state, host, flow, tick)
            return packet
    return NONE


@inline
def _make_data(rdma, const, state, flow, waiting, tick):
    """Let a flow send its next packet, and return it; waiting: flows of the host that wait, this one included."""
    if rdma is not None:
        return make_rdma_data(rdma, const, state, flow, tick)
    number, size, flags, entropy, pull_target = send(rules_of(const, flow), state.senders, flow, waiting, tick)
    kind = PacketKind.DATA
    if flags & ASKS != 0:
        kind |= Flag.ACK_REQUESTED
    if flags & IS_AGAIN != 0:
        kind |= Flag.RETRANSMISSION
    else:
        record_first_send(state.program, state, flow, number, tick)
    packet = make_packet(const, state, flow, kind, size, entropy, number)
    state.packet[packet].value = pull_target
    _start_timeout(const, state, flow, tick)
    return packet


@inline
def turns_of(classes, host, flow):
    """Return the index of the round robin of a flow's class at its host."""
    return port_of(classes, host, class_of(classes, flow))


@inline
def _join_turns(const, state, host, flow, now):
    """Append a flow to the round robin of its host if it may send and is not in it."""
    set_sender_timers(state.rdma, const, state, flow, now)
    if state.next_in_turn[flow] == NOT_LISTED and _may_send(state.rdma, const, state, flow, now):
        nic = state.nic[turns_of(state.classes, host, flow)]
        state.next_in_turn[flow] = -1
        if nic.waiting == 0:
            nic.first_turn = flow
        else:
            state.next_in_turn[nic.last_turn] = flow
        nic.last_turn = flow
        nic.waiting += 1


@inline
def request_turn(const, state, host, flow, now):
    """Let a flow send, at its turn, what it may."""
    _join_turns(const, state, host, flow, now)
    if state.link[const.inject + host].serving == NONE:
        serve_nic(const, state, host, now)


@inline
def send_control(const, state, host, packet, now):
    """Let a host send a control packet."""
    link = const.inject + host
    _queue_control(state.classes, state, link, packet)
    if state.link[link].serving == NONE:
        serve_nic(const, state, host, now)


@inline
def _queue_control(classes, state, link, packet):
    """Queue a control packet at a host with those of its class."""
    if classes is None or state.lossless.strict:
        append(state, state.link[link], Fifo.CONTROL, packet)
    else:
        port = port_of(classes, link, class_of(classes, np.int64(state.packet[packet].flow)))
        append(state, classes.queue[port], Fifo.CONTROL, packet)


@inline
def _start_timeout(const, state, flow, tick):
    """Set the timeout of a sender that has none."""
    rules = rules_of(const, flow)
    if state.timers_set[flow] & _TIMEOUT == 0 and rules.acknowledges != 0:
        state.timers_set[flow] |= _TIMEOUT
        set_timer(const, state, tick + rules.timeout, Timer.TIMEOUT, flow)


@inline
def deliver(const, state, host, packet, now):
    """Deliver a packet to a host, whose interface is settled.

    Parameters
    ----------
    host, packet: int64.
    now: int64, tick.
    """
    if is_response(state.packet[packet].kind):
        _process_response(const, state, host, packet, now)
    else:
        _receive(const, state, host, packet, now)


@inline
def _receive(const, state, host, packet, now):
    """Receive data or a request; its record becomes that of the response."""
    record = state.packet[packet]
    kind, flow, number = record.kind, np.int64(record.flow), np.int64(record.number)
    value, rules = np.int64(record.value), rules_of(const, flow)
    marked, asks, trimmed = kind & Flag.ECN_MARK != 0, kind & Flag.ACK_REQUESTED != 0, kind & Flag.TRIMMED != 0
    responds, response_kind, exact = True, PacketKind.ACK, marked or asks
    if kind & Flag.KIND_MASK == PacketKind.REQUEST:
        on_request(rules, state.receivers, flow)
        number, exact = np.int64(np.int32(record.number)), False
    elif trimmed:
        if on_trimmed(rules, state.receivers, flow, number, marked):
            response_kind = PacketKind.NACK
        responds = rules.acknowledges != 0
    else:
        trace_packet(state, flow, number, len(state.nic), now)
        responds = on_data(rules, state.receivers, flow, number, np.int64(record.size), marked, asks, now)
        record_received(state.program, state, flow, now)
    if responds:
        record.kind = response_kind | kind & (Flag.ECN_MARK | Flag.RETRANSMISSION | Flag.LAST_HOP)
        record.size, record.host, record.hop = rules.control, const.hosts_of_flow[flow, 0], 0
        if response_kind == PacketKind.ACK:
            got = state.receivers.got[flow]
            start = bits_from(state.receivers, flow, number, exact)
            bits = bits_of(state.receivers, flow, start)
            record.number, record.value, record.start = number & _LOW, got.expected, start
            record.received, record.bits = got.bytes, bits
    else:
        free_record(state, packet)
    if rules.credit == Credit.RCCC or rules.credit == Credit.NDP:
        was_scheduled = state.pacers.due[host] >= 0
        claim(
            rules,
            state.receivers,
            state.pacers,
            host,
            flow,
            value,
            trimmed or kind & Flag.KIND_MASK == PacketKind.REQUEST,
            now,
        )
        if not was_scheduled and state.pacers.due[host] >= 0:
            set_timer(const, state, state.pacers.due[host], Timer.PULL, host)
    if throttles(rules) and kind & Flag.KIND_MASK == PacketKind.DATA:
        what = np.int64(marked)
        if trimmed:
            what = np.int64(Feedback.TIMED_OUT if kind & Flag.LAST_HOP != 0 else Feedback.TRIMMED)
        count_arrival(const.rules, state.pacers, host, what, now)
    if responds:
        send_control(const, state, host, packet, now)


@inline
def _process_response(const, state, host, packet, now):
    """Process an ACK, a NACK or a pull at its sender."""
    record, senders = state.packet[packet], state.senders
    kind, flow, number = record.kind, np.int64(record.flow), np.int64(np.int32(record.number))
    rules = rules_of(const, flow)
    entropy, value = np.int64(record.entropy), np.int64(record.value)
    marked, again, last_hop = kind & Flag.ECN_MARK != 0, kind & Flag.RETRANSMISSION != 0, kind & Flag.LAST_HOP != 0
    if kind & Flag.KIND_MASK == PacketKind.ACK:
        start = np.int64(record.start)
        ack = Ack(value, record.received, number, again, entropy, marked, start, record.bits)
        on_ack(rules, senders, flow, ack, now)
        if rules.sleek != 0:
            _await_probe(const, state, flow, now)
    elif kind & Flag.KIND_MASK == PacketKind.PULL:
        on_pull(rules, senders, flow, value)
    elif on_nack(rules, senders, flow, number, again, last_hop, now):
        request_turn(const, state, host, flow, now)
        on_nack_entropy(rules, senders, flow, entropy, marked, last_hop, now)
    free_record(state, packet)
    request_turn(const, state, host, flow, now)


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
            entropy, pull_target = request(
                rules, senders, flow, state.nic[turns_of(state.classes, host, flow)].waiting, now
            )  # fmt: skip
            packet = make_packet(const, state, flow, PacketKind.REQUEST, rules.control, entropy, _NO_NUMBER & _LOW)
            state.packet[packet].value = pull_target
            send_control(const, state, host, packet, now)
        request_turn(const, state, host, flow, now)
        tick = deadline(rules, senders, flow)
    if tick < 0:
        state.timers_set[flow] &= ~_TIMEOUT
    else:
        set_timer(const, state, max(tick, now + 1), Timer.TIMEOUT, flow)


@inline
def _await_probe(const, state, flow, now):
    """Set the probe timer of a sender, if it is due and not set."""
    if state.timers_set[flow] & _PROBE == 0:
        tick = next_probe_check(state.senders, flow, now)
        if tick >= 0:
            state.timers_set[flow] |= _PROBE
            set_timer(const, state, tick, Timer.PROBE, flow)


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
        packet = make_packet(const, state, flow, PacketKind.REQUEST, const.rules.control, entropy, PROBE & _LOW)
        state.packet[packet].value = 0
        send_control(const, state, host, packet, now)
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
    request_turn(const, state, host, flow, now)
    if continues:
        set_timer(const, state, now + rules.gap, Timer.PACE, flow)


@inline
def pull(const, state, host, now):
    """Let the pacer of a host, whose interface is settled, grant credit."""
    flow = next_pull(const.rules, state.receivers, state.pacers, host, now)
    if state.pacers.due[host] >= 0:
        set_timer(const, state, state.pacers.due[host], Timer.PULL, host)
    if flow >= 0:
        got = state.receivers.got[flow]
        entropy = (got.pulls - 1) % PULL_ENTROPIES
        packet = make_packet(const, state, flow, PacketKind.PULL, const.rules.control, entropy, np.int64(0))
        state.packet[packet].value = got.credit_granted
        send_control(const, state, host, packet, now)
