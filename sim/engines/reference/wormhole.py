# SPDX-License-Identifier: Apache-2.0
"""Wormhole: credits in flits; a packet holds a VC of the next buffer, and every flit asks for the crossbar.

Per tick and switch, both steps seeing it as the tick began:

1. *VC allocation.* An input VC whose front packet has no VC of an output yet asks for all those that the packet may
   take and nobody holds; credits do not matter. Output VCs offer themselves to input VCs, and these accept
   (``islip``). If routing is adaptive, input VCs are visited instead, oldest T first (ties: lowest input port, then
   VC). A packet chooses among the channels that have a free VC with a credit (``flitlab.models.rules.adaptive``), and
   takes the one with most credits there (ties: the lowest). With an escape VC, that comes last, and the others need
   credits for the whole packet.
2. *Switch allocation.* An input VC asks for the output that its front packet has a VC of, if its front flit is
   there, may be switched, and the VC has a credit. Outputs offer themselves to inputs, and these accept, likewise; an
   input that sends then chooses among its VCs that ask for that output.

A head asks from T = max(its arrival, the tick after the grant of the tail before it), and is switched from
T + header on, and not in the tick in which it gets its VC unless the header delay is 0. A tail gives its VC back when
it is granted, for the next tick.

A link that fails *cuts* every packet that has flits on it or holds a VC of it; a switch that fails, those that have
flits in it. As that tick begins all flits of a packet that is cut vanish, wherever they are, the rest of it is not
sent, the VCs that it holds are free, and senders have the credits back for what its flits took of buffers or were on
their way to. Credits that are on their way arrive. The packet that comes to the front where one was cut may ask for a
VC in the same tick.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.bits import port_set
from flitlab.models.rules.ports import input_delays, make_ports
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.models.rules.vc import appeal, is_last_resort
from flitlab.models.scenario import Scenario
from flitlab.models.switching.wormhole import Wormhole
from flitlab.sim.engines.reference import network
from flitlab.sim.engines.reference.changes import DrainingChanges
from flitlab.sim.engines.reference.clock import ARRIVALS, CREDITS, SENDING, Alarm, Allocator
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.packet import Packet

ENDLESS = 1 << 30
"""Credits for a host, which are never used up."""


class Flit(NamedTuple):
    """A flit of a packet; number: its place in it, 0 for the head."""

    packet: Packet
    number: int

    @property
    def is_head(self) -> bool:
        return self.number == 0

    @property
    def is_tail(self) -> bool:
        return self.number == self.packet.flits - 1


class Turn:
    """Rotating priority: whoever was served last comes last."""

    def __init__(self) -> None:
        self.last = -1

    def first(self, places: Iterable[int]) -> int:
        """The place whose turn it is, of those at some places (at least one)."""
        return min(places, key=lambda place: (place <= self.last, place))


class Channel:
    """What flits travel on: an output of a switch, or the injection channel of a host.

    place: of the output in its switch. delay: ticks from a flit's grant to its arrival. number: of a
    network channel, else None. vcs: its output VCs. turn: of the inputs that ask for it. works: whether it does.
    """

    def __init__(self, place: int, delay: int, number: int | None = None):
        self.place = place
        self.delay = delay
        self.number = number
        self.vcs: list[OutputVC] = []
        self.turn = Turn()
        self.works = True

    @property
    def committed(self) -> int:
        """Flits of credit in use, and those that the packets that hold its VCs have yet to send."""
        return sum(vc.unsent + vc.to.size - vc.credits for vc in self.vcs if vc.to is not None)


class OutputVC:
    """A virtual channel as seen by who sends on it.

    place: in its switch. to: the buffer at its end, None at a host. credits: flits of room there that
    the sender knows of. holder: the input VC whose packet has it. packet: which that is. turn: of the input VCs that
    ask for it. flying: flits on their way to the buffer. unsent: flits of the packet that have not been sent.
    """

    def __init__(self, sender: Allocator, channel: Channel, place: int, to: "InputVC | None", credits: int):
        self.sender = sender
        self.channel = channel
        self.place = place
        self.to = to
        self.credits = credits
        self.holder: InputVC | None = None
        self.packet: Packet | None = None
        self.turn = Turn()
        self.flying: deque[Flit] = deque()
        self.unsent = 0
        if to is not None:
            to.feeder = self

    @property
    def is_free(self) -> bool:
        """Whether a packet may be given it."""
        return self.holder is None and self.channel.works

    def take(self, holder: "InputVC") -> None:
        """Give it to the packet at the front of an input VC."""
        self.holder, self.packet = holder, holder.flits[0].packet
        self.unsent = self.packet.flits

    def release(self) -> None:
        """Take it from the packet that has it."""
        assert self.holder is not None
        self.holder.outlet = self.holder = self.packet = None
        self.unsent = 0

    def send(self, flit: Flit, now: int) -> None:
        """Send a flit to the buffer, or the host, at the other end."""
        arrival, packet = now + self.channel.delay, flit.packet
        self.unsent -= 1
        if self.to is None:
            if flit.is_tail:
                packet.moved.set(arrival, ARRIVALS, None)
            return
        self.credits -= 1
        self.flying.append(flit)
        if flit.is_head:
            packet.moved.set(arrival, ARRIVALS, self.to)
        else:
            Alarm(self.to.switch.clock, arrival, ARRIVALS, self.to.follow, flit)


class Input:
    """An input of the crossbar: a port, or with an ``input_speedup`` of ``vcs`` each VC of one.

    turn: of the outputs that offer themselves to it. vc_turn: of its VCs.
    """

    def __init__(self, place: int):
        self.place = place
        self.turn = Turn()
        self.vc_turn = Turn()


class InputVC:
    """The buffer of one virtual channel of an input port.

    place: in its switch. entry: the input of the crossbar that reads it. flits: what has arrived and has
    not left. since: the tick from which the packet at the front may ask for a VC. outlets: what it may ask
    for. outlet: what it has got. turn: of the output VCs that offer themselves to it. credit: ticks from a flit's grant
    until the sender may use its credit.
    """

    feeder: OutputVC

    def __init__(self, switch: "Switch", place: int, entry: Input, size: int, credit: int):
        self.switch = switch
        self.credit = credit
        self.place = place
        self.entry = entry
        self.size = size
        self.flits: deque[Flit] = deque()
        self.since = 0
        self.outlets: list[OutputVC] = []
        self.outlet: OutputVC | None = None
        self.turn = Turn()

    def arrive(self, packet: Packet) -> None:
        """Take in the head of a packet."""
        self._put(Flit(packet, 0))

    def follow(self, alarm: Any) -> None:
        """Take in a flit that is not a head, which an alarm brings as its value, unless its packet was lost."""
        if not alarm.value.packet.dropped:
            self._put(alarm.value)

    def _put(self, flit: Flit) -> None:
        now = self.switch.clock.now
        assert len(self.flits) < self.size
        self.feeder.flying.popleft()
        self.flits.append(flit)
        if len(self.flits) == 1 and flit.is_head:
            self._present(now)
        self.switch.wake(now)

    def _present(self, since: int) -> None:
        """A head came to the front; it may ask from ``since`` on."""
        self.since = since
        self.outlets = self.switch.outlets(self.flits[0].packet)

    def asks_for_vc(self, now: int) -> bool:
        """Whether there is a packet at the front that has no VC yet and may ask for one at tick ``now``."""
        return self.outlet is None and bool(self.flits) and self.since <= now

    def asks_for_output(self, now: int) -> bool:
        """Whether the front flit can be sent at tick ``now``: its packet has a VC, and that has a credit."""
        if self.outlet is None or not self.flits or self.outlet.credits == 0:
            return False
        return not self.flits[0].is_head or now >= self.since + self.switch.network.times.header

    def leave(self, now: int) -> None:
        """Send the front flit, which is granted at tick ``now``; a tail gives its VC back."""
        net, outlet = self.switch.network, self.outlet
        assert outlet is not None
        flit = self.flits.popleft()
        channel = outlet.channel.number
        Alarm(self.switch.clock, now + self.credit, CREDITS, self.restore)
        if flit.is_head:
            net.ledger.grant(channel, 1)
            if channel is not None:
                flit.packet.hop += 1
                net.enter(flit.packet, outlet.place % net.times.vcs)
        else:
            net.ledger.carry(channel, 1)
        outlet.send(flit, now)
        if flit.is_tail:
            outlet.release()
            if self.flits:
                self._present(now + 1)

    def drop(self, packets: set[Packet], now: int) -> None:
        """Drop the flits of packets that are cut, here and on their way, and give the credits for them back."""
        here, coming = self.flits, self.feeder.flying
        self.flits = deque(flit for flit in here if flit.packet not in packets)
        self.feeder.flying = deque(flit for flit in coming if flit.packet not in packets)
        self.feeder.credits += len(here) + len(coming) - len(self.flits) - len(self.feeder.flying)
        if self.flits and self.flits[0] is not here[0]:
            self._present(now)

    def restore(self, _: Any) -> None:
        """Give a credit back to where flits for this buffer are sent."""
        self.feeder.credits += 1
        self.feeder.sender.wake(self.switch.clock.now)


class Host(network.Host, Allocator):
    """Sends its packets one after another, a flit a tick, each on the next injection VC in turn that has credits.

    The packet being sent is ``flit.packet``, and ``flit`` goes next.
    """

    phase = SENDING
    waiting: deque[Packet]
    network: "WormholeNetwork"

    def __init__(self, net: "WormholeNetwork", index: int):
        network.Host.__init__(self, net, index)
        Allocator.__init__(self, net.clock)
        self.vcs: list[OutputVC] = []
        self.turn = Turn()
        self.outlet: OutputVC
        self.flit: Flit | None = None

    def notice(self, now: int) -> None:
        self.wake(now)

    def allocate(self, now: int) -> None:
        """Send the next flit if an injection VC has a credit."""
        if self.flit is None:
            if not self.waiting or self.network.changes.draining:
                return
            if any(vc.credits for vc in self.vcs):
                self.turn.last = self.turn.first(i for i, vc in enumerate(self.vcs) if vc.credits)
                self.outlet = self.vcs[self.turn.last]
                self.start(now)
        elif self.outlet.credits:
            self._send(self.flit, now)
        if self.flit is not None or self.waiting:
            self.wake(now + 1)

    def start(self, now: int) -> None:
        """Send the head of the oldest packet."""
        self._send(Flit(self.leave(now), 0), now)

    def _send(self, flit: Flit, now: int) -> None:
        self.outlet.send(flit, now)
        if flit.is_tail:
            self.network.tail_left(flit.packet, now + 1)
        self.flit = None if flit.is_tail else Flit(flit.packet, flit.number + 1)


class Asking(Protocol):
    """One side of a matching: something that has a place among its like and takes those of the other side in turn."""

    place: int
    turn: Turn


A = TypeVar("A", bound=Asking)
B = TypeVar("B", bound=Asking)


def islip(wanted: dict[A, list[B]], iterations: int) -> dict[A, B]:
    """Which input gets which output, of those that each asks for (see ``flitlab.models.rules.allocate``)."""
    matched: dict[A, B] = {}
    for iteration in range(iterations):
        asked: dict[B, dict[int, A]] = defaultdict(dict)
        taken = set(matched.values())
        for entry, outputs in wanted.items():
            for output in outputs:
                if entry not in matched and output not in taken:
                    asked[output][entry.place] = entry
        offers: dict[A, dict[int, B]] = defaultdict(dict)
        for output, entries in asked.items():
            offers[entries[output.turn.first(entries)]][output.place] = output
        for entry, offer in offers.items():
            output = matched[entry] = offer[entry.turn.first(offer)]
            if iteration == 0:
                output.turn.last, entry.turn.last = entry.place, output.place
    return matched


class Switch(Allocator):
    """Input VCs, outputs, and the matching between them.

    outputs: network channels in channel order, then ejection channels; ejection: by host.
    """

    def __init__(self, net: "WormholeNetwork", index: int):
        super().__init__(net.clock)
        self.network = net
        self.index = index
        self.outputs: list[Channel] = []
        self.ejection: dict[int, Channel] = {}
        self.input_vcs: list[InputVC] = []

    def outlets(self, packet: Packet) -> list[OutputVC]:
        """The output VCs that a packet may take here."""
        choices = self.network.choices(packet, self.index)
        if not choices:
            return self.ejection[packet.destination].vcs
        return [vc for port, first, end in choices for vc in self.outputs[port].vcs[first:end]]

    def allocate(self, now: int) -> None:
        """Give VCs to packets that need one, and match inputs with outputs; both see the switch as the tick began."""
        given = self._allocate_vcs(now)
        if self.network.times.header > 0:
            self._allocate_switch(now)
        for vc, outlet in given.items():
            vc.outlet = outlet
        if self.network.times.header == 0:  # a head can be switched in the tick in which it gets its VC
            self._allocate_switch(now)
        if any(vc.flits for vc in self.input_vcs):
            self.wake(now + 1)

    def _allocate_switch(self, now: int) -> None:
        asking: dict[Input, dict[Channel, dict[int, InputVC]]] = defaultdict(lambda: defaultdict(dict))
        for vc in self.input_vcs:
            if vc.asks_for_output(now):
                assert vc.outlet is not None
                asking[vc.entry][vc.outlet.channel][vc.place] = vc
        wanted = {entry: list(channels) for entry, channels in asking.items()}
        for entry, channel in islip(wanted, self.network.times.iterations).items():
            vcs = asking[entry][channel]
            place = entry.vc_turn.last = entry.vc_turn.first(vcs)
            vcs[place].leave(now)

    def _allocate_vcs(self, now: int) -> dict[InputVC, OutputVC]:
        asking = [vc for vc in self.input_vcs if vc.asks_for_vc(now)]
        if self.network.routes.rule != ADAPTIVE:
            wanted = {vc: [outlet for outlet in vc.outlets if outlet.is_free] for vc in asking}
            given = islip(wanted, self.network.times.iterations)
            for vc, outlet in given.items():
                outlet.take(vc)
            return given
        given = {}
        for vc in sorted(asking, key=lambda vc: (vc.since, vc.place)):
            choice = self._choose(vc.outlets, vc.flits[0].packet)
            if choice is not None:
                given[vc] = choice
                choice.take(vc)
        return given

    def _choose(self, outlets: list[OutputVC], packet: Packet) -> OutputVC | None:
        """The VC that an adaptive packet takes (see ``flitlab.models.rules.adaptive``), None if it can have none.

        outlets: the VCs that it may take.
        """
        net = self.network
        worth = {o: int(appeal(net.resorts, o.place % net.times.vcs, o.credits, packet.flits)) for o in outlets}
        allowed = {outlet.channel.place for outlet in outlets}
        offers: dict[int, OutputVC] = {}
        for outlet in outlets:  # in their order, so that of equal VCs of a channel the lowest is taken
            best = offers.get(outlet.channel.place)
            if outlet.is_free and worth[outlet] and (best is None or worth[outlet] > worth[best]):
                offers[outlet.channel.place] = outlet
        if not offers or len(allowed) == 1:
            return next(iter(offers.values()), None)
        cost = {
            place: int(channel_cost(o.channel.committed, net.resorts > 0 and is_last_resort(worth[o])))
            for place, o in offers.items()
        }
        least, word = min(cost.values()), net.route_word(packet)
        drawn = int(drawn_channel(port_set(allowed), word))
        if drawn in offers and keeps_drawn(cost[drawn], least, packet.flits):
            return offers[drawn]
        return offers[int(drawn_tie(port_set(place for place in cost if cost[place] == least), word))]


class WormholeChanges(DrainingChanges):
    """What happens to a network of wormhole switches; network: a :class:`WormholeNetwork`."""

    def _fail(self, channel: int) -> None:
        output, _ = self.network.outputs[channel]
        output.works = False
        on_it = {flit.packet for vc in output.vcs for flit in vc.flying}
        self._cut(on_it | {vc.packet for vc in output.vcs if vc.packet is not None})

    def _restore(self, channel: int) -> None:
        self.network.outputs[channel][0].works = True

    def _empty(self, switch: Switch) -> None:
        self._cut({flit.packet for vc in switch.input_vcs for flit in vc.flits})

    def _lose_waiting(self) -> None:
        since = self.clock.now - 1
        asking = [vc for switch in self.network.switches for vc in switch.input_vcs if vc.asks_for_vc(since)]
        self._cut({vc.flits[0].packet for vc in asking if not all(outlet.channel.works for outlet in vc.outlets)})

    def _cut(self, packets: set[Packet]) -> None:
        """Packets are lost with all their flits, and the VCs and credits that they have are free again."""
        if not packets:
            return
        for switch in self.network.switches:
            for outlet in (outlet for output in switch.outputs for outlet in output.vcs):
                if outlet.packet in packets:
                    outlet.release()
            for vc in switch.input_vcs:
                vc.drop(packets, self.clock.now)
        for host in self.network.hosts:
            if host.flit is not None and host.flit.packet in packets:
                host.flit = None
        for packet in packets:
            self.network.drop(packet)


class WormholeNetwork(Network[Wormhole]):
    """A run of wormhole switching."""

    def __init__(self, scenario: Scenario[Wormhole], load: float, seed: int, log: bool = False, shuffle: int = 0):
        super().__init__(scenario, load, seed, log, shuffle)
        topology, times = scenario.topology, scenario.switching
        self.switches = [Switch(self, v) for v in range(topology.switches)]
        numbering = make_ports(topology)
        credit = times.credit + input_delays(numbering, times.credit_delays(topology), topology.access_delay)
        inputs = [
            self._input_port(self.switches[v], port - int(numbering.in_base[v]), int(credit[port]))
            for port, v in enumerate(numbering.in_switch)
        ]
        ends = zip(topology.src, topology.delay.tolist(), strict=True)
        for channel, (tail, extra) in enumerate(ends):
            switch = self.switches[tail]
            output = Channel(len(switch.outputs), times.switch + times.link + extra, channel)
            switch.outputs.append(output)
            port = numbering.out_base[tail] + output.place
            self._output_vcs(switch, output, inputs[numbering.out_input[port]])
        hosts = [Host(self, h) for h in range(topology.hosts)]
        for host, place in zip(hosts, topology.host_switch, strict=True):
            switch = self.switches[place]
            output = Channel(len(switch.outputs), self.ejection(host.index))
            switch.outputs.append(output)
            switch.ejection[host.index] = output
            self._output_vcs(switch, output, [None] * times.vcs)
            injection = Channel(0, self.injection(host.index))
            self._output_vcs(host, injection, inputs[numbering.inject[host.index]])
            host.vcs = injection.vcs
        self.outputs = [(o, switch) for switch in self.switches for o in switch.outputs if o.number is not None]
        self.hosts = hosts
        self.changes = WormholeChanges(self, times.changes_of(scenario.timeline, scenario.routes))
        self.start(hosts)

    def queue(self, channel: int, now: int) -> int:
        output, switch = self.outputs[channel]
        waiting = sum(len(vc.flits) for vc in switch.input_vcs if vc.flits and vc.outlets[0].channel is output)
        return waiting + sum(self.times.buffer_flits - vc.credits for vc in output.vcs)

    def _input_port(self, switch: Switch, port: int, credit: int) -> list[InputVC]:
        """The VCs of an input port, whose credits take so many ticks."""
        times, entry = self.times, Input(port)
        vcs = []
        for place in range(port * times.vcs, (port + 1) * times.vcs):
            if not times.shared_input:
                entry = Input(place)
            vcs.append(InputVC(switch, place, entry, times.buffer_flits, credit))
        switch.input_vcs += vcs
        return vcs

    def _output_vcs(self, sender: Allocator, channel: Channel, ends: Sequence[InputVC | None]) -> None:
        """The VCs of a channel, one for each buffer at its end."""
        for i, end in enumerate(ends):
            room = ENDLESS if end is None else self.times.buffer_flits
            channel.vcs.append(OutputVC(sender, channel, channel.place * self.times.vcs + i, end, room))

    def deadlocked(self) -> bool:
        """Whether some flit at the front of an input VC can never be granted.

        A front flit can move (one day) if the buffer at the end of its VC is not full, or itself can move a
        flit; a packet that has no VC yet can if it may take one that is free or whose holder can move.
        The rest is the deadlock.
        """
        stuck = {vc for switch in self.switches for vc in switch.input_vcs if vc.flits}

        def drains(to: InputVC | None) -> bool:
            return to is None or len(to.flits) < to.size or to not in stuck

        def comes_free(outlet: OutputVC) -> bool:
            if outlet.holder is not None:
                return outlet.holder not in stuck
            return self.routes.rule != ADAPTIVE or drains(outlet.to)

        def moves(vc: InputVC) -> bool:
            return drains(vc.outlet.to) if vc.outlet else any(comes_free(outlet) for outlet in vc.outlets)

        while True:
            freed = {vc for vc in stuck if moves(vc)}
            if not freed:
                return bool(stuck)
            stuck -= freed
