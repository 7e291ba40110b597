# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: a FIFO for all packets of a class, charged to the input port by which they came, and never dropped.

With several classes a port is a link and a class: ``link * classes + class``.

Pauses, ends of service and arrivals of a tick come in the order in which they were scheduled.
"""

from collections import deque
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

import numpy as np
from simpy.events import EventPriority

from flitlab.models.arrays import Ints
from flitlab.models.rules.lossless import SEARCHED, is_marked, switch_pause
from flitlab.models.rules.priority_classes import NO_CLASS
from flitlab.models.rules.rdma.hpcc import stamp
from flitlab.models.rules.spray.layout import PacketKind
from flitlab.models.rules.spray.queues import next_turn
from flitlab.models.rules.watchdog import Action
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.lossless import PortSettings
from flitlab.sim.engines.reference.clock import Alarm, Clock
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_flows import TimerKind, set_timer
from flitlab.sim.engines.reference.spray_links import (
    ARRIVALS,
    SprayHost,
    SprayLink,
    SprayNetwork,
    SprayPacket,
    SprayQueue,
)
from flitlab.sim.engines.reference.spray_ports import InputCharges, PauseCauses, PortClasses, PortWatchdog
from flitlab.sim.engines.transport.spray import NO_QUEUE, LinkCount, deadlock_cycle, outputs_of_switches


class LosslessPorts:
    """The input ports of all switches, and the pauses of the servers before them.

    links: of the network, by number; set when they exist. flow_links: the links of flows, None where they are not
    known; held: ticks of ``Counters.held``. totals: of :func:`flitlab.models.rules.lossless.switch_pause`. _frames,
    _stale: PAUSE and RESUME frames in flight by port, and those to be ignored.
    """

    def __init__(self, clock: Clock, settings: PortSettings, topology: Topology, flow_links: Ints | None):
        self.clock, self.settings = clock, settings
        self.links: list[SprayLink] = []
        links, first = outputs_of_switches(topology)
        of_switch = [links[start:end].tolist() for start, end in pairwise(first)]
        ends = [*topology.dst.tolist(), *topology.host_switch.tolist()]
        self._outputs = [of_switch[switch] for switch in ends]
        self.ports, buffers = settings.state()
        self.classes = PortClasses(settings.classes, settings.class_count)
        self._charges = InputCharges(self.ports, buffers)
        self.causes = PauseCauses()
        self.flow_links = flow_links
        self.held = None if flow_links is None else np.zeros_like(flow_links)
        self._frames = np.zeros(len(self.ports), np.int64)
        self._stale = np.zeros(len(self.ports), np.int64)
        self.totals = np.zeros(2, np.int64)
        self._switch = machine_code(switch_pause, self.ports, self.totals, 0, 0)
        self._watchdog = None
        if settings.watchdog is not None:
            self._watchdog = PortWatchdog(*settings.watchdog, self.ports, topology, self.classes.count)

    def unpaused(self, link: int) -> list[int]:
        """The classes that the server of a link may serve."""
        count = self.classes.count
        return [number for number in range(count) if not self.is_paused(count * link + number)]

    def is_paused(self, port: int) -> bool:
        """Whether the server of a port is paused."""
        return bool(self.ports.paused_at[port] >= 0)

    # charges of packets

    def admits(self, port: int, size: int, queue: int, queued: int) -> bool:
        """Whether an input port or, of a class that does not pause, a queue of some bytes has space for a packet."""
        if self.classes.settings is not None and not self.classes.pauses(port):
            return bool(queued + size <= self.classes.settings.limit[queue])
        return self._charges.admits(port, size)

    def charge(self, port: int, size: int, queue: int) -> None:
        """Charge a packet, which waits in the queue of a port, to an input port, if its class pauses."""
        if self.classes.pauses(port) and self._charges.charge(port, size):
            self.causes.announce(port, self._cause(port, queue))
            self._send(port)

    def release(self, port: int, size: int) -> None:
        """Release a packet from that charge."""
        if self.classes.pauses(port) and self._charges.release(port, size):
            self._send(port)

    def _cause(self, port: int, queue: int) -> int:
        """The queue in which most of the bytes wait that came by a port; the one named if none has any."""
        most, (link, number) = 0, divmod(port, self.classes.count)
        for output in self._outputs[link]:
            waiting: Any = self.links[output]
            waits = islice(waiting.queues[number], int(SEARCHED))
            size = sum(packet.size for packet in waits if packet.came_by == link)
            if size > most:
                queue, most = self.classes.count * output + number, size
        return queue

    # frames and pauses

    def _send(self, port: int) -> None:
        """Send a PAUSE or RESUME to the server before a port."""
        self._frames[port] += 1
        Alarm(self.clock, self.clock.now + int(self.ports.delay[port]), EventPriority(ARRIVALS), self._receive, port)

    def _receive(self, alarm: Alarm) -> None:
        port = alarm.value
        self._frames[port] -= 1
        if self._stale[port] > 0:
            self._stale[port] -= 1
        else:
            self.follow(port)

    def fail(self, port: int) -> None:
        """End the pause of a port of a failed channel, and forget the frames that are sent to its server."""
        self._stale[port] = self._frames[port]
        self.ports.is_pausing[port] = 0
        since = int(self.ports.paused_at[port])
        if since >= 0:
            self._switch(self.ports, self.totals, port, self.clock.now)
            self.causes.end(port, since, self.clock.now)
        if self._watchdog is not None:
            self._watchdog.forget(port)

    def storm(self, port: int, begins: bool) -> None:
        """Let a PAUSE or RESUME of a host reach the server before it."""
        self.ports.frames[port] += begins
        if begins:
            self.causes.announce(port, NO_QUEUE)
        self.follow(port)

    def follow(self, port: int) -> None:
        """Let a server follow a PAUSE or RESUME, unless its watchdog ignores it."""
        if self._watchdog is None or self._watchdog.obeys(port):
            self._switch_server(port)

    def _switch_server(self, port: int) -> None:
        """Pause or resume a server."""
        since, link = int(self.ports.paused_at[port]), self.links[port // self.classes.count]
        if self._switch(self.ports, self.totals, port, self.clock.now):
            self.causes.begin(port)
        else:
            self.causes.end(port, since, self.clock.now)
            self._hold(self.held, port, since)
            if link.serving is None:
                link.serve_next()
        self._watch(port)

    def _watch(self, port: int) -> None:
        """Set the timer of a watchdog, if it needs one."""
        tick = -1 if self._watchdog is None else self._watchdog.timer_tick(port)
        if tick >= 0:
            set_timer(self.clock, tick, TimerKind.WATCHDOG, port, self._expire)

    def _expire(self, port: int) -> None:
        assert self._watchdog is not None
        action, (link, number) = self._watchdog.expire(port, self.clock.now), divmod(port, self.classes.count)
        if action == Action.DISCARD:
            queue = self.links[link]
            assert isinstance(queue, LosslessQueue)
            queue.discard(number)
        if action != Action.NONE:
            self._switch_server(port)
        else:
            self._watch(port)

    # results

    def cause_table(self) -> np.ndarray:
        """The causes of all pauses, as ``Counters.causes``."""
        return self.causes.table(self.ports, self.clock.now)

    def held_ticks(self) -> Ints | None:
        """``Counters.held``, with the pauses that last."""
        if self.held is None:
            return None
        ticks = self.held.copy()
        for port in np.flatnonzero(self.ports.paused_at >= 0).tolist():
            self._hold(ticks, port, int(self.ports.paused_at[port]))
        return ticks

    def _hold(self, ticks: Ints | None, port: int, since: int) -> None:
        """Add a pause since a tick, up to now, to the flows that it holds."""
        if ticks is None or self.flow_links is None:
            return
        link, number = divmod(port, self.classes.count)
        waiting: Any = self.links[link]
        if isinstance(waiting, LosslessQueue):
            flows = {packet.flow for packet in waiting.queues[number]}
        else:
            flows = set(waiting.waiting_of(number))
        for flow in flows:
            ticks[flow, self.flow_links[flow] == link] += self.clock.now - since

    def deadlock(self) -> tuple[int, ...]:
        """The ports of a cycle of paused servers when no packet moves, if no frame is in flight; else ()."""
        if self._watchdog is not None or self._frames.any():
            return ()
        count = self.classes.count
        waits: dict[int, set[int]] = {port: set() for port in np.flatnonzero(self.ports.paused_at >= 0).tolist()}
        for link in self.links:
            for number, queue in enumerate(link.queues if isinstance(link, LosslessQueue) else ()):
                for packet in queue:
                    waits.get(count * packet.came_by + number, set()).add(count * link.number + number)
        return deadlock_cycle(waits)


class LosslessQueue(SprayQueue):
    """An output of a switch; sent: bytes; queues, queued: packets, and bytes with the packet in service, by class."""

    def __init__(self, network: SprayNetwork, number: int, end: Callable[[SprayPacket], None], ports: LosslessPorts):
        super().__init__(network, number, end)
        self.ports, self.classes, self.sent = ports, ports.classes, 0
        self.queues: list[deque[SprayPacket]] = [deque() for _ in range(ports.classes.count)]
        self.queued = [0] * ports.classes.count
        self.span, self.own = int(ports.settings.mark_span[number]), ports.settings.mark_own

    def accept(self, packet: SprayPacket) -> None:
        """Queue a packet, and charge it to the input port by which it came.

        Drop it if the link has failed, or the shared buffer, or the queue of a class that does not pause, is full.
        """
        if not self.works:
            self.counts[LinkCount.DROPS] += 1
            return
        if self._is_control(packet):
            self.counts[LinkCount.ACCEPTED] += 1
            self.control.append(packet)
            self._update_occupancy(0, packet.size)
            if self.serving is None:
                self.serve_next()
            return
        number, port = self.classes.class_of(packet.flow), self.classes.port_of(packet.came_by, packet.flow)
        queue = self.classes.port_of(self.number, packet.flow)
        if not self.ports.admits(port, packet.size, queue, self.queued[number]):
            self.counts[LinkCount.DROPS] += 1
            return
        self.counts[LinkCount.ACCEPTED] += 1
        self.queues[number].append(packet)
        self._count_bytes(packet, packet.size)
        self.ports.charge(port, packet.size, queue)
        if self.serving is None:
            self.serve_next()

    def fail(self) -> None:
        """Fail the link: drop all of its packets, release their charges, and end its pause."""
        packet, self.works = self.serving, False
        dropped = [*self.in_flight, *self.control]
        for each in dropped:
            each.dropped = True
        if packet is not None:
            self.counts[LinkCount.BUSY] -= self.service_end - self.clock.now
            self.serving, self.service_end = None, self.clock.now
            self.counts[LinkCount.DROPS] += 1
            if not self._is_control(packet) and not self.ports.settings.at_start:
                self._leave_queue(packet)
        self.counts[LinkCount.DROPS] += len(dropped)
        self.in_flight.clear()
        self.control.clear()
        self._update_occupancy(0, -self.high)
        for number in range(self.classes.count):
            self.discard(number)
            self.ports.fail(self.classes.count * self.number + number)

    def discard(self, number: int) -> None:
        """Discard all data in the queue of a class, and release their charges."""
        while self.queues[number]:
            packet = self.queues[number].popleft()
            self.counts[LinkCount.DROPS] += 1
            self._leave_queue(packet)

    def _count_bytes(self, packet: SprayPacket, size: int) -> None:
        """Count bytes of a packet that join or leave the queue."""
        self.queued[self.classes.class_of(packet.flow)] += size
        self._update_occupancy(size, 0)

    def _leave_queue(self, packet: SprayPacket) -> None:
        """Count a packet that leaves the queue, and release its charge."""
        self._count_bytes(packet, -packet.size)
        self.ports.release(self.classes.port_of(packet.came_by, packet.flow), packet.size)

    def _is_control(self, packet: SprayPacket) -> bool:
        """Whether a packet belongs to a class of control packets: it goes first, is not charged and not paused."""
        return self.ports.settings.strict and packet.kind != PacketKind.DATA

    def has_left(self, packet: SprayPacket) -> None:
        if self._is_control(packet):
            self._update_occupancy(0, -packet.size)
        elif not self.ports.settings.at_start:
            self._release(packet)

    def _release(self, packet: SprayPacket) -> None:
        if packet.kind == PacketKind.DATA:
            left = self.queued[self.classes.class_of(packet.flow)] - packet.size
            self._mark(packet, left + packet.size * self.own)
        self._leave_queue(packet)

    def _mark(self, packet: SprayPacket, queued: int) -> None:
        if queued <= self.low_mark:
            return
        seed = self.network.session.seed
        marked = is_marked(seed, self.number, self.drawn, queued, self.low_mark, self.high_mark, self.span)
        self.drawn += 1
        if marked and not packet.marked:
            packet.marked = True
            self.counts[LinkCount.MARKED] += 1

    def serve(self, packet: SprayPacket) -> None:
        if packet.telemetry is not None and packet.kind == PacketKind.DATA:
            queued = self.low - packet.size * (not self.own)
            stamp(packet.telemetry, 0, self.number, self.ratio, self.sent, queued, self.clock.now)
        self.sent += packet.size
        if self.ports.settings.at_start and not self._is_control(packet):
            self._release(packet)
        super().serve(packet)

    def serve_next(self) -> None:
        if self.control:
            self.serve(self.control.popleft())
            return
        ready = {one for one in self.ports.unpaused(self.number) if self.queues[one]}
        number = self.classes.next_class(self.number, ready)
        if number != NO_CLASS:
            packet = self.queues[number].popleft()
            self.classes.count_sent(self.number, packet)
            self.serve(packet)


class ClassHost(SprayHost):
    """A host with several classes: each has control packets, and flows in turn.

    own_control, of_class, turns: control packets, flows, and turns of both, by class. control: of a strict class.
    """

    def __init__(self, network: SprayNetwork, index: int, ports: LosslessPorts):
        super().__init__(network, index)
        self.ports, self.classes = ports, ports.classes
        self.own_control: list[deque[SprayPacket]] = [deque() for _ in range(self.classes.count)]
        self.of_class: list[deque[int]] = [deque() for _ in range(self.classes.count)]
        self.turns = [0] * self.classes.count

    def waiting_of(self, number: int) -> deque[int]:
        return self.of_class[number]

    def waiting_with(self, flow: int) -> deque[int]:
        return self.of_class[self.classes.class_of(flow)]

    def post(self, packet: SprayPacket) -> None:
        (self.control if self.strict else self.own_control[self.classes.class_of(packet.flow)]).append(packet)
        if self.serving is None:
            self.serve_next()

    def serve_next(self) -> None:
        if self.control:
            self._send_control(self.control)
            return
        unpaused = self.ports.unpaused(self.number)
        for number in unpaused:
            self._drop_idle(self.of_class[number])
        ready = {number for number in unpaused if self.own_control[number] or self.of_class[number]}
        number = self.classes.next_class(self.number, ready)
        if number == NO_CLASS:
            return
        control, waiting, is_data = self.own_control[number], self.of_class[number], bool(self.of_class[number])
        if control and waiting:
            is_data = not self.network.session.laws and self.turns[number] == 0
            self.turns[number] = next_turn(self.turns[number])
        if not (is_data and self._send_data(waiting)):
            self._send_control(control)
        assert self.serving is not None
        self.classes.count_sent(self.number, self.serving)

    def _drop_idle(self, waiting: deque[int]) -> None:
        """Remove the flows that may not send before the first that may."""
        while waiting and not self.network.may_send(waiting[0]):
            waiting.popleft()
