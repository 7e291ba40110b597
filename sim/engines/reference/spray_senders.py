# SPDX-License-Identifier: Apache-2.0
"""The senders of sprayed packets: what they send, how they react to control packets, and their timers."""

from flitlab.models.rules.spray.credit import on_pull
from flitlab.models.rules.spray.layout import Ack, Credit, PacketKind, Rules, Senders, make_senders
from flitlab.models.rules.spray.recovery import PROBE, next_probe_check, probe
from flitlab.models.rules.spray.sender import (
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
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_flows import FlowNetwork, TimerKind, set_timer
from flitlab.sim.engines.reference.spray_links import SprayHost, SprayPacket


class _SenderRules:
    """The rules of :mod:`flitlab.models.rules.spray.sender`, and others of senders, compiled for a table."""

    def __init__(self, r: Rules, s: Senders):
        self.begin_sending = machine_code(begin_sending, s, 0, 0)
        self.may_send = machine_code(may_send, r, s, 0)
        self.send = machine_code(send, r, s, 0, 0, 0)
        self.pace = machine_code(pace, r, s, 0)
        self.on_ack = machine_code(on_ack, r, s, 0, Ack(0, 0, 0, False, 0, False, 0, 0), 0)
        self.on_nack = machine_code(on_nack, r, s, 0, 0, False, False, 0)
        self.on_nack_entropy = machine_code(on_nack_entropy, r, s, 0, 0, False, False, 0)
        self.on_pull = machine_code(on_pull, r, s, 0, 0)
        self.deadline = machine_code(deadline, r, s, 0)
        self.on_timeout = machine_code(on_timeout, r, s, 0, 0)
        self.request = machine_code(request, r, s, 0, 0, 0)
        self.next_probe_check = machine_code(next_probe_check, s, 0, 0)
        self.probe = machine_code(probe, r, s, 0, 0)


class SpraySenders:
    """The senders of all flows. table: their state."""

    def __init__(self, network: FlowNetwork):
        session, flows = network.session, network.session.flows
        self.network, self.clock = network, network.clock
        self.table = make_senders(session.transports, session.flows.kinds, flows.packets, flows.last_size)
        self._rules = _SenderRules(session.rules, self.table)

    def start(self, flow: int) -> None:
        """Start a flow."""
        self._rules.begin_sending(self.table, flow, self.clock.now)
        of = self.network.flows[flow]
        if of.rules.credit == Credit.PACED:
            self._pace(flow)
        else:
            of.source.enqueue_flow(flow)

    def _pace(self, flow: int) -> None:
        of = self.network.flows[flow]
        more = self._rules.pace(of.rules, self.table, flow)
        of.source.enqueue_flow(flow)
        if more:
            set_timer(self.clock, self.clock.now + of.rules.gap, TimerKind.PACE, flow, self._pace)

    def may_send(self, flow: int) -> bool:
        """Whether a flow may send."""
        return bool(self._rules.may_send(self.network.flows[flow].rules, self.table, flow))

    def next_packet(self, flow: int, waiting: int) -> SprayPacket:
        """The next packet of a flow that may send; waiting: flows queued at its host, itself included."""
        of = self.network.flows[flow]
        number, size, flags, entropy, claimed = self._rules.send(of.rules, self.table, flow, waiting, self.clock.now)
        packet = self.network.packet(PacketKind.DATA, flow, entropy, size)
        packet.number, packet.flags, packet.claim = number, flags, claimed
        if not of.awaits_timeout and of.rules.acknowledges:
            of.awaits_timeout = True
            set_timer(self.clock, self.clock.now + of.rules.timeout, TimerKind.TIMEOUT, flow, self._expire)
        if not flags & IS_AGAIN:
            self.network.first_sent(flow, number)
        return packet

    # control packets

    def receive(self, packet: SprayPacket, host: SprayHost) -> None:
        """Receive a control packet at the host of a sender."""
        if packet.kind == PacketKind.ACK:
            self._handle_ack(packet)
        elif packet.kind == PacketKind.NACK:
            self._handle_nack(packet, host)
        else:
            rules = self.network.flows[packet.flow].rules
            self._rules.on_pull(rules, self.table, packet.flow, packet.granted)
        host.enqueue_flow(packet.flow)

    def _handle_ack(self, packet: SprayPacket) -> None:
        ack = Ack(
            packet.expected, packet.received, packet.number, packet.flags & IS_AGAIN != 0, packet.entropy,
            packet.marked, packet.start, packet.bits,
        )  # fmt: skip
        rules = self.network.flows[packet.flow].rules
        self._rules.on_ack(rules, self.table, packet.flow, ack, self.clock.now)
        self._await_probe(packet.flow)

    def _handle_nack(self, packet: SprayPacket, host: SprayHost) -> None:
        flow, now = packet.flow, self.clock.now
        r, s, is_again = self.network.flows[flow].rules, self.table, packet.flags & IS_AGAIN != 0
        if self._rules.on_nack(r, s, flow, packet.number, is_again, packet.last_hop, now):
            host.enqueue_flow(flow)
            self._rules.on_nack_entropy(r, s, flow, packet.entropy, packet.marked, packet.last_hop, now)

    # timers

    def _expire(self, flow: int) -> None:
        of, s, rules, now = self.network.flows[flow], self.table, self._rules, self.clock.now
        tick = rules.deadline(of.rules, s, flow)
        if 0 <= tick <= now:
            if rules.on_timeout(of.rules, s, flow, now):
                entropy, claimed = rules.request(of.rules, s, flow, len(of.source.waiting_with(flow)), now)
                packet = self.network.packet(PacketKind.REQUEST, flow, entropy)
                packet.claim = claimed
                of.source.post(packet)
            of.source.enqueue_flow(flow)
            tick = rules.deadline(of.rules, s, flow)
        of.awaits_timeout = tick >= 0
        if of.awaits_timeout:
            set_timer(self.clock, max(tick, now + 1), TimerKind.TIMEOUT, flow, self._expire)

    def _await_probe(self, flow: int) -> None:
        """Schedule the check of a sender's probe timer, if the timer runs and no check is scheduled."""
        of = self.network.flows[flow]
        if of.awaits_probe:
            return
        tick = self._rules.next_probe_check(self.table, flow, self.clock.now)
        if tick >= 0:
            of.awaits_probe = True
            set_timer(self.clock, tick, TimerKind.PROBE, flow, self._check_probe)

    def _check_probe(self, flow: int) -> None:
        of = self.network.flows[flow]
        of.awaits_probe = False
        entropy = self._rules.probe(of.rules, self.table, flow, self.clock.now)
        if entropy >= 0:
            packet = self.network.packet(PacketKind.REQUEST, flow, entropy)
            packet.number = int(PROBE)
            of.source.post(packet)
        self._await_probe(flow)
