# SPDX-License-Identifier: Apache-2.0
"""Wormhole: credits in flits; a packet holds a VC of the next buffer, and every flit requests the crossbar.

Per tick and switch, both allocations on the state at the start of the tick; with a ``speedup`` s, in each of floor(s (t
+ 1)) - floor(s t) steps of tick t, on the state that the step before it left:

1. *VC allocation.* An input VC whose head packet holds no output VC requests all free VCs that the packet may take,
   regardless of credits. The allocator matches both (:mod:`flitlab.models.rules.allocate`). Under adaptive routing,
   input VCs are visited instead, oldest T first (ties: lowest input port, then VC). A packet chooses among the channels
   that have a free VC with a credit (``flitlab.models.rules.adaptive``), and there takes the VC with most credits
   (ties: the lowest). An escape VC is used last, and the others then need credits for the whole packet.
2. *Switch allocation.* An input VC requests the output of its head packet's VC if its front flit has arrived, may be
   switched, the VC has a credit, and the output has sent its last flit. The allocator matches inputs and outputs,
   likewise; an input that sends then chooses among its VCs that request that output.

With ``priority`` each side chooses among its requests of the most urgent packets, and adaptive packets are visited
the most urgent first.

A head requests from T = max(its arrival, the step after the grant of the tail before it). It is switched from T +
header on, and not in the step in which it gets its VC unless the header delay is 0. A tail releases its VC when it is
granted, for the next step.

A granted flit joins the queue of its output, which sends one flit a tick, from max(grant + switch, the tick after the
flit before it) on. With ``output_flits`` n an output takes no flit that would find n in its queue. The credits of an
input's step are one message, and an input sends one message a tick.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

import numpy as np

from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.bits import port_set
from flitlab.models.rules.ports import input_delays, make_ports
from flitlab.models.rules.stalls import stall_reasons
from flitlab.models.rules.tables import Selection
from flitlab.models.rules.vc import is_reserved, vc_score
from flitlab.models.scenario import Scenario
from flitlab.models.switching.wormhole import Wormhole
from flitlab.sim.engines.reference.clock import Allocator, Phase
from flitlab.sim.engines.reference.matching import Matcher, RoundRobin, most_urgent
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.packet import Packet
from flitlab.sim.engines.reference.source_queues import SharedQueues
from flitlab.sim.engines.reference.wormhole_faults import WormholeFaults
from flitlab.sim.engines.reference.wormhole_hosts import Flit, WormholeHost

UNLIMITED_CREDITS = 1 << 30
"""Credits for a host, which are never used up."""


class WormholeChannel:
    """An output of a switch, or the injection channel of a host.

    index: of the output in its switch. switch: ticks from the grant of a flit until it can be sent; delay: until it
    arrives, if it need not wait. flit_ticks: ticks of a flit. number: of a network channel, else None. vcs: its output
    VCs. arbiter: among the inputs that request it. free_at: tick from which it takes a flit. works: whether it is up.
    queue_end: tick after that in which the last granted flit is sent.
    """

    def __init__(self, index: int, switch: int, delay: int, flit_ticks: int, number: int | None = None):
        self.flit_ticks = flit_ticks
        self.free_at = 0
        self.index = index
        self.switch = switch
        self.delay = delay
        self.queue_end = 0
        self.number = number
        self.vcs: list[OutputVC] = []
        self.arbiter = RoundRobin()
        self.works = True

    def queued(self, now: int) -> int:
        """Flits that one granted at tick ``now`` finds in the queue."""
        return max(self.queue_end - now - self.switch, 0)

    def arrival(self, now: int) -> int:
        """Append a flit, granted at tick ``now``, to the queue; the tick of its arrival."""
        wait = self.queued(now)
        self.queue_end = now + self.switch + wait + 1
        return now + self.delay + wait

    def takes_flit(self, now: int, most: int | None) -> bool:
        """Whether it takes a flit at tick ``now``; most: flits that its queue holds, None: any number."""
        return self.free_at <= now and (most is None or self.queued(now) < most)

    @property
    def committed(self) -> int:
        """Flits of credit in use, plus unsent flits of packets that hold its VCs, in ticks."""
        flits = sum(vc.unsent + vc.input_vc.size - vc.credits for vc in self.vcs if vc.input_vc is not None)
        return flits * self.flit_ticks


class OutputVC:
    """A virtual channel at its sender.

    index: in its switch. input_vc: the downstream buffer, None at a host. credits: free flits there known to the
    sender. holder: the input VC whose packet holds it. packet: that packet. arbiter: among the input VCs that request
    it. in_flight: flits on the channel. unsent: flits of the packet that have not been sent.
    """

    def __init__(
        self,
        sender: "WormholeSwitch | WormholeHost",
        channel: WormholeChannel,
        index: int,
        input_vc: "WormholeInputVC | None",
        credits: int,
    ):
        self.sender = sender
        self.channel = channel
        self.index = index
        self.input_vc = input_vc
        self.credits = credits
        self.holder: WormholeInputVC | None = None
        self.packet: Packet | None = None
        self.arbiter = RoundRobin()
        self.in_flight: deque[Flit] = deque()
        self.unsent = 0
        if input_vc is not None:
            input_vc.upstream = self

    @property
    def is_free(self) -> bool:
        """Whether it can be allocated."""
        return self.holder is None and self.channel.works

    def allocate_to(self, holder: "WormholeInputVC") -> None:
        """Allocate it to the head packet of an input VC."""
        self.holder, self.packet = holder, holder.flits[0].packet
        self.unsent = self.packet.flits

    def release(self) -> None:
        """Release it from its packet."""
        assert self.holder is not None
        self.holder.outlet = self.holder = self.packet = None
        self.unsent = 0

    def send(self, flit: Flit, now: int) -> None:
        """Send a flit to the downstream buffer or host."""
        arrival, packet = self.channel.arrival(now), flit.packet
        if self.channel.flit_ticks > 1:
            self.channel.free_at = now + self.channel.flit_ticks
        self.unsent -= 1
        if self.input_vc is None:
            if flit.is_tail:
                self.sender.network.move(packet, arrival, None)
            return
        self.credits -= 1
        self.in_flight.append(flit)
        if flit.is_head:
            self.sender.network.move(packet, arrival, self.input_vc)
        else:
            self.sender.clock.call(arrival, Phase.ARRIVALS, self.input_vc.follow, flit)


class CrossbarInput:
    """An input of the crossbar. A port has ``inputs_per_port`` of them, and VC v is read by number v mod that.

    arbiter: among the outputs that offer themselves. vc_arbiter: among its VCs.
    """

    def __init__(self, index: int):
        self.index = index
        self.arbiter = RoundRobin()
        self.vc_arbiter = RoundRobin()


class CreditPort:
    """The credits that an input port returns, in one message per step; it sends one message a tick.

    delay: ticks from the sending of a message until the sender may use its credits.
    """

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.sent = self.step = -1

    def arrival(self, now: int, step: int) -> int:
        """The tick at which the credit of a flit that is granted in a step arrives."""
        if step != self.step:
            self.step, self.sent = step, max(now, self.sent + 1)
        return self.sent + self.delay


class WormholeInputVC:
    """The buffer of a virtual channel of an input port.

    index: in its switch. crossbar_input: the input of the crossbar that reads it. flits: those that have arrived and
    not left. front_step, front_since: step and tick from which the head packet may request a VC. outlets: the VCs that
    it may take. outlet: the VC that it holds. arbiter: among the output VCs that offer themselves. credits: of its
    port.
    """

    upstream: OutputVC

    def __init__(
        self, switch: "WormholeSwitch", index: int, crossbar_input: CrossbarInput, size: int, credits: CreditPort
    ):
        self.switch = switch
        self.credits = credits
        self.index = index
        self.crossbar_input = crossbar_input
        self.size = size
        self.flits: deque[Flit] = deque()
        self.front_step = self.front_since = 0
        self.outlets: list[OutputVC] = []
        self.outlet: OutputVC | None = None
        self.arbiter = RoundRobin()

    def arrive(self, packet: Packet) -> None:
        """Store the head flit of a packet."""
        self._put(Flit(packet, 0))

    def follow(self, flit: Flit) -> None:
        """Store a body or tail flit, unless its packet was dropped."""
        if not flit.packet.dropped:
            self._put(flit)

    def _put(self, flit: Flit) -> None:
        now = self.switch.clock.now
        assert len(self.flits) < self.size
        self.upstream.in_flight.popleft()
        self.flits.append(flit)
        if len(self.flits) == 1 and flit.is_head:
            self._update_front(self.switch.network.times.first_step(now))
        self.switch.schedule_at(now)

    def _update_front(self, step: int) -> None:
        """A head came to the front; it may ask from a step on."""
        self.front_step, self.front_since = step, self.switch.network.times.tick_of(step)
        self.outlets = self.switch.outlets(self.flits[0].packet)

    def requests_vc(self, step: int) -> bool:
        """Whether there is a packet at the front that has no VC yet and may ask for one in a step."""
        return self.outlet is None and bool(self.flits) and self.front_step <= step

    def requests_output(self, now: int) -> bool:
        """Whether the front flit can be sent at tick ``now``: its packet has a VC of a free output, and a credit."""
        if self.outlet is None or not self._front_is_read(now) or self.outlet.credits == 0:
            return False
        return not self._waits_for_reply() and self.outlet.channel.takes_flit(
            now, self.switch.network.times.output_flits
        )

    def _waits_for_reply(self) -> bool:
        """Whether the head flit at the front goes to a host that may owe no further reply."""
        assert self.outlet is not None
        flit = self.flits[0]
        return self.outlet.input_vc is None and flit.is_head and not self.switch.network.replies.may_eject(flit.packet)

    def _front_is_read(self, now: int) -> bool:
        """Whether there is a flit at the front that may be switched: of a head, the header has been read."""
        times = self.switch.network.times
        return bool(self.flits) and (not self.flits[0].is_head or now >= self.front_since + times.header)

    def stall(self, now: int) -> int:
        """The reasons for which the front flit stalls at tick ``now`` unless it is granted; 0 if none may be."""
        if not self._front_is_read(now):
            return 0
        if self.outlet is None:
            return int(stall_reasons(True, False, False))
        is_taken = not self.outlet.channel.takes_flit(now, self.switch.network.times.output_flits)
        return int(stall_reasons(False, self.outlet.credits == 0 or self._waits_for_reply(), is_taken))

    def leave(self, now: int, step: int) -> None:
        """Send the front flit, which is granted in a step of tick ``now``; a tail releases its VC."""
        net, outlet = self.switch.network, self.outlet
        assert outlet is not None
        flit = self.flits.popleft()
        channel = outlet.channel.number
        returned = self.credits.arrival(now, step)
        self.switch.clock.call(returned, Phase.CREDITS, self.restore, returned)
        if flit.is_head:
            net.ledger.grant(channel, 1)
            if channel is None:
                net.replies.commit(flit.packet)
            if channel is not None:
                flit.packet.hop += 1
                net.routing.enter(flit.packet, outlet.index % net.times.vcs)
        else:
            net.ledger.carry(channel, 1)
        net.ledger.cross(channel, flit.packet.destination, 1, int(flit.is_head))
        outlet.send(flit, now)
        if flit.is_tail:
            outlet.release()
            if self.flits:
                self._update_front(step + 1)

    def remove_dropped(self, now: int) -> None:
        """Remove the flits of dropped packets, stored and in flight, and return their credits."""
        arrived, in_flight = self.flits, self.upstream.in_flight
        self.flits = deque(flit for flit in arrived if not flit.packet.dropped)
        self.upstream.in_flight = deque(flit for flit in in_flight if not flit.packet.dropped)
        self.upstream.credits += len(arrived) + len(in_flight) - len(self.flits) - len(self.upstream.in_flight)
        if self.flits and self.flits[0] is not arrived[0]:
            self._update_front(now)

    def restore(self, now: int) -> None:
        """Return a credit to the sender."""
        self.upstream.credits += 1
        self.upstream.sender.schedule_at(now)


class WormholeSwitch(Allocator):
    """Input VCs, outputs, and the matching between them.

    outputs: network channels in channel order, then ejection channels; ejection: by host. first_vc: number of its first
    input VC in the network. crossbar, vc_allocator: its allocators.
    """

    crossbar: Matcher
    vc_allocator: Matcher

    def __init__(self, net: "WormholeNetwork", index: int, first_vc: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.first_vc = first_vc
        self.outputs: list[WormholeChannel] = []
        self.ejection: dict[int, WormholeChannel] = {}
        self.input_vcs: list[WormholeInputVC] = []

    def make_allocators(self) -> None:
        """Make the allocators of the inputs and outputs that it has."""
        times, inputs, outputs = self.network.times, len(self.input_vcs), len(self.outputs)
        entries = inputs // times.vcs * times.inputs_per_port
        self.crossbar = Matcher(times.matching, times.iterations, max(entries, outputs))
        self.vc_allocator = Matcher(times.matching, times.iterations, max(inputs, outputs * times.vcs))

    def outlets(self, packet: Packet) -> list[OutputVC]:
        """The output VCs that a packet may take at this switch."""
        choices = self.network.routing.choices(packet, self.index)
        if not choices:
            first, end = self.network.class_vcs(packet.sequence)
            return self.ejection[packet.destination].vcs[first:end]
        return [vc for port, first, end in choices for vc in self.outputs[port].vcs[first:end]]

    def allocate(self, now: int) -> None:
        """Allocate VCs to packets, and match inputs with outputs; both use the state at the start of the step."""
        times, stalls = self.network.times, dict[int, int]()
        for step in range(times.first_step(now), times.first_step(now + 1)):
            allocated = self._allocate_vcs(step)
            if times.header > 0:
                stalls = self._allocate_switch(now, step)
            for vc, outlet in allocated.items():
                vc.outlet = outlet
            if times.header == 0:  # a head can be switched in the step in which it gets its VC
                stalls = self._allocate_switch(now, step)
        self.network.ledger.stall(stalls, times.vcs)
        if any(vc.flits for vc in self.input_vcs):
            self.schedule_at(now + 1)

    def _allocate_switch(self, now: int, step: int) -> dict[int, int]:
        """Grant flits; returns why the others stall, by input VC in the network, if the run counts that."""
        counts = self.network.ledger.stalls is not None
        stalls = {self.first_vc + vc.index: vc.stall(now) for vc in self.input_vcs} if counts else {}
        requesters: dict[CrossbarInput, dict[WormholeChannel, dict[int, WormholeInputVC]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for vc in self.input_vcs:
            if vc.requests_output(now):
                assert vc.outlet is not None
                requesters[vc.crossbar_input][vc.outlet.channel][vc.index] = vc

        def urgency(entry: CrossbarInput, channel: WormholeChannel) -> int:
            return max(map(self._urgency, requesters[entry][channel].values()))

        requests = {entry: list(channels) for entry, channels in requesters.items()}
        ranked = urgency if self.network.ranks_requests else None
        for entry, channel in self.crossbar.match(requests, ranked).items():
            vcs = requesters[entry][channel]
            if self.network.has_priorities:
                vcs = most_urgent(vcs, [self._urgency(vc) for vc in vcs.values()])
            index = entry.vc_arbiter.last_served = entry.vc_arbiter.select(vcs)
            vcs[index].leave(now, step)
            stalls.pop(self.first_vc + index, None)
        return stalls

    def _urgency(self, vc: WormholeInputVC) -> int:
        """The urgency of the packet at the front of an input VC."""
        return self.network.urgency(vc.flits[0].packet)

    def _allocate_vcs(self, step: int) -> dict[WormholeInputVC, OutputVC]:
        requesters = [vc for vc in self.input_vcs if vc.requests_vc(step)]
        if self.network.routing.routes.rule != Selection.ADAPTIVE:
            requests = {vc: [outlet for outlet in vc.outlets if outlet.is_free] for vc in requesters}
            ranked = (lambda vc, _: self._urgency(vc)) if self.network.ranks_requests else None
            allocated = self.vc_allocator.match(requests, ranked)
            for vc, outlet in allocated.items():
                outlet.allocate_to(vc)
            return allocated
        allocated = {}
        ranks = self.network.ranks_requests
        for vc in sorted(requesters, key=lambda vc: (-self._urgency(vc) * ranks, vc.front_step, vc.index)):
            choice = self._choose(vc.outlets, vc.flits[0].packet)
            if choice is not None:
                allocated[vc] = choice
                choice.allocate_to(vc)
        return allocated

    def _choose(self, outlets: list[OutputVC], packet: Packet) -> OutputVC | None:
        """The VC that an adaptive packet takes (see ``flitlab.models.rules.adaptive``); None if it gets none.

        outlets: the VCs that it may take.
        """
        net = self.network
        score = {
            o: int(vc_score(net.routing.reserved_vcs, o.index % net.times.vcs, o.credits, packet.flits))
            for o in outlets
        }
        allowed = {outlet.channel.index for outlet in outlets}
        offers: dict[int, OutputVC] = {}
        for outlet in outlets:  # in their order, so that of equal VCs of a channel the lowest is taken
            best = offers.get(outlet.channel.index)
            if outlet.is_free and score[outlet] and (best is None or score[outlet] > score[best]):
                offers[outlet.channel.index] = outlet
        if not offers or len(allowed) == 1:
            return next(iter(offers.values()), None)
        cost = {
            index: int(channel_cost(o.channel.committed, net.routing.reserved_vcs > 0 and is_reserved(score[o])))
            for index, o in offers.items()
        }
        least, word = min(cost.values()), net.routing.route_word(packet)
        drawn = int(drawn_channel(port_set(allowed), word))
        length = packet.flits * self.outputs[drawn].flit_ticks
        if drawn in offers and keeps_drawn(cost[drawn], least, length):
            return offers[drawn]
        return offers[int(drawn_tie(port_set(index for index in cost if cost[index] == least), word))]


class WormholeNetwork(Network[Wormhole]):
    """A run of wormhole switching.

    ranks_requests: whether allocators heed priorities; else only inputs do that choose a VC to send from.
    """

    switches: list[WormholeSwitch]

    def __init__(self, scenario: Scenario[Wormhole], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        self.ranks_requests = self.has_priorities and times.priority_at == "all"
        numbering = make_ports(topology)
        first_vcs = (numbering.in_base[:-1] * times.vcs).tolist()
        self.switches = [WormholeSwitch(self, v, first) for v, first in enumerate(first_vcs)]
        credit = times.credit + input_delays(numbering, times.credit_delays(topology), topology.access_delay)
        sizes = input_delays(numbering, *np.split(times.buffers_of(topology), [topology.channels]))
        inputs = [
            self._input_port(self.switches[v], port - int(numbering.in_base[v]), int(sizes[port]), int(credit[port]))
            for port, v in enumerate(numbering.in_switch)
        ]
        ends = zip(topology.src, topology.delay.tolist(), strict=True)
        for channel, (tail, extra) in enumerate(ends):
            switch = self.switches[tail]
            ticks = self.flit_ticks[channel]
            delay = times.switch + times.link + extra + ticks - 1
            output = WormholeChannel(len(switch.outputs), times.switch, delay, ticks, channel)
            switch.outputs.append(output)
            port = numbering.out_base[tail] + output.index
            self._output_vcs(switch, output, inputs[numbering.out_input[port]])
        self.queues = SharedQueues(self)
        hosts = [WormholeHost(self, h) for h in range(topology.hosts)]
        for host, switch_index in zip(hosts, topology.ejection_switch, strict=True):
            switch = self.switches[switch_index]
            output = WormholeChannel(len(switch.outputs), times.switch, self.ejection(host.index), self.host_flit_ticks)
            switch.outputs.append(output)
            switch.ejection[host.index] = output
            self._output_vcs(switch, output, [None] * times.vcs)
            injection = WormholeChannel(0, 0, self.injection(host.index), self.host_flit_ticks)
            self._output_vcs(host, injection, inputs[numbering.inject[host.index]])
            host.connect(injection.vcs)
        self.outputs = [(o, switch) for switch in self.switches for o in switch.outputs if o.number is not None]
        self.hosts = hosts
        for switch in self.switches:
            switch.make_allocators()
        self.faults = WormholeFaults(self)
        self.start(hosts)

    def source(self, host: int, number: int) -> int:
        """The number of a source; number: of its class."""
        return number * len(self.hosts) + host

    def source_of(self, packet: Packet) -> int:
        """The number of the source of a packet."""
        return self.source(packet.source, packet.sequence % len(self.processes))

    def count_channels(self) -> None:
        super().count_channels()
        self.ledger.count_stalls()

    def queue(self, channel: int, now: int) -> int:
        output, switch = self.outputs[channel]
        waiting = sum(len(vc.flits) for vc in switch.input_vcs if vc.flits and vc.outlets[0].channel is output)
        waiting += sum(vc.input_vc.size - vc.credits for vc in output.vcs if vc.input_vc is not None)
        return waiting * output.flit_ticks

    def _input_port(self, switch: WormholeSwitch, port: int, size: int, credit: int) -> list[WormholeInputVC]:
        """The VCs of an input port; size: flits of the buffer of each; credit: credit delay in ticks."""
        times, credits, several = self.times, CreditPort(credit), self.times.inputs_per_port
        readers = [CrossbarInput(port * several + i) for i in range(several)]
        vcs = [
            WormholeInputVC(switch, port * times.vcs + vc, readers[vc % several], size, credits)
            for vc in range(times.vcs)
        ]
        switch.input_vcs += vcs
        return vcs

    def _output_vcs(
        self, sender: WormholeSwitch | WormholeHost, channel: WormholeChannel, ends: Sequence[WormholeInputVC | None]
    ) -> None:
        """Create the VCs of a channel, one for each downstream buffer."""
        for i, end in enumerate(ends):
            credits = UNLIMITED_CREDITS if end is None else end.size
            channel.vcs.append(OutputVC(sender, channel, channel.index * self.times.vcs + i, end, credits))

    def deadlocked(self) -> bool:
        """Whether some front flit of an input VC can never be granted.

        A front flit can move eventually if the downstream buffer is not full or can itself move a flit. A packet
        without a VC can move if it may take one that is free, or whose holder can move. The remaining flits are
        deadlocked.
        """
        blocked = {vc for switch in self.switches for vc in switch.input_vcs if vc.flits}

        def drains(to: WormholeInputVC | None) -> bool:
            return to is None or len(to.flits) < to.size or to not in blocked

        def comes_free(outlet: OutputVC) -> bool:
            if outlet.holder is not None:
                return outlet.holder not in blocked
            return self.routing.routes.rule != Selection.ADAPTIVE or drains(outlet.input_vc)

        def receives(vc: WormholeInputVC) -> bool:
            packet = vc.flits[0].packet
            if not vc.flits[0].is_head or self.replies.will_release(packet):
                return True
            host, waiting, reply = self.replies.first(packet)
            injection = host.injections[reply]
            if injection.flit is not None:
                return drains(injection.outlet.input_vc)
            return waiting is None or any(drains(outlet.input_vc) for outlet in injection.vcs)

        def moves(vc: WormholeInputVC) -> bool:
            if vc.outlet is None:
                return any(comes_free(outlet) for outlet in vc.outlets)
            return receives(vc) if vc.outlet.input_vc is None else drains(vc.outlet.input_vc)

        while True:
            freed = {vc for vc in blocked if moves(vc)}
            if not freed:
                return bool(blocked)
            blocked -= freed
