# SPDX-License-Identifier: Apache-2.0
"""The receivers of sprayed packets: their responses, and the pacers of their hosts, which grant credit."""

from flitlab.models.rules.spray.credit import (
    PULL_ENTROPIES,
    Pacers,
    claim,
    count_arrival,
    make_pacers,
    next_pull,
    throttles,
)
from flitlab.models.rules.spray.layout import (
    Credit,
    Feedback,
    PacketKind,
    Receivers,
    Rules,
    Senders,
    make_receivers,
)
from flitlab.models.rules.spray.receiver import bits_from, bits_of, on_data, on_request, on_trimmed
from flitlab.models.rules.spray.sender import ASKS
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_flows import FlowNetwork, TimerKind, set_timer
from flitlab.sim.engines.reference.spray_links import SprayHost, SprayPacket


class _ReceiverRules:
    """The rules of :mod:`flitlab.models.rules.spray.receiver`, and of pacers, compiled for their tables."""

    def __init__(self, r: Rules, g: Receivers, p: Pacers):
        self.on_data = machine_code(on_data, r, g, 0, 0, 0, False, False, 0)
        self.on_trimmed = machine_code(on_trimmed, r, g, 0, 0, False)
        self.on_request = machine_code(on_request, r, g, 0)
        self.bits_from = machine_code(bits_from, g, 0, 0, False)
        self.bits_of = machine_code(bits_of, g, 0, 0)
        self.claim = machine_code(claim, r, g, p, 0, 0, 0, False, 0)
        self.next_pull = machine_code(next_pull, r, g, p, 0, 0)
        self.count_arrival = machine_code(count_arrival, r, p, 0, 0, 0)


class SprayReceivers:
    """The receivers of all flows. table: their state. pacers: of hosts."""

    def __init__(self, network: FlowNetwork, senders: Senders):
        session = network.session
        self.network, self.clock = network, network.clock
        self.table = make_receivers(senders)
        self.pacers = make_pacers(session.topology.hosts, len(session.flows.source), session.idle_entries)
        self._rules = _ReceiverRules(session.rules, self.table, self.pacers)
        self._pulls: set[tuple[int, int]] = set()  # host and tick of timers that are set

    def receive(self, packet: SprayPacket, host: SprayHost) -> None:
        """Receive data, or a request for an acknowledgement, at the host of a receiver."""
        if packet.kind == PacketKind.DATA:
            self._handle_data(packet, host)
        else:
            self._handle_request(packet, host)

    def _handle_data(self, packet: SprayPacket, host: SprayHost) -> None:
        g, now, flow = self.table, self.clock.now, packet.flow
        r = self.network.flows[flow].rules
        asks = packet.flags & ASKS != 0
        answer: PacketKind | None
        if packet.trimmed:
            again = self._rules.on_trimmed(r, g, flow, packet.number, packet.marked)
            answer = (PacketKind.NACK if again else PacketKind.ACK) if r.acknowledges else None
        else:
            self.network.trace_packet(flow, packet.number)
            acks = self._rules.on_data(r, g, flow, packet.number, packet.size, packet.marked, asks, now)
            answer = PacketKind.ACK if acks else None
            self.network.received(flow, now)
        reply = None if answer is None else self._acknowledge(answer, packet, packet.marked or asks)
        self._claim_credit(packet, host, packet.trimmed)
        if throttles(r):
            what = int(packet.marked)
            if packet.trimmed:
                what = Feedback.TIMED_OUT if packet.last_hop else Feedback.TRIMMED
            self._rules.count_arrival(self.network.session.rules, self.pacers, host.index, what, now)
        if reply is not None:
            host.post(reply)

    def _handle_request(self, packet: SprayPacket, host: SprayHost) -> None:
        self._rules.on_request(self.network.flows[packet.flow].rules, self.table, packet.flow)
        reply = self._acknowledge(PacketKind.ACK, packet, False)
        self._claim_credit(packet, host, True)
        host.post(reply)

    def _acknowledge(self, kind: PacketKind, packet: SprayPacket, exact: bool) -> SprayPacket:
        """An ACK or NACK with the state of the receiver."""
        g, flow = self.table, packet.flow
        reply = self.network.packet(kind, flow, packet.entropy)
        reply.number, reply.flags, reply.marked, reply.last_hop = (
            packet.number, packet.flags, packet.marked, packet.last_hop,
        )  # fmt: skip
        if kind == PacketKind.ACK:
            reply.expected, reply.received = g.got[flow].expected, g.got[flow].bytes
            reply.start = self._rules.bits_from(g, flow, packet.number, exact)
            reply.bits = self._rules.bits_of(g, flow, reply.start)
        return reply

    # credit

    def _claim_credit(self, packet: SprayPacket, host: SprayHost, outstanding: bool) -> None:
        if self.network.flows[packet.flow].rules.credit in (Credit.RCCC, Credit.NDP):
            self._rules.claim(
                self.network.session.rules, self.table, self.pacers, host.index, packet.flow, packet.claim,
                outstanding, self.clock.now,
            )  # fmt: skip
            self._await_pull(host)

    def _await_pull(self, host: SprayHost) -> None:
        due = int(self.pacers.due[host.index])
        if due >= 0 and (host.index, due) not in self._pulls:
            self._pulls.add((host.index, due))
            set_timer(self.clock, due, TimerKind.PULL, host.index, lambda _: self._pull(host))

    def _pull(self, host: SprayHost) -> None:
        now = self.clock.now
        self._pulls.remove((host.index, now))
        flow = self._rules.next_pull(self.network.session.rules, self.table, self.pacers, host.index, now)
        self._await_pull(host)
        if flow >= 0:
            got = self.table.got[flow]
            packet = self.network.packet(PacketKind.PULL, flow, (int(got.pulls) - 1) % PULL_ENTROPIES)
            packet.granted = int(got.credit_granted)
            host.post(packet)
