# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching in frames, rule ``frame``: a channel carries V packets of one length L in every V L ticks.

At the boundary b of a frame, at every switch, heads by rank take a slot 0 .. V - 1 of an output each: those at their
destination of their host's channel, others of the least taken output on a shortest path, else of any (a deflection).
An input brings V heads at most, so every head finds a slot. Then hosts, in rotation, take slots of outputs on shortest
paths for packets that have arrived by then. The packet in slot v sends its flit j at b + v + j V.
"""

from collections import deque

from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.clock import Alarm, Allocator, Phase, next_slot
from flitlab.sim.engines.reference.hot_potato import HotPotatoNetwork
from flitlab.sim.engines.reference.packet import Packet


class FrameOutput:
    """A network channel, or (``switch`` None) an ejection channel. taken: its slots of the present frame."""

    def __init__(self, delay: int, channel: int | None = None, switch: "FrameSwitch | None" = None):
        self.delay = delay
        self.channel = channel
        self.switch = switch
        self.taken = 0


class FrameEntry:
    """A channel into a switch; channel: its number. resident: packets that it brought and whose tail has not left."""

    def __init__(self, switch: "FrameSwitch", channel: int):
        self.switch = switch
        self.channel = channel
        self.resident = 0

    def arrive(self, packet: Packet) -> None:
        """Receive the head of a packet."""
        self.switch.receive(packet, self)


class FrameHost(network.Host):
    """A host whose switch decides at boundaries of frames when it sends."""

    switch: "FrameSwitch"
    waiting: deque[Packet]

    def schedule_send(self, now: int) -> None:
        delays = self.network.times.header + self.network.injection(self.index)
        self.switch.schedule_at(max(self.network.clock.now, now) + delays)


class FrameSwitch(Allocator):
    """A switch: outputs, packets, and its hosts.

    outputs: network channels in channel order. ejection: by host. waiting: packets that take a slot, with their entry,
    by the boundary at which they do.
    """

    def __init__(self, net: "FrameNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.outputs: list[FrameOutput] = []
        self.ejection: dict[int, FrameOutput] = {}
        self.hosts: list[FrameHost] = []
        self.waiting: dict[int, list[tuple[Packet, FrameEntry]]] = {}
        self.entries: dict[int, FrameEntry] = {}
        self.resident = 0

    def schedule_at(self, tick: int) -> None:
        super().schedule_at(next_slot(tick, self.network.times.frame_ticks))

    def receive(self, packet: Packet, entry: FrameEntry) -> None:
        """Store a packet whose head arrives, or that a host has sent."""
        self.resident += 1
        entry.resident += 1
        self.network.ledger.occupy(self.resident, entry.resident)

    def allocate(self, now: int) -> None:
        """Give slots of the frame that begins to heads, then to packets of hosts."""
        for each in [*self.outputs, *self.ejection.values()]:
            each.taken = 0
        for packet, entry in sorted(self.waiting.pop(now, []), key=lambda asking: asking[0]):
            assert packet.arrived + self.network.times.header <= now
            output = self._minimal(packet)
            if output is None:
                output = self._least_taken(self.outputs, packet)
                packet.deflections += 1
            assert output is not None, "a packet without a slot"
            self._take(output, packet, entry, now)
        self._admit(now)

    def _minimal(self, packet: Packet) -> FrameOutput | None:
        """The output on a shortest path, or to the host, that a packet may take; None if all their slots are taken."""
        if packet.target == self.index:
            return self._least_taken([self.ejection[packet.destination]], packet)
        ports = self.network.minimal_ports(packet, self.index)
        return self._least_taken([self.outputs[port] for port in ports], packet)

    def _least_taken(self, candidates: list[FrameOutput], packet: Packet) -> FrameOutput | None:
        """The least taken of some outputs, None if all their slots are taken."""
        index = self.network.least_bound([output.taken for output in candidates], packet)
        return None if index is None else candidates[index]

    def _take(self, output: FrameOutput, packet: Packet, entry: FrameEntry, now: int) -> None:
        """Give a packet the next slot of an output."""
        net, slot = self.network, output.taken
        output.taken += 1
        assert output.taken <= net.times.vcs
        net.ledger.grant(output.channel, packet.flits)
        tail = now + slot + (net.flits - 1) * net.times.vcs
        for number, tick in enumerate(
            range(now + slot, tail + 1, net.times.vcs) if net.ledger.channels is not None else ()
        ):
            self.clock.call(tick, Phase.ALLOCATION, self._send, (output, packet, number))
        Alarm(self.clock, tail + 1, Phase.DECISIONS, self._leave, entry)
        if output.switch is None or output.channel is None:
            assert net.has_arrived(packet)
            net.move(packet, tail + output.delay, None)
            return
        net.take_hop(packet, self.index, output.switch.index)
        next_entry = output.switch.entries[output.channel]
        net.move(packet, now + slot + output.delay, next_entry)
        boundary = now + net.times.hop_frames * net.times.frame_ticks
        output.switch.waiting.setdefault(boundary, []).append((packet, next_entry))
        output.switch.schedule_at(boundary)

    def _send(self, sent: tuple[FrameOutput, Packet, int]) -> None:
        """Count a flit that is sent: its output, its packet, and its index in the packet."""
        output, packet, number = sent
        self.network.ledger.cross(output.channel, packet.destination, 1, int(number == 0))

    def _leave(self, alarm: Alarm) -> None:
        """Remove a packet whose tail has left."""
        entry = alarm.value
        assert isinstance(entry, FrameEntry)
        entry.resident -= 1
        self.resident -= 1

    def _admit(self, now: int) -> None:
        """Let hosts, in rotation, send packets to outputs that have slots."""
        net, hosts = self.network, len(self.hosts)
        delays = net.times.header
        for host in [self.hosts[(now // net.times.frame_ticks + i) % hosts] for i in range(hosts)]:
            sent = now - delays - net.injection(host.index)
            for place in range(net.times.vcs):
                if not host.waiting or host.waiting[0].created > sent:
                    break
                output = self._minimal(host.waiting[0])
                if output is None:
                    break
                packet = host.leave(sent)
                net.ledger.enter(host.index, packet.flits)
                net.tail_leaves(packet, max(now, sent + place + (net.flits - 1) * net.times.vcs + 1))
                entry = self.entries[net.scenario.topology.channels + host.index]
                self.receive(packet, entry)
                self._take(output, packet, entry, now)
            if host.waiting:
                self.schedule_at(max(now + 1, host.waiting[0].created + delays + net.injection(host.index)))


class FrameNetwork(HotPotatoNetwork):
    """A run of hot-potato switching under rule ``frame``."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        self.switches = switches = [FrameSwitch(self, v) for v in range(topology.switches)]
        hosts = [FrameHost(self, h) for h in range(topology.hosts)]
        for channel, (tail, head) in enumerate(zip(topology.src, topology.dst, strict=True)):
            switches[tail].outputs.append(FrameOutput(times.switch + times.link, channel, switches[head]))
            switches[head].entries[channel] = FrameEntry(switches[head], channel)
        for host, place in zip(hosts, topology.host_switch, strict=True):
            entry = topology.channels + host.index
            host.switch = switches[place]
            host.switch.hosts.append(host)
            host.switch.entries[entry] = FrameEntry(switches[place], entry)
            host.switch.ejection[host.index] = FrameOutput(self.ejection(host.index))
        self.start(hosts)
