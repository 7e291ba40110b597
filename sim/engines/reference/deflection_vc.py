# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching by virtual channels, rule ``vc``: up to V packets share an output; packets have one length L.

Every tick, at every switch:

1. *Heads* that have arrived, their header delay over, and hold no output VC, by rank: each takes a VC of the least
   bound output on a shortest path (at its destination: of its host's ejection channel); if all VCs there are taken, of
   the least bound output of any (a deflection); if these are taken, too, it waits for the next tick.
2. *Sending*: every output sends a flit of a packet that is bound to it. With ``share: packet`` packets are sent one
   after another; with ``share: flit`` they take turns, each as far as its flits have arrived.
3. *Hosts*, in rotation, start packets while fewer than K are in the switch or in flight from its hosts.
"""

from bisect import insort
from collections import deque
from functools import cached_property

from flitlab.models.rules.occupancy import vc_occupancy_bound
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.faults import NEVER
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.clock import Allocator
from flitlab.sim.engines.reference.hot_potato import HotPotatoNetwork
from flitlab.sim.engines.reference.packet import Packet


class Stay:
    """A packet at a switch, from the arrival of its head until its tail leaves.

    entry: the channel by which it comes, channels + host from a host. arrivals: ticks at which its flits arrive, NEVER
    of those that have not been sent; [] with ``share: packet``. sent: its flits that have left. bound_at: tick at which
    it was bound to an output. following: its stay at the next switch.
    """

    __slots__ = ("arrivals", "bound_at", "entry", "following", "packet", "sent", "switch")

    def __init__(self, switch: "VcSwitch", packet: Packet, entry: int, arrivals: list[int]):
        self.switch = switch
        self.packet = packet
        self.entry = entry
        self.arrivals = arrivals
        self.sent = 0
        self.bound_at = -1
        self.following: Stay | None = None

    def __lt__(self, other: "Stay") -> bool:
        """Whether this packet chooses its output before another one."""
        return self.packet < other.packet

    def arrive(self, packet: Packet) -> None:
        """Let the switch receive the head."""
        self.switch.arrive(self)


class VcOutput:
    """A network channel, or (``switch`` None) an ejection channel, and the packets bound to it, in this order.

    It sends one packet after another. channel: its number, None for ejection. delay: ticks from the sending of a flit
    to its arrival. tail_at: tick of the last flit of the packet that it sends.
    """

    __slots__ = ("bound", "channel", "delay", "flits", "ledger", "network", "switch", "tail_at")

    def __init__(self, net: "VcNetwork", delay: int, channel: int | None = None, switch: "VcSwitch | None" = None):
        self.network = net
        self.ledger = net.ledger
        self.flits = net.flits
        self.delay = delay
        self.channel = channel
        self.switch = switch
        self.bound: list[Stay] = []
        self.tail_at = -1

    def bind(self, stay: Stay, now: int) -> None:
        """Give a packet a VC."""
        self.bound.append(stay)
        stay.bound_at = now
        assert len(self.bound) <= self.network.times.vcs, "more packets than VCs"
        self.ledger.grant(self.channel, stay.packet.flits)

    def send(self, now: int) -> Stay | None:
        """Send a flit of the first packet; return the packet if it is its last."""
        stay, begins = self.bound[0], self.tail_at < now
        if begins:
            assert now <= stay.bound_at + (self.network.times.vcs - 1) * self.flits, "a packet starts late"
            self.tail_at = now + self.flits - 1
            self._start(stay, now, [])
        self.ledger.cross(self.channel, stay.packet.destination, 1, int(begins))
        if now < self.tail_at:
            return None
        self._end(stay, 0, now)
        return stay

    def _start(self, stay: Stay, now: int, arrivals: list[int]) -> None:
        """Send the head to the next switch."""
        packet, net = stay.packet, self.network
        if self.switch is not None and self.channel is not None:
            net.take_hop(packet, stay.switch.index, self.switch.index)
            stay.following = Stay(self.switch, packet, self.channel, arrivals)
            net.move(packet, now + self.delay, stay.following)

    def _end(self, stay: Stay, turn: int, now: int) -> None:
        """Send the tail: the VC is free."""
        self.bound.pop(turn)
        if self.switch is None:
            assert self.network.has_arrived(stay.packet)
            self.network.move(stay.packet, now + self.delay, None)


class FlitOutput(VcOutput):
    """An output whose packets take turns, flit by flit. pointer: the packet whose turn it is."""

    __slots__ = ("pointer",)

    def __init__(self, net: "VcNetwork", delay: int, channel: int | None = None, switch: "VcSwitch | None" = None):
        super().__init__(net, delay, channel, switch)
        self.pointer = 0

    def send(self, now: int) -> Stay | None:
        """Send the next flit that has arrived, packets in turn; return the packet if it is its last."""
        bound, turn = self.bound, self.pointer
        count = len(bound)
        for _ in bound:
            stay = bound[turn]
            sent = stay.sent
            if stay.arrivals[sent] <= now:
                break
            turn = turn + 1 if turn + 1 < count else 0
        else:
            return None
        if not sent:
            self._start(stay, now, [NEVER] * self.flits)
        if self.ledger.channels is not None:
            self.ledger.cross(self.channel, stay.packet.destination, 1, int(sent == 0))
        if stay.following is not None:
            stay.following.arrivals[sent] = now + self.delay
        stay.sent = sent = sent + 1
        if sent < self.flits:
            self.pointer = turn + 1 if turn + 1 < count else 0
            return None
        self._end(stay, turn, now)
        self.pointer = turn if turn < count - 1 else 0
        return stay


class VcHost(network.Host):
    """A host whose switch decides when it sends."""

    switch: "VcSwitch"

    def schedule_send(self, now: int) -> None:
        self.switch.schedule_at(max(now, self.free_at))


class VcSwitch(Allocator):
    """A switch: outputs, packets, and its hosts.

    outputs: network channels in channel order. ejection: by host. resident: packets whose head is here and whose tail
    has not left; entries: those by the channel of their arrival. inbound: packets in flight from a host. waiting: heads
    that may be bound, by rank.
    """

    def __init__(self, net: "VcNetwork", index: int, limit: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.limit = limit
        self.outputs: list[VcOutput] = []
        self.ejection: dict[int, VcOutput] = {}
        self.hosts: list[VcHost] = []
        self.resident = 0
        self.entries: dict[int, int] = {}
        self.inbound = 0
        self.waiting: list[Stay] = []
        self._expected: deque[Stay] = deque()  # in their header delay, first come first

    @property
    def _every_tick(self) -> bool:
        """Whether flits have to be sent one by one, instead of the tail only."""
        return self.network.times.by_flit or self.network.ledger.channels is not None

    @cached_property
    def _all_outputs(self) -> list[VcOutput]:
        return [*self.outputs, *self.ejection.values()]

    @cached_property
    def bound(self) -> int | None:
        """The largest number of packets at the switch, None where none is proven."""
        net, times, hosts = self.network, self.network.times, len(self.hosts)
        injection = max((net.injection(host.index) for host in self.hosts), default=0)
        if times.by_flit:
            return None
        return vc_occupancy_bound(
            self.limit, len(self.outputs), hosts, times.vcs, net.flits, times.header, injection
        )  # fmt: skip

    def arrive(self, stay: Stay) -> None:
        """Receive the head of a packet."""
        self.resident += 1
        self.entries[stay.entry] = self.entries.get(stay.entry, 0) + 1
        if stay.packet.hop == 0:
            self.inbound -= 1
        self.network.ledger.occupy(self.resident, self.entries[stay.entry])
        assert self.bound is None or self.resident <= self.bound, f"switch {self.index} holds {self.resident} packets"
        self._expected.append(stay)
        self.schedule_at(stay.packet.arrived + self.network.times.header)

    def allocate(self, now: int) -> None:
        """Bind heads to outputs, send a flit of every output, and let hosts start packets."""
        while self._expected and self._expected[0].packet.arrived + self.network.times.header <= now:
            insort(self.waiting, self._expected.popleft())
        self.waiting = [stay for stay in self.waiting if not self._bind(stay, now)]
        self.network.ledger.counts[Scalar.VC_WAITS] += len(self.waiting)
        busy = [output for output in self._all_outputs if output.bound]
        for output in busy:
            stay = output.send(now)
            if stay is not None:
                self.resident -= 1
                self.entries[stay.entry] -= 1
        senders = [host for host in self.hosts if host.waiting]
        if senders:
            self._admit(now)
        if self.waiting or (senders and self.resident + self.inbound < self.limit) or (busy and self._every_tick):
            self.schedule_at(now + 1)
        elif tails := [output.tail_at for output in busy if output.bound]:
            self.schedule_at(max(now + 1, min(tails)))

    def _bind(self, stay: Stay, now: int) -> bool:
        """Bind a head to an output, and tell whether one had a free VC."""
        packet = stay.packet
        if packet.target == self.index:
            candidates = [self.ejection[packet.destination]]
        else:
            candidates = [self.outputs[port] for port in self.network.minimal_ports(packet, self.index)]
        output = self._least_bound(candidates, packet)
        if output is None:
            output = self._least_bound(self.outputs, packet)
            if output is None:
                return False
            packet.deflections += 1
            assert all(len(other.bound) == self.network.times.vcs for other in candidates), "an early deflection"
        output.bind(stay, now)
        return True

    def _least_bound(self, candidates: list[VcOutput], packet: Packet) -> VcOutput | None:
        """The least bound of some outputs, None if all their VCs are taken."""
        index = self.network.least_bound([len(output.bound) for output in candidates], packet)
        return None if index is None else candidates[index]

    def _admit(self, now: int) -> None:
        """Let hosts start packets while few enough are here, from one on that changes every tick."""
        hosts = len(self.hosts)
        for i in range(hosts):
            if self.resident + self.inbound >= self.limit:
                return
            host = self.hosts[(now + i) % hosts]
            if host.waiting and host.free_at <= now:
                head = now + self.network.injection(host.index)
                arrivals = [*range(head, head + self.network.flits)] if self.network.times.by_flit else []
                entry = self.network.scenario.topology.channels + host.index
                host.send(now, Stay(self, host.waiting[0], entry, arrivals))
                self.inbound += 1
                assert self.resident + self.inbound <= self.limit


class VcNetwork(HotPotatoNetwork):
    """A run of hot-potato switching under rule ``vc``."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        limits = times.limits(topology).tolist()
        self.switches = switches = [VcSwitch(self, v, limits[v]) for v in range(topology.switches)]
        hosts = [VcHost(self, h) for h in range(topology.hosts)]
        ends = zip(topology.src, topology.dst, topology.delay.tolist(), strict=True)
        output = FlitOutput if times.by_flit else VcOutput
        for channel, (tail, head, extra) in enumerate(ends):
            delay = times.switch + times.link + extra
            switches[tail].outputs.append(output(self, delay, channel, switches[head]))
        for host, place in zip(hosts, topology.host_switch, strict=True):
            host.switch = switches[place]
            host.switch.hosts.append(host)
            host.switch.ejection[host.index] = output(self, self.ejection(host.index))
        self.start(hosts)
