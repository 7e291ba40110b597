# SPDX-License-Identifier: Apache-2.0
"""The network between two events: which channels work, at which rates, and what remains for a routing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from flitlab.models.timeline.renumbering import merged_routes, renumbered_routes
from flitlab.models.timeline.surviving import SurvivingNetwork, connected_switches
from flitlab.models.topology.failures import subtopology
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import channels_of, draw_links, link_numbers
from flitlab.models.topology.names import join_path, switch_names
from flitlab.models.traffic.traffic import Traffic

_STREAM = 1
"""The random stream of :mod:`flitlab.models.topology.failures`: one seed draws the same links, at the start or
later.
"""


@dataclass(frozen=True, eq=False)
class Epoch:
    """The state of a network from a tick until the next epoch.

    tick: its first tick. rate: float64 [channels], share of the capacity as built that a channel has, or will have once
    its link works again. links: bool [channels], whether the link of each works. switches: bool [switches], whether
    each works. description: the events at its first tick, in words. factors: of those that slow links, the index of the
    event and its factor.
    """

    tick: int
    rate: Floats
    links: Bools
    switches: Bools
    description: str = ""
    factors: tuple[tuple[int, float], ...] = ()

    @classmethod
    def built(cls, topology: Topology) -> "Epoch":
        """Return the network as built, from tick 0."""
        full_rate = np.ones(topology.channels)
        return cls(0, full_rate, full_rate.astype(bool), np.ones(topology.switches, bool))

    def works(self, topology: Topology) -> Bools:
        """Return whether each channel works, bool [channels]: its link and the switches at both ends work."""
        working: Bools = self.links & self.switches[topology.src] & self.switches[topology.dst]
        return working


@dataclass(frozen=True, eq=False)
class Timeline:
    """The epochs of a run, the first from tick 0, and the ticks at which the routing learns of the current epoch.

    topology: the whole network. epochs: in ascending order. reroutes: ticks, ascending. routing: builds the routes of
    the surviving network; None where only ceilings are computed. tick_ns: duration of a tick in nanoseconds, None if
    unknown. planned: for a routing that is optimised for a demand, the precomputed routes by the content hash of the
    surviving network. subnet: one of the copies that ``topology`` consists of; None if it is no copies.
    """

    topology: Topology
    epochs: tuple[Epoch, ...]
    reroutes: tuple[int, ...]
    routing: RoutingSpec | None
    tick_ns: float | None = None
    planned: Mapping[str, Routes] = field(default_factory=dict)
    subnet: Topology | None = None

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        routing = None if self.routing is None else self.routing.model_dump(mode="json")
        parts = [part for epoch in self.epochs for part in (epoch.tick, epoch.rate, epoch.links, epoch.switches)]
        return content_hash(*parts, list(self.reroutes), routing)

    def epoch_at(self, tick: int) -> Epoch:
        """Return the epoch of a tick."""
        return [epoch for epoch in self.epochs if epoch.tick <= tick][-1]

    def surviving(self, epoch: Epoch) -> SurvivingNetwork:
        """Return the surviving network of an epoch: working switches and channels that hosts can reach.

        It is the network itself where everything works as built.

        Raises
        ------
        SpecError: some hosts cannot reach others.
        """
        works, whole = epoch.works(self.topology), self.topology
        if works.all() and epoch.switches.all() and (epoch.rate == 1).all():
            return SurvivingNetwork(whole, np.arange(whole.channels), np.arange(whole.switches))
        with_ids = replace(whole, capacity=whole.capacity * epoch.rate, delay=np.arange(whole.channels), grid=None)
        reached = connected_switches(whole, works)
        reduced = subtopology(with_ids, reached, works & reached[whole.src] & reached[whole.dst])
        intact = works.all() and epoch.switches.all()
        topology = replace(reduced, delay=whole.delay[reduced.delay], grid=whole.grid if intact else None)
        return SurvivingNetwork(topology, reduced.delay, np.flatnonzero(reached))

    def routes(self, surviving: SurvivingNetwork, whole: Routes) -> Routes:
        """Return the routes of a surviving network.

        Parameters
        ----------
        surviving: the network to route on.
        whole: the routes of the network as built.

        Raises
        ------
        SpecError: the routing does not support the surviving network.
        """
        if surviving.topology is self.topology:
            return whole
        assert self.routing is not None
        if (planned := self.planned.get(surviving.topology.content_hash)) is not None:
            return planned
        try:
            with recorded_warnings():  # the warnings of the network as built have been shown
                if self.subnet is not None:
                    return merged_routes(self._routes_of_subnets(surviving), surviving.topology)
                return self.routing.build(surviving.topology)
        except SpecError as error:
            raise SpecError(
                f"{self.routing.kind} does not support the remaining network: {error}", key="timeline"
            ) from error

    def _routes_of_subnets(self, surviving: SurvivingNetwork) -> list[Routes]:
        """Return the routes that the routing builds for each subnet of a surviving network, in the numbers of that.

        Raises ``SpecError``.
        """
        assert self.subnet is not None and self.routing is not None
        whole, one, routes = self.topology, self.subnet, []
        rate, delay = np.zeros(whole.channels), np.arange(one.channels)
        rate[surviving.channel] = surviving.topology.capacity / whole.capacity[surviving.channel]
        for copy in range(whole.subnets):
            first_switch, first_channel = copy * one.switches, copy * one.channels
            rates = rate[first_channel : first_channel + one.channels]
            links, switches = rates > 0, np.isin(first_switch + np.arange(one.switches), surviving.switch)
            epoch = Epoch(0, np.where(links, rates, 1.0), links, switches)
            part = replace(self, topology=one, epochs=(epoch,), subnet=None).surviving(epoch)
            numbered = SurvivingNetwork(
                part.topology,
                np.searchsorted(surviving.channel, first_channel + delay[part.channel]),
                np.searchsorted(surviving.switch, first_switch + part.switch),
            )
            routes.append(renumbered_routes(self.routing.build(part.topology), numbered, surviving.topology))
        return routes

    def instance(self, epoch: Epoch, whole: Instance) -> Instance:
        """Return the network, the demand and the routes of an epoch.

        Parameters
        ----------
        epoch: one of the timeline.
        whole: the instance of the network as built.

        Returns
        -------
        The instance; without routes where the routing does not support the surviving network.

        Raises
        ------
        SpecError: some hosts cannot reach others.
        """
        surviving = self.surviving(epoch)
        if surviving.topology is self.topology:
            return whole
        routes = None
        with suppress(SpecError):
            routes = None if whole.routes is None else self.routes(surviving, whole.routes)
        return Instance(surviving.topology, renumbered_traffic(whole.traffic, surviving.topology), routes)

    def capacity(self, first: int, last: int) -> Floats:
        """Return the mean capacity of each channel, float64 [channels], flits per tick, between two ticks."""
        ends = [*(epoch.tick for epoch in self.epochs[1:]), last]
        capacity_ticks = np.zeros(self.topology.channels)
        for epoch, end in zip(self.epochs, ends, strict=True):
            ticks = max(0, min(end, last) - max(epoch.tick, first))
            capacity_ticks += ticks * (epoch.rate * epoch.works(self.topology))
        return self.topology.capacity * capacity_ticks / max(1, last - first)


def renumbered_traffic(traffic: Traffic, topology: Topology) -> Traffic:
    """Return the demand of the same hosts on a topology that numbers their switches differently."""
    alternates = tuple(renumbered_traffic(alternate, topology) for alternate in traffic.alternates)
    background = None if traffic.background is None else renumbered_traffic(traffic.background, topology)
    classes = tuple(replace(one, demand=renumbered_traffic(one.demand, topology)) for one in traffic.classes)
    return replace(traffic, topology=topology, alternates=alternates, background=background, classes=classes)


def _is_learned(event: Event, before: Epoch, state: "_NetworkState", knows_slow: bool) -> bool:
    """Whether the routing learns of an event: not of the end of slowness that it has not learned of."""
    only_rates = bool((state.links == before.links).all() and (state.switches == before.switches).all())
    if event.what == "restore" and event.reroute_after is None and only_rates and not knows_slow:
        return False
    return not isinf(event.learned_after)


def _knows_slow(epochs: Sequence[Epoch], reroutes: Iterable[int], tick: int) -> bool:
    """Whether links were slow when the routing was last rebuilt up to a tick. reroutes: ticks at which it is."""
    last = max((reroute for reroute in reroutes if reroute <= tick), default=-1)
    return any(bool((epoch.rate != 1).any()) for epoch in [e for e in epochs if e.tick <= last][-1:])


def _with_changes(epochs: Sequence[Epoch], topology: Topology, reroutes: Iterable[int]) -> tuple[int, ...]:
    """The ticks at which the network is not the one that the routing knows; reroutes: at which it looks, ascending.

    Networks differ in channels that work and in their rates: of a failed one the rate does not count.
    """
    known, with_changes = Epoch.built(topology), []
    for tick in reroutes:
        current = [epoch for epoch in epochs if epoch.tick <= tick][-1]
        now, before = (epoch.rate * epoch.works(topology) for epoch in (current, known))
        if not np.array_equal(now, before):
            with_changes.append(tick)
        known = current
    return tuple(with_changes)


@dataclass
class _NetworkState:
    """The current state of a network; every event replaces the arrays, which are those of :class:`Epoch`."""

    topology: Topology
    rate: Floats = field(init=False)
    links: Bools = field(init=False)
    switches: Bools = field(init=False)

    def __post_init__(self) -> None:
        built = Epoch.built(self.topology)
        self.rate, self.links, self.switches = built.rate, built.links, built.switches

    def change(self, event: Event, key: str) -> str:
        """Apply an event; return its description. Raises ``SpecError`` below ``key`` where it cannot occur."""
        key = f"{key}.{event.what}"
        channels, switches = self._channels(event, f"{key}.links"), self._switches(event, f"{key}.switches")
        if not len(channels) and not len(switches):
            raise SpecError("lists neither links nor switches", key=key)
        self.links, self.switches, self.rate = self.links.copy(), self.switches.copy(), self.rate.copy()
        if event.what == "slow":
            self.rate[channels] = event.factor
        else:
            self.links[channels] = self.switches[switches] = event.what == "restore"
        if event.what == "restore":
            self.rate[channels] = 1
        return _describe(self.topology, event, channels, switches)

    def _channels(self, event: Event, key: str) -> Ints:
        """Return the channels of an event's links, int64 [channels]."""
        allowed_by_event = {
            "fail": self.links,
            "restore": ~self.links | (self.rate != 1),
            "slow": self.links & (self.rate == 1),
        }
        links, allowed = event.parts.links, allowed_by_event[event.what]
        if not isinstance(links, list):
            number = link_numbers(self.topology)
            candidates = np.unique(number[allowed])
            return np.flatnonzero(
                np.isin(number, candidates[draw_links(links, len(candidates), [event.parts.seed, _STREAM], key)])
            )
        channels = np.zeros(0, np.int64)
        for index, link in enumerate(links):
            link_channels = channels_of(self.topology, [link], [], key)
            listed = self.links if event.what == "slow" else allowed  # a link may become slower
            if not listed[link_channels].all():
                why = {"fail": "has failed already", "slow": "has failed", "restore": "has not failed and is not slow"}
                raise SpecError(why[event.what], key=f"{key}[{index}]")
            channels = np.union1d(channels, link_channels)
        return channels

    def _switches(self, event: Event, key: str) -> Ints:
        """Return the switches of an event, int64 [switches]."""
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
    """Describe an event: ``link 0-8 fails``."""
    links = np.unique(link_numbers(topology)[channels])
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
    subnet: Topology | None = None,
) -> Timeline:
    """Build the timeline of a run from its events; the routing must support every network that it learns of.

    Parameters
    ----------
    topology: the network as built.
    events: in ascending order of time.
    routing, routes: of the network as built; None without a routing.
    tick_ns: duration of a tick in nanoseconds; None if unknown.
    replan: builds the routes of a surviving network, for a routing that is optimised for a demand.
    subnet: one of the copies that the network consists of; None if it is no copies.

    Raises
    ------
    SpecError: a time is missing or decreases, an event names links or switches that do not exist or are not in the
        required state, hosts are disconnected, or the routing does not support a network. ``key`` is the path to the
        event.
    """
    state = _NetworkState(topology)
    epochs = [Epoch(0, state.rate, state.links, state.switches)]
    event_of_reroute: dict[int, int] = {}
    for index, event in enumerate(events):
        key = f"timeline[{index}]"
        tick = _tick(event, tick_ns, key)
        if tick < epochs[-1].tick:
            raise SpecError("times must not decrease: the event before this one is later", key=key)
        before = epochs[-1]
        description = state.change(event, key)
        factors: tuple[tuple[int, float], ...] = () if event.factor is None else ((index, event.factor),)
        if tick == before.tick:
            epochs.pop()
            description = ", ".join(filter(None, (before.description, description)))
            factors = before.factors + factors
        epochs.append(Epoch(tick, state.rate, state.links, state.switches, description, factors))
        if _is_learned(event, before, state, _knows_slow(epochs, event_of_reroute, tick)):
            event_of_reroute.setdefault(tick + _duration(event, event.learned_after, tick_ns), index)
    ns = None if tick_ns is None else float(tick_ns)
    planned: dict[str, Routes] = {}
    reroutes = _with_changes(epochs, topology, sorted(event_of_reroute))
    timeline = Timeline(topology, tuple(epochs), reroutes, routing, ns, planned, subnet)
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
        for epoch in epochs:  # including epochs that no routing learns of, for their ceilings
            with suppress(SpecError):
                _add_planned_routes(timeline.surviving(epoch), topology, replan, planned)
    return timeline


def _add_planned_routes(
    surviving: SurvivingNetwork, whole: Topology, replan: Callable[[Topology], Routes], planned: dict[str, Routes]
) -> None:
    """Add the routes of a surviving network to ``planned``, unless they are known or nothing failed. Raises
    ``SpecError``.
    """
    if surviving.topology is whole or surviving.topology.content_hash in planned:
        return
    try:
        planned[surviving.topology.content_hash] = replan(surviving.topology)
    except SpecError as error:
        raise SpecError(f"no routes for the demand in the remaining network: {error}", key="timeline") from error


def _tick(event: Event, tick_ns: Fraction | None, key: str) -> int:
    """Return the tick of an event, rounded up."""
    if event.at_tick is not None:
        return event.at_tick
    if tick_ns is None:
        raise SpecError(
            "needs switching.flit_ns (or link_gbps and flit_bytes), the time of a flit; or give at_tick",
            key=f"{key}.at_us",
        )
    assert event.at_us is not None
    return _duration(event, event.at_us, tick_ns)


def _duration(event: Event, time: float, tick_ns: Fraction | None) -> int:
    """Convert a time in the unit of an event's to ticks, rounded up."""
    exact = Fraction(repr(float(time)))
    if event.at_tick is not None:
        return ceil(exact)
    assert tick_ns is not None
    return ceil(exact * 1000 / tick_ns)
