# SPDX-License-Identifier: Apache-2.0
"""RDMA flows of the reference engine: their packets, responses and timers."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from flitlab.models.rules.rdma.laws import on_cnp, on_timer
from flitlab.models.rules.rdma.layout import Answer, make_rdma
from flitlab.models.rules.rdma.receiver import cnp_tick, notifies, notifies_late, on_data
from flitlab.models.rules.rdma.sender import (
    is_ready,
    law_tick,
    on_answer,
    on_timeout,
    pacing_expires,
    pacing_tick,
    send_next,
)
from flitlab.models.rules.spray.layout import PacketKind, Receivers, Senders
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.reference.clock import Clock
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_links import SprayHost, SprayPacket

_TIMEOUT, _PACE, _LAW, _CNP = 1, 2, 5, 6
"""Kinds of timers, in the order in which those of a tick expire."""


class RdmaNetwork(Protocol):
    """The interface of the network that RDMA flows use."""

    session: SpraySession
    clock: Clock
    senders: Senders
    receivers: Receivers
    hosts: list[SprayHost]
    source: list[int]
    destination: list[int]

    def packet(self, kind: PacketKind, flow: int, entropy: int, size: int = 0) -> SprayPacket: ...

    def first_sent(self, flow: int, number: int) -> None: ...

    def received(self, flow: int, now: int) -> None: ...

    def trace_packet(self, subflow: int, number: int) -> None: ...


class RdmaFlows:
    """The RDMA flows of a run.

    timers: (kind, flow) that are set. reports: whether packets collect telemetry.
    """

    def __init__(self, network: RdmaNetwork, set_timer: Callable[[int, int, int, Callable[[int], None]], None]):
        self.network, self._set_timer, self.clock = network, set_timer, network.clock
        session, s, g = network.session, network.senders, network.receivers
        flows, mtu = session.flows, session.rules.mtu
        self.mtu = mtu
        self.state = make_rdma(session.laws, session.kind, flows.packets, flows.last_size, mtu)
        self.timers: set[tuple[int, int]] = set()
        self.reports = any(law.telemetry for law in session.laws)
        self.no_telemetry = np.zeros(self.state.last.shape[1], np.int64)
        d = self.state
        self._ready = machine_code(is_ready, d, s, 0, 0)
        self._pacing = machine_code(pacing_tick, d, s, 0, 0)
        self._pacing_expires = machine_code(pacing_expires, d, 0, 0)
        self._send = machine_code(send_next, d, s, 0, 0, 0)
        self._answer = machine_code(on_answer, d, s, 0, False, 0, 0, 0, False, d.last[0], 0)
        self._timeout = machine_code(on_timeout, d, s, 0, 0)
        self._cnp = machine_code(on_cnp, d, 0, 0)
        self._law_tick = machine_code(law_tick, d, s, 0)
        self._law = machine_code(on_timer, d, 0, 0)
        self._data = machine_code(on_data, d, g, 0, 0, 0, False, 0, 0)
        self._notifies = machine_code(notifies, d, 0, 0)
        self._cnp_tick = machine_code(cnp_tick, d, 0)
        self._notifies_late = machine_code(notifies_late, d, 0, 0)

    # senders

    def may_send(self, flow: int) -> bool:
        """Whether a flow may send now; sets its timers."""
        self._set_timers(flow)
        return bool(self._ready(self.state, self.network.senders, flow, self.clock.now))

    def _set_timers(self, flow: int) -> None:
        """Set the timers of a sender that are not set: of its rate, and of its congestion control."""
        s = self.network.senders
        tick = self._pacing(self.state, s, flow, self.clock.now)
        if tick >= 0:
            self._set_timer(int(tick), _PACE, flow, self._continue)
        self._start(_LAW, flow, self._law_tick(self.state, s, flow), self._act)

    def next_packet(self, flow: int) -> SprayPacket:
        """The next packet of a flow that may send."""
        network, now = self.network, self.clock.now
        number, size, again = self._send(self.state, network.senders, flow, self.mtu, now)
        packet = network.packet(PacketKind.DATA, flow, 0, size)
        packet.number, packet.received = number, now
        if self.reports:
            packet.telemetry = np.zeros_like(self.no_telemetry)[None]
        self._start(_TIMEOUT, flow, int(self.state.flow.deadline[flow]), self._expire)
        if not again:
            network.first_sent(flow, number)
        return packet

    def _start(self, kind: int, flow: int, tick: int, action: Callable[[int], None]) -> None:
        """Set a timer that is not set; tick -1: it is not needed."""
        if tick >= 0 and (kind, flow) not in self.timers:
            self.timers.add((kind, flow))
            self._set_timer(int(tick), kind, flow, action)

    def _continue(self, flow: int) -> None:
        if self._pacing_expires(self.state, flow, self.clock.now):
            self._enqueue(flow)

    def _act(self, flow: int) -> None:
        self.timers.remove((_LAW, flow))
        self._law(self.state, flow, self.clock.now)
        self._enqueue(flow)

    def _expire(self, flow: int) -> None:
        self.timers.remove((_TIMEOUT, flow))
        self._timeout(self.state, self.network.senders, flow, self.clock.now)
        self._start(_TIMEOUT, flow, int(self.state.flow.deadline[flow]), self._expire)
        self._enqueue(flow)

    def _enqueue(self, flow: int) -> None:
        self._set_timers(flow)
        self.network.hosts[self.network.source[flow]].enqueue_flow(flow)

    # both ends

    def receive(self, packet: SprayPacket, host: SprayHost) -> None:
        """Receive a packet at its host."""
        d, s, flow, now = self.state, self.network.senders, packet.flow, self.clock.now
        if packet.kind == PacketKind.DATA:
            self._receive_data(packet, host)
            return
        if packet.kind in (PacketKind.ACK, PacketKind.NACK):
            row = self.no_telemetry if packet.telemetry is None else packet.telemetry[0]
            self._answer(
                d, s, flow, packet.kind == PacketKind.NACK, packet.number, packet.expected, packet.received,
                packet.marked, row, now,
            )  # fmt: skip
        else:
            self._cnp(d, flow, now)
        self._enqueue(flow)

    def _receive_data(self, packet: SprayPacket, host: SprayHost) -> None:
        network, flow, now, g = self.network, packet.flow, self.clock.now, self.network.receivers
        network.trace_packet(flow, packet.number)
        answer = self._data(self.state, g, flow, packet.number, packet.size, packet.marked, packet.hop, now)
        network.received(flow, now)
        if packet.marked:
            if self._notifies(self.state, flow, now):
                host.post(network.packet(PacketKind.CNP, flow, 0))
            self._start(_CNP, flow, self._cnp_tick(self.state, flow), self._notify)
        if answer == Answer.NONE:
            return
        reply = network.packet(PacketKind.ACK if answer == Answer.ACK else PacketKind.NACK, flow, 0)
        reply.telemetry, reply.number = packet.telemetry, packet.number
        reply.expected, reply.received, reply.marked = int(g.got[flow].expected), packet.received, packet.marked
        host.post(reply)

    def _notify(self, flow: int) -> None:
        self.timers.remove((_CNP, flow))
        if self._notifies_late(self.state, flow, self.clock.now):
            self.network.hosts[self.network.destination[flow]].post(self.network.packet(PacketKind.CNP, flow, 0))
        self._start(_CNP, flow, self._cnp_tick(self.state, flow), self._notify)
