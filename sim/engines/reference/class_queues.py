# SPDX-License-Identifier: Apache-2.0
"""The source queues of a host, one for each class of traffic."""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain

from flitlab.models.rules.classes import ClassTables, goes_before
from flitlab.sim.engines.reference.packet import Packet


class ClassQueues:
    """Source queues by class, in the place of the single source queue of a host.

    queues: first in first out. last_served: number of the class that was served last.
    """

    def __init__(self, classes: ClassTables):
        self._classes = classes
        self.queues: list[deque[Packet]] = [deque() for _ in range(classes.class_count)]
        self.last_served = classes.class_count - 1

    def __len__(self) -> int:
        return sum(map(len, self.queues))

    def __iter__(self) -> Iterator[Packet]:
        return chain.from_iterable(self.queues)

    def append(self, packet: Packet) -> None:
        """Put a packet into the queue of its class."""
        self.queues[packet.sequence % len(self.queues)].append(packet)

    def popleft(self) -> Packet:
        """Take the oldest packet of the class served last."""
        return self.queues[self.last_served].popleft()

    def oldest(self) -> Iterator[tuple[int, Packet]]:
        """The oldest packet of every class that has one, with the number of the class."""
        for number, queue in enumerate(self.queues):
            if queue:
                yield number, queue[0]

    def serve(self, ready: Mapping[int, object]) -> int:
        """Choose the class to serve, and return its number; ready: classes that can send, at least one."""
        best, last, count = -1, self.last_served, len(self.queues)
        for number in ((last + k) % count for k in range(1, count + 1)):
            if number in ready and goes_before(self._classes.priority, number, best):
                best = number
        self.last_served = best
        return best
