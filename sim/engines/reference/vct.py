# SPDX-License-Identifier: Apache-2.0
"""Virtual cut-through: credits in flits, and a grant needs buffer space for the whole packet.

Per tick and switch, eligible head packets of input VCs are visited once, the oldest eligibility first (ties: lowest
input port, then VC), or, with the allocator ``oldest``, the oldest packet first (ties: as before). A packet is granted
if its input and an output that it may take are free and a VC there has buffer space for all its flits. It then holds
input and output for one tick per flit. The credits of its VC return when its tail has left; the sender can use them
after the credit delay and the delay of the channel over which they return.
"""

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from typing import Any

from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn, waits_for_drawn
from flitlab.models.rules.bits import port_set
from flitlab.models.rules.order import age_key
from flitlab.models.rules.ports import input_delays, make_ports
from flitlab.models.rules.tables import POLARIZED, PROGRESSIVE
from flitlab.models.rules.vc import is_reserved, is_reserved_for_others, vc_score
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.changes import DrainingChanges
from flitlab.sim.engines.reference.clock import CREDITS, DECISIONS, SENDING, Alarm, Allocator
from flitlab.sim.engines.reference.network import Network, Output
from flitlab.sim.engines.reference.packet import Packet

_credits = attrgetter("credits")


class Reader:
    """The read port of an input port: one packet at a time; ``free_at``: tick from which it is free.

    The VCs of a port share one (``shared_input``) or have one each.
    """

    def __init__(self) -> None:
        self.free_at = 0


class VctInputVC:
    """The buffer of a virtual channel of an input port, and its credits.

    index: in the numbering of ``flitlab.models.rules.ports``. sender: the upstream switch or host. queue: packets whose
    head has arrived and that are not granted; the first is the head packet. credits: free flits known to the sender.
    returning: flits of credits in flight to it. credit: delay of credits in ticks. tail_left_at: tick at which the tail
    of the last granted packet has left. age: age key of the head packet.
    """

    def __init__(self, switch: "VctSwitch", index: int, sender: Allocator, reader: Reader, flits: int, credit: int):
        self.switch = switch
        self.index = index
        self.sender = sender
        self.reader = reader
        self.size = self.credits = flits
        self.credit = credit
        self.returning = 0
        self.queue: deque[Packet] = deque()
        self.tail_left_at = 0
        self.age = 0

    def arrive(self, packet: Packet) -> None:
        """Store a packet whose head arrives."""
        packet.outlets = self.switch.outlets(packet)
        self.queue.append(packet)
        if len(self.queue) == 1:
            self.switch.expect(self)

    def read(self, now: int) -> int:
        """Return the flits of stored packets whose header has been read."""
        header = self.switch.network.times.header
        return sum(packet.flits for packet in self.queue if packet.arrived + header <= now)

    def leave(self, now: int) -> None:
        """Remove the granted head packet: its credits return once its tail has left."""
        flits = self.queue.popleft().flits
        self.tail_left_at = self.reader.free_at = now + flits
        self.returning += flits
        Alarm(self.switch.clock, now + flits - 1 + self.credit, CREDITS, self.restore, flits)
        if self.queue:
            self.switch.expect(self)

    def restore(self, alarm: Any) -> None:
        """Return credits, in flits, to the sender; the alarm carries them as its value."""
        flits = alarm.value
        self.credits += flits
        self.returning -= flits
        if self.sender.waiting:
            self.sender.schedule_at(self.switch.clock.now)


class Sink:
    """The destination host in place of an input VC: it has unlimited buffer space."""

    credits = inf


_SINK = [Sink()]

VcOrSink = VctInputVC | Sink
VcScore = Callable[[Any], int]  # of an input VC, or a sink


def select_vc(vcs: Sequence[VcOrSink], flits: int, vc_score: VcScore) -> VcOrSink | None:
    """Return the VC with the highest score (ties: the lowest) if it has ``flits`` free flits, else None."""
    best = vcs[0] if len(vcs) == 1 else max(vcs, key=vc_score)
    return best if best.credits >= flits else None


class VctHost(network.Host, Allocator):
    """Sends its oldest packet when its channel is free and an injection VC has buffer space for the whole packet."""

    phase = SENDING
    waiting: deque[Packet]
    network: "VctNetwork"

    def __init__(self, net: "VctNetwork", index: int):
        network.Host.__init__(self, net, index)
        Allocator.__init__(self, net.clock)
        self.vcs: list[VctInputVC] = []

    def schedule_send(self, now: int) -> None:
        self.schedule_at(max(now, self.free_at))

    def allocate(self, now: int) -> None:
        """Send the oldest packet if the channel is free and a VC has buffer space for it."""
        if not self.waiting or self.free_at > now or self.network.changes.draining:
            return
        flits = self.waiting[0].flits
        vc = select_vc(self.vcs, flits, _credits)
        if vc is not None:
            vc.credits -= flits
            self.send(now, vc)
            if self.waiting:
                self.schedule_at(self.free_at)


class VctSwitch(Allocator):
    """Input VCs, outputs, and the arbitration between them.

    outputs: network channels in channel order. ejection: by host. input_vcs: in order of index. waiting: input VCs with
    an eligible head packet, in the order in which they are visited.
    """

    def __init__(self, net: "VctNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.outputs: list[Output] = []
        self.ejection: dict[int, Output] = {}
        self.input_vcs: list[VctInputVC] = []
        self.waiting: list[VctInputVC] = []
        self._expected: list[tuple[int, int, VctInputVC]] = []  # heap: age key, tick of eligibility

    def outlets(self, packet: Packet) -> list[tuple[Output, Sequence[VcOrSink]]]:
        """The outputs that a packet may take at this switch, each with the VCs that it may take there."""
        choices = self.network.choices(packet, self.index)
        if not choices:
            return [(self.ejection[packet.destination], _SINK)]
        reserved = self.network.reserved_vcs
        return [
            (
                self.outputs[port],
                [
                    self.outputs[port].vcs[vc]
                    for vc in range(first, end)
                    if not is_reserved_for_others(reserved, first, vc)
                ],
            )
            for port, first, end in choices
        ]

    def reroute(self, alarm: Any) -> None:
        """Re-route the packet that an alarm carries, at the start of the tick in which its header is read."""
        if not alarm.value.dropped and self.network.reroute(alarm.value, self.index, self.clock.now - 1):
            alarm.value.outlets = self.outlets(alarm.value)

    def clear(self) -> None:
        """Forget all requests: the buffers have been emptied."""
        self.waiting, self._expected = [], []

    def expect(self, vc: VctInputVC) -> None:
        """Schedule the arbitration of the head packet of an input VC from the tick at which it is eligible."""
        eligible = max(vc.queue[0].arrived + self.network.times.header, vc.tail_left_at)
        vc.age = age_key(eligible, vc.index)
        heappush(self._expected, (vc.age, eligible, vc))
        self.schedule_at(eligible)

    def allocate(self, now: int) -> None:
        """Visit the packets that are eligible at tick ``now``, oldest first, and grant where possible."""
        # those that become eligible now have waited less than all that wait: appending keeps the order of age
        while self._expected and self._expected[0][1] <= now:
            self.waiting.append(heappop(self._expected)[2])
        if self.network.times.oldest_first:
            self.waiting.sort(key=lambda vc: (vc.queue[0].created, vc.age))
        self.waiting = [vc for vc in self.waiting if not self._grant(vc, now)]
        if self.waiting and self.network.polarized:
            self.schedule_at(now + 1)  # what an output costs changes with every grant

    def _grant(self, vc: VctInputVC, now: int) -> bool:
        """Grant the head packet of an input VC if possible; return whether it is granted."""
        if vc.reader.free_at > now:
            self.schedule_at(vc.reader.free_at)
            return False
        packet = vc.queue[0]
        vc_score: VcScore = self.network.vc_score_of(packet) if self.network.reserved_vcs else _credits
        offers = {}
        for output, vcs in [self._cheapest(packet)] if self.network.polarized else packet.outlets:
            if output.free_at > now:
                self.schedule_at(output.free_at)
                continue
            next_vc = select_vc(vcs, packet.flits, vc_score)  # without space, returning credits schedule this switch
            if next_vc is not None:
                offers[output] = next_vc
        output = self._choose(vc, offers, vc_score, now) if len(packet.outlets) > 1 else next(iter(offers), None)
        if output is None:
            return False
        next_vc = offers[output]
        next_vc.credits -= packet.flits
        vc.leave(now)
        if isinstance(next_vc, VctInputVC):
            self.network.enter(packet, next_vc.index % self.network.times.vcs)
            if self.network.progressive and packet.hop == 0:
                read = now + output.delay + self.network.times.header
                Alarm(self.clock, read, DECISIONS, next_vc.switch.reroute, packet)
        output.carry(self.network, packet, now, next_vc)
        return True

    def _choose(self, vc: VctInputVC, offers: dict[Output, VcOrSink], vc_score: VcScore, now: int) -> Output | None:
        """The output that the head packet of an input VC takes (see ``flitlab.models.rules.adaptive``).

        offers: for each free output, the VC with buffer space for the packet. vc_score: the packet's score of a VC.
        Returns None if there is no such output, or while the packet waits for its drawn channel.
        """
        packet: Packet = vc.queue[0]
        if not offers or self.network.polarized:
            return next(iter(offers), None)
        costs = {output: self._cost(output, vc_score(next_vc)) for output, next_vc in offers.items()}
        least, word = min(costs.values()), self.network.route_word(packet)
        outlets: dict[int, tuple[Output, Sequence[VcOrSink]]] = {
            self.outputs.index(o): (o, vcs) for o, vcs in packet.outlets
        }
        drawn, vcs = outlets[int(drawn_channel(port_set(outlets), word))]
        since = max(vc.age >> 32, vc.reader.free_at)
        if drawn in offers and keeps_drawn(costs[drawn], least, packet.flits):
            return drawn
        if drawn.free_at > now and waits_for_drawn(drawn.free_at, since, packet.flits):
            next_vc = select_vc(vcs, packet.flits, vc_score)
            if next_vc is not None and keeps_drawn(self._cost(drawn, vc_score(next_vc)), least, packet.flits):
                return None
        return self.outputs[drawn_tie(port_set(self.outputs.index(o) for o in costs if costs[o] == least), word)]

    def _cost(self, output: Output, score: int) -> int:
        """The cost of an output to a packet; score: that of the VC that it would take."""
        used = sum(vc.size - vc.credits for vc in output.vcs)
        return int(channel_cost(used, self.network.reserved_vcs > 0 and is_reserved(score)))

    def _cheapest(self, packet: Packet) -> tuple[Output, Sequence[VcOrSink]]:
        """The output of least cost to a polarized packet (ties are drawn) among those that it may take."""
        outlets: list[tuple[Output, Sequence[VcOrSink]]] = packet.outlets
        if len(outlets) == 1:
            return outlets[0]

        def cost(output: Output) -> int:
            assert output.channel is not None  # an ejection channel is the only one that a packet may take
            queued: int = sum(vc.size - vc.credits for vc in output.vcs)
            return queued + self.network.detour(packet, self.index, output.channel)

        costs = {self.outputs.index(output): cost(output) for output, _ in outlets}
        tied = port_set(port for port in costs if costs[port] == min(costs.values()))
        chosen = self.outputs[drawn_tie(tied, self.network.route_word(packet))]
        return next(outlet for outlet in outlets if outlet[0] is chosen)


class VctChanges(DrainingChanges):
    """The timeline of a network of virtual cut-through; network: a :class:`VctNetwork`."""

    def _fail(self, channel: int) -> None:
        super()._fail(channel)
        # no head waits for a drawn channel that has failed
        self.network.outputs[channel][1].schedule_at(self.clock.now)

    def _drop_on_link(self, packet: Packet) -> None:
        next_vc: Any = packet.moved.value
        next_vc.credits += packet.flits
        super()._drop_on_link(packet)

    def _drop_all(self, switch: VctSwitch) -> None:
        for vc in switch.input_vcs:
            while vc.queue:
                self._drop_first(vc)
        switch.clear()

    def _drop_waiting(self) -> None:
        dead = {self.network.outputs[channel][0] for channel in self._free_at}
        for switch in self.network.switches:
            for vc in [vc for vc in switch.waiting if any(output in dead for output, _ in vc.queue[0].outlets)]:
                switch.waiting.remove(vc)
                self._drop_first(vc)
                vc.tail_left_at = self.clock.now
                if vc.sender.waiting:
                    vc.sender.schedule_at(self.clock.now)
                if vc.queue:
                    switch.expect(vc)

    def _drop_first(self, vc: VctInputVC) -> None:
        packet = vc.queue.popleft()
        vc.credits += packet.flits
        self.network.drop(packet)


class VctNetwork(Network[Vct]):
    """A run of virtual cut-through."""

    def __init__(self, scenario: Scenario[Vct], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        self.polarized = self.routes.form == POLARIZED
        self.progressive = self.routes.rule == PROGRESSIVE
        self.input_vcs: list[VctInputVC] = []

        self.switches = switches = [VctSwitch(self, v) for v in range(topology.switches)]
        self.hosts = hosts = [VctHost(self, h) for h in range(topology.hosts)]
        for channel, (tail, extra) in enumerate(zip(topology.src, topology.delay.tolist(), strict=True)):
            switches[tail].outputs.append(Output(times.switch + times.link + extra, channel))
        for host, place in enumerate(topology.host_switch):
            switches[place].ejection[host] = Output(self.ejection(host))

        numbering = make_ports(topology)
        credit = times.credit + input_delays(numbering, times.credit_delays(topology), topology.access_delay)
        for channel, (tail, head) in enumerate(zip(topology.src, topology.dst, strict=True)):
            output = switches[tail].outputs[channel - topology.out_start[tail]]
            port = numbering.out_input[numbering.out_base[tail] + channel - topology.out_start[tail]]
            output.vcs = self._input_port(switches[head], int(port), switches[tail], int(credit[port]))
        for host, place in enumerate(topology.host_switch):
            port = numbering.inject[host]
            hosts[host].vcs = self._input_port(switches[place], int(port), hosts[host], int(credit[port]))
        self.outputs = [(output, switch) for switch in switches for output in switch.outputs]
        self.changes = VctChanges(self, times.policy_changes(scenario.timeline, scenario.routes))
        self.start(hosts)

    def vc_score_of(self, packet: Packet) -> VcScore:
        """Return the function that scores input VCs for a packet; the highest score is preferred."""
        vcs, reserved = self.times.vcs, self.reserved_vcs
        return lambda vc: int(vc_score(reserved, vc.index % vcs, vc.credits, packet.flits))

    def queue(self, channel: int, now: int) -> int:
        output, switch = self.outputs[channel]
        waiting = sum(vc.read(now) for vc in switch.input_vcs if vc.queue and vc.queue[0].outlets[0][0] is output)
        in_flight: int = sum(vc.size - vc.credits for vc in output.vcs)
        return waiting + in_flight

    def _input_port(self, switch: VctSwitch, port: int, sender: Allocator, credit: int) -> list[VctInputVC]:
        """The VCs of an input port, with the credit delay in ticks."""
        times, reader = self.times, Reader()
        vcs = []
        for index in range(port * times.vcs, (port + 1) * times.vcs):
            vcs.append(VctInputVC(switch, index, sender, reader, times.buffer_flits, credit))
            if not times.shared_input:
                reader = Reader()
        switch.input_vcs += vcs
        self.input_vcs += vcs
        return vcs

    def deadlocked(self) -> bool:
        """Whether some head packet can never be granted.

        A head packet can move eventually if some VC that it may take has buffer space, has credits in flight, or holds
        or awaits a packet that can itself move. The remaining packets are deadlocked.
        """

        def waits(vc: VctInputVC) -> bool:
            """Whether there is a packet at its front whose header has been read."""
            return bool(vc.queue) and vc.queue[0].arrived + self.times.header < self.clock.now

        blocked = {vc for vc in self.input_vcs if waits(vc)}

        def opens(vc: VctInputVC | Sink, flits: int) -> bool:
            if isinstance(vc, Sink) or vc.credits >= flits or vc.returning:
                return True
            if waits(vc):
                return vc not in blocked
            return vc.credits < vc.size  # a packet is in flight to its front

        while True:
            freed = {
                vc
                for vc in blocked
                if any(opens(to, vc.queue[0].flits) for _, vcs in vc.queue[0].outlets for to in vcs)
            }
            if not freed:
                return bool(blocked)
            blocked -= freed
