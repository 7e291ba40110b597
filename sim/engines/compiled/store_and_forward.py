# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Store and forward over arrays: every tick looks at all packets."""

import numpy as np

from flitlab.models.jit import njit
from flitlab.sim.engines.faults import NO_LOCATION, Residents
from flitlab.sim.engines.packets import Col, FaultyPacketRun

LOCATION, CHANNEL, SINCE, STATE = range(4)  # of a packet; SINCE: it waits since, or arrives at
WAITS, MOVES, GONE = range(3)


class CompiledStoreAndForward(FaultyPacketRun):
    def __init__(self, scenario, load, seed, log=False):
        super().__init__(scenario, load, seed, log)
        self.mode, self.out = scenario.switching, scenario.switching.next_channels(self.topology, scenario.routes)
        self.packets = np.zeros((0, 4), np.int64)

    def move(self, first, until):
        new = self.rows[first:]
        added = [
            np.full(len(new), NO_LOCATION),
            self.topology.channels + new[:, Col.SOURCE],
            new[:, Col.CREATED],
            0 * new[:, 0],
        ]
        self.packets = np.vstack([self.packets, np.stack(added, 1)])
        topology = self.topology
        run(
            self.rows, self.packets, self.free, self.out, topology.dst, topology.host_switch, self.channel_flits,
            self.mode.link, self.now, until,
        )  # fmt: skip

    def residents(self, tick):
        packets = np.flatnonzero((self.packets[:, STATE] != GONE) & (self.packets[:, LOCATION] != NO_LOCATION))
        to = self.topology.host_switch[self.rows[packets, Col.DESTINATION]]
        return Residents(packets, self.packets[packets, LOCATION], to)

    def drop(self, packets, tick):
        super().drop(packets, tick)
        self.packets[packets, STATE] = GONE

    def install_routes(self, change):
        self.out = self.mode.next_channels(self.topology, change.routes)
        return change.routes.tables(self.topology)

    def requeue(self, tick):
        """Let all packets in switches choose again."""
        channels = self.topology.channels
        waits = np.flatnonzero((self.packets[:, STATE] == WAITS) & (self.packets[:, CHANNEL] < channels))
        to = self.topology.host_switch[self.rows[waits, Col.DESTINATION]]
        self.packets[waits, CHANNEL] = self.out[to, self.packets[waits, LOCATION] - channels]
        self.packets[waits, SINCE] = tick


@njit
def run(rows, packets, free, out, dst, host_switch, channel_flits, link, first, until):
    channels, hosts = len(dst), len(host_switch)
    best = np.empty(len(free), np.int64)
    for now in range(first, until):
        best[:] = -1
        for i in range(len(rows)):
            p, to = packets[i], host_switch[rows[i, Col.DESTINATION]]
            if p[STATE] == MOVES and p[SINCE] == now:  # it has arrived at a switch
                at = host_switch[rows[i, Col.SOURCE]] if p[CHANNEL] >= channels else dst[p[CHANNEL]]
                p[STATE], p[LOCATION] = WAITS, channels + at
                p[CHANNEL] = channels + hosts + rows[i, Col.DESTINATION] if at == to else out[to, at]
            if p[STATE] == WAITS and p[SINCE] <= now and free[p[CHANNEL]] <= now:
                j = best[p[CHANNEL]]
                if j < 0 or (p[SINCE], rows[i, Col.IDENTITY]) < (packets[j, SINCE], rows[j, Col.IDENTITY]):
                    best[p[CHANNEL]] = i
        for channel in range(len(free)):
            i = best[channel]
            if i < 0:
                continue
            p, flits = packets[i], rows[i, Col.FLITS]
            free[channel] = now + flits
            p[STATE], p[SINCE], p[LOCATION] = MOVES, now + flits + link, NO_LOCATION
            if channel >= channels + hosts:
                rows[i, Col.DELIVERED] = p[SINCE] - 1
                p[STATE] = GONE
            elif channel >= channels:
                rows[i, Col.SENT] = now
            else:
                p[LOCATION] = channel
                rows[i, Col.HOPS] += 1
                channel_flits[channel] += flits
