# SPDX-License-Identifier: Apache-2.0
"""The ideal switch: an unlimited queue for every output, and no other contention.

A packet joins the queue of its output as soon as its header has been read, and it does not starve the output; packets
of the same tick join in the order of their input ports (``flitlab.models.rules.ports``). An output sends its queue
first come first served; a packet that would starve it, because speeds have changed, holds up those behind it. An
adaptive packet takes its drawn output unless another is much better (``flitlab.models.rules.adaptive``); the cost of an
output is the time until it has sent its queue. A polarized packet takes the output of least cost, its detour included
(ties are drawn). A channel counts a packet when its header has been read at the far end.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.rules.adaptive import drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.bits import port_set
from flitlab.models.rules.ports import make_ports
from flitlab.models.rules.route import are_stranded
from flitlab.models.rules.tables import RouteForm
from flitlab.models.rules.ugal import MINIMAL_ROUTE
from flitlab.models.scenario import Scenario
from flitlab.models.switching.ideal import Ideal
from flitlab.sim.engines.faults import NO_LOCATION
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.clock import Allocator, Phase
from flitlab.sim.engines.reference.faults import NEVER_FREE, ReferenceFaults
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.packet import Packet
from flitlab.sim.engines.reference.source_queues import ClassQueues


class IdealInput:
    """An input port of a switch; port: its number in the network. channel: that ends here, None for a host's."""

    def __init__(self, switch: "IdealSwitch", port: int, channel: int | None = None):
        self.switch = switch
        self.port = port
        self.channel = channel

    def arrive(self, packet: Packet) -> None:
        """Receive a packet whose head arrives."""
        packet.location = self.switch.location
        self.switch.expect(packet, self)


class IdealOutput:
    """An output of a switch and its queue. end: the downstream input, None for an ejection channel.

    delay: ticks from the start of a packet to the arrival of its head. flit_ticks: ticks of a flit. free_at: tick from
    which it is free.
    """

    def __init__(self, delay: int, flit_ticks: int, end: IdealInput | None = None):
        self.flit_ticks = flit_ticks
        self.delay = delay
        self.end = end
        self.queue: deque[Packet] = deque()
        self.free_at = 0

    def unsent(self, now: int) -> int:
        """Ticks until the queue is sent, from the start of tick ``now`` on."""
        free_at = max(self.free_at, now)
        for packet in self.queue:
            free_at = max(free_at, packet.feeds_from(self.flit_ticks)) + packet.flits * self.flit_ticks
        return free_at - now

    def starts_at(self) -> int:
        """The tick from which the first packet of the queue can be sent."""
        return max(self.free_at, self.queue[0].feeds_from(self.flit_ticks))

    def serve(self, network: Network[Ideal], now: int) -> None:
        """Start the first packet of the queue if the output is free."""
        if not self.queue or self.starts_at() > now:
            return
        packet = self.queue.popleft()
        packet.flit_ticks = self.flit_ticks
        packet.location = NO_LOCATION if self.end is None or self.end.channel is None else self.end.channel
        self.free_at = now + packet.flits * self.flit_ticks
        network.ledger.cross(None if self.end is None else self.end.channel, packet.destination, packet.flits)
        if self.end is None:
            network.move(packet, now + (packet.flits - 1) * self.flit_ticks + self.delay, None)
        else:
            network.move(packet, now + self.delay, self.end)


class IdealHost(network.Host, Allocator):
    """Sends its oldest packet when its channel is free."""

    phase = Phase.SENDING
    waiting: network.SourceQueue
    entry: IdealInput

    def __init__(self, net: "IdealNetwork", index: int):
        network.Host.__init__(self, net, index)
        Allocator.__init__(self, net.clock)

    def schedule_send(self, now: int) -> None:
        self.schedule_at(max(now, self.free_at))

    def allocate(self, now: int) -> None:
        """Send the oldest packet if the channel is free."""
        if self.waiting and self.free_at <= now:
            if isinstance(self.waiting, ClassQueues):
                self.waiting.serve(dict(self.waiting.oldest()))
            self.send(now, self.entry)
            if self.waiting:
                self.schedule_at(self.free_at)


class IdealSwitch(Allocator):
    """The outputs of a switch. outputs: network channels in channel order. ejection: by host.

    expected: a heap of (tick, port, packet, input, output): when the header has been read, the packet chooses an
    output (None before), and joins its queue, or does so later if it would starve the output now. location: of its
    packets (:class:`~flitlab.sim.engines.faults.Residents`).
    """

    def __init__(self, net: "IdealNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.location = net.scenario.topology.channels + index
        self.outputs: list[IdealOutput] = []
        self.ejection: dict[int, IdealOutput] = {}
        self.expected: list[tuple[int, int, Packet, IdealInput, IdealOutput | None]] = []

    def expect(self, packet: Packet, entry: IdealInput) -> None:
        """Read the header of a packet that has arrived at an input."""
        ready = packet.arrived + self.network.times.header
        heappush(self.expected, (ready, entry.port, packet, entry, None))
        self.schedule_at(ready)

    def allocate(self, now: int) -> None:
        """Queue the packets whose header has been read, and start transmissions."""
        while self.expected and self.expected[0][0] <= now:
            packet, entry, output = heappop(self.expected)[2:]
            output = output or self._choose_output(packet, entry, now)
            feeds = packet.feeds_from(output.flit_ticks)
            if feeds > now:
                heappush(self.expected, (feeds, entry.port, packet, entry, output))
                self.schedule_at(feeds)
            else:
                output.queue.append(packet)
        for output in [*self.outputs, *self.ejection.values()]:
            output.serve(self.network, now)
            if output.queue:
                self.schedule_at(output.starts_at())

    def outputs_change_speed(self, now: int) -> None:
        """Let the packets that have chosen an output join its queue when they do not starve it at its present speed."""
        self.expected = [
            (tick if output is None else max(packet.feeds_from(output.flit_ticks), now), port, packet, entry, output)
            for tick, port, packet, entry, output in self.expected
        ]
        heapify(self.expected)
        for tick, *_, output in self.expected:
            if output is not None:
                self.schedule_at(tick)

    def _choose_output(self, packet: Packet, entry: IdealInput, now: int) -> IdealOutput:
        """Return the output that a packet from an input chooses."""
        ledger = self.network.ledger
        if entry.channel is not None:
            packet.hop += 1
            ledger.carry(entry.channel, packet.flits)
        ledger.grant(None, packet.flits)
        return self.output(packet, now)

    def output(self, packet: Packet, now: int) -> IdealOutput:
        """Return the output that a packet at this switch chooses."""
        ports = self.network.routing.allowed_ports(packet, self.index)
        return self.outputs[self._choose(packet, ports, now)] if ports else self.ejection[packet.destination]

    def _choose(self, packet: Packet, ports: list[int], now: int) -> int:
        """The port that a packet takes, among those that it may take."""
        cost = {port: self._cost(packet, self.outputs[port], now) for port in ports}
        least, word = min(cost.values()), self.network.routing.route_word(packet)
        drawn = int(drawn_channel(port_set(ports), word))
        length = packet.flits * self.outputs[drawn].flit_ticks
        if self.network.routing.routes.form != RouteForm.POLARIZED and keeps_drawn(cost[drawn], least, length):
            return drawn
        return int(drawn_tie(port_set(port for port in ports if cost[port] == least), word))

    def _cost(self, packet: Packet, output: IdealOutput, now: int) -> int:
        """Unsent flits of an output in ticks, plus the detour of a polarized packet."""
        assert output.end is not None and output.end.channel is not None  # packets choose between switches only
        return output.unsent(now) + self.network.routing.detour(packet, self.index, output.end.channel)


class IdealFaults(ReferenceFaults):
    """Faults of a network of ideal switches; network: an :class:`IdealNetwork`."""

    def drop(self, packets: Sequence[Packet] | np.ndarray, tick: int) -> None:
        super().drop(packets, tick)
        for switch in self.network.switches:
            switch.expected = [entry for entry in switch.expected if not entry[2].dropped]
            heapify(switch.expected)
            for output in switch.outputs:
                output.queue = deque(packet for packet in output.queue if not packet.dropped)

    def change_speeds(self, channels: Ints, tick: int) -> None:
        super().change_speeds(channels, tick)
        for switch in self.network.switches:
            switch.outputs_change_speed(tick)

    def requeue(self, tick: int) -> None:
        """Use the updated routes at once.

        Packets in flight to an intermediate switch go to their destination; packets on drawn paths keep them. Packets
        that wait for a failed output, or for one that leads nowhere, choose again, those in its queue first.
        """
        network = self.network
        if network.routing.routes.form == RouteForm.VIA:
            for packet in network.sent():
                packet.route = int(MINIMAL_ROUTE)
        leaving = [(switch, packet) for output, switch in network.outputs for packet in self._leaving(output)]
        for switch, packet in leaving:
            switch.output(packet, tick).queue.append(packet)
        for switch in network.switches:
            switch.expected = [
                (*entry[:4], switch.output(entry[2], tick) if self._leaves(entry[4], [entry[2]])[0] else entry[4])
                for entry in sorted(switch.expected)
            ]
            switch.outputs_change_speed(tick)
        super().requeue(tick)

    def _leaving(self, output: IdealOutput) -> list[Packet]:
        """Remove and return the packets that must choose another output."""
        waiting = list(output.queue)
        leaves = self._leaves(output, waiting)
        output.queue = deque(packet for packet, left in zip(waiting, leaves, strict=True) if not left)
        return [packet for packet, left in zip(waiting, leaves, strict=True) if left]

    def _leaves(self, output: IdealOutput | None, packets: list[Packet]) -> Bools:
        """Whether each of some packets must choose another output, bool [packets]; output: that they have chosen."""
        if output is None or output.end is None:
            return np.zeros(len(packets), bool)
        index, targets = output.end.switch.index, np.array([packet.target for packet in packets], np.int64)
        stranded: Bools = are_stranded(self.network.routing.routes, np.full(len(packets), index), targets)
        return stranded | (output.free_at >= NEVER_FREE)


class IdealNetwork(Network[Ideal]):
    """A run of ideal switches."""

    def __init__(self, scenario: Scenario[Ideal], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        self.routing.use(times.tables(topology, scenario.routes), self.routing.policy)
        self.switches = switches = [IdealSwitch(self, v) for v in range(topology.switches)]
        self.hosts = hosts = [IdealHost(self, h) for h in range(topology.hosts)]
        numbering = make_ports(topology)
        ends = zip(topology.src.tolist(), topology.dst.tolist(), topology.delay.tolist(), strict=True)
        for channel, (tail, head, extra) in enumerate(ends):
            number = numbering.out_base[tail] + len(switches[tail].outputs)
            ticks = self.flit_ticks[channel]
            end = IdealInput(switches[head], int(numbering.out_input[number]), channel)
            switches[tail].outputs.append(IdealOutput(times.switch + times.link + extra + ticks - 1, ticks, end))
        places = zip(hosts, topology.host_switch.tolist(), topology.ejection_switch.tolist(), strict=True)
        for host, first, last in places:
            host.entry = IdealInput(switches[first], int(numbering.inject[host.index]))
            switches[last].ejection[host.index] = IdealOutput(self.ejection(host.index), self.host_flit_ticks)
        self.outputs = [(output, switch) for switch in switches for output in switch.outputs]
        self.faults = IdealFaults(self)
        self.start(hosts)

    def queue(self, channel: int, now: int) -> int:
        return self.outputs[channel][0].unsent(now)
