# SPDX-License-Identifier: Apache-2.0
"""The switching mode datagram: output queues that drop, and hosts that acknowledge and retransmit.

A queue computes the departure of a packet when it accepts it, so a packet causes one event per hop, its arrival at the
next queue: service and propagation are merged. In one tick come first packets that reach the end of a link, and
acknowledgements without a queue, then timers, both in an order drawn for every tick
(:func:`flitlab.models.rules.datagram.precedence`); programs come last.
"""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from simpy.events import EventPriority

from flitlab.models.arrays import Ints
from flitlab.models.rules.datagram import NEARLY_FULL, drops_early, rest_ticks, service_ticks
from flitlab.models.transport.feeders import with_feeders
from flitlab.models.transport.law import AckPath
from flitlab.models.transport.messages import Connections
from flitlab.models.transport.newreno import (
    NEVER,
    ConnectionState,
    acknowledge,
    connect,
    fits_window,
    make_senders,
    open_up,
    opened,
    resume,
    time_out,
)
from flitlab.models.transport.paths import Paths
from flitlab.models.transport.session import SYN_BYTES, Change, Session, first_samples
from flitlab.sim.engines.base import ProgramStatus
from flitlab.sim.engines.reference.clock import LATEST, Alarm, Phase
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.ranks import Message, Ranks
from flitlab.sim.engines.reference.transport import ReferenceTransport
from flitlab.sim.engines.transport.datagram import Counters, LinkCount, SubflowCount, program_status

FIRST = Phase.ARRIVALS
"""Priority of changes of the network, before all packets of the tick."""

TIMERS, LAST = FIRST + (1 << 63), EventPriority(FIRST + (1 << 64))
"""Priorities above all packets, and above all timers."""


@dataclass(slots=True, eq=False)
class DatagramPacket:
    """A packet in flight; ``hop`` counts the links of ``path`` behind it. dropped: it was on a link that failed.

    sequence: of data; of an acknowledgement the first packet that the receiver lacks. stamp: tick at which the data
    left. arrive: called at the end of the path.
    """

    subflow: "Subflow"
    sequence: int
    size: int
    stamp: int
    path: list["DatagramLink"]
    arrive: Callable[["DatagramPacket"], None]
    is_data: bool = False
    is_syn: bool = False
    marked: bool = False
    hop: int = 0
    dropped: bool = False


class DatagramLink:
    """A queue and the link behind it.

    queued_packets: (tick of departure, packet), whose bytes add up to ``occupied``; updated when a packet arrives.
    free_at: tick at which the queue is empty. busy: ticks of service of all accepted packets.
    """

    def __init__(self, network: "ReferenceDatagrams", number: int):
        session, queues = network.extended_session, network.extended_session.queues
        self.network = network
        self.clock = network.clock
        self.number = number
        self.delay = int(session.delay[number])
        self.ratio = int(session.ratio[number])
        if number < network.feeders:
            self.queue_limit = queues.queue_bytes
            self.early_drop_bytes = self.queue_limit - NEARLY_FULL * queues.packet_bytes if queues.random_drop else None
            self.mark_bytes = session.mark_bytes
        else:
            self.queue_limit, self.early_drop_bytes, self.mark_bytes = (
                queues.feeder_packets * queues.packet_bytes,
                None,
                0,
            )
        self.current_limit = self.queue_limit
        self.queued_packets: deque[tuple[int, DatagramPacket]] = deque()
        self.occupied = 0
        self.free_at = 0
        self.decisions = 0
        self.counts = [0] * len(LinkCount)
        self.busy = 0
        self._service: dict[int, int] = {}

    def accept(self, packet: DatagramPacket) -> None:
        """Queue a packet, or drop it if the queue is full or, near that, at random."""
        now, counts = self.clock.now, self.counts
        self._remove_departed()
        occupied = self.occupied + packet.size
        if occupied > self.current_limit or (
            self.early_drop_bytes is not None and occupied > self.early_drop_bytes and self._drops_early()
        ):
            self._drop(packet)
            return
        if self.mark_bytes and packet.is_data and not packet.marked and occupied > self.mark_bytes:
            packet.marked = True
            counts[LinkCount.MARKS] += 1
        service = self._service_ticks(packet.size)
        departs = max(now, self.free_at) + service
        self.free_at = departs
        self.busy += service
        self.occupied = occupied
        counts[LinkCount.SENT] += 1
        counts[LinkCount.QUEUE_TICKS] += departs - now
        counts[LinkCount.BYTES] += packet.size
        counts[LinkCount.MAX_QUEUE_BYTES] = max(counts[LinkCount.MAX_QUEUE_BYTES], occupied)
        self._send(packet, departs)

    def _send(self, packet: DatagramPacket, departs: int) -> None:
        """Append a packet to the queue, which departs at a tick."""
        self.queued_packets.append((departs, packet))
        arrives = departs + self.delay
        Alarm(self.clock, arrives, self.network.packet_priority(arrives, self.number), self._pass_on, packet)

    def _remove_departed(self) -> None:
        """Remove the packets that have departed by now."""
        while self.queued_packets and self.queued_packets[0][0] <= self.clock.now:
            self.occupied -= self.queued_packets.popleft()[1].size

    def queued(self) -> list[int]:
        """Counts of the packets still in the queue, by LinkCount: their number, ticks to departure, unsent bytes."""
        queued, now = [0] * len(LinkCount), self.clock.now
        for departs, packet in self.queued_packets:
            if departs > now:
                service = self._service_ticks(packet.size)
                queued[LinkCount.SENT] += 1
                queued[LinkCount.QUEUE_TICKS] += departs - now
                queued[LinkCount.BYTES] += packet.size * min(service, departs - now) // service
        return queued

    def sent(self) -> list[int]:
        """The counts without those of packets in the queue, by LinkCount."""
        return [counted - queued for counted, queued in zip(self.counts, self.queued(), strict=True)]

    def _drop(self, packet: DatagramPacket) -> None:
        self.counts[LinkCount.DROPS] += 1
        if packet.is_data:
            packet.subflow.counts[SubflowCount.DROPPED] += 1

    def fail(self) -> None:
        """Fail the link: packets on it and in its queue are dropped, and it accepts none."""
        self.counts = self.sent()
        for packet in self.network.packets_in_flight():
            if packet.hop < len(packet.path) and packet.path[packet.hop] is self:
                packet.dropped = True
                self._drop(packet)
        self.queued_packets.clear()
        self.occupied = self.current_limit = 0
        self.busy -= max(0, self.free_at - self.clock.now)
        self.free_at = self.clock.now

    def repair(self) -> None:
        """Let the link accept packets again."""
        self.current_limit = self.queue_limit

    def set_ratio(self, ratio: int) -> None:
        """Set the service time ``ratio`` per byte from now on, queued packets included."""
        self._remove_departed()
        before, self.ratio, self._service = self.ratio, ratio, {}
        queued, self.queued_packets = self.queued_packets, deque()
        free = self.clock.now
        for index, (departs, packet) in enumerate(queued):
            rest = rest_ticks(departs - free, before, ratio, packet.size)
            free += rest if index == 0 else self._service_ticks(packet.size)
            self.counts[LinkCount.QUEUE_TICKS] += free - departs
            packet.dropped = True  # its timer has no effect: its retransmission has another timer
            self._send(replace(packet, dropped=False), free)
        if queued:
            self.busy += free - self.free_at
            self.free_at = free

    def _drops_early(self) -> bool:
        self.decisions += 1
        return bool(drops_early(self.network.extended_session.seed, self.number, self.decisions))

    def _service_ticks(self, size: int) -> int:
        if size not in self._service:
            self._service[size] = service_ticks(self.ratio, size)
        return self._service[size]

    def _pass_on(self, alarm: Alarm) -> None:
        packet = alarm.value
        if packet.dropped:
            return
        packet.hop += 1
        if packet.hop < len(packet.path):
            packet.path[packet.hop].accept(packet)
        else:
            packet.arrive(packet)


class DatagramFlow:
    """A flow: the state that its subflows share.

    packets: 0 for a long-lived flow. first, last: its subflows are first .. last - 1. unsent: packets not sent yet;
    missing: packets not received yet. finished: tick at which the receiver had all of them, -1 before.
    """

    def __init__(self, packets: int, first: int, last: int):
        self.unsent = self.missing = packets or float("inf")
        self.first, self.last = first, last
        self.finished = -1

    def take(self, subflow: int, sequence: int) -> None:
        """Count a packet that is sent for the first time; sequence: its number in its subflow."""
        self.unsent -= 1

    def get(self, subflow: int, sequence: int, now: int) -> None:
        """Count a packet that the receiver gets for the first time at tick ``now``; sequence: as in :meth:`take`."""
        self.missing -= 1
        if self.missing == 0:
            self.finished = now


class Connection(DatagramFlow):
    """A flow that carries the messages of a program in order.

    messages: those with unsent packets. number: packets sent so far, each counted once; it numbers them. sent:
    (subflow, sequence) -> number and message of every packet that the receiver lacks. received: number -> message of
    packets received out of order, beyond ``next_number``.
    """

    def __init__(self, first: int, last: int, ranks: Ranks):
        super().__init__(0, first, last)
        self.unsent = 0
        self.messages: deque[Message] = deque()
        self.number = self.next_number = 0
        self.sent: dict[tuple[int, int], tuple[int, Message]] = {}
        self.received: dict[int, Message] = {}
        self.ranks = ranks

    def add(self, message: Message) -> None:
        """Append a message to those of the connection."""
        self.messages.append(message)
        self.unsent += message.unsent

    def take(self, subflow: int, sequence: int) -> None:
        super().take(subflow, sequence)
        message = self.messages[0]
        self.sent[subflow, sequence] = self.number, message
        self.number += 1
        message.unsent -= 1
        if message.unsent == 0:
            self.messages.popleft()
            self.ranks.tail_sent(message, self.ranks.clock.now + 1)

    def get(self, subflow: int, sequence: int, now: int) -> None:
        number, message = self.sent.pop((subflow, sequence))
        self.received[number] = message
        while self.next_number in self.received:
            self.ranks.receive(self.received.pop(self.next_number))
            self.next_number += 1


class ProgramHost:
    """A host that runs a program; connections: by destination host, each with its subflows."""

    def __init__(self) -> None:
        self.connections: dict[int, tuple[Connection, list[Subflow]]] = {}

    def join(self, message: Message) -> None:
        """Put a message into the connection to its destination, and let the subflows send."""
        connection, subflows = self.connections[message.destination]
        connection.add(message)
        for subflow in subflows:
            if connection.unsent > 0:
                subflow.go_on()


class Subflow:
    """A sender and its receiver.

    path, back: links of its data and of its acknowledgements. ack_delay: ticks of acknowledgements that bypass queues;
    pipe: number of their link, behind all others, a new one for each path. expected: first packet that the receiver
    lacks. out_of_order: packets received beyond it. is_pacing: whether a process sends at a constant rate. seq, win:
    the sender's fields, see :class:`~flitlab.models.transport.newreno.Senders`.
    """

    def __init__(self, network: "ReferenceDatagrams", index: int, flow: DatagramFlow):
        self.network = network
        self.clock = network.clock
        self.index = index
        self.flow = flow
        self.counts = [0] * len(SubflowCount)
        session = network.extended_session
        self.path = network.route(session.paths, index)
        self.back = network.route(session.back, index) if session.back else []
        self.ack_delay, self.pipe = int(session.ack_delay[index]), len(network.links) + index
        self.expected = 0
        self.out_of_order: set[int] = set()
        self.is_pacing = False
        self.seq, self.win = network.senders.seq[index], network.senders.win[index]
        self._number = len(network.links) + index

    # the sender

    def pace(self, first: int) -> Generator[Alarm, object, None]:
        """The process of a sender at a constant rate, from tick ``first`` until everything is sent."""
        gap = int(self.network.extended_session.gap[self.index])
        yield self._timer_at(first)
        while self._send_next():
            yield self._timer_at(self.clock.now + gap)
        self.is_pacing = False

    def _send_next(self) -> bool:
        """Send the next packet, if there is one."""
        if self.flow.unsent > 0:
            self.flow.take(self.index, int(self.seq["high"]))
            self._emit(int(self.seq["high"]))
            self.seq["high"] += 1
            return True
        return False

    def watch(self, first: int) -> Generator[Alarm, object, None]:
        """The process of a sender's timer: it opens the connection and checks its deadline.

        It checks first at tick ``first``, and last when everything is acknowledged. An acknowledgement may advance the
        deadline, but not below the shortest timeout.
        """
        rules, senders, i = self.network.rules[self.index], self.network.senders, self.index
        seq, min_timeout = self.seq, ceil(rules.min_rto)
        yield self._timer_at(first)
        while True:
            now = self.clock.now
            if seq["deadline"] <= now:
                if seq["state"] <= ConnectionState.OPENING:
                    self.counts[SubflowCount.TIMEOUTS] += int(seq["state"] == ConnectionState.OPENING)
                    open_up(rules, senders, i, now)
                    self.path[0].accept(DatagramPacket(self, 0, SYN_BYTES, now, self.path, self.receive, is_syn=True))
                elif seq["una"] == seq["next"]:
                    seq["deadline"] = NEVER
                    return
                else:
                    self.counts[SubflowCount.TIMEOUTS] += 1
                    time_out(rules, senders, i, now)
                    self._send_on()
            yield self._timer_at(min(int(seq["deadline"]), now + min_timeout))

    def _timer_at(self, tick: int) -> Alarm:
        return Alarm(self.clock, tick, self.network.packet_priority(tick, self._number, TIMERS))

    def go_on(self) -> None:
        """Resume a sender that had sent everything, with the packets that its flow has received since."""
        network, clock, seq = self.network, self.clock, self.seq
        if network.extended_session.transport.law is None:
            if not self.is_pacing:
                self.is_pacing = self._send_next()
                clock.process(self.pace(clock.now + int(network.extended_session.gap[self.index])))
            return
        if seq["una"] == seq["next"] and resume(network.rules[self.index], network.senders, self.index, clock.now):
            first = min(int(seq["deadline"]), clock.now + ceil(network.rules[self.index].min_rto))
            clock.process(self.watch(first))
        self._send_on()

    def _emit(self, sequence: int) -> None:
        self.counts[SubflowCount.SENT] += 1
        size = self.network.extended_session.queues.packet_bytes
        packet = DatagramPacket(self, sequence, size, self.clock.now, self.path, self.receive, is_data=True)
        self.path[0].accept(packet)

    def _send_on(self) -> None:
        """Send what the window admits: first retransmissions after a timeout, then new data."""
        seq, mss = self.seq, self.network.rules[self.index].mss
        while fits_window(self.win["cwnd"], seq["una"], seq["next"], mss):
            if seq["next"] < seq["high"]:
                self.counts[SubflowCount.RESENT] += 1
            elif self.flow.unsent > 0:
                self.flow.take(self.index, int(seq["next"]))
                seq["high"] += 1
            else:
                return
            self._emit(int(seq["next"]))
            seq["next"] += 1

    def receive_ack(self, ack: DatagramPacket) -> None:
        """Process an acknowledgement, and send what the window admits."""
        rules, senders = self.network.rules[self.index], self.network.senders
        i, now = self.index, self.clock.now
        state = self.seq["state"]
        if ack.is_syn and state != ConnectionState.OPENING:
            return
        sample = now - ack.stamp
        self.counts[SubflowCount.SAMPLES] += 1
        self.counts[SubflowCount.RTT] += sample
        if state == ConnectionState.OPENING:
            opened(rules, senders, i, sample, now)
        elif self.network.acknowledge(
            rules, senders, i, self.flow.first, self.flow.last, ack.sequence, sample, ack.marked, now
        ):
            self.counts[SubflowCount.RESENT] += 1
            self._emit(int(self.seq["una"]))
        self._send_on()

    # the receiver

    def receive(self, packet: DatagramPacket) -> None:
        """Receive a packet and, with a transport, acknowledge it."""
        if packet.is_data:
            self._take(packet.sequence)
        session = self.network.extended_session
        if session.transport.law is None:
            return
        ack = DatagramPacket(
            self, self.expected, session.transport.ack_bytes, packet.stamp, [], self.receive_ack, is_syn=packet.is_syn,
            marked=packet.marked,
        )  # fmt: skip
        if session.transport.ack_path == AckPath.INSTANT:
            self.receive_ack(ack)
        elif session.transport.ack_path == AckPath.PURE_DELAY:
            tick = self.clock.now + self.ack_delay
            priority = self.network.packet_priority(tick, self.pipe)
            Alarm(self.clock, tick, priority, lambda alarm: self.receive_ack(alarm.value), ack)
        else:
            ack.path = self.back
            ack.path[0].accept(ack)

    def _take(self, sequence: int) -> None:
        self.counts[SubflowCount.ARRIVED] += 1
        self.network.trace_packet(self.index, sequence)
        if self.network.never_retransmits or self._hold(sequence):
            self.counts[SubflowCount.RECEIVED] += 1
            self.flow.get(self.index, sequence, self.clock.now)

    def _hold(self, sequence: int) -> bool:
        """Store a packet; return whether it is new to the receiver."""
        if sequence < self.expected or sequence in self.out_of_order:
            return False
        self.out_of_order.add(sequence)
        while self.expected in self.out_of_order:
            self.out_of_order.remove(self.expected)
            self.expected += 1
        return True


class ReferenceDatagrams(ReferenceTransport[Session]):
    """A simulation of datagrams in SimPy (see :class:`flitlab.sim.engines.transport.datagram.DatagramRun`).

    pipes: number of the next link of acknowledgements that bypass queues. shuffle: seed for the order of events that
    the model leaves open. never_retransmits: every received packet is new.
    extended_session: the session with the queues of hosts as links.
    """

    latest = LATEST

    def __init__(self, session: Session, trace: bool = False, shuffle: int = 0):
        super().__init__(session, trace, shuffle)
        self.extended_session = session = with_feeders(session)
        self.rules = [session.rules[kind] for kind in session.subflow_kind.tolist()] if session.rules else []
        self.senders = make_senders(session.subflows)
        self.never_retransmits = session.transport.law is None and session.program is None
        if session.transport.law:
            self.acknowledge = machine_code(acknowledge, session.rules[0], self.senders, 0, 0, 0, 0, 0, False, 0)
        self.feeders = session.topology.channels + 2 * session.topology.hosts
        self.links = [DatagramLink(self, number) for number in range(len(session.delay))]
        self.pipes = len(self.links) + session.subflows
        self.ranks = None if session.program is None else self._program(session.program)
        bounds = session.first.tolist()
        self.flows = [
            DatagramFlow(packets, first, last) if self.ranks is None else Connection(first, last, self.ranks)
            for packets, first, last in zip(session.flows.packets.tolist(), bounds[:-1], bounds[1:], strict=True)
        ]
        self.subflows = [Subflow(self, i, flow) for flow in self.flows for i in range(flow.first, flow.last)]
        for change in session.changes:
            Alarm(self.clock, change.tick, FIRST, self._change, change)
        if self.ranks is not None:
            self._connect()
            return
        for subflow in self.clock.shuffled(self.subflows):
            first = int(session.start[subflow.index])
            self.clock.process(subflow.watch(first) if session.transport.law else subflow.pace(first))

    def _program(self, program: Connections) -> Ranks:
        self.hosts = [ProgramHost() for _ in range(self.extended_session.topology.hosts)]
        return Ranks(self.clock, program.workload, self.hosts, LAST)

    def _connect(self) -> None:
        """Open the connections of a program, which exist since before the run."""
        ends = self.extended_session.flows
        for flow, source, destination in zip(self.flows, ends.source.tolist(), ends.destination.tolist(), strict=True):
            self.hosts[source].connections[destination] = flow, self.subflows[flow.first : flow.last]
        if self.extended_session.transport.law:
            for i, sample in enumerate(first_samples(self.extended_session).tolist()):
                connect(self.rules[i], self.senders, i, sample)

    def _change(self, alarm: Alarm) -> None:
        change: Change = alarm.value
        for number in change.broken.tolist():
            self.links[number].fail()
        for number in change.mended.tolist():
            self.links[number].repair()
        for number, ratio in zip(change.other.tolist(), change.ratio.tolist(), strict=True):
            self.links[number].set_ratio(ratio)
        for slot, index in enumerate(change.moved.tolist()):
            subflow = self.subflows[index]
            subflow.path = self.route(change.paths, slot)
            subflow.ack_delay, subflow.pipe = int(change.ack_delay[slot]), self.pipes + slot
            if change.back is not None:
                subflow.back = self.route(change.back, slot)
        self.pipes += len(change.moved)

    def route(self, paths: Paths, index: int) -> list[DatagramLink]:
        """The links of path ``index`` in order."""
        return [self.links[number] for number in paths.link[paths.start[index] : paths.start[index + 1]].tolist()]

    def packet_priority(self, tick: int, number: int, after: int = FIRST) -> EventPriority:
        """The priority of a link's packet in a tick or, above the numbers of links, of a subflow's timer or
        acknowledgement.
        """
        return EventPriority(after + 1 + self.precedence(self.extended_session.seed, tick, number))

    def _dropped(self) -> int:
        return sum(subflow.counts[SubflowCount.DROPPED] for subflow in self.subflows)

    def counters(self) -> Counters:
        return Counters(
            self.clock.now,
            np.array([subflow.counts for subflow in self.subflows], np.int64).reshape(-1, len(SubflowCount)),
            np.array([link.sent() for link in self.links], np.int64),
            np.array([flow.finished for flow in self.flows], np.int64),
            self.senders.win["cwnd"].copy(),
        )

    def in_flight(self) -> Ints:
        count = np.zeros(len(self.subflows), np.int64)
        for packet in self.packets_in_flight():
            count[packet.subflow.index] += packet.is_data
        return count

    def packets_in_flight(self) -> list[DatagramPacket]:
        """All packets in queues and on links."""
        values = (event._value for _, _, _, event in self.clock._queue)
        return [packet for packet in values if isinstance(packet, DatagramPacket) and not packet.dropped]

    def program_status(self) -> ProgramStatus:
        assert self.ranks is not None
        received = np.array([subflow.counts[SubflowCount.RECEIVED] for subflow in self.subflows], np.int64)
        unsent = np.array([flow.unsent for flow in self.flows], np.int64)
        return program_status(
            self.session, self.senders, received, unsent, self.in_flight(), self.clock.now, self.ranks.has_events()
        )

    def carried(self) -> Ints:
        links, now = self.links[: self.extended_session.topology.channels], self.clock.now
        return np.array([link.busy - max(0, link.free_at - now) for link in links], np.int64)
