# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: one FIFO for all packets, charged to the input port by which they came, and never dropped.

Pauses, ends of service and arrivals of a tick come in the order in which they were scheduled.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from simpy.events import EventPriority

from flitlab.models.rules.lossless import charge, is_marked, make_ports, release, switch_pause
from flitlab.models.rules.rdma.hpcc import stamp
from flitlab.models.rules.spray.layout import Kind
from flitlab.models.transport.lossless import PortSettings
from flitlab.sim.engines.reference.clock import Alarm, Clock
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_links import ARRIVALS, SprayLink, SprayNetwork, SprayPacket, SprayQueue
from flitlab.sim.engines.transport.spray import LinkCount, deadlock_cycle


class LosslessPorts:
    """The input ports of all switches, and the pauses of the servers before them.

    links: of the network, by number; set when they exist. in_flight: PAUSE and RESUME frames.
    """

    def __init__(self, clock: Clock, settings: PortSettings):
        self.clock = clock
        self.settings = settings
        self.ports = make_ports(settings.xoff, settings.xon, settings.delay)
        self.links: list[SprayLink] = []
        self.in_flight = 0
        self._charge = machine_code(charge, self.ports, 0, 0)
        self._release = machine_code(release, self.ports, 0, 0)
        self._switch = machine_code(switch_pause, self.ports, 0, 0)

    def is_paused(self, link: int) -> bool:
        """Whether the server of a link is paused."""
        return bool(self.ports.paused_at[link] >= 0)

    def charge(self, link: int, size: int) -> None:
        """Charge a packet to the input port at the end of a link."""
        if self._charge(self.ports, link, size):
            self._send(link)

    def release(self, link: int, size: int) -> None:
        """Release a packet from that charge."""
        if self._release(self.ports, link, size):
            self._send(link)

    def _send(self, link: int) -> None:
        self.in_flight += 1
        Alarm(self.clock, self.clock.now + int(self.settings.delay[link]), EventPriority(ARRIVALS), self._receive, link)

    def _receive(self, alarm: Any) -> None:
        self.in_flight -= 1
        link = self.links[alarm.value]
        if not self._switch(self.ports, link.number, self.clock.now) and link.serving is None:
            link.serve_next()

    def deadlock(self) -> tuple[int, ...]:
        """The links of a cycle of paused servers, if no packet can move any more; else ()."""
        if self.in_flight or any(link.serving is not None or link.in_flight for link in self.links):
            return ()
        waits: dict[int, set[int]] = {link: set() for link in np.flatnonzero(self.ports.paused_at >= 0).tolist()}
        for link in self.links:
            for packet in getattr(link, "data", ()):
                waits.get(packet.came_by, set()).add(link.number)
        return deadlock_cycle(waits)


class LosslessQueue(SprayQueue):
    """An output of a switch; sent: bytes."""

    def __init__(
        self, network: SprayNetwork, number: int, end: Callable[[SprayPacket], None], ports: LosslessPorts
    ):  # fmt: skip
        super().__init__(network, number, end)
        self.ports, self.sent = ports, 0
        self.span, self.own = int(ports.settings.mark_span[number]), ports.settings.mark_own

    def accept(self, packet: SprayPacket) -> None:
        """Queue a packet, and charge it to the input port by which it came."""
        self.counts[LinkCount.ACCEPTED] += 1
        self.data.append(packet)
        self._update_occupancy(packet.size, 0)
        self.ports.charge(packet.came_by, packet.size)
        if self.serving is None:
            self.serve_next()

    def has_left(self, packet: SprayPacket) -> None:
        self._update_occupancy(-packet.size, 0)
        if packet.kind == Kind.DATA:
            queued = self.low + packet.size * self.own
            self._mark(packet, queued)
        self.ports.release(packet.came_by, packet.size)

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
        if packet.telemetry is not None and packet.kind == Kind.DATA:
            queued = self.low - packet.size * (not self.own)
            stamp(packet.telemetry, 0, self.number, self.ratio, self.sent, queued, self.clock.now)
        self.sent += packet.size
        super().serve(packet)

    def serve_next(self) -> None:
        if self.data and not self.ports.is_paused(self.number):
            self.serve(self.data.popleft())
