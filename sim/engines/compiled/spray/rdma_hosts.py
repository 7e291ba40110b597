# SPDX-License-Identifier: Apache-2.0
"""Hosts with RDMA flows: handling of packets and timers."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.rdma.laws import on_cnp, on_timer
from flitlab.models.rules.rdma.layout import Answer, Response
from flitlab.models.rules.rdma.receiver import notifies, notifies_late, on_data
from flitlab.models.rules.rdma.sender import on_response, on_timeout, pacing_expires
from flitlab.models.rules.spray.layout import PacketKind
from flitlab.models.rules.spray.sender import begin_sending
from flitlab.sim.engines.compiled.pool import free_record
from flitlab.sim.engines.compiled.spray.hosts import request_turn, send_control, settle_nic
from flitlab.sim.engines.compiled.spray.messages import record_received
from flitlab.sim.engines.compiled.spray.rdma import CNP, LAW, TIMEOUT, set_cnp_timer, telemetry_row
from flitlab.sim.engines.compiled.spray.state import Flag, Timer, is_response, make_packet, set_timer
from flitlab.sim.engines.compiled.transport import trace_packet


@inline
def deliver_rdma(rdma, const, state, host, packet, now):
    """Deliver a packet to a host, whose interface is settled.

    Parameters
    ----------
    host, packet: int64.
    now: int64, tick.
    """
    if is_response(state.packet[packet].kind):
        _process_response(rdma, const, state, host, packet, now)
    else:
        _receive(rdma, const, state, host, packet, now)


@inline
def _receive(rdma, const, state, host, packet, now):
    """Receive data; its record becomes that of the response."""
    record = state.packet[packet]
    flow, number, marked = np.int64(record.flow), np.int64(record.number), record.kind & Flag.ECN_MARK != 0
    trace_packet(state, flow, number, len(state.nic), now)
    answer = on_data(rdma, state.receivers, flow, number, np.int64(record.size), marked, np.int64(record.hop), now)
    record_received(state.program, state, flow, now)
    if marked:
        if notifies(rdma, flow, now):
            _send_cnp(const, state, host, flow, now)
        set_cnp_timer(rdma, const, state, flow)
    if answer == Answer.NONE:
        free_record(state, packet)
        return
    record.kind = (PacketKind.ACK if answer == Answer.ACK else PacketKind.NACK) | record.kind & Flag.ECN_MARK
    record.size, record.host, record.hop = const.rules.control, const.hosts_of_flow[flow, 0], 0
    record.value = state.receivers.got[flow].expected
    send_control(const, state, host, packet, now)


@inline
def _send_cnp(const, state, host, flow, now):
    """Let a receiver send a congestion notification packet."""
    settle_nic(const, state, host, now)
    packet = make_packet(const, state, flow, np.int64(PacketKind.CNP), const.rules.control, np.int64(0), np.int64(0))
    send_control(const, state, host, packet, now)


@inline
def _process_response(rdma, const, state, host, packet, now):
    """Process an ACK, a NACK or a CNP at its sender."""
    record = state.packet[packet]
    kind, flow, expected = record.kind & Flag.KIND_MASK, np.int64(record.flow), np.int64(record.value)
    if kind == PacketKind.ACK or kind == PacketKind.NACK:
        number, marked, nack = np.int64(record.number), record.kind & Flag.ECN_MARK != 0, kind == PacketKind.NACK
        row = rdma.telemetry[telemetry_row(rdma, packet)]
        response = Response(nack, number, expected, record.received, marked, row)
        on_response(rdma, state.senders, flow, response, now)
    else:
        on_cnp(rdma, flow, now)
    free_record(state, packet)
    request_turn(const, state, host, flow, now)


@inline
def expire_rdma(rdma, const, state, kind, flow, now):
    """Process an expired timer of an RDMA flow; the interface of its source is settled.

    Parameters
    ----------
    kind: int64, Timer.
    flow: int64.
    now: int64, tick.
    """
    host = const.hosts_of_flow[flow, 0]
    if kind == Timer.CNP:
        state.timers_set[flow] &= ~CNP
        if notifies_late(rdma, flow, now):
            _send_cnp(const, state, const.hosts_of_flow[flow, 1], flow, now)
        set_cnp_timer(rdma, const, state, flow)
        return
    if kind == Timer.START:
        begin_sending(state.senders, flow, now)
    elif kind == Timer.PACE:
        if not pacing_expires(rdma, flow, now):
            return
    elif kind == Timer.LAW:
        state.timers_set[flow] &= ~LAW
        on_timer(rdma, flow, now)
    else:
        state.timers_set[flow] &= ~TIMEOUT
        on_timeout(rdma, state.senders, flow, now)
        deadline = rdma.flow[flow].deadline
        if deadline >= 0:
            state.timers_set[flow] |= TIMEOUT
            set_timer(const, state, deadline, Timer.TIMEOUT, flow)
    request_turn(const, state, host, flow, now)
