# SPDX-License-Identifier: Apache-2.0
"""The switching mode spray: switches that spread packets over queues that trim, and hosts with their transports.

In one tick the network changes first, then services end, then packets reach the ends of links, in an order drawn for
every tick (:func:`flitlab.models.rules.datagram.precedence`), then timers expire.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flitlab.models.application import messages
from flitlab.models.arrays import Ints
from flitlab.models.rules.spray.layout import Credit, PacketKind
from flitlab.models.transport.fabric import FabricChange, SpraySession
from flitlab.models.transport.flow_links import links_of_flows
from flitlab.models.transport.session import LATEST
from flitlab.sim.engines.base import ProgramStatus
from flitlab.sim.engines.reference.clock import Alarm
from flitlab.sim.engines.reference.ranks import Message, Ranks
from flitlab.sim.engines.reference.spray_flows import PROGRAMS, SprayFlow, TimerKind, set_timer
from flitlab.sim.engines.reference.spray_links import CHANGES, SprayHost, SprayLink, SprayPacket, SprayQueue
from flitlab.sim.engines.reference.spray_lossless import ClassHost, LosslessPorts, LosslessQueue
from flitlab.sim.engines.reference.spray_rdma import RdmaFlows
from flitlab.sim.engines.reference.spray_receivers import SprayReceivers
from flitlab.sim.engines.reference.spray_senders import SpraySenders
from flitlab.sim.engines.reference.spray_switches import SpraySwitches
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


class ReferenceSpray(ReferenceTransport[SpraySession]):
    """A simulation of sprayed packets in SimPy; see :class:`flitlab.sim.engines.transport.spray.SprayRun`.

    scheduled: ends of service and arrivals. queues: of channels; last: of switches to hosts; links: all, by number.
    ports: of lossless queues, else None. rdma: RDMA flows, which replace the senders and receivers; else None.
    """

    latest = LATEST

    def __init__(self, session: SpraySession, trace: bool = False):
        super().__init__(session, trace)
        topology, flows = session.topology, session.flows
        channels, hosts = topology.channels, topology.hosts
        self.scheduled = 0
        self.switches = SpraySwitches(session, self.clock)
        self.update_queue: Callable[[int, int, int], None] = self.switches.update_queue
        self.ports = None
        if session.ports is not None:
            links = None if session.program is not None else links_of_flows(session)
            self.ports = LosslessPorts(self.clock, session.ports, topology, links)
        self.hosts = [self._host(h) for h in range(hosts)]
        self.queues = [self._queue(c, self._switch_entry(int(topology.dst[c]))) for c in range(channels)]
        self.last = [self._queue(channels + hosts + h, self._host_entry(h)) for h in range(hosts)]
        self.links: list[SprayLink] = [*self.queues, *self.hosts, *self.last]
        if self.ports is not None:
            self.ports.links = self.links
        self.flows = [
            SprayFlow(session.transports[kind], self.hosts[source], self.hosts[destination])
            for kind, source, destination in zip(
                session.flows.kinds.tolist(), flows.source.tolist(), flows.destination.tolist(), strict=True
            )
        ]
        self.senders = SpraySenders(self)
        self.receivers = SprayReceivers(self, self.senders.table)
        self.rdma = RdmaFlows(self, self.senders.table, self.receivers.table) if session.laws else None
        sources = self.senders if self.rdma is None else self.rdma
        self.may_send: Callable[[int], bool] = sources.may_send
        self.next_packet: Callable[[int, int], SprayPacket] = sources.next_packet
        for change in session.changes:
            Alarm(self.clock, change.tick, CHANGES, self._change, change)
        if session.program is not None:
            self.ranks = Ranks(self.clock, session.program.workload, self.hosts, PROGRAMS)
            return
        for i, tick in enumerate(flows.start.tolist()):
            kind = TimerKind.PACE if self.flows[i].rules.credit == Credit.PACED else TimerKind.START
            set_timer(self.clock, tick, kind, i, self.senders.start)

    def _queue(self, number: int, end: Callable[[SprayPacket], None]) -> SprayQueue:
        return SprayQueue(self, number, end) if self.ports is None else LosslessQueue(self, number, end, self.ports)

    def _host(self, index: int) -> SprayHost:
        if self.ports is None or self.ports.classes.settings is None:
            return SprayHost(self, index)
        return ClassHost(self, index, self.ports)

    def _switch_entry(self, switch: int) -> Callable[[SprayPacket], None]:
        def come(packet: SprayPacket) -> None:
            packet.hop += 1
            self.forward(packet, switch)

        return come

    def _host_entry(self, host: int) -> Callable[[SprayPacket], None]:
        return lambda packet: self.receive(packet, self.hosts[host])

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
        self.switches.change(change)

    def is_paused(self, number: int) -> bool:
        """Whether the server of a link is paused, where there is one class."""
        return self.ports is not None and self.ports.is_paused(number)

    def enter(self, packet: SprayPacket, switch: int) -> None:
        """Receive a packet of a host at its first switch, where its route is fixed."""
        self.switches.fix_route(packet, switch, self.flows[packet.flow].rules.paths)
        self.forward(packet, switch)

    def forward(self, packet: SprayPacket, switch: int) -> None:
        """Put a packet at a switch into the queue of an output."""
        if switch == packet.target.switch:
            self.last[packet.target.index].accept(packet)
        else:
            self.queues[self.switches.output(packet, switch)].accept(packet)

    # the ends of flows

    def receive(self, packet: SprayPacket, host: SprayHost) -> None:
        """Receive a packet at its host."""
        if self.rdma is not None:
            self.rdma.receive(packet, host)
        elif packet.kind in (PacketKind.DATA, PacketKind.REQUEST):
            self.receivers.receive(packet, host)
        else:
            self.senders.receive(packet, host)

    def packet(self, kind: PacketKind, flow: int, entropy: int, size: int = 0) -> SprayPacket:
        """A packet of a flow; size: 0: of a control packet."""
        backwards = kind in (PacketKind.ACK, PacketKind.NACK, PacketKind.PULL, PacketKind.CNP)
        to = self.flows[flow].source if backwards else self.flows[flow].destination
        return SprayPacket(kind, flow, size or self.session.rules.control, entropy, 2 * flow + backwards, to)

    # programs

    def post(self, message: Message) -> None:
        """Start the flow of a message."""
        program, ranks = self.session.program, self.ranks
        assert program is not None and ranks is not None
        of = {messages.MessageStage.RTS: program.request, messages.MessageStage.CTS: program.consent}.get(
            ranks.stage(message), program.data
        )
        flow = int(of[message.send])
        message.missing = 1  # a flow comes as a whole
        self.flows[flow].message = message
        self.senders.start(flow)

    def first_sent(self, flow: int, number: int) -> None:
        """Tell the program of the first transmission of the last packet of a message."""
        message = self.flows[flow].message
        if message is not None and number == self.session.flows.packets[flow] - 1:
            assert self.ranks is not None
            self.ranks.tail_sent(message, self.clock.now + 1)

    def received(self, flow: int, now: int) -> None:
        """Tell the program of a message that is complete since this tick: its host receives one packet per tick."""
        if self.ranks is not None and self.receivers.table.got[flow].complete == now:
            message = self.flows[flow].message
            assert message is not None
            self.ranks.receive(message)

    # the run

    def _dropped(self) -> int:
        return sum(link.counts[LinkCount.DROPS] + link.counts[LinkCount.TRIMMED] for link in self.links)

    def counters(self, causes: bool = True) -> Counters:
        links = np.array([link.counts for link in self.links], np.int64)
        cnps = None if self.rdma is None else self.rdma.state.flow.cnps.copy()
        flow = flow_table(self.session, self.senders.table, self.receivers.table)
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
        return are_finished(self.session, self.senders.table, self.receivers.table)

    def program_status(self) -> ProgramStatus:
        assert self.ranks is not None
        return program_status(
            self.session, self.senders.table, self.receivers.table, self.clock.now, self.ranks.has_events()
        )

    def carried(self) -> Ints:
        """Ticks for which each channel has been sending, int64 [channels]."""
        now = self.clock.now
        return np.array(
            [link.counts[LinkCount.BUSY] - max(0, link.service_end - now) for link in self.queues], np.int64
        )
