# SPDX-License-Identifier: Apache-2.0
"""Links of sprayed packets, with what stands before them: the queues of a switch's outputs, and hosts."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from simpy.events import EventPriority

from flitlab.models.rules.datagram import rest_ticks, service_ticks
from flitlab.models.rules.spray.queues import evicts, is_marked, next_turn
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.reference.clock import Alarm, Clock
from flitlab.sim.engines.reference.ranks import Message
from flitlab.sim.engines.spray import base

CHANGES, DEPARTURES = EventPriority(2), EventPriority(3)
ARRIVALS = 4
"""Priorities in a tick; above ARRIVALS stands the precedence of the link."""

DATA, ACK, NACK, PULL, RTS = range(5)


class Network(Protocol):
    """What links need of the network that they are in."""

    session: SpraySession
    clock: Clock
    precedence: Callable[[int, int, int], int]

    def note_queue(self, number: int, low: int, high: int) -> None: ...

    def enter(self, packet: "Packet", switch: int) -> None: ...

    def may_send(self, flow: int) -> bool: ...

    def next_packet(self, flow: int, waiting: int) -> "Packet": ...

    def post(self, message: Message) -> None: ...


@dataclass(slots=True, eq=False)
class Packet:
    """A packet on its way.

    kind: DATA ... key: of hashes. target: host that it goes to. number, flags: of data, and echoed; claim: the credit
    that it asks for. marked, trimmed, last_hop: what became of it, and echoed. way: fixed at its first switch; hop:
    channels between switches behind it. expected, received, start, bits: of an acknowledgement. granted: of a pull.
    """

    kind: int
    flow: int
    size: int
    entropy: int
    key: int
    target: "Host"
    number: int = -1
    flags: int = 0
    claim: int = 0
    marked: bool = False
    trimmed: bool = False
    last_hop: bool = False
    way: int = 0
    hop: int = 0
    dropped: bool = False
    expected: int = 0
    received: int = 0
    start: int = 0
    bits: int = 0
    granted: int = 0

    @property
    def is_data(self) -> bool:
        """Whether it is whole data."""
        return self.kind == DATA and not self.trimmed


class Link:
    """A server and the link behind it.

    end: what takes in packets there. ends: the tick at which the service does. flying: packets beyond the server.
    """

    def __init__(self, network: Network, number: int, end: Callable[[Packet], None]):
        self.network, self.number, self.end = network, number, end
        self.clock = network.clock
        self.delay, self.ratio = int(network.session.delay[number]), int(network.session.ratio[number])
        self.counts = [0] * base.LINK_COUNTS
        self.serving: Packet | None = None
        self.ends = 0
        self.flying: deque[Packet] = deque()

    def serve(self, packet: Packet) -> None:
        """Begin to send a packet."""
        self.serving = packet
        ticks = service_ticks(self.ratio, packet.size)
        self.counts[base.BUSY] += ticks
        self._leave_at(self.clock.now + ticks)

    def _leave_at(self, tick: int) -> None:
        self.ends = tick
        Alarm(self.clock, tick, DEPARTURES, self._leave)

    def _leave(self, alarm: Any) -> None:
        packet = self.serving
        if packet is None or self.ends != self.clock.now:
            return  # the link broke, or has another rate, since the alarm was set
        self.serving = None
        self.has_left(packet)
        self.flying.append(packet)
        arrives = self.clock.now + self.delay
        turn = EventPriority(ARRIVALS + self.network.precedence(self.network.session.seed, arrives, self.number))
        Alarm(self.clock, arrives, turn, self._arrive, packet)
        self.go_on()

    def _arrive(self, alarm: Any) -> None:
        if not alarm.value.dropped:
            self.flying.popleft()
            self.end(alarm.value)

    def has_left(self, packet: Packet) -> None:
        """Do what is done at the end of a service."""

    def go_on(self) -> None:
        """Begin the next service, if something waits."""
        raise NotImplementedError


class Queue(Link):
    """An output of a switch: control before data, or both in weighted turns."""

    def __init__(self, network: Network, number: int, end: Callable[[Packet], None]):
        super().__init__(network, number, end)
        session = network.session
        self.low_room, self.high_room = int(session.room[number]), 2 * int(session.room[number])
        self.low_mark, self.high_mark = int(session.low[number]), int(session.high[number])
        self.is_last = number >= session.topology.channels + session.topology.hosts
        self.data: deque[Packet] = deque()
        self.control: deque[Packet] = deque()
        self.low = self.high = 0
        self.full = self.drawn = self.turn = 0
        self.works = True

    def fail(self) -> None:
        """Break the link: what is on it is lost, and it takes nothing from then on."""
        if self.serving is not None:
            self.counts[base.BUSY] -= self.ends - self.clock.now
            self.flying.append(self.serving)
        for some in (self.flying, self.data, self.control):
            for packet in some:
                packet.dropped = True
            self.counts[base.DROPS] += len(some)
            some.clear()
        self.serving, self.ends, self.works = None, self.clock.now, False
        self._hold(-self.low, -self.high)

    def go_at(self, ratio: int, room: int, low: int, high: int) -> None:
        """Let the link, which works from now on, take ``ratio`` for a byte, also of the packet that it is sending."""
        before, self.ratio, self.works = self.ratio, ratio, True
        self.low_room, self.high_room, self.low_mark, self.high_mark = room, 2 * room, low, high
        if self.serving is not None:
            now = self.clock.now
            ends = now + int(rest_ticks(self.ends - now, before, ratio, self.serving.size))
            self.counts[base.BUSY] += ends - self.ends
            self._leave_at(ends)

    def accept(self, packet: Packet) -> None:
        """Take a packet into the queue, or trim or drop one where it is full; lose it if the link does not work."""
        if not self.works:
            self.counts[base.DROPS] += 1
            return
        if packet.is_data:
            self._accept_data(packet)
        else:
            self._accept_control(packet)
        if self.serving is None:
            self.go_on()

    def _accept_control(self, packet: Packet) -> None:
        if self.high + packet.size > self.high_room:
            self.counts[base.DROPS] += 1
            return
        self.counts[base.ACCEPTED] += 1
        self.control.append(packet)
        self._hold(0, packet.size)

    def _accept_data(self, packet: Packet) -> None:
        victim = None
        if self.low + packet.size > self.low_room:
            victim = packet
            heads = evicts(self.network.session.seed, self.number, self.full)
            self.full += 1
            if heads and self.data:
                victim = self.data.pop()
                self.counts[base.ACCEPTED] -= 1
                self._hold(-victim.size, 0)
        if victim is not packet:
            self.counts[base.ACCEPTED] += 1
            self.data.append(packet)
            self._hold(packet.size, 0)
        if victim is not None:
            self._cut(victim)

    def _cut(self, victim: Packet) -> None:
        rules = self.network.session.rules
        if not rules.trims:
            self.counts[base.DROPS] += 1
            return
        self.counts[base.TRIMMED] += 1
        victim.size, victim.trimmed, victim.last_hop = rules.control, True, self.is_last
        self._accept_control(victim)

    def _hold(self, data: int, control: int) -> None:
        self.low += data
        self.high += control
        self.counts[base.MAX_QUEUE_BYTES] = max(self.counts[base.MAX_QUEUE_BYTES], self.low)
        self.network.note_queue(self.number, self.low, self.high)

    def has_left(self, packet: Packet) -> None:
        if not packet.is_data:
            self._hold(0, -packet.size)
            return
        self._hold(-packet.size, 0)
        marked = is_marked(
            self.network.session.seed, self.number, self.drawn, self.low, self.low_mark, self.high_mark
        )  # fmt: skip
        self.drawn += self.low_mark < self.low <= self.high_mark
        if marked and not packet.marked:
            packet.marked = True
            self.counts[base.MARKED] += 1

    def go_on(self) -> None:
        control = bool(self.control)
        if self.network.session.rules.weighted and self.control and self.data:
            control = self.turn != 0
            self.turn = next_turn(self.turn)
        if control:
            self.serve(self.control.popleft())
        elif self.data:
            self.serve(self.data.popleft())


class Host(Link):
    """A host: its server, the connections that wait for it, and what takes in packets."""

    def __init__(self, network: Network, index: int):
        topology = network.session.topology
        self.switch = int(topology.host_switch[index])
        super().__init__(network, topology.channels + index, lambda packet: network.enter(packet, self.switch))
        self.index = index
        self.control: deque[Packet] = deque()
        self.waiting: deque[int] = deque()
        self.turn = 0

    def ask(self, flow: int) -> None:
        """Let a connection wait for its turn, if it may send."""
        if flow not in self.waiting and self.network.may_send(flow):
            self.waiting.append(flow)
        if self.serving is None:
            self.go_on()

    def join(self, message: Message) -> None:
        """Post a message of a program."""
        self.network.post(message)

    def post(self, packet: Packet) -> None:
        """Send a packet without data."""
        self.control.append(packet)
        if self.serving is None:
            self.go_on()

    def go_on(self) -> None:
        data_first = not self.control
        if self.control and self.waiting:
            data_first = self.turn == 0
            self.turn = next_turn(self.turn)
        if data_first and self._send_data():
            return
        if self.control:
            self.counts[base.ACCEPTED] += 1
            self.serve(self.control.popleft())

    def _send_data(self) -> bool:
        network = self.network
        while self.waiting:
            flow = self.waiting.popleft()
            if network.may_send(flow):
                self.counts[base.ACCEPTED] += 1
                self.serve(network.next_packet(flow, len(self.waiting) + 1))
                if network.may_send(flow):
                    self.waiting.append(flow)
                return True
        return False
