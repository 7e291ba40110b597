# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: one FIFO for all packets, charged to the input port by which they came, and never dropped.

Pauses, ends of service and arrivals of a tick come in the order in which they were scheduled.
"""

from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any, TypeAlias

import numpy as np
from simpy.events import EventPriority

from flitlab.models.arrays import Ints
from flitlab.models.rules.lossless import (
    SEARCHED,
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
from flitlab.models.rules.watchdog import Action, make_watchdog, obeys, on_timer, timer_tick
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.lossless import PortSettings
from flitlab.sim.engines.reference.clock import Alarm, Clock
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_links import ARRIVALS, SprayLink, SprayNetwork, SprayPacket, SprayQueue
from flitlab.sim.engines.transport.spray import (
    NO_QUEUE,
    LinkCount,
    PauseCause,
    cause_table,
    count_pause,
    deadlock_cycle,
    outputs_of_switches,
)

SetTimer: TypeAlias = Callable[[int, int, Callable[[int], None]], None]
"""Sets a timer: tick, link, and action."""


class LosslessPorts:
    """The input ports of all switches, and the pauses of the servers before them.

    links: of the network, by number; set when they exist. in_flight: PAUSE and RESUME frames. set_timer: sets a timer
    of a link. causes: rows of ``Counters.causes`` by channel and queue. announced, current: by channel, the row of the
    last PAUSE sent, and of the pause that lasts. flow_links: the links of flows, None where they are not known; held:
    ticks of ``Counters.held``. _frames, _stale: frames in flight by channel, and those to be ignored.
    """

    def __init__(
        self, clock: Clock, settings: PortSettings, topology: Topology, set_timer: SetTimer, flow_links: Ints | None
    ):
        self.clock = clock
        self.flow_links = flow_links
        self.held = None if flow_links is None else np.zeros_like(flow_links)
        links, first = outputs_of_switches(topology)
        of_switch = [links[start:end].tolist() for start, end in pairwise(first)]
        ends = [*topology.dst.tolist(), *topology.host_switch.tolist()]
        self._outputs = [of_switch[switch] for switch in ends]
        self._frames = np.zeros(len(ends), np.int64)
        self._stale = np.zeros(len(ends), np.int64)
        self.causes: dict[tuple[int, int], np.ndarray] = {}
        self.announced: dict[int, np.ndarray] = {}
        self.current: dict[int, np.ndarray] = {}
        self.settings, self._set_timer = settings, set_timer
        self.ports, self.buffers = settings.state()
        self.links: list[SprayLink] = []
        self.in_flight = 0
        shared = self.buffers is not None
        self._args = (self.ports, self.buffers) if shared else (self.ports,)
        self._admits = machine_code(admits, *self._args, 0, 0) if shared else None
        self._charge = machine_code(charge_shared if shared else charge, *self._args, 0, 0)
        self._release = machine_code(release_shared if shared else release, *self._args, 0, 0)
        self.totals = np.zeros(2, np.int64)
        self._switch = machine_code(switch_pause, self.ports, self.totals, 0, 0)
        self.watchdog = (
            None
            if settings.watchdog is None
            else make_watchdog(
                *settings.watchdog, len(self.ports), topology.channels, topology.channels + topology.hosts
            )
        )
        if self.watchdog is not None:
            self._obeys = machine_code(obeys, self.watchdog, 0)
            self._timer_tick = machine_code(timer_tick, self.watchdog, self.ports, 0)
            self._on_timer = machine_code(on_timer, self.watchdog, self.ports, 0, 0)

    def is_paused(self, link: int) -> bool:
        """Whether the server of a link is paused."""
        return bool(self.ports.paused_at[link] >= 0)

    def admits(self, link: int, size: int) -> bool:
        """Whether the input port at the end of a link has space for a packet."""
        return self._admits is None or bool(self._admits(*self._args, link, size))

    def charge(self, link: int, size: int, queue: int) -> None:
        """Charge a packet, which waits in a queue, to the input port at the end of a link."""
        if self._charge(*self._args, link, size):
            self._blame(link, self._cause(link, queue))
            self._send(link)

    def _cause(self, link: int, queue: int) -> int:
        """The queue in which most of the bytes wait that came by a link; the one named if none has any."""
        most = 0
        for output in self._outputs[link]:
            waiting: Any = self.links[output]
            size = sum(packet.size for packet in islice(waiting.data, int(SEARCHED)) if packet.came_by == link)
            if size > most:
                queue, most = output, size
        return queue

    def _blame(self, link: int, queue: int) -> None:
        """Count a PAUSE for a link by its cause."""
        row = self.causes.setdefault((link, queue), np.array([link, queue, 0, 0, 0, 0]))
        row[PauseCause.FRAMES] += 1
        self.announced[link] = row

    def cause_table(self) -> np.ndarray:
        """The causes of all pauses, as ``Counters.causes``."""
        rows = list(self.causes.values())
        at = {id(row): number for number, row in enumerate(rows)}
        current = np.full(len(self.ports), -1)
        for link, row in self.current.items():
            current[link] = at[id(row)]
        table = np.array(rows, np.int64).reshape(-1, len(PauseCause))
        return cause_table(table, self.ports.paused_at, current, self.clock.now)

    def held_ticks(self) -> Ints | None:
        """``Counters.held``, with the pauses that last."""
        if self.held is None:
            return None
        ticks = self.held.copy()
        for link in np.flatnonzero(self.ports.paused_at >= 0).tolist():
            self._hold(ticks, link, int(self.ports.paused_at[link]))
        return ticks

    def _hold(self, ticks: Ints | None, link: int, since: int) -> None:
        """Add a pause since a tick, up to now, to the flows that it holds."""
        if ticks is None or self.flow_links is None:
            return
        waiting: Any = self.links[link]
        flows = {packet.flow for packet in waiting.data} if isinstance(waiting, LosslessQueue) else set(waiting.waiting)
        for flow in flows:
            ticks[flow, self.flow_links[flow] == link] += self.clock.now - since

    def release(self, link: int, size: int) -> None:
        """Release a packet from that charge."""
        if self._release(*self._args, link, size):
            self._send(link)

    def _send(self, link: int) -> None:
        self.in_flight += 1
        self._frames[link] += 1
        Alarm(self.clock, self.clock.now + int(self.settings.delay[link]), EventPriority(ARRIVALS), self._receive, link)

    def _receive(self, alarm: Any) -> None:
        link = alarm.value
        self.in_flight -= 1
        self._frames[link] -= 1
        if self._stale[link] > 0:
            self._stale[link] -= 1
        else:
            self.follow(link)

    def fail(self, link: int) -> None:
        """End the pause of a failed channel, and forget the frames that are sent to its server."""
        self._stale[link] = self._frames[link]
        self.ports.is_pausing[link] = 0
        since = int(self.ports.paused_at[link])
        if since >= 0:
            self._switch(self.ports, self.totals, link, self.clock.now)
            count_pause(self.current[link], since, self.clock.now)
        if self.watchdog is not None:
            self.watchdog.servers.asked[link] = 0

    def storm(self, link: int, begins: bool) -> None:
        """Let a PAUSE or RESUME of a host reach the server before it."""
        self.ports.frames[link] += begins
        if begins:
            self._blame(link, NO_QUEUE)
        self.follow(link)

    def follow(self, link: int) -> None:
        """Let a server follow a PAUSE or RESUME, unless its watchdog ignores it."""
        if self.watchdog is None or self._obeys(self.watchdog, link):
            self._switch_server(link)

    def _switch_server(self, link: int) -> None:
        """Pause or resume a server."""
        since = int(self.ports.paused_at[link])
        if self._switch(self.ports, self.totals, link, self.clock.now):
            self.current[link] = self.announced[link]
        else:
            count_pause(self.current[link], since, self.clock.now)
            self._hold(self.held, link, since)
            if self.links[link].serving is None:
                self.links[link].serve_next()
        self._watch(link)

    def _watch(self, link: int) -> None:
        """Set the timer of a watchdog, if it needs one."""
        if self.watchdog is None:
            return
        tick = int(self._timer_tick(self.watchdog, self.ports, link))
        if tick >= 0:
            self._set_timer(tick, link, self._expire)

    def _expire(self, number: int) -> None:
        action, link = self._on_timer(self.watchdog, self.ports, number, self.clock.now), self.links[number]
        if action == Action.DISCARD:
            assert isinstance(link, LosslessQueue)
            link.discard()
        if action != Action.NONE:
            self._switch_server(number)
        else:
            self._watch(number)

    def deadlock(self) -> tuple[int, ...]:
        """The links of a cycle of paused servers when no packet moves, if no frame is in flight; else ()."""
        if self.watchdog is not None or self.in_flight:
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
        """Queue a packet, and charge it to the input port by which it came.

        Drop it if the link has failed, or the shared buffer is full.
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
        if not self.ports.admits(packet.came_by, packet.size):
            self.counts[LinkCount.DROPS] += 1
            return
        self.counts[LinkCount.ACCEPTED] += 1
        self.data.append(packet)
        self._update_occupancy(packet.size, 0)
        self.ports.charge(packet.came_by, packet.size, self.number)
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
                self._update_occupancy(-packet.size, 0)
                self.ports.release(packet.came_by, packet.size)
        self.counts[LinkCount.DROPS] += len(dropped)
        self.in_flight.clear()
        self.control.clear()
        self._update_occupancy(0, -self.high)
        self.discard()
        self.ports.fail(self.number)

    def discard(self) -> None:
        """Discard all data in the queue, and release their charges."""
        while self.data:
            packet = self.data.popleft()
            self.counts[LinkCount.DROPS] += 1
            self._update_occupancy(-packet.size, 0)
            self.ports.release(packet.came_by, packet.size)

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
