# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Store and forward tick by tick, with a heap for every channel."""

from collections import defaultdict
from heapq import heappop, heappush

import numpy as np

from flitlab.sim.engines.faults import Residents
from flitlab.sim.engines.packets import Col, FaultyPacketRun


class ReferenceStoreAndForward(FaultyPacketRun):
    def __init__(self, scenario, load, seed, log=False):
        super().__init__(scenario, load, seed, log)
        self.mode, self.out = scenario.switching, scenario.switching.next_channels(self.topology, scenario.routes)
        self.to_hosts = self.topology.channels + self.topology.hosts
        self.queues = defaultdict(list)  # by channel, (tick at which it joined, identity, packet)
        self.arriving = defaultdict(list)  # by tick, (packet, switch)
        self.location = {}  # of the packets in the network (Residents)

    def move(self, first, until):
        for packet in range(first, len(self.rows)):
            self.arriving[self.rows[packet, Col.CREATED]].append((packet, None))
        for now in range(self.now, until):
            for packet, switch in self.arriving.pop(now, ()):
                if self.rows[packet, Col.DROPPED] > now:
                    self.join(packet, switch, now)
            for channel, queue in list(self.queues.items()):
                if queue and self.free[channel] <= now:
                    self.start(channel, heappop(queue)[2], now)

    def join(self, packet, switch, now):
        """Let a packet at a switch, None: at its host, wait for its next channel."""
        source, destination = self.rows[packet, [Col.SOURCE, Col.DESTINATION]]
        to = self.topology.host_switch[destination]
        if switch is None:
            channel = self.topology.channels + source
        else:
            self.location[packet] = self.topology.channels + switch
            channel = self.to_hosts + destination if switch == to else self.out[to, switch]
        heappush(self.queues[channel], (now, self.rows[packet, Col.IDENTITY], packet))

    def start(self, channel, packet, now):
        """Send a packet over a channel."""
        topology, row = self.topology, self.rows[packet]
        self.free[channel] = now + row[Col.FLITS]
        end = now + row[Col.FLITS] + self.mode.link
        self.location.pop(packet, None)
        if channel >= self.to_hosts:
            row[Col.DELIVERED] = end - 1
        elif channel >= topology.channels:
            row[Col.SENT] = now
            self.arriving[end].append((packet, topology.host_switch[row[Col.SOURCE]]))
        else:
            self.location[packet] = channel
            self.channel_flits[channel] += row[Col.FLITS]
            row[Col.HOPS] += 1
            self.arriving[end].append((packet, topology.dst[channel]))

    def residents(self, tick):
        packets = np.array(list(self.location), np.int64)
        to = self.topology.host_switch[self.rows[packets, Col.DESTINATION]]
        return Residents(packets, np.array(list(self.location.values()), np.int64), to)

    def drop(self, packets, tick):
        super().drop(packets, tick)
        for packet in packets:
            del self.location[packet]
        for channel, queue in list(self.queues.items()):
            self.queues[channel] = [entry for entry in queue if self.rows[entry[2], Col.DROPPED] > tick]

    def install_routes(self, change):
        self.out = self.mode.next_channels(self.topology, change.routes)
        return change.routes.tables(self.topology)

    def requeue(self, tick):
        """Let all packets in switches choose again."""
        for channel in [channel for channel in self.queues if channel < self.topology.channels]:
            for _, _, packet in self.queues.pop(channel):
                self.join(packet, self.topology.src[channel], tick)
