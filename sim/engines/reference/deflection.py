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
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from flitlab.models.arrays import Masks
from flitlab.models.rules.deflect import occupancy_bound
from flitlab.models.rules.route import pick
from flitlab.models.rules.tables import Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.clock import Allocator, next_slot
from flitlab.sim.engines.reference.faults import ReferenceFaults
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.network import Network, Output
from flitlab.sim.engines.reference.packet import Packet


class DeflectionHost(network.Host):
    """A host whose switch decides when it sends."""

    switch: "DeflectionSwitch"

    def schedule_send(self, now: int) -> None:
        self.switch.schedule_at(max(now, self.free_at))


class DeflectionSwitch(Allocator):
    """A pool of packets, outputs, and the hosts of the switch.

    outputs: network channels in channel order. minimal: the set of minimal ones by destination switch, a bit each.
    ejection: by host. hosts: in order of priority. resident: packets in the pool, from the arrival of their head to
    their grant; waiting: the eligible ones, by rank. inbound: packets in flight from a host. location: of its packets
    (:class:`~flitlab.sim.engines.faults.Residents`).
    """

    def __init__(self, net: "DeflectionNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.location = net.scenario.topology.channels + index
        self.outputs: list[Output] = []
        self.minimal: list[int] = []
        self.ejection: dict[int, Output] = {}
        self.hosts: deque[DeflectionHost] = deque()
        self.header = net.times.header
        self.hold_packets = net.times.hold_packets
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

    def arrive(self, packet: Packet) -> None:
        """Store a packet whose head arrives."""
        packet.location = self.location
        self.resident += 1
        if packet.hop == 0:
            self.inbound -= 1
        self.network.ledger.occupy(self.resident)
        assert self.resident <= self.bound, f"switch {self.index} holds {self.resident} packets"
        self._expected.append(packet)
        self.schedule_at(packet.arrived + self.header)
        if self.waiting and self.resident > self.hold_packets:
            self.schedule_at(packet.arrived)  # one more resident forces another out

    def allocate(self, now: int) -> None:
        """Grant outputs to packets in order of rank, deflect excess packets, and let hosts send."""
        expected, read = self._expected, now - self.header
        while expected and expected[0].arrived <= read:
            insort(self.waiting, expected.popleft())
        if self.waiting:
            free = sum([1 << port for port, output in enumerate(self.outputs) if output.free_at <= now])
            free = self._grant_minimal(now, free)
            if self.resident > self.hold_packets:
                self._deflect(now, free)
        self._admit(now)

    def remove_dropped(self) -> None:
        """Remove dropped packets from the pool."""
        before = len(self.waiting) + len(self._expected)
        self.waiting = [packet for packet in self.waiting if not packet.dropped]
        self._expected = deque(packet for packet in self._expected if not packet.dropped)
        self.resident -= before - len(self.waiting) - len(self._expected)

    def _grant_minimal(self, now: int, free: int) -> int:
        """Grant every packet a free minimal output, where there is one; return the network outputs still free, a bit
        mask.
        """
        index, minimal, resident = self.index, self.minimal, self.resident
        for packet in self.waiting:
            target = packet.target
            if target == index:
                output = self.ejection[packet.destination]
                if output.free_at <= now:
                    self._carry(output, packet, now)
            elif ports := free & minimal[target]:
                port = self._pick(ports, packet)
                free ^= 1 << port
                self._carry(self.outputs[port], packet, now)
        if self.resident < resident:
            self.waiting = [packet for packet in self.waiting if not packet.in_flight]
        return free

    def _deflect(self, now: int, free: int) -> None:
        """Send excess packets, the lowest-ranked first, on any free output."""
        while self.resident > self.hold_packets and free and self.waiting:
            packet = self.waiting.pop()
            port = self._pick(free, packet)
            free &= ~(1 << port)
            packet.deflections += 1
            self._carry(self.outputs[port], packet, now)

    def _pick(self, ports: int, packet: Packet) -> int:
        """Draw one of a set of ports, a bit each; the draw belongs to the packet's decision at this switch."""
        if ports & (ports - 1) == 0:
            return ports.bit_length() - 1
        port: int = self.network.pick(ports, self.network.routing.route_word(packet))
        return port

    def _carry(self, output: Output, packet: Packet, now: int) -> None:
        self.resident -= 1
        output.carry(self.network, packet, now, output.switch)
        self.schedule_at(output.free_at)

    def _admit(self, now: int) -> None:
        """Let hosts start packets while the pool has space, in round robin."""
        space = self.hold_packets - self.resident - self.inbound
        if space <= 0:
            return
        for host in [host for host in self.hosts if host.waiting and host.free_at <= now][:space]:
            host.send(now, self)
            self.inbound += 1
            while self.hosts[-1] is not host:
                self.hosts.rotate(-1)
            if host.waiting:
                self.schedule_at(host.free_at)


class SlottedSwitch(DeflectionSwitch):
    """A switch that decides at multiples of a packet's length."""

    def schedule_at(self, tick: int) -> None:
        super().schedule_at(next_slot(tick, self.network.flits))


class DeflectionFaults(ReferenceFaults):
    """Faults of a network of deflection switches; network: a :class:`DeflectionNetwork`."""

    def drop(self, packets: Sequence[Packet] | np.ndarray, tick: int) -> None:
        super().drop(packets, tick)
        for switch in self.network.switches:
            switch.remove_dropped()

    def install_routes(self, change: NetworkChange) -> Tables:
        assert change.routes is not None
        self.network.use_ports(change.routes.ports)
        return super().install_routes(change)


class DeflectionNetwork(Network[Deflection]):
    """A run of deflection routing. Raises ``ValueError`` for packets of several lengths, or too few outputs."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        if len(set(scenario.source.flits)) != 1:
            raise ValueError("deflection needs packets of one length")
        if (topology.in_degree != topology.out_degree).any():
            raise ValueError("deflection needs as many channels into every switch as out of it")
        self.pick = machine_code(pick, np.uint64(0), 0)
        self.flits = scenario.source.flits[0]
        kind = SlottedSwitch if times.slotted else DeflectionSwitch

        self.switches = switches = [kind(self, v) for v in range(topology.switches)]
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
        self.use_ports(scenario.routes.ports)
        self.faults = DeflectionFaults(self)
        self.start(hosts)

    def use_ports(self, ports: Masks) -> None:
        """Use the minimal ports (uint64 [switches, switches], by destination) from now on."""
        for switch in self.switches:
            switch.minimal = ports[:, switch.index].tolist()
