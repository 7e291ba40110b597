"""The pipe tick by tick."""

from collections import defaultdict, deque

import numpy as np

from flitlab.sim.engines.packets import Col, PacketRun


class ReferencePipe(PacketRun):
    def __init__(self, scenario, load, seed, log=False):
        super().__init__(scenario, load, seed, log)
        self.delay, hosts = scenario.switching.delay, range(scenario.topology.hosts)
        self.created, self.pipe = deque(), defaultdict(list)  # rows of packets
        self.source, self.destination = [deque() for _ in hosts], [deque() for _ in hosts]
        self.sends, self.takes = np.zeros((2, len(hosts)), np.int64)  # tick from which a host's channel is free

    def move(self, first, until):
        self.created.extend(range(first, len(self.rows)))
        for now in range(self.now, until):
            while self.created and self.rows[self.created[0], Col.CREATED] == now:
                packet = self.created.popleft()
                self.source[self.rows[packet, Col.SOURCE]].append(packet)
            for packet in self.leave(self.source, self.sends, now):
                self.rows[packet, Col.SENT] = now
                self.pipe[now + self.delay].append(packet)
            for packet in self.pipe.pop(now, ()):
                self.destination[self.rows[packet, Col.DESTINATION]].append(packet)
            for packet in self.leave(self.destination, self.takes, now):
                self.rows[packet, Col.DELIVERED] = now + self.rows[packet, Col.FLITS] - 1

    def leave(self, queues, free, now):
        """The heads of queues before idle channels, which they keep busy, in the order of the hosts."""
        for host, queue in enumerate(queues):
            if queue and free[host] <= now:
                free[host] = now + self.rows[queue[0], Col.FLITS]
                yield queue.popleft()
