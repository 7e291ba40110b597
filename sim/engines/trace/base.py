# SPDX-License-Identifier: Apache-2.0
"""The history of a packet, built from its state after every tick."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from flitlab.models.rules.arrivals import make_arrivals, next_arrival
from flitlab.models.rules.packets import destination, length, make_packets
from flitlab.models.rules.ports import make_ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffered import Buffered
from flitlab.models.switching.deflection import Deflection
from flitlab.models.topology.flit_times import flit_times
from flitlab.models.topology.names import host_names

FOLLOWED_TICKS = 100_000
"""Ticks for which a packet is followed after its creation."""

LATEST_CREATION = 10_000_000
"""The last tick at which the packet may be created."""

_DEADLOCK_CHECK = 1 << 10


class Event(NamedTuple):
    """An event of a packet; fields that do not apply are None.

    event: ``created``, ``sent``, ``arrived`` (head), ``eligible`` (may be granted from this tick on), ``allocated``
    (wormhole: a VC of the next channel), ``granted`` or ``deflected`` (head), ``tail`` (leaves the switch),
    ``delivered``. host, switch: where. to: next switch; None: its host. channel, vc: by which it came (``arrived``) or
    leaves; channel None: a host's, or one of several parallel ones under deflection. waited: ticks of waiting that end
    here.
    """

    tick: int
    event: str
    host: int | None = None
    switch: int | None = None
    to: int | None = None
    channel: int | None = None
    vc: int | None = None
    waited: int = 0


@dataclass
class Visit:
    """A packet at a switch: ticks at which its head arrived, is eligible, has a VC, is granted; and of its tail's
    grant.

    channel, vc: by which it came.
    """

    switch: int
    channel: int | None
    vc: int | None
    arrived: int | None = None
    eligible: int | None = None
    allocated: int | None = None
    granted: int | None = None
    tail: int | None = None
    deflected: bool = False


@dataclass
class PacketHistory:
    """The events of a packet before tick ``until``. source, destination: hosts. deadlocked: it cannot move again."""

    identity: int
    source: int
    destination: int
    flits: int
    created: int
    until: int
    sent: int | None = None
    delivered: int | None = None
    deadlocked: bool = False
    visits: list[Visit] = field(default_factory=list)

    @property
    def hops(self) -> int:
        """Channels between switches that the packet has taken."""
        return max(0, len(self.visits) - 1)

    def events(self, header: int) -> list[Event]:
        """All events of the packet, by tick. header: the header delay in ticks, which does not count as waiting."""
        events = [Event(self.created, "created", host=self.source)]
        if self.sent is not None:
            waited = self.sent - self.created
            events.append(Event(self.sent, "sent", host=self.source, vc=self.visits[0].vc, waited=waited))
        for i, visit in enumerate(self.visits):
            events += _events_of(visit, self.visits[i + 1] if i < self.hops else None, header)
        if self.delivered is not None:
            events.append(Event(self.delivered, "delivered", host=self.destination))
        return sorted((event for event in events if event.tick < self.until), key=lambda event: event.tick)


def _events_of(visit: Visit, following: Visit | None, header: int) -> list[Event]:
    switch = visit.switch
    events = []
    if visit.arrived is not None:
        events.append(Event(visit.arrived, "arrived", switch=switch, channel=visit.channel, vc=visit.vc))
        if visit.eligible is not None:
            waited = visit.eligible - visit.arrived - header
            events.append(Event(visit.eligible, "eligible", switch=switch, waited=waited))
    if following is None:
        to = channel = vc = None
    else:
        to, channel, vc = following.switch, following.channel, following.vc
    if visit.allocated is not None:
        events.append(Event(visit.allocated, "allocated", switch=switch, to=to, channel=channel, vc=vc))
    if visit.granted is not None and visit.eligible is not None:
        name = "deflected" if visit.deflected else "granted"
        events.append(Event(visit.granted, name, None, switch, to, channel, vc, visit.granted - visit.eligible))
    if visit.tail is not None:
        events.append(Event(visit.tail, "tail", switch=switch))
    return events


class ClosedForm(NamedTuple):
    """The zero-load latency of a packet on the path that it took, in ticks by cause."""

    injection: int
    header: int
    switch: int
    links: int
    ejection: int
    flits: int


def reject_speeds(scenario: Scenario[Any]) -> None:
    """Raise ``ValueError`` for channels of different speed, over which single packets are not followed."""
    if not flit_times(scenario.topology).all_one:
        raise ValueError("topology.capacity: single packets are followed only where all channels are equally fast")


def zero_load(life: PacketHistory, scenario: Scenario[Buffered]) -> ClosedForm:
    """Return the zero-load latency of a delivered packet by cause; links: their extra delays included."""
    model, through = scenario.switching, len(life.visits)
    links = sum(
        (following.arrived or 0) - (visit.granted or 0) - model.switch
        for visit, following in zip(life.visits, life.visits[1:], strict=False)
    )
    access = scenario.topology.access_delay
    injection, ejection = (int(access[host]) for host in (life.source, life.destination))
    return ClosedForm(
        model.injection + injection, through * model.header, through * model.switch, links,
        model.ejection + ejection, life.flits - 1,
    )  # fmt: skip


class Waiting(NamedTuple):
    """Ticks beyond the zero-load latency of a delivered packet, by cause.

    source: in the queue of its host. behind: behind another packet of its VC. output: for an output, a VC or credits.
    tail: flits that fell behind the head (wormhole).
    """

    source: int
    behind: int
    output: int
    tail: int


def waiting(life: PacketHistory, scenario: Scenario[Buffered]) -> Waiting:
    """Return the ticks that a delivered packet waited, by cause; with :func:`zero_load` they add up to its latency."""
    events = life.events(scenario.switching.header)
    names = ("sent", "eligible", "granted", "deflected")
    source, behind, granted, deflected = (sum(e.waited for e in events if e.event == name) for name in names)
    tail, head = life.visits[-1].tail, life.visits[-1].granted
    return Waiting(source, behind, granted + deflected, (tail or 0) - (head or 0) - life.flits + 1)


class PacketState(NamedTuple):
    """The state of a sent packet at the end of a tick.

    hop: channels between switches that its head has been granted. place: the input VC, in the numbering of
    ``flitlab.models.rules.ports`` (deflection: the switch), that its head is in or in flight to. arrives: its head
    arrived at a switch in this tick. eligible: tick from which its head may be granted there, if known. allocated: it
    holds a VC of the next channel (wormhole). ejecting: its head has been granted the ejection channel. tails: switches
    that its tail has left (wormhole). deflections: so far. done: it is delivered.
    """

    hop: int
    place: int
    arrives: bool
    eligible: int | None
    ejecting: bool
    done: bool
    allocated: bool = False
    tails: int = 0
    deflections: int = 0


class PacketWatch(Protocol):
    """A simulation that shows the state of one packet after every tick."""

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""

    def deadlocked(self) -> bool:
        """Whether packets in the network wait for each other in a cycle."""

    def observe(self, now: int) -> PacketState | None:
        """The packet after tick ``now``, the last simulated; None before it is sent.

        Must be called after every tick.
        """


class Recorder:
    """Builds the history of a packet from its states after every tick."""

    def __init__(self, scenario: Scenario[Buffered], life: PacketHistory):
        self.life = life
        self._scenario = scenario
        self._ports = make_ports(scenario.topology)
        self._deflections = 0

    def add(self, sight: PacketState, now: int) -> None:
        """Add the state of the packet after tick ``now``."""
        life = self.life
        if not life.visits:
            life.sent = now
            life.visits.append(self._visit(sight.place))
        visit = life.visits[-1]
        if sight.arrives:
            visit.arrived = now
        if sight.hop == len(life.visits):
            self._grant(visit, now)
            visit.deflected = sight.deflections > self._deflections
            self._deflections = sight.deflections
            life.visits.append(self._visit(sight.place))
        elif sight.ejecting:
            if visit.granted is None:
                self._grant(visit, now)
        else:
            visit.eligible = sight.eligible
            if sight.allocated and visit.allocated is None:
                visit.allocated = now
        for left in life.visits[: sight.tails]:
            left.tail = now if left.tail is None else left.tail
        if sight.done:
            life.delivered = now

    def _grant(self, visit: Visit, now: int) -> None:
        """Record a grant; what was not observed before it happened in the tick of the grant."""
        visit.granted = now
        visit.eligible = now if visit.eligible is None else visit.eligible
        if not self._scenario.switching.grants_flits:
            visit.tail = now + self.life.flits - 1
        elif visit.allocated is None:
            visit.allocated = now

    def _visit(self, place: int) -> Visit:
        if isinstance(self._scenario.switching, Deflection):
            return Visit(place, self._channel_to(place), None)
        ports, (port, vc) = self._ports, divmod(place, self._scenario.switching.vcs)
        output = int(ports.in_output[port])
        return Visit(int(ports.in_switch[port]), int(ports.out_channel[output]) if output >= 0 else None, vc)

    def _channel_to(self, switch: int) -> int | None:
        """The only channel from the switch visited last, None if there are several, or at the first switch."""
        if not self.life.visits:
            return None
        topology, tail = self._scenario.topology, self.life.visits[-1].switch
        leaving = range(int(topology.out_start[tail]), int(topology.out_start[tail + 1]))
        channels = [channel for channel in leaving if topology.dst[channel] == switch]
        return channels[0] if len(channels) == 1 else None


def packet_at_creation(
    scenario: Scenario[Buffered], load: float, seed: int, identity: int, latest: int
) -> PacketHistory:
    """Return the history of a packet at its creation, which needs no simulation.

    Raises ``ValueError`` if there is no such packet, or none before tick ``latest``.
    """
    source, hosts = scenario.source, scenario.topology.hosts
    if identity < 0:
        raise ValueError("a packet's id is sequence number x hosts + source host, 0 or more")
    sequence, host = divmod(identity, hosts)
    name = host_names(scenario.topology).label(host)
    arrivals = make_arrivals(
        source.arrivals, load, source.mean_flits, scenario.traffic.rate, source.burst,
        flit_ticks=scenario.host_flit_ticks,
    )  # fmt: skip
    packets = make_packets(scenario.traffic, source.flits, source.shares)
    if arrivals.keep[host] < 0:
        raise ValueError(f"host {name} sends nothing, so there is no packet {identity}")
    counter, position, tick = -1, -arrivals.base, 0
    for earlier in range(sequence + 1):
        counter, position = next_arrival(arrivals, packets, seed, host, counter + 1, position)
        tick = int(position) >> arrivals.shift
        if tick >= latest:
            raise ValueError(
                f"packet {identity} is not created before tick {latest}: it is number {sequence} of host {name}, "
                f"which by then creates {earlier}"
            )
    to, flits = destination(packets, seed, host, sequence), length(packets, seed, host, counter)
    return PacketHistory(identity, host, int(to), int(flits), tick, latest)


def follow(
    start: Callable[[], PacketWatch],
    scenario: Scenario[Buffered],
    load: float,
    seed: int,
    identity: int,
    until: int | None,
) -> PacketHistory:
    """Return the history of a packet in the run that ``start`` returns (see
    :func:`flitlab.sim.engines.trace.trace`).
    """
    life = packet_at_creation(scenario, load, seed, identity, LATEST_CREATION if until is None else until)
    life.until = life.created + FOLLOWED_TICKS if until is None else until
    run, recorder = start(), Recorder(scenario, life)
    run.advance(life.created)
    for now in range(life.created, life.until):
        run.advance(now + 1)
        sight = run.observe(now)
        if sight is not None:
            recorder.add(sight, now)
        if life.delivered is not None:
            break
        if now % _DEADLOCK_CHECK == 0 and run.deadlocked():
            life.deadlocked = True
            life.until = now + 1
            break
    return life
