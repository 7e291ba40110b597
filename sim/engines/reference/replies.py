# SPDX-License-Identifier: Apache-2.0
"""The replies that hosts send to requests, and the number of them that a host may owe at a time."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from flitlab.models.rules.classes import NO_LIMIT, ClassTables, Process, ends_of_reply, host_in_class
from flitlab.sim.engines.reference.clock import Clock, Phase
from flitlab.sim.engines.reference.packet import Packet

Owner = tuple[int, int]
"""A class of requests, and the host that receives them."""


class ReplyNetwork(Protocol):
    """The interface of the network that replies use."""

    clock: Clock
    processes: list[Process]
    hosts: Sequence[Any]
    switches: Sequence[Any]
    ejection_switch: list[int]


class Replies:
    """The replies of a run with classes of traffic; without classes there are none.

    outstanding: replies that count against the limit of their owner, from the grant of the channel to its host to the
    request until the reply has left. leaving: owners of the replies that are being sent.
    """

    def __init__(self, network: ReplyNetwork, classes: ClassTables | None):
        self._network, self._classes = network, classes
        self.outstanding: Counter[Owner] = Counter()
        self.leaving: set[Owner] = set()

    def may_eject(self, request: Packet) -> bool:
        """Whether the host of a packet may owe a further reply, where its class limits them."""
        if self._classes is None:
            return True
        owner = self._owner(self._classes, request)
        return self.outstanding[owner] < int(self._classes.reply_limit[owner[0]])

    def commit(self, request: Packet) -> None:
        """Count the reply to a packet that is granted the channel to its host; it counts until it has left the host."""
        if self._classes is not None:
            owner = self._owner(self._classes, request)
            if self._classes.reply_limit[owner[0]] < NO_LIMIT:
                self.outstanding[owner] += 1
                request.promised = True

    def drop(self, request: Packet) -> None:
        """Count the reply to a dropped packet no longer."""
        if self._classes is not None and request.promised:
            self.outstanding[self._owner(self._classes, request)] -= 1

    def schedule(self, request: Packet) -> None:
        """Create the reply to a delivered packet, if its class has replies, after the delay of its class."""
        classes, network = self._classes, self._network
        if classes is None:
            return
        delay, number = (int(table[request.sequence % classes.class_count]) for table in (classes.delay, classes.reply))
        if number >= 0:
            seed = network.processes[number].seed
            source, to = ends_of_reply(
                classes, seed, number, request.source, request.destination, request.sequence
            )  # fmt: skip
            network.hosts[source].schedule_reply(number, to, network.clock.now + delay)

    def end(self, packet: Packet, tick: int) -> None:
        """Release the limit of a packet, if it is a reply, that will have left its host from a tick on."""
        classes = self._classes
        if classes is None:
            return
        request = int(classes.request[packet.sequence % classes.class_count])
        if request >= 0 and classes.reply_limit[request] < NO_LIMIT:
            owner = request, int(host_in_class(classes, request, packet.source))
            self.leaving.add(owner)
            self._network.clock.call(tick, Phase.CREDITS, self._release, owner)

    def _release(self, owner: Owner) -> None:
        """Release the limit of an owner, whose reply has left its host."""
        network = self._network
        self.outstanding[owner] -= 1
        self.leaving.remove(owner)
        network.switches[network.ejection_switch[owner[1]]].schedule_at(network.clock.now)

    def will_release(self, request: Packet) -> bool:
        """Whether the host of a packet may owe a further reply, or is sending the last flits of one."""
        if self._classes is None:
            return True
        return self.may_eject(request) or self._owner(self._classes, request) in self.leaving

    def first(self, request: Packet) -> tuple[Any, Packet | None, int]:
        """The host that replies to a packet, the reply that it sends next (None: still to come), and its class."""
        classes = self._classes
        assert classes is not None
        reply = int(classes.reply[request.sequence % classes.class_count])
        host = self._network.hosts[int(host_in_class(classes, reply, request.destination))]
        queue = host.waiting.queues[reply]
        return host, queue[0] if queue else None, reply

    @staticmethod
    def _owner(classes: ClassTables, request: Packet) -> Owner:
        return request.sequence % classes.class_count, request.destination
