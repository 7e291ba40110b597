# SPDX-License-Identifier: Apache-2.0
"""The switching mode spray: switches that spread packets over queues that trim, and hosts with their transports.

In one tick the network changes first, then services end, then packets reach the ends of links, in an order drawn for
every tick (:func:`flitlab.models.rules.datagram.precedence`), then timers expire.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from simpy.events import EventPriority

from flitlab.models.application import messages
from flitlab.models.arrays import Ints
from flitlab.models.rules.spray.credit import (
    PULL_ENTROPIES,
    claim,
    count_arrival,
    make_pacers,
    next_pull,
    on_pull,
    throttles,
)
from flitlab.models.rules.spray.layout import Credit, Feedback, PacketKind, make_receivers, make_senders
from flitlab.models.rules.spray.ports import AtSwitch, chosen_port, make_salts, make_switches, spray_port, spray_route
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
from flitlab.models.transport.fabric import FabricChange, SpraySession
from flitlab.models.transport.flow_links import links_of_flows
from flitlab.models.transport.session import LATEST
from flitlab.sim.engines.base import ProgramStatus
from flitlab.sim.engines.reference.clock import Alarm
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.ranks import Message, Ranks
from flitlab.sim.engines.reference.spray_links import ARRIVALS, CHANGES, SprayHost, SprayLink, SprayPacket, SprayQueue
from flitlab.sim.engines.reference.spray_lossless import ClassHost, LosslessPorts, LosslessQueue
from flitlab.sim.engines.reference.spray_rdma import RdmaFlows
from flitlab.sim.engines.reference.transport import ReferenceTransport
from flitlab.sim.engines.transport.spray import (
    Counters,
    LinkCount,
    are_finished,
    flow_table,
    later_changes,
    pause_table,
    program_status,
)

_START, _TIMEOUT, _PACE, _PULL, _PROBE = (ARRIVALS + (1 << 63) + (kind << 32) for kind in range(5))
"""Priorities in a tick; above these comes the index of a flow or host."""

_WATCHDOG = _START + (8 << 32)

_LAST = EventPriority(ARRIVALS + (1 << 64))
"""The priority of programs, after all others."""


class ReferenceSpray(ReferenceTransport[SpraySession]):
    """A simulation of sprayed packets in SimPy.

    See :class:`flitlab.sim.engines.transport.spray.SprayRun`.
    """

    latest = LATEST

    def __init__(self, session: SpraySession, trace: bool = False):
        super().__init__(session, trace)
        topology, rules, flows = session.topology, session.rules, session.flows
        self.rules = rules
        self.scheduled = 0  # ends of service and arrivals
        self.transports = [session.transports[kind] for kind in session.kind.tolist()]
        self.senders = make_senders(session.transports, session.kind, flows.packets, flows.last_size)
        self.receivers = make_receivers(self.senders)
        self.pacers = make_pacers(topology.hosts, len(flows.source), session.idle_entries)
        self.salts = np.zeros(topology.switches + 1, np.int64)
        make_salts(session.seed, self.salts)
        self.switches = make_switches(
            session.at_switch,
            session.seed,
            session.queue_bytes,
            topology.out_degree,
            2 * len(flows.source),
            session.fresh,
            session.flowlet_gap,
        )
        self.routes, self.routes_changed = session.routes, False
        self._compile()
        channels, hosts = topology.channels, topology.hosts
        self.ports = None
        if session.ports is not None:
            links = None if session.program is not None else links_of_flows(session)
            self.ports = LosslessPorts(self.clock, session.ports, topology, self._set_port_timer, links)
        self.hosts = [self._host(h) for h in range(hosts)]
        self.queues = [self._queue(c, self._switch_entry(int(topology.dst[c]))) for c in range(channels)]
        self.last = [self._queue(channels + hosts + h, self._host_entry(h)) for h in range(hosts)]
        self.links: list[SprayLink] = [*self.queues, *self.hosts, *self.last]
        if self.ports is not None:
            self.ports.links = self.links
        self.rdma = RdmaFlows(self, self._set_rdma_timer) if session.laws else None
        self.source, self.destination = flows.source.tolist(), flows.destination.tolist()
        self.timers: set[int] = set()
        self.probe_timers: set[int] = set()
        self.pulls: set[tuple[int, int]] = set()
        for change in session.changes:
            Alarm(self.clock, change.tick, CHANGES, self._change, change)
        self.messages: dict[int, Message] = {}
        if session.program is not None:
            self.ranks = Ranks(self.clock, session.program.workload, self.hosts, _LAST)
            return
        for i, tick in enumerate(flows.start.tolist()):
            self._set_timer(tick, _PACE if self.transports[i].credit == Credit.PACED else _START, i, self.start)

    def _compile(self) -> None:
        r, s, g, p, w, t = self.rules, self.senders, self.receivers, self.pacers, self.switches, self.session.routes
        out, salts = self.session.topology.out_start, self.salts
        self._begin_flow = machine_code(begin_sending, s, 0, 0)
        self._can_send = machine_code(may_send, r, s, 0)
        self._send = machine_code(send, r, s, 0, 0, 0)
        self._on_ack = machine_code(on_ack, r, s, 0, 0, 0, 0, False, 0, False, 0, 0, 0)
        self._on_nack = machine_code(on_nack, r, s, 0, 0, False, False, 0)
        self._on_nack_entropy = machine_code(on_nack_entropy, r, s, 0, 0, False, False, 0)
        self._on_pull = machine_code(on_pull, r, s, 0, 0)
        self._on_timeout = machine_code(on_timeout, r, s, 0, 0)
        self._probe = machine_code(probe, r, s, 0, 0)
        self._probe_tick = machine_code(next_probe_check, r, s, 0, 0)
        self._deadline = machine_code(deadline, r, s, 0)
        self._request = machine_code(request, r, s, 0, 0, 0)
        self._pace_on = machine_code(pace, r, s, 0)
        self._on_data = machine_code(on_data, r, g, 0, 0, 0, False, False, 0)
        self._on_trimmed = machine_code(on_trimmed, r, g, 0, 0, False)
        self._on_request = machine_code(on_request, r, g, 0)
        self._bits_from = machine_code(bits_from, g, 0, 0, False)
        self._bits_of = machine_code(bits_of, g, 0, 0)
        self._claim = machine_code(claim, r, g, p, 0, 0, 0, False, 0)
        self._next_pull = machine_code(next_pull, r, g, p, 0, 0)
        self._count_arrival = machine_code(count_arrival, r, p, 0, 0, 0)
        self._way_of = machine_code(spray_route, t, salts, 0, 0, 0, 0, 0)
        self._spray_port = machine_code(spray_port, t, t, False, salts, 0, 0, 0, 0, 0, 0)
        self._chosen_port = machine_code(chosen_port, t, t, False, salts, w, out, 0, 0, 0, 0, 0, 0, 0)

    def _queue(self, number: int, end: Callable[[SprayPacket], None]) -> SprayQueue:
        return SprayQueue(self, number, end) if self.ports is None else LosslessQueue(self, number, end, self.ports)

    def _host(self, index: int) -> SprayHost:
        if self.ports is None or self.ports.classes is None:
            return SprayHost(self, index)
        return ClassHost(self, index, self.ports)

    def is_paused(self, number: int) -> bool:
        """Whether the server of a link is paused, where there is one class."""
        return self.ports is not None and self.ports.is_paused(number)

    def _switch_entry(self, switch: int) -> Callable[[SprayPacket], None]:
        def come(packet: SprayPacket) -> None:
            packet.hop += 1
            self.forward(packet, switch)

        return come

    def _host_entry(self, host: int) -> Callable[[SprayPacket], None]:
        return lambda packet: self.receive(packet, self.hosts[host])

    def _set_timer(self, tick: int, kind: int, index: int, action: Callable[[int], None]) -> None:
        Alarm(self.clock, tick, EventPriority(kind + index), lambda alarm: action(alarm.value), index)

    def _set_rdma_timer(self, tick: int, kind: int, flow: int, action: Callable[[int], None]) -> None:
        self._set_timer(tick, _START + (kind << 32), flow, action)

    def _set_port_timer(self, tick: int, port: int, action: Callable[[int], None]) -> None:
        self._set_timer(tick, _WATCHDOG, port, action)

    # the network

    def _change(self, alarm: Alarm) -> None:
        change: FabricChange = alarm.value
        if change.storm is not None and self.ports is not None:
            self.ports.storm(*change.storm)
        for link in change.broken.tolist():
            self.queues[link].fail()
        for link, ratio, queue_limit, low, high in np.column_stack([change.other, *change.settings]).tolist():
            self.queues[link].set_rate(ratio, queue_limit, low, high)
            if self.session.ports is not None:
                self.queues[link].span = int(self.session.ports.span(low, high))
        self.switches.queue_bytes[change.other] = change.settings.queue_bytes
        if change.routes is not None:
            self.routes, self.routes_changed = change.routes, change.moved

    # switches

    def enter(self, packet: SprayPacket, switch: int) -> None:
        """Receive a packet of a host at its first switch, where its route is fixed."""
        paths = self.transports[packet.flow].paths
        packet.route = self._way_of(
            self.routes, self.salts, paths, switch, packet.target.switch, packet.key, packet.entropy
        )
        self.forward(packet, switch)

    def forward(self, packet: SprayPacket, switch: int) -> None:
        """Put a packet at a switch into the queue of an output."""
        session, target = self.session, packet.target.switch
        if switch == target:
            self.last[packet.target.index].accept(packet)
            return
        if session.at_switch == AtSwitch.ECMP:
            port = self._spray_port(
                self.routes, session.routes, self.routes_changed, self.salts, packet.route, packet.hop, switch,
                target, packet.key, packet.entropy,
            )  # fmt: skip
        else:
            data = packet.size if packet.is_data else 0
            port = self._chosen_port(
                self.routes, session.routes, self.routes_changed, self.salts, self.switches,
                session.topology.out_start, switch, target, packet.hop, packet.key, packet.entropy, data,
                self.clock.now,
            )  # fmt: skip
        self.queues[int(session.topology.out_start[switch]) + port].accept(packet)

    def update_queue(self, number: int, low: int, high: int) -> None:
        """Update the queue lengths that adaptive switches read."""
        if self.session.at_switch != AtSwitch.ECMP:
            self.switches.low[number], self.switches.high[number] = low, high

    # senders

    def may_send(self, flow: int) -> bool:
        """Whether a connection may send."""
        if self.rdma is not None:
            return self.rdma.may_send(flow)
        return bool(self._can_send(self.transports[flow], self.senders, flow))

    def next_packet(self, flow: int, waiting: int) -> SprayPacket:
        """The next packet of a connection that may send; waiting: connections queued at its host, itself included."""
        if self.rdma is not None:
            return self.rdma.next_packet(flow)
        number, size, flags, entropy, claimed = self._send(
            self.transports[flow], self.senders, flow, waiting, self.clock.now
        )
        packet = self.packet(PacketKind.DATA, flow, entropy, size)
        packet.number, packet.flags, packet.claim = number, flags, claimed
        self._watch(flow)
        if not flags & IS_AGAIN:
            self.first_sent(flow, number)
        return packet

    def first_sent(self, flow: int, number: int) -> None:
        """Tell the program of the first transmission of the last packet of a message."""
        if flow in self.messages and number == self.session.flows.packets[flow] - 1:
            assert self.ranks is not None
            self.ranks.tail_sent(self.messages[flow], self.clock.now + 1)

    def packet(self, kind: PacketKind, flow: int, entropy: int, size: int = 0) -> SprayPacket:
        """A packet of a flow; size: 0: of a control packet."""
        backwards = kind in (PacketKind.ACK, PacketKind.NACK, PacketKind.PULL, PacketKind.CNP)
        to = self.source[flow] if backwards else self.destination[flow]
        return SprayPacket(kind, flow, size or self.rules.control, entropy, 2 * flow + backwards, self.hosts[to])

    def _watch(self, flow: int) -> None:
        """Set the timer of a sender that has none."""
        if flow not in self.timers and self.transports[flow].acknowledges:
            self.timers.add(flow)
            self._set_timer(self.clock.now + self.transports[flow].timeout, _TIMEOUT, flow, self._expire)

    def start(self, flow: int) -> None:
        """Start a flow."""
        self._begin_flow(self.senders, flow, self.clock.now)
        if self.transports[flow].credit == Credit.PACED:
            self._pace(flow)
        else:
            self.hosts[self.source[flow]].enqueue_flow(flow)

    def post(self, message: Message) -> None:
        """Start the flow of a message."""
        program, ranks = self.session.program, self.ranks
        assert program is not None and ranks is not None
        of = {messages.MessageStage.RTS: program.request, messages.MessageStage.CTS: program.consent}.get(
            ranks.stage[message.send], program.data
        )
        flow = int(of[message.send])
        message.missing = 1  # a flow comes as a whole
        self.messages[flow] = message
        self.start(flow)

    def _pace(self, flow: int) -> None:
        more = self._pace_on(self.transports[flow], self.senders, flow)
        self.hosts[self.source[flow]].enqueue_flow(flow)
        if more:
            self._set_timer(self.clock.now + self.transports[flow].gap, _PACE, flow, self._pace)

    def _expire(self, flow: int) -> None:
        r, s, now, host = self.transports[flow], self.senders, self.clock.now, self.hosts[self.source[flow]]
        tick = self._deadline(r, s, flow)
        if 0 <= tick <= now:
            if self._on_timeout(r, s, flow, now):
                entropy, claimed = self._request(r, s, flow, len(host.waiting_with(flow)), now)
                packet = self.packet(PacketKind.REQUEST, flow, entropy)
                packet.claim = claimed
                host.post(packet)
            host.enqueue_flow(flow)
            tick = self._deadline(r, s, flow)
        if tick < 0:
            self.timers.remove(flow)
        else:
            self._set_timer(max(tick, now + 1), _TIMEOUT, flow, self._expire)

    def _await_probe(self, flow: int) -> None:
        """Schedule the check of a sender's probe timer, if the timer runs and no check is scheduled."""
        if flow in self.probe_timers:
            return
        tick = self._probe_tick(self.transports[flow], self.senders, flow, self.clock.now)
        if tick >= 0:
            self.probe_timers.add(flow)
            self._set_timer(tick, _PROBE, flow, self._check_probe)

    def _check_probe(self, flow: int) -> None:
        self.probe_timers.remove(flow)
        entropy = self._probe(self.transports[flow], self.senders, flow, self.clock.now)
        if entropy >= 0:
            packet = self.packet(PacketKind.REQUEST, flow, entropy)
            packet.number = int(PROBE)
            self.hosts[self.source[flow]].post(packet)
        self._await_probe(flow)

    # hosts

    def receive(self, packet: SprayPacket, host: SprayHost) -> None:
        """Receive a packet at its host."""
        if self.rdma is not None:
            self.rdma.receive(packet, host)
            return
        self._handlers[packet.kind](self, packet, host)

    def _handle_data(self, packet: SprayPacket, host: SprayHost) -> None:
        g, now, flow = self.receivers, self.clock.now, packet.flow
        r = self.transports[flow]
        asks = packet.flags & ASKS != 0
        answer: PacketKind | None
        if packet.trimmed:
            again = self._on_trimmed(r, g, flow, packet.number, packet.marked)
            answer = (PacketKind.NACK if again else PacketKind.ACK) if r.acknowledges else None
        else:
            self.trace_packet(flow, packet.number)
            acks = self._on_data(r, g, flow, packet.number, packet.size, packet.marked, asks, now)
            answer = PacketKind.ACK if acks else None
            self.received(flow, now)
        reply = None if answer is None else self._acknowledge(answer, packet, packet.marked or asks)
        self._claim_credit(packet, host, packet.trimmed)
        if throttles(r):
            what = int(packet.marked)
            if packet.trimmed:
                what = Feedback.TIMED_OUT if packet.last_hop else Feedback.TRIMMED
            self._count_arrival(self.rules, self.pacers, host.index, what, now)
        if reply is not None:
            host.post(reply)

    def received(self, flow: int, now: int) -> None:
        """Tell the program of a message that is complete since this tick: its host receives one packet per tick."""
        if self.ranks is not None and self.receivers.got[flow].complete == now:
            self.ranks.receive(self.messages[flow])

    def _acknowledge(self, kind: PacketKind, packet: SprayPacket, exact: bool) -> SprayPacket:
        """An ACK or NACK with the state of the receiver."""
        g, flow = self.receivers, packet.flow
        reply = self.packet(kind, flow, packet.entropy)
        reply.number, reply.flags, reply.marked, reply.last_hop = (
            packet.number, packet.flags, packet.marked, packet.last_hop,
        )  # fmt: skip
        if kind == PacketKind.ACK:
            reply.expected, reply.received = g.got[flow].expected, g.got[flow].bytes
            reply.start = self._bits_from(g, flow, packet.number, exact)
            reply.bits = self._bits_of(g, flow, reply.start)
        return reply

    def _handle_request(self, packet: SprayPacket, host: SprayHost) -> None:
        self._on_request(self.transports[packet.flow], self.receivers, packet.flow)
        reply = self._acknowledge(PacketKind.ACK, packet, False)
        self._claim_credit(packet, host, True)
        host.post(reply)

    def _claim_credit(self, packet: SprayPacket, host: SprayHost, outstanding: bool) -> None:
        if self.transports[packet.flow].credit in (Credit.RCCC, Credit.NDP):
            self._claim(
                self.rules,
                self.receivers,
                self.pacers,
                host.index,
                packet.flow,
                packet.claim,
                outstanding,
                self.clock.now,
            )
            self._await_pull(host)

    def _handle_ack(self, packet: SprayPacket, host: SprayHost) -> None:
        self._on_ack(
            self.transports[packet.flow], self.senders, packet.flow, packet.expected, packet.received, packet.number,
            packet.flags & IS_AGAIN != 0, packet.entropy, packet.marked, packet.start, packet.bits, self.clock.now,
        )  # fmt: skip
        self._await_probe(packet.flow)
        host.enqueue_flow(packet.flow)

    def _handle_nack(self, packet: SprayPacket, host: SprayHost) -> None:
        r, s, flow, now = self.transports[packet.flow], self.senders, packet.flow, self.clock.now
        if self._on_nack(r, s, flow, packet.number, packet.flags & IS_AGAIN != 0, packet.last_hop, now):
            host.enqueue_flow(flow)
            self._on_nack_entropy(r, s, flow, packet.entropy, packet.marked, packet.last_hop, now)
        host.enqueue_flow(flow)

    def _handle_pull(self, packet: SprayPacket, host: SprayHost) -> None:
        self._on_pull(self.transports[packet.flow], self.senders, packet.flow, packet.granted)
        host.enqueue_flow(packet.flow)

    _handlers = (_handle_data, _handle_ack, _handle_nack, _handle_pull, _handle_request)

    # pacers

    def _await_pull(self, host: SprayHost) -> None:
        due = int(self.pacers.due[host.index])
        if due >= 0 and (host.index, due) not in self.pulls:
            self.pulls.add((host.index, due))
            self._set_timer(due, _PULL, host.index, self._pull)

    def _pull(self, index: int) -> None:
        now, host = self.clock.now, self.hosts[index]
        self.pulls.remove((index, now))
        flow = self._next_pull(self.rules, self.receivers, self.pacers, index, now)
        self._await_pull(host)
        if flow >= 0:
            got = self.receivers.got[flow]
            packet = self.packet(PacketKind.PULL, flow, (int(got.pulls) - 1) % PULL_ENTROPIES)
            packet.granted = int(got.credit_granted)
            host.post(packet)

    # the run

    def _dropped(self) -> int:
        return sum(link.counts[LinkCount.DROPS] + link.counts[LinkCount.TRIMMED] for link in self.links)

    def counters(self, causes: bool = True) -> Counters:
        links = np.array([link.counts for link in self.links], np.int64)
        cnps = None if self.rdma is None else self.rdma.state.flow.cnps.copy()
        flow = flow_table(self.session, self.senders, self.receivers)
        most_paused = 0 if self.ports is None else int(self.ports.totals[1])
        counters = Counters(self.clock.now, flow, links, self.pauses(), cnps, most_paused)
        if self.ports is None or not causes:
            return counters
        return replace(counters, causes=self.ports.cause_table(), held=self.ports.held_ticks())

    def pauses(self) -> Ints | None:
        return pause_table(None if self.ports is None else self.ports.ports, self.clock.now)

    def deadlock(self) -> tuple[int, ...]:
        may_change = later_changes(self.session, self.clock.now)
        return () if self.ports is None or self.scheduled or may_change else self.ports.deadlock()

    def advance_to_end(self, until: int) -> None:
        clock, ended = self.clock, self.ended()
        while not ended and (tick := clock.peek()) < until:
            while clock.peek() == tick:
                clock.step()
            ended = self.ended()
        self.advance(clock.now + 1 if ended else until)

    def ended(self) -> bool:
        return are_finished(self.session, self.senders, self.receivers)

    def program_status(self) -> ProgramStatus:
        assert self.ranks is not None
        return program_status(self.session, self.senders, self.receivers, self.clock.now, self.ranks.has_events())

    def carried(self) -> Ints:
        """Ticks for which each channel has been sending, int64 [channels]."""
        now = self.clock.now
        return np.array(
            [link.counts[LinkCount.BUSY] - max(0, link.service_end - now) for link in self.queues], np.int64
        )
