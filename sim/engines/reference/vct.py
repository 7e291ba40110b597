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
from heapq import heapify, heappop, heappush
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn, waits_for_drawn
from flitlab.models.rules.allocate import age_key
from flitlab.models.rules.bits import port_set
from flitlab.models.rules.ports import input_delays, make_ports
from flitlab.models.rules.stalls import Stall, stall_reasons
from flitlab.models.rules.tables import RouteForm, Selection
from flitlab.models.rules.vc import is_reserved, is_reserved_for_others, vc_score
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.models.timeline.flit_ticks import slowest_flit_of_epochs
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.clock import Allocator, Phase
from flitlab.sim.engines.reference.faults import ReferenceFaults
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.network import Network, Output
from flitlab.sim.engines.reference.packet import Packet
from flitlab.sim.engines.reference.source_queues import ClassQueues

_credits = attrgetter("credits")


class Reader:
    """The read port of an input port: one packet at a time; ``free_at``: tick from which it is free.

    The VCs of a port share one (``shared_input``) or have one each.
    """

    def __init__(self) -> None:
        self.free_at = 0


_ALWAYS_FREE = Output(0)


class VctInputVC:
    """The buffer of a virtual channel of an input port, and its credits.

    index: in the numbering of ``flitlab.models.rules.ports``. sender: the upstream switch or host. queue: packets whose
    head has arrived and that are not granted; the first is the head packet. credits: free flits known to the sender.
    returning: flits of credits in flight to it. credit: delay of credits in ticks. tail_left_at: tick at which the tail
    of the last granted packet has left. age: age key of the head packet. output: the only one that the head packet may
    take; of several, one that is always free.
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
        self.output = _ALWAYS_FREE

    def arrive(self, packet: Packet) -> None:
        """Store a packet whose head arrives."""
        packet.location = self.switch.location
        packet.outlets = self.switch.outlets(packet)
        self.queue.append(packet)
        if len(self.queue) == 1:
            self.switch.expect(self)

    def read(self, now: int) -> int:
        """Return the flits of stored packets whose header has been read."""
        header = self.switch.network.times.header
        return sum(packet.flits for packet in self.queue if packet.arrived + header <= now)

    def feeds_from(self, output: Output) -> int:
        """Return the tick from which the head packet never starves an output: its flits are there in time."""
        return self.queue[0].feeds_from(output.flit_ticks)

    def leave(self, now: int, flit_ticks: int) -> None:
        """Remove the head packet, granted a channel of ``flit_ticks``: its credits return once its tail has left."""
        flits = self.queue.popleft().flits
        self.tail_left_at = self.reader.free_at = now + flits * flit_ticks
        self.returning += flits
        usable = now + (flits - 1) * flit_ticks + self.credit
        self.switch.clock.call(usable, Phase.CREDITS, self.restore, flits)
        if self.queue:
            self.switch.expect(self)

    def restore(self, flits: int) -> None:
        """Return credits to the sender."""
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

    phase = Phase.SENDING
    waiting: network.SourceQueue
    network: "VctNetwork"

    def __init__(self, net: "VctNetwork", index: int):
        network.Host.__init__(self, net, index)
        Allocator.__init__(self, net.clock)
        self.vcs: list[VctInputVC] = []

    def schedule_send(self, now: int) -> None:
        self.schedule_at(max(now, self.free_at))

    def allocate(self, now: int) -> None:
        """Send the oldest packet if the channel is free and a VC has buffer space for it."""
        if not self.waiting or self.free_at > now:
            return
        choice = self._choose()
        if choice is not None:
            flits, vc = choice
            vc.credits -= flits
            self.send(now, vc)
            if self.waiting:
                self.schedule_at(self.free_at)

    def _choose(self) -> tuple[int, VcOrSink] | None:
        """The flits of the packet to send next, and its VC; None if no VC has buffer space."""
        may_start = self.network.faults.may_start
        if not isinstance(self.waiting, ClassQueues):
            flits = self.waiting[0].flits
            vc = select_vc(self.vcs, flits, _credits) if may_start(0) else None
            return None if vc is None else (flits, vc)
        offers = {}
        for number, packet in self.waiting.oldest():
            first, end = self.network.class_vcs(number)
            vc = select_vc(self.vcs[first:end], packet.flits, _credits)
            if vc is not None and may_start(number):
                offers[number] = packet.flits, vc
        return offers[self.waiting.serve(offers)] if offers else None


class VctSwitch(Allocator):
    """Input VCs, outputs, and the arbitration between them.

    outputs: network channels in channel order. ejection: by host. input_vcs: in order of index. waiting: input VCs with
    an eligible head packet, in the order in which they are visited. location: of its packets
    (:class:`~flitlab.sim.engines.faults.Residents`).
    """

    def __init__(self, net: "VctNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.location = net.scenario.topology.channels + index
        self.outputs: list[Output] = []
        self.ejection: dict[int, Output] = {}
        self.input_vcs: list[VctInputVC] = []
        self.waiting: list[VctInputVC] = []
        self.header = net.times.header
        self._expected: list[tuple[int, int, VctInputVC]] = []  # heap: age key, tick of eligibility

    def outlets(self, packet: Packet) -> list[tuple[Output, Sequence[VcOrSink]]]:
        """The outputs that a packet may take at this switch, each with the VCs that it may take there."""
        choices = self.network.routing.choices(packet, self.index)
        if not choices:
            return [(self.ejection[packet.destination], _SINK)]
        return [(self.outputs[port], self._vcs(port, first, end)) for port, first, end in choices]

    def _vcs(self, port: int, first: int, end: int) -> Sequence[VctInputVC]:
        """The VCs from ``first`` to ``end`` of a port without those that are reserved for other packets."""
        vcs, reserved = self.outputs[port].vcs, self.network.routing.reserved_vcs
        if reserved == 0:
            return vcs[first:end]
        return [vcs[vc] for vc in range(first, end) if not is_reserved_for_others(reserved, first, vc)]

    def reroute(self, packet: Packet) -> None:
        """Re-route a packet at the start of the tick in which its header is read."""
        if not packet.dropped and self.network.routing.reroute(packet, self.index, self.clock.now - 1):
            packet.outlets, vc = self.outlets(packet), packet.receiver
            if vc.queue and vc.queue[0] is packet:  # over a faster output it may be eligible later
                self.withdraw(vc)
                self.expect(vc)

    def withdraw(self, vc: VctInputVC) -> None:
        """Withdraw the requests of the head packet of an input VC."""
        self.waiting = [other for other in self.waiting if other is not vc]
        self._expected = [entry for entry in self._expected if entry[2] is not vc]
        heapify(self._expected)

    def eligible_at(self, vc: VctInputVC) -> int:
        """Return the tick from which the head packet of an input VC may be granted."""
        packet = vc.queue[0]
        eligible = max(packet.arrived + self.header, vc.tail_left_at)
        if self.network.has_slow_channels:
            eligible = max(eligible, min(vc.feeds_from(output) for output, _ in packet.outlets))
        return eligible

    def outputs_change_speed(self, now: int) -> None:
        """Schedule the head packets anew whose eligibility has changed; those that wait keep their place."""
        for vc in self.input_vcs:
            if vc.queue and (self.eligible_at(vc) > now or vc.age >> 32 >= now):
                self.withdraw(vc)
                self.expect(vc, now)

    def expect(self, vc: VctInputVC, since: int = 0) -> None:
        """Schedule the arbitration of the head packet of an input VC, once it is eligible, from tick ``since`` on."""
        packet, eligible = vc.queue[0], max(self.eligible_at(vc), since)
        vc.age = self.network.age_key(eligible, vc.index)
        vc.output = packet.outlets[0][0] if len(packet.outlets) == 1 else _ALWAYS_FREE
        heappush(self._expected, (vc.age, eligible, vc))
        self.schedule_at(eligible)

    def allocate(self, now: int) -> None:
        """Visit the packets that are eligible at tick ``now``, oldest first, and grant where possible."""
        # those that become eligible now have waited less than all that wait: appending keeps the order of age
        expected = self._expected
        while expected and expected[0][1] <= now:
            self.waiting.append(heappop(expected)[2])
        if not self.waiting:
            return
        network = self.network
        counts = network.ledger.stalls is not None
        stalls = {vc.index: self._stall(vc, now) for vc in self.waiting} if counts else {}
        if network.order is not None:
            self.waiting.sort(key=network.order)
        self.waiting = [
            vc for vc in self.waiting
            if vc.output.free_at > now or vc.reader.free_at > now or not self._grant(vc, now)
        ]  # fmt: skip
        if network.polarized and self.waiting:
            self.schedule_at(now + 1)  # what an output costs changes with every grant
        if counts and self.waiting:
            network.ledger.stall({vc.index: stalls[vc.index] for vc in self.waiting}, network.times.vcs)
            self.schedule_at(now + 1)

    def _stall(self, vc: VctInputVC, now: int) -> int:
        """The reasons for which the eligible head packet of an input VC stalls at tick ``now`` unless it is granted.

        Those of all its outputs together. An output that it would starve does not count; if nothing hinders it at one,
        it loses an arbitration.
        """
        packet, reasons = vc.queue[0], 0
        for output, vcs in packet.outlets:
            if vc.feeds_from(output) > now:
                continue
            lacks_credit = all(to.credits < packet.flits for to in vcs)
            lacks_credit |= output.channel is None and not self.network.replies.may_eject(packet)
            is_taken = max(vc.reader.free_at, output.free_at) > now
            if not lacks_credit and not is_taken:
                return Stall.SWITCH
            reasons |= int(stall_reasons(False, lacks_credit, is_taken))
        return reasons

    def _grant(self, vc: VctInputVC, now: int) -> bool:
        """Grant the head packet of an input VC that can be read if possible; return whether it is granted."""
        packet, network = vc.queue[0], self.network
        vc_score: VcScore = network.vc_score_of(packet) if network.routing.reserved_vcs else _credits
        next_vc: VcOrSink | None
        if len(packet.outlets) == 1:
            output, vcs = packet.outlets[0]
            next_vc = select_vc(vcs, packet.flits, vc_score)  # without space, returning credits schedule this switch
            if output.channel is None and not network.replies.may_eject(packet):
                return False  # a reply that leaves the host schedules this switch
        elif network.polarized:
            output, vcs = self._cheapest(packet)
            next_vc = self._offer(vc, output, vcs, vc_score, now)
        else:
            output, next_vc = self._choose(vc, vc_score, now)
        if next_vc is None:
            return False
        if output.channel is None:
            network.replies.commit(packet)
        next_vc.credits -= packet.flits
        vc.leave(now, output.flit_ticks)
        if isinstance(next_vc, VctInputVC):
            network.routing.enter(packet, next_vc.index % network.times.vcs)
            if network.progressive and packet.hop == 0:
                read = now + output.delay + self.header
                self.clock.call(read, Phase.DECISIONS, next_vc.switch.reroute, packet)
        output.carry(network, packet, now, next_vc)
        self.schedule_at(output.free_at)  # when others can take the output, or be read
        return True

    def _offer(
        self, vc: VctInputVC, output: Output, vcs: Sequence[VcOrSink], vc_score: VcScore, now: int
    ) -> VcOrSink | None:
        """The VC with the highest score, if it has space for the head packet of ``vc``; None if there is none, the
        output is busy, or the packet would starve it.
        """
        free_at = max(output.free_at, vc.feeds_from(output))
        if free_at > now:
            self.schedule_at(free_at)
            return None
        return select_vc(vcs, vc.queue[0].flits, vc_score)

    def _choose(self, vc: VctInputVC, vc_score: VcScore, now: int) -> tuple[Output, VcOrSink | None]:
        """The output and VC that the head packet of an input VC takes (see ``flitlab.models.rules.adaptive``).

        vc_score: the packet's score of a VC. The VC is None if no output has one with buffer space for the packet, or
        while the packet waits for its drawn channel.
        """
        packet: Packet = vc.queue[0]
        offers = {}
        for output, vcs in packet.outlets:
            next_vc = self._offer(vc, output, vcs, vc_score, now)
            if next_vc is not None:
                offers[output] = next_vc
        if not offers:
            return packet.outlets[0][0], None
        costs = {output: self._cost(output, vc_score(next_vc)) for output, next_vc in offers.items()}
        least, word = min(costs.values()), self.network.routing.route_word(packet)
        outlets: dict[int, tuple[Output, Sequence[VcOrSink]]] = {
            self.outputs.index(o): (o, vcs) for o, vcs in packet.outlets
        }
        drawn, vcs = outlets[int(drawn_channel(port_set(outlets), word))]
        since = max(vc.age >> 32, vc.reader.free_at, vc.feeds_from(drawn))
        length = packet.flits * drawn.flit_ticks
        if drawn in offers and keeps_drawn(costs[drawn], least, length):
            return drawn, offers[drawn]
        if drawn.free_at > now and waits_for_drawn(drawn.free_at, since, length):
            next_vc = select_vc(vcs, packet.flits, vc_score)
            if next_vc is not None and keeps_drawn(self._cost(drawn, vc_score(next_vc)), least, length):
                self.schedule_at(drawn.free_at)  # where the packet would starve it still, it waits no longer
                return drawn, None
        chosen = self.outputs[drawn_tie(port_set(self.outputs.index(o) for o in costs if costs[o] == least), word)]
        return chosen, offers[chosen]

    def _cost(self, output: Output, score: int) -> int:
        """The cost of an output to a packet, in ticks; score: that of the VC that it would take."""
        used = sum(vc.size - vc.credits for vc in output.vcs) * output.flit_ticks
        return int(channel_cost(used, self.network.routing.reserved_vcs > 0 and is_reserved(score)))

    def _cheapest(self, packet: Packet) -> tuple[Output, Sequence[VcOrSink]]:
        """The output of least cost to a polarized packet (ties are drawn) among those that it may take."""
        outlets: list[tuple[Output, Sequence[VcOrSink]]] = packet.outlets

        def cost(output: Output) -> int:
            assert output.channel is not None  # an ejection channel is the only one that a packet may take
            queued: int = sum(vc.size - vc.credits for vc in output.vcs) * output.flit_ticks
            return queued + self.network.routing.detour(packet, self.index, output.channel)

        costs = {self.outputs.index(output): cost(output) for output, _ in outlets}
        tied = port_set(port for port in costs if costs[port] == min(costs.values()))
        chosen = self.outputs[drawn_tie(tied, self.network.routing.route_word(packet))]
        return next(outlet for outlet in outlets if outlet[0] is chosen)


class VctFaults(ReferenceFaults):
    """Faults of a network of virtual cut-through; network: a :class:`VctNetwork`."""

    def drop(self, packets: Sequence[Packet] | np.ndarray, tick: int) -> None:
        super().drop(packets, tick)
        for packet in packets:
            if packet.location < len(self.channel_up):
                next_vc: Any = packet.receiver
                next_vc.credits += packet.flits
        for vc in self.network.input_vcs:
            if any(packet.dropped for packet in vc.queue):
                self._remove_dropped(vc, tick)

    def _remove_dropped(self, vc: VctInputVC, tick: int) -> None:
        """Remove dropped packets from an input VC, and return their credits."""
        head, switch = vc.queue[0], vc.switch
        vc.credits += sum(packet.flits for packet in vc.queue if packet.dropped)
        vc.queue = deque(packet for packet in vc.queue if not packet.dropped)
        if head.dropped:
            switch.withdraw(vc)
            vc.tail_left_at = max(vc.tail_left_at, tick)
            if vc.queue:
                switch.expect(vc)
        if vc.sender.waiting and self.switch_up[switch.index]:
            vc.sender.schedule_at(tick)

    def block(self, channels: Ints, tick: int) -> None:
        super().block(channels, tick)
        for channel in channels:  # no head waits for a drawn channel that has failed
            self.network.outputs[channel][1].schedule_at(tick)

    def change_speeds(self, channels: Ints, tick: int) -> None:
        super().change_speeds(channels, tick)
        for switch in {self.network.outputs[channel][1] for channel in channels}:
            switch.outputs_change_speed(tick)

    def blocked_packets(self, tick: int) -> Sequence[Packet]:
        dead = {self.network.outputs[channel][0] for channel in np.flatnonzero(~self.channel_up)}
        heads = [vc.queue[0] for switch in self.network.switches for vc in switch.waiting]
        return [packet for packet in heads if any(output in dead for output, _ in packet.outlets)]


class VctNetwork(Network[Vct]):
    """A run of virtual cut-through."""

    switches: list[VctSwitch]

    def __init__(self, scenario: Scenario[Vct], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        self.age_key = machine_code(age_key, 0, 0)
        self.polarized = self.routing.routes.form == RouteForm.POLARIZED
        self.progressive = self.routing.routes.rule == Selection.PROGRESSIVE
        self.has_slow_channels = slowest_flit_of_epochs(topology, scenario.timeline) > 1
        self.input_vcs: list[VctInputVC] = []
        self.order = self._order()

        self.switches = switches = [VctSwitch(self, v) for v in range(topology.switches)]
        self.hosts = hosts = [VctHost(self, h) for h in range(topology.hosts)]
        for channel, (tail, extra) in enumerate(zip(topology.src, topology.delay.tolist(), strict=True)):
            ticks = self.flit_ticks[channel]
            output = Output(times.switch + times.link + extra + ticks - 1, channel, flit_ticks=ticks)
            switches[tail].outputs.append(output)
        for host, place in enumerate(topology.ejection_switch):
            switches[place].ejection[host] = Output(self.ejection(host), flit_ticks=self.host_flit_ticks)

        numbering = make_ports(topology)
        credit = times.credit + input_delays(numbering, times.credit_delays(topology), topology.access_delay)
        self.buffer_flits = input_delays(numbering, *np.split(times.buffers_of(topology), [topology.channels])).tolist()
        for channel, (tail, head) in enumerate(zip(topology.src, topology.dst, strict=True)):
            output = switches[tail].outputs[channel - topology.out_start[tail]]
            port = numbering.out_input[numbering.out_base[tail] + channel - topology.out_start[tail]]
            output.vcs = self._input_port(switches[head], int(port), switches[tail], int(credit[port]))
        for host, place in enumerate(topology.host_switch):
            port = numbering.inject[host]
            hosts[host].vcs = self._input_port(switches[place], int(port), hosts[host], int(credit[port]))
        self.outputs = [(output, switch) for switch in switches for output in switch.outputs]
        self.faults = VctFaults(self)
        self.start(hosts)

    def _order(self) -> Callable[[VctInputVC], tuple[int, int]] | None:
        """The key by which switches sort waiting heads, None for the order of their eligibility."""
        if self.times.oldest_first:
            return lambda vc: (vc.queue[0].created, vc.age)
        if self.times.priority == "class":
            return lambda vc: (-self.urgency(vc.queue[0]), vc.age)
        return None

    def count_channels(self) -> None:
        super().count_channels()
        self.ledger.count_stalls()

    def vc_score_of(self, packet: Packet) -> VcScore:
        """Return the function that scores input VCs for a packet; the highest score is preferred."""
        vcs, reserved = self.times.vcs, self.routing.reserved_vcs
        return lambda vc: int(vc_score(reserved, vc.index % vcs, vc.credits, packet.flits))

    def queue(self, channel: int, now: int) -> int:
        output, switch = self.outputs[channel]
        waiting = sum(vc.read(now) for vc in switch.input_vcs if vc.queue and vc.queue[0].outlets[0][0] is output)
        in_flight: int = sum(vc.size - vc.credits for vc in output.vcs)
        return (waiting + in_flight) * output.flit_ticks

    def _input_port(self, switch: VctSwitch, port: int, sender: Allocator, credit: int) -> list[VctInputVC]:
        """The VCs of an input port, with the credit delay of its channel in ticks."""
        times, reader = self.times, Reader()
        vcs = []
        for index in range(port * times.vcs, (port + 1) * times.vcs):
            vcs.append(VctInputVC(switch, index, sender, reader, self.buffer_flits[port], credit))
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

        def receives(packet: Packet) -> bool:
            """Whether the host of a packet may owe its reply, now, or once the next reply has left."""
            if self.replies.will_release(packet):
                return True
            host, waiting, reply = self.replies.first(packet)
            return waiting is None or any(opens(vc, waiting.flits) for vc in host.vcs[slice(*self.class_vcs(reply))])

        def moves(packet: Packet) -> bool:
            if packet.outlets[0][0].channel is None:
                return receives(packet)
            return any(opens(to, packet.flits) for _, vcs in packet.outlets for to in vcs)

        while True:
            freed = {vc for vc in blocked if moves(vc.queue[0])}
            if not freed:
                return bool(blocked)
            blocked -= freed
