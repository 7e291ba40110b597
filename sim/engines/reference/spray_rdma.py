# SPDX-License-Identifier: Apache-2.0
"""RDMA flows of the reference engine: their packets, responses and timers."""

from collections.abc import Callable

import numpy as np

from flitlab.models.rules.rdma.laws import on_cnp, on_timer
from flitlab.models.rules.rdma.layout import Answer, Rdma, Response, make_rdma
from flitlab.models.rules.rdma.receiver import cnp_tick, notifies, notifies_late, on_data
from flitlab.models.rules.rdma.sender import (
    is_ready,
    law_tick,
    on_response,
    on_timeout,
    pacing_expires,
    pacing_tick,
    send_next,
)
from flitlab.models.rules.spray.layout import PacketKind, Receivers, Senders
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_flows import FlowNetwork, TimerKind, set_timer
from flitlab.sim.engines.reference.spray_links import SprayHost, SprayPacket


class _RdmaRules:
    """The rules of :mod:`flitlab.models.rules.rdma`, compiled for their tables."""

    def __init__(self, d: Rdma, s: Senders, g: Receivers):
        self.is_ready = machine_code(is_ready, d, s, 0, 0)
        self.pacing_tick = machine_code(pacing_tick, d, s, 0, 0)
        self.pacing_expires = machine_code(pacing_expires, d, 0, 0)
        self.send_next = machine_code(send_next, d, s, 0, 0, 0)
        self.on_response = machine_code(on_response, d, s, 0, Response(False, 0, 0, 0, False, d.last[0]), 0)
        self.on_timeout = machine_code(on_timeout, d, s, 0, 0)
        self.on_cnp = machine_code(on_cnp, d, 0, 0)
        self.law_tick = machine_code(law_tick, d, s, 0)
        self.on_timer = machine_code(on_timer, d, 0, 0)
        self.on_data = machine_code(on_data, d, g, 0, 0, 0, False, 0, 0)
        self.notifies = machine_code(notifies, d, 0, 0)
        self.cnp_tick = machine_code(cnp_tick, d, 0)
        self.notifies_late = machine_code(notifies_late, d, 0, 0)


class RdmaFlows:
    """The RDMA flows of a run, with the tables of senders and receivers that all flows have.

    collects: whether packets collect telemetry; no_telemetry: of a packet that does not. timers: (kind, flow) that are
    set.
    """

    def __init__(self, network: FlowNetwork, senders: Senders, receivers: Receivers):
        self.network, self.clock = network, network.clock
        self.senders, self.receivers = senders, receivers
        session, flows = network.session, network.session.flows
        self.state = make_rdma(session.laws, session.flows.kinds, flows.packets, flows.last_size, session.rules.mtu)
        self.collects = any(law.telemetry for law in session.laws)
        self.no_telemetry = np.zeros(self.state.last.shape[1], np.int64)
        self.timers: set[tuple[int, int]] = set()
        self._rules = _RdmaRules(self.state, senders, receivers)

    # senders

    def may_send(self, flow: int) -> bool:
        """Whether a flow may send now; sets its timers."""
        self._set_timers(flow)
        return bool(self._rules.is_ready(self.state, self.senders, flow, self.clock.now))

    def _set_timers(self, flow: int) -> None:
        """Set the timers of a sender that are not set: of its rate, and of its congestion control."""
        s = self.senders
        tick = self._rules.pacing_tick(self.state, s, flow, self.clock.now)
        if tick >= 0:
            set_timer(self.clock, int(tick), TimerKind.PACE, flow, self._continue)
        self._start(TimerKind.CONTROL, flow, self._rules.law_tick(self.state, s, flow), self._act)

    def next_packet(self, flow: int, waiting: int) -> SprayPacket:
        """The next packet of a flow that may send; waiting: not used, since receivers grant no credit."""
        network, now = self.network, self.clock.now
        number, size, again = self._rules.send_next(self.state, self.senders, flow, network.session.rules.mtu, now)
        packet = network.packet(PacketKind.DATA, flow, 0, size)
        packet.number, packet.received = number, now
        if self.collects:
            packet.telemetry = np.zeros_like(self.no_telemetry)[None]
        self._start(TimerKind.TIMEOUT, flow, int(self.state.flow.deadline[flow]), self._expire)
        if not again:
            network.first_sent(flow, number)
        return packet

    def _start(self, kind: int, flow: int, tick: int, action: Callable[[int], None]) -> None:
        """Set a timer that is not set; tick -1: it is not needed."""
        if tick >= 0 and (kind, flow) not in self.timers:
            self.timers.add((kind, flow))
            set_timer(self.clock, int(tick), kind, flow, action)

    def _continue(self, flow: int) -> None:
        if self._rules.pacing_expires(self.state, flow, self.clock.now):
            self._enqueue(flow)

    def _act(self, flow: int) -> None:
        self.timers.remove((TimerKind.CONTROL, flow))
        self._rules.on_timer(self.state, flow, self.clock.now)
        self._enqueue(flow)

    def _expire(self, flow: int) -> None:
        self.timers.remove((TimerKind.TIMEOUT, flow))
        self._rules.on_timeout(self.state, self.senders, flow, self.clock.now)
        self._start(TimerKind.TIMEOUT, flow, int(self.state.flow.deadline[flow]), self._expire)
        self._enqueue(flow)

    def _enqueue(self, flow: int) -> None:
        self._set_timers(flow)
        self.network.flows[flow].source.enqueue_flow(flow)

    # both ends

    def receive(self, packet: SprayPacket, host: SprayHost) -> None:
        """Receive a packet at its host."""
        d, s, flow, now = self.state, self.senders, packet.flow, self.clock.now
        if packet.kind == PacketKind.DATA:
            self._receive_data(packet, host)
            return
        if packet.kind in (PacketKind.ACK, PacketKind.NACK):
            row = self.no_telemetry if packet.telemetry is None else packet.telemetry[0]
            nack = packet.kind == PacketKind.NACK
            response = Response(nack, packet.number, packet.expected, packet.received, packet.marked, row)
            self._rules.on_response(d, s, flow, response, now)
        else:
            self._rules.on_cnp(d, flow, now)
        self._enqueue(flow)

    def _receive_data(self, packet: SprayPacket, host: SprayHost) -> None:
        network, flow, now, g = self.network, packet.flow, self.clock.now, self.receivers
        network.trace_packet(flow, packet.number)
        answer = self._rules.on_data(self.state, g, flow, packet.number, packet.size, packet.marked, packet.hop, now)
        network.received(flow, now)
        if packet.marked:
            if self._rules.notifies(self.state, flow, now):
                host.post(network.packet(PacketKind.CNP, flow, 0))
            self._start(TimerKind.CNP, flow, self._rules.cnp_tick(self.state, flow), self._notify)
        if answer == Answer.NONE:
            return
        reply = network.packet(PacketKind.ACK if answer == Answer.ACK else PacketKind.NACK, flow, 0)
        reply.telemetry, reply.number = packet.telemetry, packet.number
        reply.expected, reply.received, reply.marked = int(g.got[flow].expected), packet.received, packet.marked
        host.post(reply)

    def _notify(self, flow: int) -> None:
        self.timers.remove((TimerKind.CNP, flow))
        if self._rules.notifies_late(self.state, flow, self.clock.now):
            self.network.flows[flow].destination.post(self.network.packet(PacketKind.CNP, flow, 0))
        self._start(TimerKind.CNP, flow, self._rules.cnp_tick(self.state, flow), self._notify)
