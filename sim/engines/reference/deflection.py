# SPDX-License-Identifier: Apache-2.0
"""Deflection (hot-potato) routing: no credits and no feedback between switches; packets have one length L.

A switch holds packets in one pool. Per tick (slotted: at multiples of L), in the order of rank:

1. an eligible packet takes its ejection channel if it is at its destination, else a free minimal output;
2. while the switch holds more than ``hold_packets``, the lowest-ranked eligible packet takes any free network output:
   it is deflected;
3. hosts, in round robin, start packets while fewer than ``hold_packets`` are held or in flight from hosts.

Nothing is dropped: all packets that arrive in L ticks can leave in the next L, since a switch has as many network
outputs as inputs.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable
from functools import cached_property

import numpy as np

from flitlab.models.rules.occupancy import occupancy_bound
from flitlab.models.rules.route import is_stranded, pick, route_word
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.dynamic_topology import PolicyChange
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.changes import Changes
from flitlab.sim.engines.reference.clock import Allocator
from flitlab.sim.engines.reference.network import Network, Output
from flitlab.sim.engines.reference.packet import Packet


class DeflectionHost(network.Host):
    """A host whose switch decides when it sends."""

    switch: "DeflectionSwitch"

    def schedule_send(self, now: int) -> None:
        self.switch.schedule_at(max(now, self.free_at))


class DeflectionSwitch(Allocator):
    """A pool of packets, outputs, and the hosts of the switch.

    outputs: network channels in channel order. ejection: by host. hosts: in order of priority. resident: packets in the
    pool, from the arrival of their head to their grant; waiting: the eligible ones, by rank. inbound: packets in flight
    from a host.
    """

    def __init__(self, net: "DeflectionNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.outputs: list[Output] = []
        self.ejection: dict[int, Output] = {}
        self.hosts: deque[DeflectionHost] = deque()
        self.resident = 0
        self.inbound = 0
        self.waiting: list[Packet] = []
        self._expected: deque[Packet] = deque()  # in their header delay, first come first

    @cached_property
    def bound(self) -> int:
        """The largest number of packets that the switch can hold."""
        net, times = self.network, self.network.times
        return occupancy_bound(
            times.hold_packets,
            len(self.outputs),
            len(self.hosts),
            net.flits,
            times.header,
            max((net.injection(host.index) for host in self.hosts), default=0),
            net.scenario.events,
        )

    def schedule_at(self, tick: int) -> None:
        """Schedule :meth:`allocate` at a tick or, slotted, at the next multiple of the packet length L."""
        slot = self.network.slot
        super().schedule_at(-(-tick // slot) * slot)

    def arrive(self, packet: Packet) -> None:
        """Store a packet whose head arrives."""
        self.resident += 1
        if packet.hop == 0:
            self.inbound -= 1
        self.network.ledger.occupy(self.resident)
        assert self.resident <= self.bound, f"switch {self.index} holds {self.resident} packets"
        self._expected.append(packet)
        self.schedule_at(packet.arrived + self.network.times.header)
        if self.waiting:
            self.schedule_at(packet.arrived)  # one more resident may force another out

    def allocate(self, now: int) -> None:
        """Grant outputs to packets in order of rank, deflect excess packets, and let hosts send."""
        header = self.network.times.header
        while self._expected and self._expected[0].arrived + header <= now:
            insort(self.waiting, self._expected.popleft())
        free = sum(1 << port for port, output in enumerate(self.outputs) if output.free_at <= now)
        free = self._grant_minimal(now, free)
        self._deflect(now, free)
        self._admit(now)
        held = [o.free_at for o in [*self.outputs, *self.ejection.values()] if o.free_at > now]
        if self.waiting and held:
            self.schedule_at(min(held))

    def drop(self, lost: Callable[[Packet], bool]) -> None:
        """Drop the packets of the pool for which a function returns True."""
        for packet in [packet for packet in [*self._expected, *self.waiting] if lost(packet)]:
            (self.waiting if packet in self.waiting else self._expected).remove(packet)
            self.resident -= 1
            self.network.drop(packet)

    def _grant_minimal(self, now: int, free: int) -> int:
        """Grant every packet a free minimal output, where there is one; return the network outputs still free, a bit
        mask.
        """
        blocked = []
        for packet in self.waiting:
            if packet.target == self.index:
                output = self.ejection[packet.destination]
                if output.free_at > now:
                    blocked.append(packet)
                    continue
            else:
                minimal = free & int(self.network.ports[packet.target, self.index])
                if not minimal:
                    blocked.append(packet)
                    continue
                port = self._pick(minimal, packet)
                free &= ~(1 << port)
                output = self.outputs[port]
            self._carry(output, packet, now)
        self.waiting = blocked
        return free

    def _deflect(self, now: int, free: int) -> None:
        """Send excess packets, the lowest-ranked first, on any free output."""
        while self.resident > self.network.times.hold_packets and free and self.waiting:
            packet = self.waiting.pop()
            port = self._pick(free, packet)
            free &= ~(1 << port)
            packet.deflections += 1
            self._carry(self.outputs[port], packet, now)

    def _pick(self, ports: int, packet: Packet) -> int:
        """Draw one of a set of ports, a bit each; the draw belongs to the packet's decision at this switch."""
        word = route_word(self.network.seed, packet.source, packet.sequence, packet.hop)
        return int(pick(np.uint64(ports), word))

    def _carry(self, output: Output, packet: Packet, now: int) -> None:
        self.resident -= 1
        output.carry(self.network, packet, now, output.switch)

    def _admit(self, now: int) -> None:
        """Let hosts start packets while the pool has space, in round robin."""
        for host in list(self.hosts):
            if not host.waiting:
                continue
            if host.free_at <= now and self.resident + self.inbound < self.network.times.hold_packets:
                host.send(now, self)
                self.inbound += 1
                while self.hosts[-1] is not host:
                    self.hosts.rotate(-1)
            if host.waiting and host.free_at > now:
                self.schedule_at(host.free_at)


class DeflectionChanges(Changes):
    """The timeline of a network of deflection switches; network: a :class:`DeflectionNetwork`."""

    def _drop_all(self, switch: DeflectionSwitch) -> None:
        switch.drop(lambda packet: True)

    def _apply_routes(self, change: PolicyChange) -> None:
        """Use the updated next hops at once; drop the packets that no next hop leads to their destination."""
        network, routes = self.network, change.step.routes
        assert routes is not None
        network.ports, network.routes = routes.ports, routes.tables(network.scenario.topology)
        for packet in [packet for packet in network.sent() if packet.on is not None]:
            if self._is_stranded(packet, packet.on.switch):
                network.drop(packet)
        for switch in network.switches:
            switch.drop(lambda packet, switch=switch: self._is_stranded(packet, switch))
            switch.schedule_at(self.clock.now)

    def _is_stranded(self, packet: Packet, switch: DeflectionSwitch) -> bool:
        """Whether no next hop leads a packet from a switch to its destination."""
        return bool(is_stranded(self.network.routes, switch.index, packet.target))


class DeflectionNetwork(Network[Deflection]):
    """A run of deflection routing. Raises ``ValueError`` for packets of several lengths, or too few outputs."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        if len(set(scenario.source.flits)) != 1:
            raise ValueError("deflection needs packets of one length")
        if (topology.in_degree != topology.out_degree).any():
            raise ValueError("deflection needs as many channels into every switch as out of it")
        self.flits = scenario.source.flits[0]
        self.slot = self.flits if times.slotted else 1
        self.ports = scenario.routes.ports

        self.switches = switches = [DeflectionSwitch(self, v) for v in range(topology.switches)]
        self.hosts = hosts = [DeflectionHost(self, h) for h in range(topology.hosts)]
        ends = zip(topology.src, topology.dst, topology.delay.tolist(), strict=True)
        for channel, (tail, head, extra) in enumerate(ends):
            output = Output(times.switch + times.link + extra, channel, switches[head])
            switches[tail].outputs.append(output)
        for host, place in zip(hosts, topology.host_switch, strict=True):
            host.switch = switches[place]
            host.switch.hosts.append(host)
            host.switch.ejection[host.index] = Output(self.ejection(host.index))
        self.outputs = [(output, switch) for switch in switches for output in switch.outputs]
        self.changes = DeflectionChanges(self, times.policy_changes(scenario.timeline, scenario.routes))
        self.start(hosts)
