# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: one FIFO for all packets, charged to the input port by which they came, and never dropped.

Pauses, ends of service and arrivals of a tick come in the order in which they were scheduled.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from simpy.events import EventPriority

from flitlab.models.rules.lossless import (
    admits,
    charge,
    charge_shared,
    is_marked,
    release,
    release_shared,
    switch_pause,
)
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
        self.ports, self.buffers = settings.state()
        self.links: list[SprayLink] = []
        self.in_flight = 0
        shared = self.buffers is not None
        self._args = (self.ports, self.buffers) if shared else (self.ports,)
        self._admits = machine_code(admits, *self._args, 0, 0) if shared else None
        self._charge = machine_code(charge_shared if shared else charge, *self._args, 0, 0)
        self._release = machine_code(release_shared if shared else release, *self._args, 0, 0)
        self._switch = machine_code(switch_pause, self.ports, 0, 0)

    def is_paused(self, link: int) -> bool:
        """Whether the server of a link is paused."""
        return bool(self.ports.paused_at[link] >= 0)

    def admits(self, link: int, size: int) -> bool:
        """Whether the input port at the end of a link has space for a packet."""
        return self._admits is None or bool(self._admits(*self._args, link, size))

    def charge(self, link: int, size: int) -> None:
        """Charge a packet to the input port at the end of a link."""
        if self._charge(*self._args, link, size):
            self._send(link)

    def release(self, link: int, size: int) -> None:
        """Release a packet from that charge."""
        if self._release(*self._args, link, size):
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
        """Queue a packet, and charge it to the input port by which it came; drop it if the shared buffer is full."""
        if self._is_control(packet):
            self.counts[LinkCount.ACCEPTED] += 1
            self.control.append(packet)
            self._update_occupancy(0, packet.size)
            if self.serving is None:
                self.serve_next()
            return
        if not self.ports.admits(packet.came_by, packet.size):
            self.counts[LinkCount.DROPS] += 1
            return
        self.counts[LinkCount.ACCEPTED] += 1
        self.data.append(packet)
        self._update_occupancy(packet.size, 0)
        self.ports.charge(packet.came_by, packet.size)
        if self.serving is None:
            self.serve_next()

    def _is_control(self, packet: SprayPacket) -> bool:
        """Whether a packet belongs to a class of control packets: it goes first, is not charged and not paused."""
        return self.ports.settings.strict and packet.kind != Kind.DATA

    def has_left(self, packet: SprayPacket) -> None:
        if self._is_control(packet):
            self._update_occupancy(0, -packet.size)
        elif not self.ports.settings.at_start:
            self._release(packet)

    def _release(self, packet: SprayPacket) -> None:
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
        if self.ports.settings.at_start and not self._is_control(packet):
            self._release(packet)
        super().serve(packet)

    def serve_next(self) -> None:
        if self.control:
            self.serve(self.control.popleft())
        elif self.data and not self.ports.is_paused(self.number):
            self.serve(self.data.popleft())
