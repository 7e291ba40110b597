# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""What both engines of the relay share: a timeline, routes and numbers of channels."""

import numpy as np

from flitlab.sim.engines.faults import Faults
from flitlab.sim.engines.packets import DROPPED, PacketRun

BLOCKED = 1 << 40  # ticks by which a failed channel is free later


class RelayRun(PacketRun, Faults):
    """Channels between switches come first, then one from each host, then one to each host. free: of each channel."""

    def __init__(self, scenario, load, seed, log=False):
        PacketRun.__init__(self, scenario, load, seed, log)
        Faults.__init__(self, scenario)
        topology = self.topology
        self.link, self.to_host = scenario.switching.link, topology.channels + topology.hosts
        self.free = np.zeros(self.to_host + topology.hosts, np.int64)
        self.out = self.next_channels(scenario.routes.ports)

    def next_channels(self, ports):
        """The channel towards a switch t at a switch v, int64 [t, v]; any number where there is none."""
        first = np.array([[int(port) & -int(port) for port in row] for row in ports])
        return self.topology.out_start[:-1] + np.log2(np.maximum(first, 1)).astype(np.int64)

    def advance(self, until):
        while self.now < until:
            self.begin_tick(self.now)
            super().advance(min(until, self.next_tick(self.now)))

    def drop(self, packets, tick):
        self.rows[packets, DROPPED] = tick

    def block(self, channels, tick):
        self.free[channels] += BLOCKED

    def unblock(self, channels, tick):
        self.free[channels] -= BLOCKED

    def install_routes(self, change):
        self.out = self.next_channels(change.routes.ports)
        return change.routes.tables(self.topology)
