# SPDX-License-Identifier: Apache-2.0
"""Changes of links and switches during a run of packets: one procedure for all modes and both engines.

A switching mode lists its packets by location, drops packets, blocks the outputs of failed channels, changes the speed
of others and installs routes. Which packets are dropped, and when routes change, is decided here.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.rules.route import are_stranded
from flitlab.models.rules.tables import Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.dynamic_topology import DynamicTopology
from flitlab.models.timeline.flit_ticks import slowed_flit_ticks
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.models.topology.flit_times import flit_times

NO_LOCATION = -1
"""Location of a packet on the channel of a host, which never fails."""

NEVER = 1 << 62
"""Tick after all events."""


class Residents(NamedTuple):
    """Packets in the network, by location. A packet whose flits are at several locations is listed for each.

    packet: packets of the reference engine, or int64 records of the compiled one. location: int64, the channel that the
    head or a flit is on, or the number of channels plus the switch that it is in, or NO_LOCATION. dst_switch: int64.
    """

    packet: np.ndarray
    location: Ints
    dst_switch: Ints


class Faults(ABC):
    """The timeline of a run and its packets; a subclass answers for a switching mode in an engine.

    channel_up, switch_up: bool [channels], bool [switches], whether each works. flit_ticks: int64 [channels].
    """

    def __init__(self, scenario: Scenario[DynamicTopology]):
        topology, mode = scenario.topology, scenario.switching
        self.changes = deque(mode.policy_changes(scenario.timeline, scenario.routes))
        self.channel_up, self.switch_up = np.ones(topology.channels, bool), np.ones(topology.switches, bool)
        self.flit_ticks = flit_times(topology).channel
        self._built = topology
        self.drains = mode.drains
        self._next_switch = np.concatenate([topology.dst, np.arange(topology.switches)])  # of each location
        self._learned: NetworkChange | None = None  # in force as soon as the network is empty

    @property
    def draining(self) -> bool:
        """Whether hosts stop (:meth:`stop_hosts`), because routes change when the network is empty."""
        return self._learned is not None

    def next_tick(self, now: int) -> int:
        """Return the next tick for which :meth:`begin_tick` must be called."""
        if self.draining:
            return now + 1
        return self.changes[0].tick if self.changes else NEVER

    def begin_tick(self, tick: int) -> None:
        """Apply the change of a tick, if there is one, and go on draining."""
        if self.changes and self.changes[0].tick == tick:
            self.apply_change(self.changes.popleft(), tick)
        if self._learned is not None:
            if not self.channel_up.all():
                self._drop(self.blocked_packets(tick), tick)
            if self.is_empty():
                self._install(self._learned, tick)
                self._learned = None

    def apply_change(self, change: NetworkChange, tick: int) -> None:
        """Let links and switches fail, change speed and return, and the routing learn of it."""
        failed, restored = self.channel_up & ~change.works, change.works & ~self.channel_up
        has_failed = np.concatenate([failed, self.switch_up & ~change.switches, [False]])  # the last: NO_LOCATION
        self.channel_up, self.switch_up = change.works, change.switches
        residents = self.residents(tick)
        self._drop(residents.packet[has_failed[residents.location]], tick)
        self.block(np.flatnonzero(failed), tick)
        self.unblock(np.flatnonzero(restored), tick)
        before, self.flit_ticks = self.flit_ticks, slowed_flit_ticks(self._built, change.rate)
        if len(changed := np.flatnonzero(self.flit_ticks != before)):
            self.change_speeds(changed, tick)
        if change.routes is None:
            return
        if not self.drains:
            self._install(change, tick)
            return
        if self._learned is None:
            self.stop_hosts()
        self._learned = change

    def _install(self, change: NetworkChange, tick: int) -> None:
        """Install new routes, and drop the packets that no route leads from the next switch to their destination."""
        tables, residents = self.install_routes(change), self.residents(tick)
        stranded = are_stranded(tables, self._next_switch[residents.location], residents.dst_switch)
        self._drop(residents.packet[stranded & (residents.location != NO_LOCATION)], tick)
        self.requeue(tick)

    def _drop(self, packets: Sequence[Any] | np.ndarray, tick: int) -> None:
        if len(packets):
            self.drop(packets, tick)

    @abstractmethod
    def residents(self, tick: int) -> Residents:
        """List the packets in the network at the start of a tick."""

    @abstractmethod
    def drop(self, packets: Sequence[Any] | np.ndarray, tick: int) -> None:
        """Remove packets from the network, each once, count them as dropped and free what they hold."""

    @abstractmethod
    def block(self, channels: Ints, tick: int) -> None:
        """Keep packets off channels that fail at a tick; int64 [failed]."""

    @abstractmethod
    def unblock(self, channels: Ints, tick: int) -> None:
        """Let packets use channels that return at a tick; int64 [restored]."""

    def change_speeds(self, channels: Ints, tick: int) -> None:
        """Let a flit that starts on a channel from a tick on take ``flit_ticks``; channels: int64 [changed]."""
        raise NotImplementedError

    @abstractmethod
    def install_routes(self, change: NetworkChange) -> Tables:
        """Install the routes of a change, and return them."""

    @abstractmethod
    def requeue(self, tick: int) -> None:
        """Let packets choose again, and hosts inject, after a change of routes."""

    # Only for modes that drain.

    def stop_hosts(self) -> None:
        """Let hosts start no packet until :meth:`requeue`, but replies that they owe a limited number of."""
        raise NotImplementedError

    def blocked_packets(self, tick: int) -> Sequence[Any] | np.ndarray:
        """List the head packets that request a failed output since before a tick."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        """Whether no packet is in the network."""
        raise NotImplementedError
