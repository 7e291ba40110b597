# SPDX-License-Identifier: Apache-2.0
"""Links of sprayed packets, with the servers in front of them: output queues of switches, and hosts."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from simpy.events import EventPriority

from flitlab.models.arrays import Ints
from flitlab.models.rules.datagram import rest_ticks, service_ticks
from flitlab.models.rules.spray.layout import PacketKind
from flitlab.models.rules.spray.queues import evicts, is_marked, next_turn
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.reference.clock import Alarm, Clock
from flitlab.sim.engines.reference.ranks import Message
from flitlab.sim.engines.transport.spray import LinkCount

CHANGES, DEPARTURES = EventPriority(2), EventPriority(3)
ARRIVALS = 4
"""Priorities in a tick; above ARRIVALS comes the precedence of the link. With lossless queues all events of links have
``ARRIVALS``, so that they come in the order in which they were scheduled.
"""


class SprayNetwork(Protocol):
    """The interface of the network that links use.

    scheduled: ends of service and arrivals. precedence: of simultaneous packets. update_queue: of a queue, updates the
    bytes of data and of control packets that adaptive switches read. may_send: whether a flow may send. next_packet: of
    a flow that may send; its second argument: flows queued at its host, itself included.
    """

    session: SpraySession
    clock: Clock
    scheduled: int
    precedence: Callable[[int, int, int], int]
    update_queue: Callable[[int, int, int], None]
    may_send: Callable[[int], bool]
    next_packet: Callable[[int, int], "SprayPacket"]

    def enter(self, packet: "SprayPacket", switch: int) -> None: ...

    def is_paused(self, number: int) -> bool: ...

    def post(self, message: Message) -> None: ...


@dataclass(slots=True, eq=False)
class SprayPacket:
    """A packet of the switching mode spray.

    key: input of hashes. target: destination host. number, flags: of data, and echoed; claim: the
    requested credit. marked, trimmed, last_hop: what happened to it, and echoed. route: fixed at its first switch; hop:
    channels between switches taken. expected, received, start, bits: of an acknowledgement. granted: of a pull.
    came_by: the link by which it came to its switch. telemetry: int64 [1, numbers], if it is collected, and echoed.
    """

    kind: PacketKind
    flow: int
    size: int
    entropy: int
    key: int
    target: "SprayHost"
    number: int = -1
    flags: int = 0
    claim: int = 0
    marked: bool = False
    trimmed: bool = False
    last_hop: bool = False
    route: int = 0
    hop: int = 0
    dropped: bool = False
    expected: int = 0
    received: int = 0
    start: int = 0
    bits: int = 0
    granted: int = 0
    came_by: int = -1
    telemetry: Ints | None = None

    @property
    def is_data(self) -> bool:
        """Whether it is untrimmed data."""
        return self.kind == PacketKind.DATA and not self.trimmed


class SprayLink:
    """A server and the link behind it.

    end: receives packets at the end of the link. service_end: tick at which the current service ends. in_flight:
    packets on the link. in_order: whether events of a tick come in the order in which they were scheduled.
    """

    def __init__(self, network: SprayNetwork, number: int, end: Callable[[SprayPacket], None]):
        self.network, self.number, self.end = network, number, end
        self.clock = network.clock
        self.delay, self.ratio = int(network.session.delay[number]), int(network.session.ratio[number])
        self.counts = [0] * len(LinkCount)
        self.serving: SprayPacket | None = None
        self.service_end = 0
        self.in_flight: deque[SprayPacket] = deque()
        self.in_order = network.session.ports is not None

    def serve(self, packet: SprayPacket) -> None:
        """Start to send a packet."""
        self.serving = packet
        ticks = service_ticks(self.ratio, packet.size)
        self.counts[LinkCount.BUSY] += ticks
        self._leave_at(self.clock.now + ticks)

    def _leave_at(self, tick: int) -> None:
        self.service_end = tick
        self.network.scheduled += 1
        Alarm(self.clock, tick, EventPriority(ARRIVALS) if self.in_order else DEPARTURES, self._leave)

    def _leave(self, alarm: Alarm) -> None:
        packet = self.serving
        self.network.scheduled -= 1
        if packet is None or self.service_end != self.clock.now:
            return  # the link broke, or has another rate, since the alarm was set
        self.serving = None
        self.has_left(packet)
        self.in_flight.append(packet)
        arrives = self.clock.now + self.delay
        turn = 0 if self.in_order else self.network.precedence(self.network.session.seed, arrives, self.number)
        self.network.scheduled += 1
        Alarm(self.clock, arrives, EventPriority(ARRIVALS + turn), self._arrive, packet)
        self.serve_next()

    def _arrive(self, alarm: Alarm) -> None:
        self.network.scheduled -= 1
        if not alarm.value.dropped:
            self.in_flight.popleft()
            alarm.value.came_by = self.number
            self.end(alarm.value)

    def has_left(self, packet: SprayPacket) -> None:
        """Update the state at the end of a service."""

    def serve_next(self) -> None:
        """Start the next service, if a packet waits."""
        raise NotImplementedError


class SprayQueue(SprayLink):
    """An output of a switch: control before data, or both in weighted round robin."""

    def __init__(self, network: SprayNetwork, number: int, end: Callable[[SprayPacket], None]):
        super().__init__(network, number, end)
        session = network.session
        self.low_limit, self.high_limit = int(session.queue_bytes[number]), 2 * int(session.queue_bytes[number])
        self.low_mark, self.high_mark = int(session.low[number]), int(session.high[number])
        self.is_last = number >= session.topology.channels + session.topology.hosts
        self.data: deque[SprayPacket] = deque()
        self.control: deque[SprayPacket] = deque()
        self.low = self.high = 0
        self.full = self.drawn = self.round_robin = 0
        self.works = True

    def fail(self) -> None:
        """Fail the link: packets on it and in its queue are dropped, and it accepts none."""
        if self.serving is not None:
            self.counts[LinkCount.BUSY] -= self.service_end - self.clock.now
            self.in_flight.append(self.serving)
        for some in (self.in_flight, self.data, self.control):
            for packet in some:
                packet.dropped = True
            self.counts[LinkCount.DROPS] += len(some)
            some.clear()
        self.serving, self.service_end, self.works = None, self.clock.now, False
        self._update_occupancy(-self.low, -self.high)

    def set_rate(self, ratio: int, queue_limit: int, low: int, high: int) -> None:
        """Set the service time ``ratio`` per byte of a working link, the packet in service included; limits in
        bytes.
        """
        before, self.ratio, self.works = self.ratio, ratio, True
        self.low_limit, self.high_limit, self.low_mark, self.high_mark = queue_limit, 2 * queue_limit, low, high
        if self.serving is not None:
            now = self.clock.now
            ends = now + int(rest_ticks(self.service_end - now, before, ratio, self.serving.size))
            self.counts[LinkCount.BUSY] += ends - self.service_end
            self._leave_at(ends)

    def accept(self, packet: SprayPacket) -> None:
        """Queue a packet; trim or drop one if the queue is full; drop it if the link has failed."""
        if not self.works:
            self.counts[LinkCount.DROPS] += 1
            return
        if packet.is_data:
            self._accept_data(packet)
        else:
            self._accept_control(packet)
        if self.serving is None:
            self.serve_next()

    def _accept_control(self, packet: SprayPacket) -> None:
        if self.high + packet.size > self.high_limit:
            self.counts[LinkCount.DROPS] += 1
            return
        self.counts[LinkCount.ACCEPTED] += 1
        self.control.append(packet)
        self._update_occupancy(0, packet.size)

    def _accept_data(self, packet: SprayPacket) -> None:
        victim = None
        if self.low + packet.size > self.low_limit:
            victim = packet
            heads = evicts(self.network.session.seed, self.number, self.full)
            self.full += 1
            if heads and self.data:
                victim = self.data.pop()
                self.counts[LinkCount.ACCEPTED] -= 1
                self._update_occupancy(-victim.size, 0)
        if victim is not packet:
            self.counts[LinkCount.ACCEPTED] += 1
            self.data.append(packet)
            self._update_occupancy(packet.size, 0)
        if victim is not None:
            self._trim(victim)

    def _trim(self, victim: SprayPacket) -> None:
        rules = self.network.session.rules
        if not rules.trims:
            self.counts[LinkCount.DROPS] += 1
            return
        self.counts[LinkCount.TRIMMED] += 1
        victim.size, victim.trimmed, victim.last_hop = rules.control, True, self.is_last
        self._accept_control(victim)

    def _update_occupancy(self, data: int, control: int) -> None:
        self.low += data
        self.high += control
        self.counts[LinkCount.MAX_QUEUE_BYTES] = max(self.counts[LinkCount.MAX_QUEUE_BYTES], self.low)
        self.network.update_queue(self.number, self.low, self.high)

    def has_left(self, packet: SprayPacket) -> None:
        if not packet.is_data:
            self._update_occupancy(0, -packet.size)
            return
        self._update_occupancy(-packet.size, 0)
        marked = is_marked(
            self.network.session.seed, self.number, self.drawn, self.low, self.low_mark, self.high_mark
        )  # fmt: skip
        self.drawn += self.low_mark < self.low <= self.high_mark
        if marked and not packet.marked:
            packet.marked = True
            self.counts[LinkCount.MARKED] += 1

    def serve_next(self) -> None:
        control = bool(self.control)
        if self.network.session.rules.weighted and self.control and self.data:
            control = self.round_robin != 0
            self.round_robin = next_turn(self.round_robin)
        if control:
            self.serve(self.control.popleft())
        elif self.data:
            self.serve(self.data.popleft())


class SprayHost(SprayLink):
    """A host: its server, the connections that wait for it, and the receiver of packets."""

    def __init__(self, network: SprayNetwork, index: int):
        topology = network.session.topology
        self.switch = int(topology.host_switch[index])
        super().__init__(network, topology.channels + index, lambda packet: network.enter(packet, self.switch))
        self.index = index
        ports = network.session.ports
        self.strict = ports is not None and ports.strict
        self.control: deque[SprayPacket] = deque()
        self.waiting: deque[int] = deque()
        self.round_robin = 0

    def waiting_of(self, number: int) -> deque[int]:
        """The connections of a class that wait."""
        return self.waiting

    def waiting_with(self, flow: int) -> deque[int]:
        """The connections that wait, of the class of one of them."""
        return self.waiting

    def enqueue_flow(self, flow: int) -> None:
        """Queue a connection for sending, if it may send."""
        waiting = self.waiting_with(flow)
        if flow not in waiting and self.network.may_send(flow):
            waiting.append(flow)
        if self.serving is None:
            self.serve_next()

    def join(self, message: Message) -> None:
        """Post a message of a program."""
        self.network.post(message)

    def post(self, packet: SprayPacket) -> None:
        """Send a control packet."""
        self.control.append(packet)
        if self.serving is None:
            self.serve_next()

    def serve_next(self) -> None:
        paused = self.network.is_paused(self.number)
        if paused and not self.strict:
            return
        data_first = not self.control
        if self.control and self.waiting and not paused and not self.strict and not self.network.session.laws:
            data_first = self.round_robin == 0
            self.round_robin = next_turn(self.round_robin)
        if data_first and not paused and self._send_data(self.waiting):
            return
        if self.control:
            self._send_control(self.control)

    def _send_control(self, control: deque[SprayPacket]) -> None:
        self.counts[LinkCount.ACCEPTED] += 1
        self.serve(control.popleft())

    def _send_data(self, waiting: deque[int]) -> bool:
        network = self.network
        while waiting:
            flow = waiting.popleft()
            if network.may_send(flow):
                self.counts[LinkCount.ACCEPTED] += 1
                self.serve(network.next_packet(flow, len(waiting) + 1))
                if network.may_send(flow):
                    waiting.append(flow)
                return True
        return False
