# SPDX-License-Identifier: Apache-2.0
"""The network between two events: what of it works, at which rates, and what is left for a routing."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, isinf

import numpy as np

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, recorded_warnings
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.timeline.events import Event
from flitlab.models.topology.failures import restricted
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import channels_of, drawn, numbers
from flitlab.models.topology.names import join_path, switch_names
from flitlab.models.traffic.traffic import Traffic

_STREAM = 1
"""As of :mod:`flitlab.models.topology.failures`: the same seed takes the same links, from the beginning or later."""


@dataclass(frozen=True, eq=False)
class Epoch:
    """A network from a tick on, until the next epoch begins.

    rate: float64 [channels], the part of its capacity as built that a channel has, or has once its link works again.
    links: bool [channels], whether the link of each works. switches: bool [switches], whether they do. words: what
    happened as it began.
    """

    tick: int
    rate: Floats
    links: Bools
    switches: Bools
    description: str = ""

    @classmethod
    def built(cls, topology: Topology) -> "Epoch":
        """The network as it was built, from the beginning of a run."""
        full_rate = np.ones(topology.channels)
        return cls(0, full_rate, full_rate.astype(bool), np.ones(topology.switches, bool))

    def works(self, topology: Topology) -> Bools:
        """Whether each channel works, as its link and the switches at both ends do, bool [channels]."""
        working: Bools = self.links & self.switches[topology.src] & self.switches[topology.dst]
        return working


@dataclass(frozen=True, eq=False)
class SurvivingNetwork:
    """What is left of a network in an epoch, with numbers of its own.

    channel, switch: int64, the numbers that its channels and switches have in the whole network. Hosts keep theirs.
    """

    topology: Topology
    channel: Ints
    switch: Ints


@dataclass(frozen=True, eq=False)
class Timeline:
    """The epochs of a run, the first from tick 0 on, and the ticks at which the routing learns of the present one.

    routing: finds the routes in what is left; None where only ceilings are asked. tick_ns: nanoseconds of a tick, None
    where nobody knows. planned: of a routing that is made for a demand, the routes in what is left by the hash of that,
    as they were found beforehand.
    """

    topology: Topology
    epochs: tuple[Epoch, ...]
    reroutes: tuple[int, ...]
    routing: RoutingSpec | None
    tick_ns: float | None = None
    planned: Mapping[str, Routes] = field(default_factory=dict)

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        routing = None if self.routing is None else self.routing.model_dump(mode="json")
        parts = [part for epoch in self.epochs for part in (epoch.tick, epoch.rate, epoch.links, epoch.switches)]
        return content_hash(*parts, list(self.reroutes), routing)

    def epoch_at(self, tick: int) -> Epoch:
        """The epoch that a tick belongs to."""
        return [epoch for epoch in self.epochs if epoch.tick <= tick][-1]

    def surviving(self, epoch: Epoch) -> SurvivingNetwork:
        """What is left of the network in an epoch: switches and channels that work and that hosts can reach.

        It is the network itself where all works as it was built. Raises
        :class:`~flitlab.models.registry.SpecError` where some hosts cannot reach others.
        """
        works, whole = epoch.works(self.topology), self.topology
        if works.all() and epoch.switches.all() and (epoch.rate == 1).all():
            return SurvivingNetwork(whole, np.arange(whole.channels), np.arange(whole.switches))
        with_ids = replace(whole, capacity=whole.capacity * epoch.rate, delay=np.arange(whole.channels), grid=None)
        reached = _connected_switches(whole, works)
        reduced = restricted(with_ids, reached, works & reached[whole.src] & reached[whole.dst])
        intact = works.all() and epoch.switches.all()
        topology = replace(reduced, delay=whole.delay[reduced.delay], grid=whole.grid if intact else None)
        return SurvivingNetwork(topology, reduced.delay, np.flatnonzero(reached))

    def routes(self, surviving: SurvivingNetwork, whole: Routes) -> Routes:
        """The routes in what is left of the network, of which ``whole`` are those as it was built.

        Raises :class:`~flitlab.models.registry.SpecError` where the routing does not serve it.
        """
        if surviving.topology is self.topology:
            return whole
        assert self.routing is not None
        if (planned := self.planned.get(surviving.topology.content_hash)) is not None:
            return planned
        try:
            with recorded_warnings():  # those of the network as it was built have been shown
                return self.routing.build(surviving.topology)
        except SpecError as error:
            raise SpecError(f"{self.routing.kind} does not serve what is left: {error}", key="timeline") from error

    def instance(self, epoch: Epoch, whole: Instance) -> Instance:
        """The network, the demand and the routes of an epoch, of which ``whole`` are those as it was built.

        There are no routes where the routing does not serve what is left. Raises
        :class:`~flitlab.models.registry.SpecError` where some hosts cannot reach others.
        """
        surviving = self.surviving(epoch)
        if surviving.topology is self.topology:
            return whole
        routes = None
        with suppress(SpecError):
            routes = None if whole.routes is None else self.routes(surviving, whole.routes)
        return Instance(surviving.topology, renumbered_traffic(whole.traffic, surviving.topology), routes)

    def capacity(self, first: int, last: int) -> Floats:
        """The capacity of each channel on average from one tick to another, float64 [channels]."""
        ends = [*(epoch.tick for epoch in self.epochs[1:]), last]
        capacity_ticks = np.zeros(self.topology.channels)
        for epoch, end in zip(self.epochs, ends, strict=True):
            ticks = max(0, min(end, last) - max(epoch.tick, first))
            capacity_ticks += ticks * (epoch.rate * epoch.works(self.topology))
        return self.topology.capacity * capacity_ticks / max(1, last - first)


def renumbered_traffic(traffic: Traffic, topology: Topology) -> Traffic:
    """Give the demand of the same hosts on a topology in which their switches have other numbers."""
    alternates = tuple(renumbered_traffic(alternate, topology) for alternate in traffic.alternates)
    background = None if traffic.background is None else renumbered_traffic(traffic.background, topology)
    return replace(traffic, topology=topology, alternates=alternates, background=background)


def _connected_switches(topology: Topology, works: Bools) -> Bools:
    """The switches that all hosts reach, and that reach them, by channels that work, bool [switches].

    Raises ``SpecError`` where hosts do not reach each other.
    """
    root = int(topology.host_switch[0]) if topology.hosts else 0
    from_root, to_root = (_reachable(topology, works, root, reverse) for reverse in (False, True))
    hosts = topology.host_count > 0
    for reached, text in ((from_root, "from switch {} to switch {}"), (to_root, "to switch {} from switch {}")):
        if (unreachable := np.flatnonzero(hosts & ~reached)).size:
            ends = map(switch_names(topology).label, (root, unreachable[0]))
            raise SpecError(f"cuts hosts off: no path is left {text.format(*ends)}", key="timeline")
    return from_root & to_root


def _reachable(topology: Topology, works: Bools, root: int, reverse: bool) -> Bools:
    """The switches that channels lead to from one, or, ``reverse``, from which they lead to it, bool [switches]."""
    tail, head = (topology.dst, topology.src) if reverse else (topology.src, topology.dst)
    reached = np.zeros(topology.switches, bool)
    reached[root] = True
    while True:
        extended = reached.copy()
        extended[head[works & reached[tail]]] = True
        if (extended == reached).all():
            return reached
        reached = extended


@dataclass
class _NetworkState:
    """A network as events change it; arrays as in :class:`Epoch`, of which a new one is made for every change."""

    topology: Topology
    rate: Floats = field(init=False)
    links: Bools = field(init=False)
    switches: Bools = field(init=False)

    def __post_init__(self) -> None:
        built = Epoch.built(self.topology)
        self.rate, self.links, self.switches = built.rate, built.links, built.switches

    def change(self, event: Event, key: str) -> str:
        """Let an event happen; what it is in words. Raises ``SpecError`` below ``key`` where it cannot."""
        key = f"{key}.{event.what}"
        channels, switches = self._channels(event, f"{key}.links"), self._switches(event, f"{key}.switches")
        if not len(channels) and not len(switches):
            raise SpecError("names nothing: it needs links or switches", key=key)
        self.links, self.switches, self.rate = self.links.copy(), self.switches.copy(), self.rate.copy()
        if event.what == "slow":
            self.rate[channels] = event.factor
        else:
            self.links[channels] = self.switches[switches] = event.what == "restore"
        if event.what == "restore":
            self.rate[channels] = 1
        return _describe(self.topology, event, channels, switches)

    def _channels(self, event: Event, key: str) -> Ints:
        """The channels of the links that an event is about."""
        allowed_by_event = {
            "fail": self.links,
            "restore": ~self.links | (self.rate != 1),
            "slow": self.links & (self.rate == 1),
        }
        links, allowed = event.parts.links, allowed_by_event[event.what]
        if not isinstance(links, list):
            number = numbers(self.topology)
            candidates = np.unique(number[allowed])
            return np.flatnonzero(
                np.isin(number, candidates[drawn(links, len(candidates), [event.parts.seed, _STREAM], key)])
            )
        channels = np.zeros(0, np.int64)
        for index, link in enumerate(links):
            link_channels = channels_of(self.topology, [link], [], key)
            if event.what != "slow" and not allowed[link_channels].all():
                why = "has failed already" if event.what == "fail" else "has not failed and is not slow"
                raise SpecError(why, key=f"{key}[{index}]")
            channels = np.union1d(channels, link_channels)
        return channels

    def _switches(self, event: Event, key: str) -> Ints:
        """The switches that an event is about."""
        names, switches = switch_names(self.topology), list[int]()
        for index, name in enumerate(event.parts.switches):
            item_key = f"{key}[{index}]"
            if event.what == "slow":
                raise SpecError("links are slow, and switches are not", key=key)
            switch = names.number(name, item_key)
            switches.append(switch)
            if self.switches[switch] == (event.what == "restore"):
                raise SpecError("has failed already" if event.what == "fail" else "has not failed", key=item_key)
            if self.topology.host_count[switch]:
                raise SpecError(
                    "has hosts, which nothing could reach; only switches without hosts can fail", key=item_key
                )
        return np.array(switches, np.int64)


def _describe(topology: Topology, event: Event, channels: Ints, switches: Ints) -> str:
    """What happens in a few words: ``link 0-8 fails``."""
    links = np.unique(numbers(topology)[channels])
    names, subjects = switch_names(topology), []
    if len(links):
        ends = join_path(map(names.label, (topology.src[links[0]], topology.dst[links[0]])))
        subjects.append(f"link {ends}" if len(links) == 1 else f"{len(links)} links")
    if len(switches):
        subjects.append(f"switch {names.label(switches[0])}" if len(switches) == 1 else f"{len(switches)} switches")
    singular = len(links) + len(switches) == 1
    verbs = {"fail": "fails" if singular else "fail", "restore": "returns" if singular else "return"}
    return " and ".join(subjects) + " " + (verbs.get(event.what) or f"at {event.factor:g} of the rate")


def make_timeline(
    topology: Topology,
    events: Sequence[Event],
    routing: RoutingSpec | None,
    routes: Routes | None,
    tick_ns: Fraction | None,
    replan: Callable[[Topology], Routes] | None = None,
) -> Timeline:
    """The epochs that events make of a run, all of which a routing serves whenever it learns of them.

    routing, routes: of the network as it was built, None where there are none. tick_ns: nanoseconds of a tick, None
    where nobody knows. replan: finds the routes in what is left of a network, of a routing that is made for a demand.

    Raises :class:`~flitlab.models.registry.SpecError` whose key leads to the event for times that are none or go
    backwards, for links and switches that are not there or that it cannot happen to, and where hosts would be cut off.
    """
    state = _NetworkState(topology)
    epochs = [Epoch(0, state.rate, state.links, state.switches)]
    event_of_reroute: dict[int, int] = {}
    for index, event in enumerate(events):
        key = f"timeline[{index}]"
        tick = _tick(event, tick_ns, key)
        if tick < epochs[-1].tick:
            raise SpecError("times go backwards: an event stands before this one that is later", key=key)
        description = state.change(event, key)
        if tick == epochs[-1].tick:
            description = ", ".join(filter(None, (epochs.pop().description, description)))
        epochs.append(Epoch(tick, state.rate, state.links, state.switches, description))
        if not isinf(delay := event.learned_after):
            event_of_reroute.setdefault(tick + _duration(event, delay, tick_ns), index)
    ns = None if tick_ns is None else float(tick_ns)
    planned: dict[str, Routes] = {}
    timeline = Timeline(topology, tuple(epochs), tuple(sorted(event_of_reroute)), routing, ns, planned)
    for tick in timeline.reroutes:
        try:
            surviving = timeline.surviving(timeline.epoch_at(tick))
            if routes is not None and replan is not None:
                _add_planned_routes(surviving, topology, replan, planned)
            if routes is not None:
                timeline.routes(surviving, routes)
        except SpecError as error:
            raise SpecError(str(error), key=f"timeline[{event_of_reroute[tick]}]") from error
    if routes is not None and replan is not None:
        for epoch in epochs:  # also those that no routing learns of, for their ceilings
            with suppress(SpecError):
                _add_planned_routes(timeline.surviving(epoch), topology, replan, planned)
    return timeline


def _add_planned_routes(
    surviving: SurvivingNetwork, whole: Topology, replan: Callable[[Topology], Routes], planned: dict[str, Routes]
) -> None:
    """Find the routes in what is left of a network, unless it is all of it or they are known. Raises ``SpecError``."""
    if surviving.topology is whole or surviving.topology.content_hash in planned:
        return
    try:
        planned[surviving.topology.content_hash] = replan(surviving.topology)
    except SpecError as error:
        raise SpecError(f"no routes for the demand in what is left: {error}", key="timeline") from error


def _tick(event: Event, tick_ns: Fraction | None, key: str) -> int:
    """The tick of an event, rounded up."""
    if event.at_tick is not None:
        return event.at_tick
    if tick_ns is None:
        raise SpecError("needs switching.flit_ns, which says how long a tick is; or give at_tick", key=f"{key}.at_us")
    assert event.at_us is not None
    return _duration(event, event.at_us, tick_ns)


def _duration(event: Event, time: float, tick_ns: Fraction | None) -> int:
    """Ticks of a time in the unit of an event's, rounded up."""
    exact = Fraction(repr(float(time)))
    if event.at_tick is not None:
        return ceil(exact)
    assert tick_ns is not None
    return ceil(exact * 1000 / tick_ns)
