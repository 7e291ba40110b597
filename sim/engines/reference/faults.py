# SPDX-License-Identifier: Apache-2.0
"""Faults of the modes that send packets in the reference engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.rules.tables import Tables
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.classes import sent_while_draining
from flitlab.sim.engines.faults import NO_LOCATION, Faults, Residents
from flitlab.sim.engines.reference.clock import Alarm, Phase
from flitlab.sim.engines.reference.packet import Packet

NEVER_FREE = LONGEST_RUN
"""The tick from which the output of a failed channel is free."""


class ReferenceFaults(Faults):
    """Faults of a network; each switching mode drops its packets.

    network: a :class:`~flitlab.sim.engines.reference.network.Network`, which refers to this object and has
    ``switches``, ``hosts``, and as ``outputs`` those of channels between switches, each with its switch.
    """

    def __init__(self, network: Any):
        super().__init__(network.scenario)
        self.network, self.clock = network, network.clock
        self._sent_while_draining = sent_while_draining(network.classes).tolist()
        self._begun = -1
        self._free_at: dict[int, int] = {}  # of channels that do not work, when their outputs would be
        for change in self.changes:
            Alarm(self.clock, change.tick, Phase.CHANGES, self._begin)

    def may_start(self, number: int) -> bool:
        """Whether hosts may start packets of a class; number: of the class, 0 without classes."""
        return not self.draining or self._sent_while_draining[number]

    def _begin(self, _: object) -> None:
        """Start a tick with a change of the network, or one in which the network must be checked."""
        now = self.clock.now
        if self._begun == now:
            return
        self._begun = now
        self.begin_tick(now)
        if self.draining:
            Alarm(self.clock, now + 1, Phase.CHANGES, self._begin)

    def locations(self) -> list[tuple[Packet, int]]:
        """Packets in the network, and the locations of their flits (:class:`~flitlab.sim.engines.faults.Residents`)."""
        return [(packet, packet.location) for packet in self.network.sent()]

    def residents(self, tick: int) -> Residents:
        locations = [(packet, location) for packet, location in self.locations() if location != NO_LOCATION]
        return Residents(
            np.array([packet for packet, _ in locations], object),
            np.array([location for _, location in locations], np.int64),
            np.array([packet.target for packet, _ in locations], np.int64),
        )

    def drop(self, packets: Sequence[Packet] | np.ndarray, tick: int) -> None:
        """Count packets as dropped; switching modes also remove them from their queues."""
        for packet in set(packets):
            self.network.drop(packet)

    def block(self, channels: Ints, tick: int) -> None:
        for channel in channels.tolist():
            output, _ = self.network.outputs[channel]
            self._free_at[channel], output.free_at = output.free_at, NEVER_FREE

    def unblock(self, channels: Ints, tick: int) -> None:
        for channel in channels.tolist():
            output, switch = self.network.outputs[channel]
            output.free_at = self._free_at.pop(channel)
            switch.schedule_at(max(tick, output.free_at))

    def change_speeds(self, channels: Ints, tick: int) -> None:
        for channel in channels.tolist():
            output, switch = self.network.outputs[channel]
            ticks = int(self.flit_ticks[channel])
            output.delay += ticks - output.flit_ticks
            output.flit_ticks = ticks
            switch.schedule_at(tick)

    def install_routes(self, change: NetworkChange) -> Tables:
        network, scenario = self.network, self.network.scenario
        tables: Tables = scenario.switching.tables_after(network.routing.routes, scenario.topology, change)
        network.routing.use(tables, change.policy)
        return tables

    def requeue(self, tick: int) -> None:
        """Draw new routes for the packets that wait at hosts; those in switches choose again."""
        network = self.network
        for packet in (packet for host in network.hosts for packet in host.waiting):
            packet.route = 0
            network.routing.draw(packet)
        for node in network.hosts if self.drains else network.switches:
            node.schedule_at(tick)

    def is_empty(self) -> bool:
        counts = self.network.ledger.counts
        empty: bool = counts[Scalar.SENT_PACKETS] == counts[Scalar.DELIVERED_PACKETS] + counts[Scalar.DROPPED_PACKETS]
        return empty

    def stop_hosts(self) -> None:
        """Hosts ask :meth:`may_start`."""
