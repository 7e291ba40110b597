# SPDX-License-Identifier: Apache-2.0
"""Parts of lossless ports: classes, the charges of input ports, the causes of pauses, and watchdogs."""

from typing import TypeAlias

import numpy as np

from flitlab.models.rules.lossless import Buffers, Ports, admits, charge, charge_shared, release, release_shared
from flitlab.models.rules.priority_classes import NO_CLASS, count_sent, next_class
from flitlab.models.rules.watchdog import make_watchdog, obeys, on_timer, timer_tick
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.lossless import ClassSettings
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.spray_links import SprayPacket
from flitlab.sim.engines.transport.spray import PauseCause, cause_table, count_pause

Row: TypeAlias = np.ndarray
"""A row of ``Counters.causes``."""


class PortClasses:
    """The classes of traffic, and their service by servers. settings: None where there is one class."""

    def __init__(self, settings: ClassSettings | None, count: int):
        self.settings, self.count = settings, count
        if settings is not None:
            self._service = settings.service()
            self._next_class = machine_code(next_class, self._service, 0, 0)
            self._count_sent = machine_code(count_sent, self._service, 0, 0, 0)

    def class_of(self, flow: int) -> int:
        """The class of a flow."""
        return 0 if self.settings is None else int(self.settings.of_flow[flow])

    def port_of(self, link: int, flow: int) -> int:
        """The port of a link for the class of a flow."""
        return self.count * link + self.class_of(flow)

    def pauses(self, port: int) -> bool:
        """Whether the class of a port pauses."""
        return self.settings is None or bool(self.settings.pauses[port % self.count])

    def next_class(self, link: int, ready: set[int]) -> int:
        """The class that a server serves next, of those that are ready; NO_CLASS if none is."""
        if self.settings is None:
            return 0 if ready else int(NO_CLASS)
        return int(self._next_class(self._service, link, sum(1 << number for number in ready)))

    def count_sent(self, link: int, packet: SprayPacket) -> None:
        """Count a packet that a server sends against the turn of its class."""
        if self.settings is not None:
            self._count_sent(self._service, link, self.class_of(packet.flow), packet.size)


class InputCharges:
    """The bytes of the packets in switches, charged to the input ports by which they came.

    buffers: shared ones of switches, None without.
    """

    def __init__(self, ports: Ports, buffers: Buffers | None):
        shared = buffers is not None
        self._args = (ports, buffers) if shared else (ports,)
        self._admits = machine_code(admits, *self._args, 0, 0) if shared else None
        self._charge = machine_code(charge_shared if shared else charge, *self._args, 0, 0)
        self._release = machine_code(release_shared if shared else release, *self._args, 0, 0)

    def admits(self, port: int, size: int) -> bool:
        """Whether a port has space for a packet."""
        return self._admits is None or bool(self._admits(*self._args, port, size))

    def charge(self, port: int, size: int) -> bool:
        """Charge a packet to a port. Returns whether the port sends PAUSE."""
        return bool(self._charge(*self._args, port, size))

    def release(self, port: int, size: int) -> bool:
        """Release a packet from that charge. Returns whether the port sends RESUME."""
        return bool(self._release(*self._args, port, size))


class PauseCauses:
    """The causes of pauses.

    rows: by port and queue. announced, current: by port, the row of the last PAUSE sent, and of the pause that lasts.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], Row] = {}
        self.announced: dict[int, Row] = {}
        self.current: dict[int, Row] = {}

    def announce(self, port: int, queue: int) -> None:
        """Count a PAUSE of a port, caused by a queue."""
        row = self.rows.setdefault((port, queue), np.array([port, queue, 0, 0, 0, 0]))
        row[PauseCause.FRAMES] += 1
        self.announced[port] = row

    def begin(self, port: int) -> None:
        """Begin the pause of the server before a port."""
        self.current[port] = self.announced[port]

    def end(self, port: int, since: int, now: int) -> None:
        """Count a pause that ends."""
        count_pause(self.current[port], since, now)

    def table(self, ports: Ports, now: int) -> np.ndarray:
        """``Counters.causes``, with the pauses that last."""
        rows = list(self.rows.values())
        at = {id(row): number for number, row in enumerate(rows)}
        current = np.full(len(ports), -1)
        for port, row in self.current.items():
            current[port] = at[id(row)]
        table = np.array(rows, np.int64).reshape(-1, len(PauseCause))
        return cause_table(table, ports.paused_at, current, now)


class PortWatchdog:
    """The watchdogs of servers. period, restore: as in :class:`flitlab.models.rules.watchdog.Watchdog`."""

    def __init__(self, period: int, restore: int, ports: Ports, topology: Topology, classes: int):
        first_host, hosts = classes * topology.channels, classes * topology.hosts
        self._ports = ports
        self._watchdog = make_watchdog(period, restore, len(ports), first_host, first_host + hosts)
        self._obeys = machine_code(obeys, self._watchdog, 0)
        self._timer_tick = machine_code(timer_tick, self._watchdog, ports, 0)
        self._on_timer = machine_code(on_timer, self._watchdog, ports, 0, 0)

    def obeys(self, port: int) -> bool:
        """Whether a server obeys a PAUSE or RESUME that came now."""
        return bool(self._obeys(self._watchdog, port))

    def timer_tick(self, port: int) -> int:
        """The tick of a timer that a server needs now, -1: none."""
        return int(self._timer_tick(self._watchdog, self._ports, port))

    def expire(self, port: int, now: int) -> int:
        """Return the Action of a server whose timer expires."""
        return int(self._on_timer(self._watchdog, self._ports, port, now))

    def forget(self, port: int) -> None:
        """Forget the last PAUSE that a server of a failed channel was sent."""
        self._watchdog.servers.asked[port] = 0
