# SPDX-License-Identifier: Apache-2.0
"""The common base of the reference engine: hosts that create packets, the life cycle of a packet, and the run
protocol.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.gc_disabled import gc_disabled
from flitlab.models.rules.arrivals import draw_block
from flitlab.models.rules.classes import make_processes
from flitlab.models.rules.packets import length
from flitlab.models.scenario import Scenario
from flitlab.models.switching.timed import Timed
from flitlab.models.topology.flit_times import flit_times
from flitlab.sim.engines.base import (
    Execution,
    Outstanding,
    PacketLog,
    ProgramStatus,
    Scalar,
    Snapshot,
    can_count_outstanding,
    check_tick_limit,
)
from flitlab.sim.engines.classes import class_tables, has_replies
from flitlab.sim.engines.faults import NO_LOCATION
from flitlab.sim.engines.reference.clock import LATEST, Clock, Phase, Process
from flitlab.sim.engines.reference.ledger import Ledger
from flitlab.sim.engines.reference.packet import Packet
from flitlab.sim.engines.reference.ranks import Message, Ranks
from flitlab.sim.engines.reference.replies import Replies
from flitlab.sim.engines.reference.routing import PacketRouting
from flitlab.sim.engines.reference.source_queues import ClassQueues

D = TypeVar("D", bound=Timed)

SourceQueue: TypeAlias = deque[Packet] | ClassQueues
"""The packets that wait at a host, with classes of traffic one queue for each."""

_BLOCK = 16  # packets drawn at a time: one call of compiled code costs as much as drawing several


class Host:
    """Creates packets into an unlimited source queue, first in first out.

    waiting: the source queue, with classes of traffic one for each. free_at: tick from which the injection channel is
    free. replies: number of the last reply of each class of replies. due: destinations of replies that are not created
    yet, by class and tick. For a host that runs a program, ``messages`` is the source queue, and ``waiting`` holds only
    the next packet.
    """

    def __init__(self, network: "Network[Any]", index: int):
        self.network = network
        self.index = index
        self.waiting: SourceQueue = deque[Packet]() if network.classes is None else ClassQueues(network.classes)
        self.messages: deque[Message] = deque()
        self.replies: dict[int, int] = {}
        self.due: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.sequence = 0
        self.free_at = 0

    def schedule_send(self, now: int) -> None:
        """Schedule the allocation of the next packet, which waits since tick ``now``."""
        raise NotImplementedError

    def create(self, number: int = 0) -> Process:
        """The process that creates packets indefinitely; number: of their class of traffic."""
        classes = len(self.network.processes)
        source = number * len(self.network.scenario.topology.host_switch) + self.index
        for nth, (tick, to, flits) in enumerate(self.network.draw_packets(source)):
            yield tick
            packet = self.network.packet(self.index, nth * classes + number, to, flits)
            self.waiting.append(packet)
            self.network.ledger.create(packet)
            self.schedule_send(tick)

    def schedule_reply(self, number: int, to: int, tick: int) -> None:
        """Create a reply at a tick; number: of its class, to: the host that receives it."""
        if not self.due[number, tick]:
            self.network.clock.call(tick, Phase.CREATION, self._reply, number)
        self.due[number, tick].append(to)

    def _reply(self, number: int) -> None:
        """Create the replies of a class that are due; of several, to requests from several subnets, by destination."""
        network, count = self.network, len(self.network.processes)
        _, packets, seed = network.processes[number]
        for to in sorted(self.due.pop((number, network.clock.now))):
            nth = self.replies[number] = self.replies.get(number, -1) + 1
            flits = int(length(packets, seed, self.index, nth))
            packet = network.packet(self.index, nth * count + number, to, flits)
            self.waiting.append(packet)
            network.ledger.create(packet)
        self.schedule_send(network.clock.now)

    def join(self, message: Message) -> None:
        """Put a message of a program into the source queue."""
        network = self.network
        network.ledger.join(self.index, message.unsent, message.flits)
        self.messages.append(message)
        if len(self.messages) == 1:
            self._make_packet()
            self.schedule_send(network.clock.now)

    def _make_packet(self) -> None:
        """Make the next packet of the first message."""
        network, message = self.network, self.messages[0]
        flits = network.program.flits(message.size, message.unsent)
        packet = network.packet(self.index, self.sequence, message.destination, flits)
        packet.created, packet.message = message.joined, message
        self.sequence += 1
        self.waiting.append(packet)

    def leave(self, now: int) -> Packet:
        """Take the oldest packet, with classes of that served last, out of its source queue; its message goes to the
        end of the queue.
        """
        packet: Packet = self.waiting.popleft()
        packet.sent = now
        self.network.routing.decide(packet, now)
        self.network.ledger.send(packet)
        if packet.message is not None:
            message = self.messages.popleft()
            message.unsent -= 1
            if message.unsent:
                self.messages.append(message)
            if self.messages:
                self._make_packet()
        return packet

    def send(self, now: int, receiver: Any) -> None:
        """Start the oldest packet: its head reaches ``receiver``, an input VC or a switch, after the injection
        delay.
        """
        packet = self.leave(now)
        self.network.ledger.enter(self.index, packet.flits)
        packet.flit_ticks = self.network.host_flit_ticks
        self.free_at = now + packet.flits * packet.flit_ticks
        self.network.tail_leaves(packet, self.free_at)
        self.network.replies.end(packet, self.free_at)
        self.network.move(packet, now + self.network.injection(self.index), receiver)


class Output:
    """An output of a switch: a network channel, or (``channel`` None) the ejection channel of a host.

    free_at: tick from which it is free. delay: ticks from the grant to the arrival of the head, ejection: at the host.
    switch: the downstream switch (deflection). flit_ticks: ticks of a flit on it. vcs: the downstream input VCs
    (virtual cut-through).
    """

    def __init__(self, delay: int, channel: int | None = None, switch: Any = None, flit_ticks: int = 1):
        self.delay = delay
        self.flit_ticks = flit_ticks
        self.channel = channel
        self.switch = switch
        self.vcs: list[Any] = []
        self.free_at = 0

    def carry(self, network: "Network[Any]", packet: Packet, now: int, receiver: Any) -> None:
        """Send a granted packet to ``receiver``: it holds the output for all its flits.

        receiver: an input VC or a switch; not used at an ejection channel.
        """
        channel, flits, ledger = self.channel, packet.flits, network.ledger
        self.free_at = now + flits * self.flit_ticks
        ledger.grant(channel, flits)
        if ledger.channels is not None:
            ledger.cross(channel, packet.destination, flits)
        if channel is None:
            packet.location = NO_LOCATION
            network.move(packet, now + (flits - 1) * self.flit_ticks + self.delay, None)
        else:
            packet.location = channel
            packet.flit_ticks = self.flit_ticks
            packet.hop += 1
            network.move(packet, now + self.delay, receiver)


class Network(Generic[D]):
    """A run of the reference engine: hosts, switches and channels of a scenario. A switching mode adds its switches.

    program: the program of the hosts, if any. processes: by which hosts create packets, one for each class of traffic.
    classes: None where all packets are of one class. has_priorities: whether switches rank packets by ``urgency``.
    times: the switching mode with its delays in ticks. flit_ticks: ticks of a flit on each channel between switches,
    host_flit_ticks: on those of hosts. shuffle: seed for the order of events that the model leaves open; 0 for none.
    latest: the last tick.
    """

    program: Ranks
    hosts: Sequence[Any]
    switches: Sequence[Any]
    latest = LATEST

    def __init__(self, scenario: Scenario[D], load: float, seed: int, log: bool = False, shuffle: int = 0):
        self.scenario = scenario
        self.times = scenario.switching
        self.seed = seed
        self.clock = Clock(shuffle)
        load = 0.0 if isinstance(scenario.work, Workload) else load
        self.processes = make_processes(scenario.source, scenario.traffic, load, seed, scenario.host_flit_ticks)
        self.classes = class_tables(scenario, self.processes)
        self.replies = Replies(self, self.classes)
        self.ledger = Ledger(scenario, log)
        self._host_switch = scenario.topology.host_switch.tolist()
        self.ejection_switch = scenario.topology.ejection_switch.tolist()
        flit_ticks, self.host_flit_ticks, _ = flit_times(scenario.topology)
        self.flit_ticks: list[int] = flit_ticks.tolist()
        self._access: list[int] = scenario.topology.access_delay.tolist()
        self._undelivered: set[Packet] = set()
        self.routing = PacketRouting(scenario, seed, self.queue, None if self.classes is None else self.class_vcs)
        self._by_age = getattr(scenario.switching, "priority", "none") == "age"
        self.has_priorities = getattr(scenario.switching, "priority", "none") != "none"

    def start(self, hosts: Sequence[Host]) -> None:
        """Start the program of the hosts, or the packet creation of hosts with traffic."""
        if isinstance(self.scenario.work, Workload):
            self.program = Ranks(self.clock, self.scenario.work, hosts)
        for host in self.clock.shuffled(hosts):
            for number, process in enumerate(self.processes):
                if process.arrivals.keep[host.index] >= 0:
                    self.clock.resume(host.create(number))

    def draw_packets(self, source: int) -> Iterator[Sequence[int]]:
        """The unlimited sequence of packets of a host: (tick of creation, destination, flits).

        source: the host; with classes of traffic, class * hosts + host.
        """
        number, host = divmod(source, len(self._host_switch))
        arrivals, packets, seed = self.processes[number]
        block = np.empty((_BLOCK, 3), np.int64)
        sequence, counter, position = 0, 0, -arrivals.base
        while True:
            counter, position = draw_block(arrivals, packets, seed, host, sequence, counter, position, block)
            yield from block.tolist()
            sequence += _BLOCK

    def injection(self, host: int) -> int:
        """Delay of the injection channel of a host in ticks."""
        return self.times.injection + self._access[host] + self.host_flit_ticks - 1

    def ejection(self, host: int) -> int:
        """Ticks from a grant to the arrival of the flit at a host."""
        return self.times.switch + self.times.ejection + self._access[host] + self.host_flit_ticks - 1

    def packet(self, source: int, sequence: int, destination: int, flits: int) -> Packet:
        """Create a packet with its drawn route.

        source, destination: hosts. sequence: number of packets that the source created before.
        """
        host_switch = self._host_switch
        packet = Packet(
            sequence * len(host_switch) + source, sequence, source, destination,
            host_switch[source], self.ejection_switch[destination], flits, self.clock.now,
        )  # fmt: skip
        self.routing.draw(packet)
        self._undelivered.add(packet)
        return packet

    def queue(self, channel: int, now: int) -> int:
        """Return the queue estimate of a network channel in flits: buffered packets that request it, plus credits in
        use.

        Hosts read it before any grant of tick ``now``.
        """
        raise NotImplementedError

    def sent(self) -> list[Packet]:
        """The packets in the network."""
        return [packet for packet in self._undelivered if packet.sent >= 0]

    def drop(self, packet: Packet) -> None:
        """Count a packet as dropped; it arrives nowhere."""
        packet.dropped = True
        self._undelivered.remove(packet)
        self.ledger.drop(packet)
        self.replies.drop(packet)

    def tail_leaves(self, packet: Packet, tick: int) -> None:
        """Tell the program that the tail of a packet leaves its host at a tick, which may complete its send."""
        if packet.message is not None and packet.message.unsent == 0:
            self.program.tail_sent(packet.message, tick)

    def class_vcs(self, sequence: int) -> tuple[int, int]:
        """The first VC of the class of a packet, and one past the last; sequence: of the packet."""
        classes = self.classes
        if classes is None:
            return 0, self.times.vcs
        number = sequence % classes.class_count
        return int(classes.first_vc[number]), int(classes.end_vc[number])

    def urgency(self, packet: Packet) -> int:
        """The priority of a packet in switches (``switching.priority``); the greatest goes first."""
        if self._by_age:
            return -packet.created
        if self.classes is None or not self.classes.by_class:
            return 0
        return int(self.classes.priority[packet.sequence % self.classes.class_count])

    def move(self, packet: Packet, tick: int, receiver: Any) -> None:
        """Let the head of a packet arrive at ``receiver``, an input VC or a switch, at a tick; None: its tail at its
        destination.
        """
        packet.receiver, packet.in_flight = receiver, True
        self.clock.call(tick, Phase.ARRIVALS, self._deliver if receiver is None else self._arrive, packet)

    def _arrive(self, packet: Packet) -> None:
        """Let a packet arrive at its receiver, unless it was dropped on the way."""
        if not packet.dropped:
            packet.in_flight = False
            packet.arrived = self.clock.now
            packet.receiver.arrive(packet)

    def _deliver(self, packet: Packet) -> None:
        self.ledger.deliver(packet, self.clock.now)
        self._undelivered.remove(packet)
        if packet.message is not None:
            self.program.receive(packet.message)
        self.replies.schedule(packet)

    def count_channels(self) -> None:
        """Count the traffic of channels from now, tick 0, on."""
        self.ledger.count_channels()

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``.

        Raises ``ValueError`` beyond 2**30, as the compiled engine does.
        """
        if not isinstance(self.scenario.work, Workload):
            check_tick_limit(until, len(self.processes))
        if until > self.clock.now:
            with gc_disabled():  # packets and events refer to each other in no cycle
                self.clock.run(int(until))

    def scalars(self) -> Ints:
        """The scalar counters at this tick, int64 [scalars]."""
        return self.ledger.scalars(self.clock.events)

    def backlog(self) -> Ints:
        """Flits created and neither delivered nor dropped, by source, int64 [hosts]."""
        ledger = self.ledger
        return np.array(ledger.created, np.int64) - ledger.delivered.sources() - ledger.dropped.sources()

    def snapshot(self) -> Snapshot:
        """All counters at this tick."""
        counted = self.ledger.snapshot(self.clock.now, self.clock.events)
        return (
            replace(counted, outstanding=self._count_outstanding())
            if can_count_outstanding(counted.scalars)
            else counted
        )

    def _count_outstanding(self) -> Outstanding | None:
        """Count outstanding flits by channel; None where routes are not fixed at the creation of packets."""
        changes = self.scenario.timeline is not None or has_replies(self.classes)
        if changes or not self.scenario.routes.oblivious or isinstance(self.scenario.work, Workload):
            return None
        outstanding = Outstanding(*np.zeros((2, self.scenario.topology.channels), np.int64))
        for packet in self._undelivered:
            for hop, channel in enumerate(self.routing.route_channels(packet)):
                outstanding.on_route[channel] += packet.flits
                outstanding.ungranted[channel] += packet.flits * (hop >= packet.hop)
        return outstanding

    def done(self) -> bool:
        """Whether every operation of the program is complete."""
        return self.program.unfinished == 0

    def program_status(self) -> ProgramStatus:
        """The outstanding work of the program."""
        counts = self.ledger.counts
        created, sent, delivered = (
            counts[p] for p in (Scalar.CREATED_PACKETS, Scalar.SENT_PACKETS, Scalar.DELIVERED_PACKETS)
        )
        moved = sent + delivered + self.ledger.moved
        return ProgramStatus(moved, created - sent, sent - delivered, self.program.has_events())

    def execution(self) -> Execution:
        """Times and causes of the operations of the program."""
        return self.program.execution()

    def carried(self) -> Ints:
        """Flits granted to every channel between switches so far, int64 [channels]."""
        return np.array(self.ledger.channel_flits, np.int64)

    def log(self) -> PacketLog:
        """The packet log. Raises ``ValueError`` unless the run was started with ``log=True``."""
        return self.ledger.log()

    def deadlocked(self) -> bool:
        """Whether packets in the network wait for each other in a cycle."""
        return False
