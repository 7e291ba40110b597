# SPDX-License-Identifier: Apache-2.0
"""The ideal switch: an unlimited queue for every output, and no other contention.

A packet joins the queue of its output as soon as its header has been read; packets of the same tick join in the order
of their input ports (``flitlab.models.rules.ports``). An output sends its queue first come first served, one tick per
flit. An adaptive packet takes its drawn output unless another is much better (``flitlab.models.rules.adaptive``); the
cost of an output is its unsent flits. A polarized packet takes the output of least cost, its detour included (ties are
drawn). A channel counts a packet when its header has been read at the far end.
"""

from collections import deque
from heapq import heapify, heappop, heappush

from flitlab.models.rules.adaptive import drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.bits import port_set
from flitlab.models.rules.ports import make_ports
from flitlab.models.rules.route import is_stranded
from flitlab.models.rules.tables import POLARIZED, VIA
from flitlab.models.rules.ugal import MINIMAL_ROUTE
from flitlab.models.scenario import Scenario
from flitlab.models.switching.dynamic_topology import PolicyChange
from flitlab.models.switching.ideal import Ideal
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.changes import NEVER_FREE, Changes
from flitlab.sim.engines.reference.clock import ARRIVALS, SENDING, Allocator
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.packet import Packet


class IdealInput:
    """An input port of a switch; port: its number in the network. channel: that ends here, None for a host's."""

    def __init__(self, switch: "IdealSwitch", port: int, channel: int | None = None):
        self.switch = switch
        self.port = port
        self.channel = channel

    def arrive(self, packet: Packet) -> None:
        """Receive a packet whose head arrives."""
        self.switch.expect(packet, self)


class IdealOutput:
    """An output of a switch and its queue. end: the downstream input, None for an ejection channel.

    delay: ticks from the start of a packet to the arrival of its head. free_at: tick from which it is free.
    """

    def __init__(self, delay: int, end: IdealInput | None = None):
        self.delay = delay
        self.end = end
        self.queue: deque[Packet] = deque()
        self.free_at = 0

    def unsent(self, now: int) -> int:
        """Flits still to be sent at the start of tick ``now``."""
        return max(self.free_at - now, 0) + sum(packet.flits for packet in self.queue)

    def serve(self, now: int) -> None:
        """Start the first packet of the queue if the output is free."""
        if not self.queue or self.free_at > now:
            return
        packet = self.queue.popleft()
        packet.on = self if self.end is not None else None
        self.free_at = now + packet.flits
        if self.end is None:
            packet.moved.set(now + packet.flits - 1 + self.delay, ARRIVALS, None)
        else:
            packet.moved.set(now + self.delay, ARRIVALS, self.end)


class IdealHost(network.Host, Allocator):
    """Sends its oldest packet when its channel is free."""

    phase = SENDING
    waiting: deque[Packet]
    entry: IdealInput

    def __init__(self, net: "IdealNetwork", index: int):
        network.Host.__init__(self, net, index)
        Allocator.__init__(self, net.clock)

    def schedule_send(self, now: int) -> None:
        self.schedule_at(max(now, self.free_at))

    def allocate(self, now: int) -> None:
        """Send the oldest packet if the channel is free."""
        if self.waiting and self.free_at <= now:
            self.send(now, self.entry)
            if self.waiting:
                self.schedule_at(self.free_at)


class IdealSwitch(Allocator):
    """The outputs of a switch. outputs: network channels in channel order. ejection: by host.

    expected: a heap of (tick at which the header has been read, port, packet, input).
    """

    def __init__(self, net: "IdealNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.outputs: list[IdealOutput] = []
        self.ejection: dict[int, IdealOutput] = {}
        self.expected: list[tuple[int, int, Packet, IdealInput]] = []

    def expect(self, packet: Packet, entry: IdealInput) -> None:
        """Read the header of a packet that has arrived at an input."""
        ready = packet.arrived + self.network.times.header
        heappush(self.expected, (ready, entry.port, packet, entry))
        self.schedule_at(ready)

    def allocate(self, now: int) -> None:
        """Queue the packets whose header has been read, and start transmissions."""
        while self.expected and self.expected[0][0] <= now:
            self._join(*heappop(self.expected)[2:], now)
        for output in [*self.outputs, *self.ejection.values()]:
            output.serve(now)
            if output.queue:
                self.schedule_at(output.free_at)

    def _join(self, packet: Packet, entry: IdealInput, now: int) -> None:
        """Put a packet from an input into the queue of its output."""
        ledger = self.network.ledger
        if entry.channel is not None:
            packet.hop += 1
            ledger.carry(entry.channel, packet.flits)
        ledger.grant(None, packet.flits)
        self.queue(packet, now)

    def queue(self, packet: Packet, now: int) -> None:
        """Put a packet into the queue of the output that it chooses."""
        ports = self.network.allowed_ports(packet, self.index)
        output = self.outputs[self._choose(packet, ports, now)] if ports else self.ejection[packet.destination]
        output.queue.append(packet)

    def _choose(self, packet: Packet, ports: list[int], now: int) -> int:
        """The port that a packet takes, among those that it may take."""
        cost = {port: self._cost(packet, self.outputs[port], now) for port in ports}
        least, word = min(cost.values()), self.network.route_word(packet)
        drawn = int(drawn_channel(port_set(ports), word))
        if self.network.routes.form != POLARIZED and keeps_drawn(cost[drawn], least, packet.flits):
            return drawn
        return int(drawn_tie(port_set(port for port in ports if cost[port] == least), word))

    def _cost(self, packet: Packet, output: IdealOutput, now: int) -> int:
        """Unsent flits of an output, plus the detour of a polarized packet."""
        assert output.end is not None and output.end.channel is not None  # packets choose between switches only
        return output.unsent(now) + self.network.detour(packet, self.index, output.end.channel)


class IdealChanges(Changes):
    """The timeline of a network of ideal switches; network: an :class:`IdealNetwork`."""

    def _drop_all(self, switch: IdealSwitch) -> None:
        for _, _, packet, _ in switch.expected:
            self.network.drop(packet)
        switch.expected = []
        for output in switch.outputs:
            while output.queue:
                self.network.drop(output.queue.popleft())

    def _apply_routes(self, change: PolicyChange) -> None:
        """Use the updated routes at once; drop the packets that no route leads to their destination.

        Packets in flight to an intermediate switch go to their destination; packets on drawn paths keep them. Packets
        that wait for a failed output, or for one that leads nowhere, choose again.
        """
        network, now = self.network, self.clock.now
        switching_mode, topology = network.scenario.switching, network.scenario.topology
        network.routes = switching_mode.tables_after(network.routes, topology, change.step.routes)
        if network.routes.form == VIA:
            for packet in network.sent():
                packet.route = int(MINIMAL_ROUTE)
        self._redraw_routes()
        for packet in network.sent():
            if packet.on is not None and self._is_stranded(packet, packet.on.end.switch):
                network.drop(packet)
        for switch in network.switches:
            for one in [one for one in switch.expected if self._is_stranded(one[2], switch)]:
                switch.expected.remove(one)
                network.drop(one[2])
            heapify(switch.expected)
        requeued = [(switch, packet) for output, switch in network.outputs for packet in self._leaving(output, switch)]
        for switch, packet in requeued:
            switch.queue(packet, now)
        for switch in network.switches:
            switch.schedule_at(now)

    def _leaving(self, output: IdealOutput, switch: IdealSwitch) -> list[Packet]:
        """Remove and return the packets that must choose another output; stranded ones are dropped."""
        waiting, leaving = list(output.queue), []
        output.queue.clear()
        for packet in waiting:
            assert output.end is not None
            if self._is_stranded(packet, switch):
                self.network.drop(packet)
            elif output.free_at < NEVER_FREE and not self._is_stranded(packet, output.end.switch):
                output.queue.append(packet)
            else:
                leaving.append(packet)
        return leaving

    def _is_stranded(self, packet: Packet, switch: IdealSwitch) -> bool:
        """Whether no route leads a packet from a switch to its destination."""
        return bool(is_stranded(self.network.routes, switch.index, packet.target))


class IdealNetwork(Network[Ideal]):
    """A run of ideal switches."""

    def __init__(self, scenario: Scenario[Ideal], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        self.routes = times.tables(topology, scenario.routes)
        self.switches = switches = [IdealSwitch(self, v) for v in range(topology.switches)]
        self.hosts = hosts = [IdealHost(self, h) for h in range(topology.hosts)]
        numbering = make_ports(topology)
        ends = zip(topology.src.tolist(), topology.dst.tolist(), topology.delay.tolist(), strict=True)
        for channel, (tail, head, extra) in enumerate(ends):
            number = numbering.out_base[tail] + len(switches[tail].outputs)
            end = IdealInput(switches[head], int(numbering.out_input[number]), channel)
            switches[tail].outputs.append(IdealOutput(times.switch + times.link + extra, end))
        for host, place in zip(hosts, topology.host_switch.tolist(), strict=True):
            host.entry = IdealInput(switches[place], int(numbering.inject[host.index]))
            switches[place].ejection[host.index] = IdealOutput(self.ejection(host.index))
        self.outputs = [(output, switch) for switch in switches for output in switch.outputs]
        self.changes = IdealChanges(self, times.policy_changes(scenario.timeline, scenario.routes))
        self.start(hosts)

    def queue(self, channel: int, now: int) -> int:
        return self.outputs[channel][0].unsent(now)
