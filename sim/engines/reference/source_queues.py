# SPDX-License-Identifier: Apache-2.0
"""The source queues of hosts: one for each class of traffic, and those that several sources share."""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from flitlab.models.rules.allocate import outranks
from flitlab.models.rules.classes import ClassTables, goes_before
from flitlab.models.rules.source_queues import make_source_queues
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


class SharedQueues:
    """The shared source queues of a network (see :mod:`flitlab.models.rules.source_queues`).

    network: with ``hosts``; source c * hosts + h is class c at host h.
    """

    def __init__(self, network: Any):
        self._network = network
        self._queues = make_source_queues(network.scenario.traffic)
        self._sending: set[int] = set()
        self._free_at: dict[int, int] = {}

    def may_start(self, source: int, now: int) -> bool:
        """Whether the first packet of a source, which has one, is the next one of its queue, which is free."""
        queue = self._queue(source)
        if queue is None or self._queues is None:
            return True
        if queue in self._sending or self._free_at.get(queue, 0) > now:
            return False
        waiting = [(member, packet) for member in self._members(queue) if (packet := self._first(member)) is not None]
        keys = {member: (int(self._queues.priority[member]), packet.created, member) for member, packet in waiting}
        return not any(outranks(*key, *keys[source]) for member, key in keys.items() if member != source)

    def occupy(self, source: int) -> None:
        """Note that the first packet of a source leaves its queue."""
        queue = self._queue(source)
        if queue is not None:
            self._sending.add(queue)

    def release(self, source: int, tick: int) -> None:
        """Let the next packet of a source's queue start from a tick on."""
        queue = self._queue(source)
        if queue is None:
            return
        self._sending.discard(queue)
        self._free_at[queue] = tick
        hosts = self._network.hosts
        for member in self._members(queue):
            hosts[member % len(hosts)].schedule_at(tick)

    def _queue(self, source: int) -> int | None:
        if self._queues is None or self._queues.queue[source] < 0:
            return None
        return int(self._queues.queue[source])

    def _members(self, queue: int) -> list[int]:
        assert self._queues is not None
        return [int(member) for member in self._queues.members[queue] if member >= 0]

    def _first(self, source: int) -> Packet | None:
        """The first packet that waits in the queue of a source, None if there is none."""
        number, host = divmod(source, len(self._network.hosts))
        waiting = self._network.hosts[host].waiting
        queue = waiting.queues[number] if isinstance(waiting, ClassQueues) else waiting
        return queue[0] if queue else None
