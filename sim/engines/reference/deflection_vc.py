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

from bisect import bisect_left, insort
from collections import deque
from functools import cached_property
from heapq import heappop, heappush

from flitlab.models.rules.deflect import vc_occupancy_bound
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.faults import NEVER
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.clock import LATEST, Allocator, Phase
from flitlab.sim.engines.reference.hot_potato import HotPotatoNetwork
from flitlab.sim.engines.reference.packet import Packet


class Stay:
    """A packet at a switch, from the arrival of its head until its tail leaves.

    entry: the channel by which it comes, channels + host from a host. arrivals: ticks at which its flits arrive, NEVER
    of those that have not been sent; [] with ``share: packet``. sent: its flits that have left. following: its stay at
    the next switch.
    """

    __slots__ = ("arrivals", "entry", "following", "packet", "sent", "switch")

    def __init__(self, switch: "VcSwitch", packet: Packet, entry: int, arrivals: list[int]):
        self.switch = switch
        self.packet = packet
        self.entry = entry
        self.arrivals = arrivals
        self.sent = 0
        self.following: Stay | None = None

    def __lt__(self, other: "Stay") -> bool:
        """Whether this packet chooses its output before another one."""
        return self.packet < other.packet

    def arrive(self, packet: Packet) -> None:
        """Let the switch receive the head."""
        self.switch.arrive(self)


class VcOutput:
    """A network channel, or (``switch`` None) an ejection channel. It sends one packet after another.

    Nothing changes the order of packets that are bound, so it is known when a packet is bound at which ticks its flits
    leave. index: its place among the outputs of its switch. channel: its number, None for ejection. delay: ticks from
    the sending of a flit to its arrival. taken: its VCs in use. free_at: tick from which it sends no packet.
    """

    __slots__ = ("channel", "delay", "flits", "free_at", "index", "network", "switch", "taken")

    def __init__(
        self, net: "VcNetwork", index: int, delay: int, channel: int | None = None, switch: "VcSwitch | None" = None
    ):
        self.network = net
        self.flits = net.flits
        self.index = index
        self.delay = delay
        self.channel = channel
        self.switch = switch
        self.taken = 0
        self.free_at = 0

    def take(self, stay: Stay, now: int) -> None:
        """Give a packet a VC."""
        self.taken += 1
        assert self.taken <= self.network.times.vcs, "more packets than VCs"
        self.network.ledger.grant(self.channel, stay.packet.flits)
        self.bind(stay, now)

    def bind(self, stay: Stay, now: int) -> None:
        """Send a packet that has a VC after those that were bound before."""
        first = max(now, self.free_at)
        assert first <= now + (self.network.times.vcs - 1) * self.flits, "a packet starts late"
        self.free_at = first + self.flits
        self._start(stay, first, [])
        if self.network.ledger.channels is not None:
            for number in range(self.flits):
                self._count(stay, number, first + number)
        self._end(stay, self.free_at - 1)

    def _start(self, stay: Stay, tick: int, arrivals: list[int]) -> None:
        """Send the head to the next switch."""
        packet, net = stay.packet, self.network
        if self.switch is not None and self.channel is not None:
            net.take_hop(packet, stay.switch.index, self.switch.index)
            stay.following = Stay(self.switch, packet, self.channel, arrivals)
            net.move(packet, tick + self.delay, stay.following)

    def _end(self, stay: Stay, tick: int) -> None:
        """Send the tail: the VC is free from the next tick on."""
        heappush(stay.switch.tails, (tick, self.index, self, stay.entry))
        if self.switch is None:
            assert self.network.has_arrived(stay.packet)
            self.network.move(stay.packet, tick + self.delay, None)

    def _count(self, stay: Stay, number: int, tick: int) -> None:
        """Count a flit that is sent at a tick; number: of the flit in its packet."""
        self.network.clock.call(tick, Phase.ALLOCATION, self._count_now, (stay.packet.destination, number))

    def _count_now(self, sent: tuple[int, int]) -> None:
        destination, number = sent
        self.network.ledger.cross(self.channel, destination, 1, int(number == 0))


class FlitOutput(VcOutput):
    """An output whose packets take turns, flit by flit. bound: these packets. pointer: the one whose turn it is."""

    __slots__ = ("bound", "pointer")

    def __init__(
        self, net: "VcNetwork", index: int, delay: int, channel: int | None = None, switch: "VcSwitch | None" = None
    ):
        super().__init__(net, index, delay, channel, switch)
        self.bound: list[Stay] = []
        self.pointer = 0

    def bind(self, stay: Stay, now: int) -> None:
        """Let a packet that has a VC take turns with the others."""
        self.bound.append(stay)

    def send(self, now: int, until: int) -> None:
        """Send flits from tick ``now`` to before ``until``: at each the next that has arrived, packets in turn.

        No packet may be bound meanwhile, and all arrivals of these ticks are known.
        """
        if len(self.bound) > 1:
            now = self._send_in_turn(now, until)
        if now < until and self.bound:
            self._send_uncontended(self.bound[0], now, until)

    def _send_uncontended(self, stay: Stay, now: int, until: int) -> None:
        """Send flits of the only packet: flit k, one that arrives at a_k, at the later of now + k - sent and a_k."""
        arrivals, sent = stay.arrivals, stay.sent
        end = bisect_left(arrivals, until, sent, min(self.flits, sent + until - now))
        if end == sent:
            return
        first = now - sent
        if arrivals[end - 1] <= first + end - 1:
            ticks = [*range(now, first + end)]
        else:
            ticks = [*map(max, range(now, first + end), arrivals[sent:end])]
        if not sent:
            self._start(stay, ticks[0], [NEVER] * self.flits)
        if stay.following is not None:
            delay = self.delay
            stay.following.arrivals[sent:end] = [tick + delay for tick in ticks]
        if self.network.ledger.channels is not None:
            for number, tick in enumerate(ticks, sent):
                self._count(stay, number, tick)
        stay.sent = end
        if end == self.flits:
            self.bound.clear()
            self._end(stay, ticks[-1])

    def _send_in_turn(self, now: int, until: int) -> int:
        """Send flits of several packets; return ``until``, or the tick from which a single packet is left."""
        bound, turn, flits, delay = self.bound, self.pointer, self.flits, self.delay
        counts = self.network.ledger.channels is not None
        ready = [stay.arrivals[stay.sent] for stay in bound]
        count = len(bound)
        while now < until and count > 1:
            for _ in bound:
                if ready[turn] <= now:
                    break
                turn = turn + 1 if turn + 1 < count else 0
            else:
                now = min(ready)
                continue
            stay = bound[turn]
            sent = stay.sent
            if not sent:
                self._start(stay, now, [NEVER] * flits)
            if counts:
                self._count(stay, sent, now)
            if stay.following is not None:
                stay.following.arrivals[sent] = now + delay
            stay.sent = sent = sent + 1
            if sent < flits:
                ready[turn] = stay.arrivals[sent]
                turn = turn + 1 if turn + 1 < count else 0
            else:
                del bound[turn], ready[turn]
                count -= 1
                turn = turn if turn < count else 0
                self._end(stay, now)
            now += 1
        self.pointer = turn
        return now


class VcHost(network.Host):
    """A host whose switch decides when it sends."""

    switch: "VcSwitch"
    waiting: deque[Packet]

    def schedule_send(self, now: int) -> None:
        if len(self.waiting) == 1:  # else the switch knows that it waits
            self.switch.schedule_admission(max(now, self.free_at))


class VcSwitch(Allocator):
    """A switch: outputs, packets, and its hosts.

    outputs: network channels in channel order. ejection: by host. resident: packets whose head is here and whose tail
    has not left; entries: those by the channel of their arrival. inbound: packets in flight from a host. waiting: heads
    that may be bound, by rank. tails: heap of those that leave, each with the output, and the entry of its packet.
    lookahead: ticks for which arrivals of flits are known, as channels have a delay; flits of earlier ticks than
    ``sent_until`` are sent. admit_at: tick from which a host may start a packet. blocked:
    whether hosts wait until a tail leaves.
    """

    def __init__(self, net: "VcNetwork", index: int, limit: int, lookahead: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.limit = limit
        self.lookahead = lookahead
        self.header = net.times.header
        self.outputs: list[VcOutput] = []
        self.ejection: dict[int, VcOutput] = {}
        self.hosts: list[VcHost] = []
        self.resident = 0
        self.entries: dict[int, int] = {}
        self.inbound = 0
        self.waiting: list[Stay] = []
        self.tails: list[tuple[int, int, VcOutput, int]] = []
        self.sent_until = 0
        self.admit_at = LATEST
        self.blocked = False
        self._expected: deque[Stay] = deque()  # in their header delay, first come first
        self._outputs_towards: dict[int, list[VcOutput]] = {}  # by destination switch, filled as packets come

    @cached_property
    def _turns(self) -> list[FlitOutput]:
        """The outputs whose packets take turns."""
        outputs = [*self.outputs, *self.ejection.values()]
        return [output for output in outputs if isinstance(output, FlitOutput)]

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
        now = stay.packet.arrived
        self._settle(now)
        self.resident += 1
        count = self.entries[stay.entry] = self.entries.get(stay.entry, 0) + 1
        if stay.packet.hop == 0:
            self.inbound -= 1
        self.network.ledger.occupy(self.resident, count)
        assert self.bound is None or self.resident <= self.bound, f"switch {self.index} holds {self.resident} packets"
        self._expected.append(stay)
        self.schedule_at(now + self.header)

    def allocate(self, now: int) -> None:
        """Bind heads to outputs, send flits, and let hosts start packets."""
        self._settle(now)
        expected = self._expected
        while expected and expected[0].packet.arrived + self.header <= now:
            insort(self.waiting, expected.popleft())
        if self.waiting:
            self.waiting = [stay for stay in self.waiting if not self._bind(stay, now)]
            if self.waiting:
                self.network.ledger.counts[Scalar.VC_WAITS] += len(self.waiting)
                self.schedule_at(now + 1)
        if now >= self.sent_until and self._turns:
            self._send(now)
        if self.blocked and self.tails:
            self.schedule_admission(self.tails[0][0], now)
        if now >= self.admit_at:
            self._settle(now + 1)
            self._admit(now)

    def schedule_admission(self, tick: int, now: int = -1) -> None:
        """Schedule the next start of a packet, at a tick from which a host may; now: the tick of this allocation."""
        if tick < self.admit_at:
            self.admit_at = tick
            if tick > now:
                self.schedule_at(tick)

    def _settle(self, before: int) -> None:
        """Remove the packets whose tail has left before a tick."""
        tails = self.tails
        while tails and tails[0][0] < before:
            _, _, output, entry = heappop(tails)
            output.taken -= 1
            self.resident -= 1
            self.entries[entry] -= 1

    def _send(self, now: int) -> None:
        """Send flits of outputs whose packets take turns, up to the next tick at which a head may be bound."""
        busy = [output for output in self._turns if output.bound]
        if not busy:
            return
        if self.waiting:
            until = now + 1
        else:
            first = self._expected[0].packet.arrived if self._expected else now + 1
            until = min(now + self.lookahead, first + self.header)
        for output in busy:
            output.send(now, until)
        self.sent_until = until
        self.schedule_at(until)

    def _bind(self, stay: Stay, now: int) -> bool:
        """Bind a head to an output, and tell whether one had a free VC."""
        packet = stay.packet
        if packet.target == self.index:
            candidates = [self.ejection[packet.destination]]
        else:
            candidates = self._minimal(packet)
        output = self._least_bound(candidates, packet)
        if output is None:
            output = self._least_bound(self.outputs, packet)
            if output is None:
                return False
            packet.deflections += 1
            assert all(other.taken == self.network.times.vcs for other in candidates), "an early deflection"
        output.take(stay, now)
        return True

    def _minimal(self, packet: Packet) -> list[VcOutput]:
        """The outputs on shortest paths of a packet."""
        outputs = self._outputs_towards.get(packet.target)
        if outputs is None:
            ports = self.network.minimal_ports(packet, self.index)
            outputs = self._outputs_towards[packet.target] = [self.outputs[port] for port in ports]
        return outputs

    def _least_bound(self, candidates: list[VcOutput], packet: Packet) -> VcOutput | None:
        """The least bound of some outputs, None if all their VCs are taken."""
        index = self.network.least_bound([output.taken for output in candidates], packet)
        return None if index is None else candidates[index]

    def _admit(self, now: int) -> None:
        """Let hosts start packets while few enough are here, from one on that changes every tick."""
        hosts = len(self.hosts)
        waiting = [host for host in [self.hosts[(now + i) % hosts] for i in range(hosts)] if host.waiting]
        for host in waiting:
            if host.free_at <= now and self.resident + self.inbound < self.limit:
                head = now + self.network.injection(host.index)
                arrivals = [*range(head, head + self.network.flits)] if self._turns else []
                entry = self.network.scenario.topology.channels + host.index
                host.send(now, Stay(self, host.waiting[0], entry, arrivals))
                self.inbound += 1
        self.admit_at = LATEST
        ticks = [host.free_at for host in waiting if host.waiting]
        self.blocked = bool(ticks) and self.resident + self.inbound >= self.limit
        if self.blocked:
            if self.tails:
                self.schedule_admission(self.tails[0][0])
        elif ticks:
            self.schedule_admission(min(ticks))


class VcNetwork(HotPotatoNetwork):
    """A run of hot-potato switching under rule ``vc``."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        limits = times.limits(topology).tolist()
        delays = (times.switch + times.link + topology.delay).tolist()
        lookahead = min(delays, default=times.header + 1)
        self.switches = switches = [VcSwitch(self, v, limits[v], lookahead) for v in range(topology.switches)]
        hosts = [VcHost(self, h) for h in range(topology.hosts)]
        output = FlitOutput if times.by_flit else VcOutput
        for channel, (tail, head, delay) in enumerate(zip(topology.src, topology.dst, delays, strict=True)):
            outputs = switches[tail].outputs
            outputs.append(output(self, len(outputs), delay, channel, switches[head]))
        for host, place in zip(hosts, topology.host_switch, strict=True):
            switch = host.switch = switches[place]
            switch.hosts.append(host)
            index = len(switch.outputs) + len(switch.ejection)
            switch.ejection[host.index] = output(self, index, self.ejection(host.index))
        self.start(hosts)
