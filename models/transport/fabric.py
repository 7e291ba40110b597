# SPDX-License-Identifier: Apache-2.0
"""A run of sprayed packets, laid out for the engines: links, queues, flows, and the rules of hosts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints, to_integers
from flitlab.models.registry import SpecError, SpecWarning
from flitlab.models.routing.routes import RouteForm, Routes
from flitlab.models.rules.datagram import RATIO_BITS, service_ticks
from flitlab.models.rules.rdma.layout import Law
from flitlab.models.rules.spray.layout import Credit, Rules, Spread, WindowControl
from flitlab.models.rules.spray.ports import AtSwitch, PortChoice, Routing, SprayRoutes, make_salts, make_switches
from flitlab.models.rules.tables import Tables
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.lossless import (
    Lossless,
    PortSettings,
    SharedSettings,
    class_settings,
    port_settings,
    shared_settings,
)
from flitlab.models.transport.messages import MessageFlows
from flitlab.models.transport.oversubscription import oversubscription
from flitlab.models.transport.queues import exact, fastest_capacity, tick_of
from flitlab.models.transport.rdma import Marks, Scale
from flitlab.models.transport.session import TransportSession, check_flows, check_hop, links_of, ratio_of
from flitlab.models.transport.spraying import Spraying
from flitlab.models.transport.zero_load import channels_of, equal_hops, longest_round_trip

_ONE_ENTROPY = ("round_robin", "adaptive")
"""Choices of ``at_switch`` that ignore entropy values: senders use a single one, which hashes control packets."""

MOST_PACKETS = 1 << 28
"""Packets that all flows of a run may have. Each takes 10 bytes."""

MOST_KEPT = 1 << 26
"""Ports of flows that switches may remember together."""

NEVER_MARKS = np.int64(1) << 60
"""ECN threshold of queues that mark nothing. [byte]"""

# Constants of NSCC are given for a network of 100 Gb/s and 12 us.
_REFERENCE_BDP, _REFERENCE_S = 150_000, Fraction(12, 10**6)
_MARGIN_S, _QUEUES = Fraction(15, 10**6), 6
_LOW_MARK, _HIGH_MARK = Fraction(1, 5), Fraction(4, 5)
_MOST_BDP, _TARGET = 1.5, 0.75
_UNTRIMMED_QUEUES = 5
_FREEZE_S, _LEVEL_AGE_S, _FLOWLET_GAP_S = Fraction(1, 100), Fraction(1, 10**7), Fraction(1, 10**5)
_QUANTUM, _PULL_QUANTA, _EMPTY_QUANTA, _PACE = 256, 64, 4, 0.99
_NDP_PACKETS = 8
_DCQCN_MARKS = Marks(5_000, 200_000, 0.01)
_NO_MARKS = Marks(int(NEVER_MARKS), int(NEVER_MARKS) + 1, 1.0)
_MARKED = (WindowControl.NSCC, WindowControl.DCTCP)


@dataclass(frozen=True)
class Fabric:
    """Links, switches and packets: ``switching:`` of mode spray.

    mtu_bytes: a full packet on the wire, with ``header_bytes`` of header. control_bytes: a control packet. nic_mbps:
    rate at capacity 1 of a channel or host. link_us, switch_ns: rounded up to ticks. queue_bytes: data capacity of the
    queue of a channel as fast as a host, None: a bandwidth-delay product, without trimming five; other channels in
    proportion to their rate. ecn: packets at which marking begins and is certain or, if both are at most 1, fractions
    of the queue capacity; None: 0.2 and 0.8 bandwidth-delay products. trim: full queues trim; else they drop.
    at_switch: name of an :class:`~flitlab.models.rules.spray.ports.AtSwitch`. lossless: queues pause the output before
    them; ``queue_bytes`` is then the unit of fill levels only, and there are no marks unless ``ecn`` is set or a
    transport reacts to them. None: queues trim or drop. marks: whether queues mark packets at all.
    """

    mtu_bytes: int = 4150
    header_bytes: int = 64
    control_bytes: int = 64
    nic_mbps: float = 100_000.0
    link_us: float = 1.0
    switch_ns: float = 0.0
    queue_bytes: int | None = None
    ecn: tuple[float, float] | None = None
    trim: bool = True
    at_switch: str = "ecmp"
    lossless: Lossless | None = None
    marks: bool = True

    @property
    def payload(self) -> int:
        """Bytes of payload of a full packet."""
        return self.mtu_bytes - self.header_bytes

    def switch_ticks(self, topology: Topology) -> int:
        """Ticks of ``switch_ns``, rounded up."""
        return ceil(exact(self.switch_ns) / 10**9 / tick_of(topology, self))


@dataclass(frozen=True, eq=False)
class SprayedFlows:
    """Finite flows in order of their start.

    source, destination: hosts; bytes: payload; packets; last_size: bytes on the wire of the last packet; start: ticks
    (not used for a program's messages); kinds: the transport of each; int64 [flows] each.
    """

    source: Ints
    destination: Ints
    bytes: Ints
    packets: Ints
    last_size: Ints
    start: Ints
    kinds: Ints


class LinkSettings(NamedTuple):
    """Rates, queue capacities and marking thresholds of links: int64 [links], as in :class:`SpraySession`."""

    ratio: Ints
    queue_bytes: Ints
    low: Ints
    high: Ints

    def of(self, indices: Ints) -> "LinkSettings":
        """The settings of some of the links.

        Parameters
        ----------
        indices: int64, of the links.
        """
        return LinkSettings(*(part[indices] for part in self))


@dataclass(frozen=True, eq=False)
class FabricChange:
    """A change of links and routes at the beginning of a tick.

    broken: int64, links that fail and drop their packets. other: int64, links that return or change their rate;
    ``settings``: their new settings. routes: new tables, None: no change; moved: whether they differ from the first
    ones. storm: a link, with several classes ``link * classes + class``, whose server a host pauses or, if the second
    value is false, resumes.
    """

    tick: int
    broken: Ints
    other: Ints
    settings: LinkSettings
    routes: Tables | None = None
    moved: bool = False
    storm: tuple[int, bool] | None = None

    @property
    def ratio(self) -> Ints:
        """Ticks per byte, times 2**RATIO_BITS, of ``other``."""
        return self.settings.ratio


@dataclass(frozen=True, eq=False, kw_only=True)
class SpraySession(TransportSession):
    """All inputs of a run of sprayed packets.

    queue_bytes: int64 [links], data capacity of each queue; twice as much for control. low, high: int64 [links], bytes
    of data up to which no packet is marked, and above which all are. routes: for
    :mod:`flitlab.models.rules.spray.ports`. rules: of the transport with receiver credit, else of the first.
    transports: the rules of each transport, and names, theirs. port_choice: how switches choose ports. program: whose
    messages the flows are. hops: from :func:`~flitlab.models.transport.zero_load.equal_hops` for the network as built.
    ports: of lossless queues, else None. laws: of each transport if all are RDMA transports, else (). marks: of
    lossless queues unless ``fabric.ecn`` is set, else None.
    """

    fabric: Fabric
    routes: Tables
    rules: Rules
    flows: SprayedFlows
    queue_bytes: Ints
    low: Ints
    high: Ints
    port_choice: PortChoice
    transports: tuple[Rules, ...]
    names: tuple[str, ...]
    program: MessageFlows | None = None
    changes: tuple[FabricChange, ...] = ()
    hops: np.ndarray | None = None
    ports: PortSettings | None = None
    laws: tuple[Law, ...] = ()
    marks: Marks | None = None

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self.rules.seed

    def cautions(self) -> Iterator[SpecWarning]:
        """What makes senders repeat, or withhold, packets on an empty network."""
        microseconds, trip = float(self.tick_s) * 1e6, self.rules.rtt0
        rtt = f"the zero-load round trip of the longest path, {trip * microseconds:.4g} us"
        for name, rules in zip(self.names, self.transports, strict=True):
            if rules.acknowledges and rules.timeout < trip:
                timeout = f"{rules.timeout * microseconds:.4g} us until a packet is sent again"
                problem = f"{timeout} (timeout_us) are less than {rtt}: packets are repeated though none is lost"
                yield SpecWarning(problem, self._key(name))
        longest = None if self.hops is None else int(self.hops.max(initial=0)) + 2
        for name, law in zip(self.names, self.laws, strict=False):
            if longest is None or law.base_delay == 0:
                continue
            target = law.base_delay + longest * law.link_delay
            if target < trip:
                delay = f"a target delay of {target * microseconds:.4g} us is less than {rtt}"
                yield SpecWarning(f"{delay}: windows shrink to their minimum on an empty network", self._key(name))
        if self.ports is not None and self.ports.shared is not None:
            yield from self._headroom_cautions(self.ports, self.ports.shared)
        if self.ports is not None and self.ports.watchdog is not None:
            yield from self._watchdog_cautions(self.ports, self.ports.watchdog[0])

    def _headroom_cautions(self, ports: PortSettings, shared: SharedSettings) -> Iterator[SpecWarning]:
        """Warn of headrooms that hold less than what arrives between a PAUSE and its effect.

        That is what both delays hold, in whole packets, and the packet in service.
        """
        count, mtu = self.topology.channels + self.topology.hosts, self.rules.mtu
        in_flight = ((ports.delay + self.delay) << RATIO_BITS) // self.ratio
        arriving = (-(-in_flight // mtu) + 1) * mtu
        least = int(np.argmin(shared.headroom[:count] - arriving[:count]))
        headroom, needed = int(shared.headroom[least]), int(arriving[least])
        if headroom >= needed:
            return
        problem = f"a headroom of {headroom} bytes is less than the {needed} that arrive until a PAUSE has its effect"
        effect = "full ports send no PAUSE, and drop packets" if headroom < mtu else "full ports may drop packets"
        yield SpecWarning(f"{problem}: {effect}", "switching.pfc.headroom_bytes")

    def _watchdog_cautions(self, ports: PortSettings, period: int) -> Iterator[SpecWarning]:
        """Warn of watchdogs that expire in pauses of congestion.

        Two input ports that share an output of their rate r drain at r / 2 each. In both delays, that of PAUSE and that
        of the link, a charge grows by half of what arrives and then takes as long to fall to XOFF, and from there
        2 (XOFF - XON) / r to XON. A RESUME takes as long as the PAUSE. With a shared buffer XOFF - XON counts as 0. A
        class that has the share s of r, where all classes have packets, takes 1 / s times as long.
        """
        between = 0 if ports.shared is not None else ports.xoff - ports.xon
        pauses = 2 * (ports.delay + self.delay + between * (self.ratio / 2**RATIO_BITS))[: self.topology.channels]
        inverse_share, of = (1.0, "") if ports.classes is None else ports.classes.least_share()
        longest = float(pauses.max(initial=0.0)) * inverse_share
        if period >= longest:
            return
        watchdog, pause = (ticks * float(self.tick_s) * 1e6 for ticks in (period, longest))
        problem = (
            f"a watchdog of {watchdog:.4g} us is shorter than the {pause:.4g} us for which two input ports{of} pause"
        )
        effect = "packets that only wait are discarded, and flows may never end"
        yield SpecWarning(f"{problem} that share an output: {effect}", "switching.pfc.watchdog_us")

    def _key(self, name: str) -> str:
        """Path of a transport in the configuration."""
        return f"transport.of.{name}" if len(self.names) > 1 else "transport"

    @property
    def retransmits(self) -> bool:
        """Whether senders retransmit dropped packets."""
        return bool(self.rules.acknowledges)

    @property
    def acknowledges(self) -> np.ndarray:
        """Whether the receiver of each flow acknowledges, bool [flows]."""
        return np.array([rules.acknowledges != 0 for rules in self.transports])[self.flows.kinds]

    @property
    def idle_entries(self) -> Ints:
        """Packets and flows that each pacer grants credit for, int64 [2, hosts]: the space of its idle list."""
        granted = np.array([rules.credit == Credit.RCCC for rules in self.transports])[self.flows.kinds]
        to, hosts = self.flows.destination, self.topology.hosts
        counts = [np.bincount(to, number * granted, hosts) for number in (self.flows.packets, np.ones(len(to)))]
        return np.array(counts).astype(np.int64)


def make_spray_session(
    topology: Topology, routes: Routes, spraying: Spraying | Sequence[Spraying], fabric: Fabric, flows: Flows,
    seed: int, *, names: tuple[str, ...] = ("",), program: MessageFlows | None = None,
) -> SpraySession:  # fmt: skip
    """Lay out a run of sprayed packets.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    spraying: the transports.
    fabric: links, switches and packets.
    flows: in order of their start, with bytes of payload in the place of packets.
    seed: of all draws.
    names: of the transports.
    program: whose messages the flows are.

    Returns
    -------
    The session.

    Raises
    ------
    SpecError: routes without next hops or whole paths, packets that do not fit a queue, and too large runs.
    """
    sprayings = (spraying,) if isinstance(spraying, Spraying) else tuple(spraying)
    _check(topology, routes, fabric, flows, program is not None)
    _check_credit(sprayings)
    tick = tick_of(topology, fabric)
    capacity = np.concatenate([topology.capacity, np.full(2 * topology.hosts, topology.host_capacity)])
    delay, ratio = links_of(topology, fabric, fabric.switch_ticks(topology))
    ndp_only = all(one.credit == Credit.NDP for one in sprayings)
    check_hop(delay, ratio, fabric.mtu_bytes, "capacity", "link_us")
    channels, host = channels_of(topology, delay, ratio)
    hops = equal_hops(topology, routes, channels)
    trip = longest_round_trip(topology, routes, channels, host, hops, fabric.mtu_bytes, fabric.control_bytes)
    rules_and_queues = [_rules(topology, one, fabric, trip, int(ratio[-1]), tick, seed, ndp_only) for one in sprayings]
    transports, queue_bytes = tuple(rules for rules, _ in rules_and_queues), rules_and_queues[0][1]
    rules = next((one for one in transports if one.credit in (Credit.NDP, Credit.RCCC)), transports[0])
    settings = _link_settings(topology, fabric, rules, queue_bytes, capacity)
    sprayed = _in_packets(flows, fabric)
    lossless, laws = fabric.lossless, _laws(sprayings, fabric, rules, tick)
    of_flow = _classes(sprayings, fabric)[sprayed.kinds]
    marks = None
    if lossless is not None and fabric.ecn is None:
        marks = _default_marks(sprayings)
        settings = _with_marks(settings, marks, tick)
        lossless = replace(lossless, mark_probability=marks.probability)
    to_hosts = slice(topology.channels + topology.hosts, None)
    if all(one.credit in (Credit.NDP, Credit.RCCC) for one in sprayings):
        settings.low[to_hosts], settings.high[to_hosts] = NEVER_MARKS, NEVER_MARKS + 1
    return SpraySession(
        topology=topology, fabric=fabric, routes=routes.tables(topology), rules=rules,
        flows=sprayed, tick_s=tick, delay=delay, **settings._asdict(),
        port_choice=PortChoice(
            int(AtSwitch[fabric.at_switch.upper()]), ceil(_LEVEL_AGE_S / tick), ceil(_FLOWLET_GAP_S / tick)
        ),
        transports=transports, names=names, program=program, hops=hops, laws=laws, marks=marks,
        changes=() if lossless is None else _storm(lossless, topology, delay, tick),
        ports=None if lossless is None else _port_settings(lossless, topology, fabric, delay, settings, of_flow),
    )  # fmt: skip


def _port_settings(
    lossless: Lossless, topology: Topology, fabric: Fabric, delay: Ints, settings: LinkSettings, of_flow: Ints
) -> PortSettings:
    link, tick = delay.copy(), tick_of(topology, fabric)
    link[: topology.channels + topology.hosts] -= fabric.switch_ticks(topology)
    control = _control_delay(topology, link)
    shared = shared_settings(lossless, topology, link + control, settings.ratio)
    classes = class_settings(lossless, fabric.mtu_bytes, settings.queue_bytes, settings.ratio, of_flow)
    control = control + _response_ticks(lossless, tick)
    ports = port_settings(lossless, fabric.payload, control, settings.low, settings.high, shared, classes)
    if lossless.watchdog_us is None:
        return ports
    period, restore = (max(1, ceil(exact(us) / 10**6 / tick)) for us in (lossless.watchdog_us, lossless.restore_us))
    return ports._replace(watchdog=(period, restore))


def _classes(sprayings: Sequence[Spraying], fabric: Fabric) -> Ints:
    """The class of each transport, int64 [transports], by default the first. Raises ``SpecError`` for unknown ones."""
    names = () if fabric.lossless is None else tuple(one.name for one in fabric.lossless.classes)
    numbers = np.zeros(len(sprayings), np.int64)
    for i, one in enumerate(sprayings):
        if one.priority_class is None:
            continue
        if one.priority_class not in names:
            key = "priority_class" if len(sprayings) == 1 else f"of.{i}.priority_class"
            problem = (
                f"unknown class {one.priority_class}" if names else "needs switching.pfc.classes, of queue: lossless"
            )
            raise SpecError(problem, key=key, choices=names)
        numbers[i] = names.index(one.priority_class)
    return numbers


def _storm(lossless: Lossless, topology: Topology, delay: Ints, tick: Fraction) -> tuple[FabricChange, ...]:
    """The changes of a pause storm: frames of a host, for each class, reach its switch.

    Raises ``SpecError`` for an unknown host or class.
    """
    storm, key = lossless.pfc_storm, "pfc.pfc_storm"
    if storm is None:
        return ()
    if storm.host >= topology.hosts:
        raise SpecError(f"host {storm.host} does not exist: there are {topology.hosts}", key=key)
    if storm.until_us is not None and storm.until_us <= storm.at_us:
        raise SpecError("until_us must be later than at_us", key=key)
    pausing = lossless.pausing
    if storm.priority_class is not None:
        names = [lossless.classes[number].name for number in pausing] if lossless.classes else []
        if storm.priority_class not in names:
            problem = f"there is no class {storm.priority_class} that pauses"
            raise SpecError(problem, key=f"{key}.priority_class", choices=names)
        pausing = [pausing[names.index(storm.priority_class)]]
    link, none = topology.channels + topology.hosts + storm.host, np.zeros(0, np.int64)
    count, later = len(lossless.class_names) or 1, int(delay[link]) + _response_ticks(lossless, tick)
    times = [(storm.at_us, True)] + ([] if storm.until_us is None else [(storm.until_us, False)])
    return tuple(
        FabricChange(
            ceil(exact(us) / 10**6 / tick) + later, none, none, LinkSettings(none, none, none, none),
            storm=(link * count + number, begins),
        ) for us, begins in times for number in pausing
    )  # fmt: skip


def _response_ticks(lossless: Lossless, tick: Fraction) -> int:
    """Ticks from the arrival of a PAUSE or RESUME until it is obeyed, rounded up."""
    return ceil(exact(lossless.response_ns) / 10**9 / tick)


def _control_delay(topology: Topology, link: Ints) -> Ints:
    """Ticks of a PAUSE or RESUME to the server of each link: those of the reverse channel, without one of its own.

    link: int64 [links], ticks of each link without the delay of its switch.
    """
    ticks, own = link.copy(), np.arange(topology.channels)
    ticks[own] = link[np.where(topology.reverse >= 0, topology.reverse, own)]
    return ticks


def _laws(sprayings: Sequence[Spraying], fabric: Fabric, rules: Rules, tick: Fraction) -> tuple[Law, ...]:
    """The laws of RDMA transports, () if there are none. Raises ``SpecError`` for a mixture, and for trimming."""
    specs = [one.rdma for one in sprayings if one.rdma is not None]
    if not specs:
        return ()
    if len(specs) < len(sprayings):
        raise SpecError("RDMA transports share a run with RDMA transports only", key="of")
    if fabric.trim:
        raise SpecError(
            "an RDMA transport cannot use trimmed packets: it needs queue: lossless, ecn or drop_tail",
            key="trim",
        )
    if fabric.lossless is None and any(one.telemetry for one in specs):
        raise SpecError("its telemetry needs switching.queue: lossless, whose outputs report", key="transport")
    scale = Scale(tick, rules.rate, fabric.payload, rules.rtt0)
    return tuple(one.law(scale) for one in specs)


def _default_marks(sprayings: Sequence[Spraying]) -> Marks:
    """The marks of the first transport that reacts to marks, else none."""
    of_each = [one.rdma.marks if one.rdma is not None else _DCQCN_MARKS for one in sprayings
               if one.rdma is not None or one.window in _MARKED]  # fmt: skip
    return next((each for each in of_each if each is not None), _NO_MARKS)


def _with_marks(settings: LinkSettings, marks: Marks, tick: Fraction) -> LinkSettings:
    """The settings of links with some marks. tick: seconds."""
    if marks is _NO_MARKS:
        never = np.full(len(settings.low), NEVER_MARKS)
        return settings._replace(low=never, high=never + 1)
    share = np.ones(len(settings.ratio))
    if marks.gbps is not None:  # ratio: ticks per byte, times 2**RATIO_BITS
        share = 8 * 2.0**RATIO_BITS / settings.ratio / float(tick) / (marks.gbps * 1e9)
    low, high = (np.ceil(bound * share).astype(np.int64) for bound in (marks.low, marks.high))
    return settings._replace(low=low, high=high)


def make_routing(session: SpraySession) -> Routing:
    """How switches route at the start of a run.

    Parameters
    ----------
    session: the session.
    """
    topology, salts = session.topology, np.zeros(session.topology.switches + 1, np.int64)
    make_salts(session.seed, salts)
    switches = make_switches(
        session.port_choice, session.seed, session.queue_bytes, topology.out_degree, 2 * len(session.flows.source)
    )
    return Routing(
        routes=SprayRoutes(session.routes, session.routes, False, salts),
        out_start=topology.out_start.astype(np.int64),
        host_switch=topology.host_switch.astype(np.int64),
        switches=switches,
    )


def link_settings_at(session: SpraySession, rate: Floats) -> LinkSettings:
    """The settings of the channels between switches at a fraction of their capacity.

    Parameters
    ----------
    session: the session.
    rate: float64 [channels], fraction of the capacity.
    """
    topology = session.topology
    settings = _link_settings(
        topology, session.fabric, session.rules, int(session.queue_bytes[-1]), topology.capacity * rate
    )
    return settings if session.marks is None else _with_marks(settings, session.marks, session.tick_s)


def _check(topology: Topology, routes: Routes, fabric: Fabric, flows: Flows, of_program: bool) -> None:
    """Raise ``SpecError`` for what cannot run. of_program: whether the flows are messages of a program."""
    check_flows(topology, flows, of_program)
    if routes.form not in (RouteForm.TABLE, RouteForm.DIGITS, RouteForm.PATHS):
        raise SpecError(
            "spraying needs next hops or whole paths, and this routing has neither", key="routing",
            choices=("ecmp", "minimal", "ksp", "optimal", "allpath"),
        )  # fmt: skip
    if fabric.at_switch != "ecmp" and routes.form == RouteForm.PATHS:
        raise SpecError(
            "switches choose among next hops, and this routing has whole paths", key="at_switch", choices=("ecmp",)
        )
    if fabric.at_switch == "flowlet" and topology.switches * len(flows.source) * 2 > MOST_KEPT:
        raise SpecError(
            f"flowlets of {topology.switches} switches x {len(flows.source)} flows exceed {MOST_KEPT // 2:.2g}",
            key="at_switch",
        )
    if fabric.header_bytes >= fabric.mtu_bytes:
        raise SpecError(f"a packet of {fabric.mtu_bytes} bytes has no payload", key="header_bytes")
    if (packets := int((-(-flows.packets // fabric.payload)).sum())) > MOST_PACKETS:
        key = "application" if of_program else "traffic"
        raise SpecError(f"{packets:.2g} packets are more than {MOST_PACKETS:.2g}", key=key)


def _check_credit(sprayings: Sequence[Spraying]) -> None:
    """Reject transports that grant credit by different rules."""
    granting = {(one.credit, one.oversubscription) for one in sprayings if one.credit in (Credit.NDP, Credit.RCCC)}
    if len(granting) > 1:
        raise SpecError(
            "a run may use only one of rccc, nscc_rccc and ndp: a receiver grants credit by one rule", key="of"
        )


def _in_packets(flows: Flows, fabric: Fabric) -> SprayedFlows:
    size = flows.packets
    packets = np.maximum(1, -(-size // fabric.payload))
    last = np.maximum(1, size - (packets - 1) * fabric.payload + fabric.header_bytes)
    return SprayedFlows(flows.source, flows.destination, size, packets, last, flows.start, flows.kinds)


def _rules(
    topology: Topology, spraying: Spraying, fabric: Fabric, trip: int, ratio: int, tick: Fraction, seed: int,
    ndp_only: bool,
) -> tuple[Rules, int]:  # fmt: skip
    """The rules of hosts, and the data capacity in bytes of the queue of a channel as fast as a host.

    trip: the longest zero-load round trip, ticks. ratio: ticks of a byte on a host channel, times 2**RATIO_BITS.
    ndp_only: whether all transports are NDP.
    """
    mtu, rate = fabric.mtu_bytes, topology.host_capacity / fastest_capacity(topology)
    product = trip * rate
    queue_bytes = fabric.queue_bytes
    if queue_bytes is None:
        queue_bytes = ceil(product / mtu) * mtu * (1 if fabric.trim else _UNTRIMMED_QUEUES)
        queue_bytes = _NDP_PACKETS * mtu if ndp_only else queue_bytes
    target = spraying.target if spraying.target is not None else (_TARGET if fabric.trim else 1.0)
    target = target * trip
    a, b = product / _REFERENCE_BDP, target / float(_REFERENCE_S / tick)
    timeout = ceil(_MARGIN_S / tick) + _QUEUES * service_ticks(ratio, queue_bytes)
    if spraying.timeout_us is not None:
        timeout = max(1, ceil(exact(spraying.timeout_us) / 10**6 / tick))
        least = service_ticks(ratio, mtu)
        if timeout < least:
            needed = float(least * tick * 10**6)
            problem = (
                f"timeout_us: {spraying.timeout_us:g} is less than the {needed:.4g} us in which a host sends a packet"
            )
            raise SpecError(problem, key="transport")
    first = _MOST_BDP * product if spraying.init_window is None else float(spraying.init_window * mtu)
    by_packets = spraying.credit == Credit.NDP
    gap = ceil(service_ticks(ratio, mtu) / spraying.rate)
    mss = fabric.payload
    rules = Rules(
        seed=seed, mtu=mtu, header=fabric.header_bytes, control=fabric.control_bytes, window=int(spraying.window),
        credit=int(spraying.credit), spread=int(Spread[spraying.spread.upper()]),
        paths=1 if fabric.at_switch in _ONE_ENTROPY else spraying.paths, ack_bytes=spraying.ack_bytes,
        trims=int(fabric.trim), acknowledges=int(spraying.credit != Credit.PACED), rtt0=trip, timeout=timeout,
        freeze=ceil(_FREEZE_S / tick), gap=gap, quantum=mtu if by_packets else _QUANTUM,
        pull_quanta=1 if by_packets else _PULL_QUANTA, empty_quanta=1 if by_packets else _EMPTY_QUANTA, gate=8 * mtu,
        rate=rate, first_window=first, most_bdp=_MOST_BDP, target=target, alpha=4.0 * mss * a * b / target,
        fair=5.0 * mss * a, eta=0.15 * mss * a, fast=0.25 * a, gamma=0.8, weight=1.0 / 80.0,
        near=float(Fraction(1, 10**6) / tick),
        byte_gap=1.0 / (_PACE * rate),
        oversubscription=spraying.oversubscription or oversubscription(topology), sleek=int(spraying.sleek),
        weighted=int(ndp_only),
    )  # fmt: skip
    return rules, queue_bytes


def _link_settings(
    topology: Topology, fabric: Fabric, rules: Rules, queue_bytes: int, capacity: Floats
) -> LinkSettings:
    """Settings of links of some capacities, float64 [links].

    queue_bytes: capacity of the queue of a link as fast as a host; others in proportion to their rate. With NDP only it
    is the same at any rate, and queues mark nothing unless ``fabric.ecn`` is set.
    """
    mtu, product, share = fabric.mtu_bytes, Fraction(rules.rtt0) * Fraction(rules.rate), topology.host_capacity
    packets = ceil(product / mtu)
    if fabric.ecn is None:
        bounds = [float(ceil(capacity_ratio * packets) * mtu) for capacity_ratio in (_LOW_MARK, _HIGH_MARK)]
    else:
        unit = queue_bytes if fabric.ecn[1] <= 1 else mtu
        bounds = [bound * unit for bound in fabric.ecn]
    capacity_ratio = np.ones(len(capacity)) if rules.weighted else capacity / share
    queue_capacity = to_integers("queue_bytes", np.maximum(np.ceil(queue_bytes * capacity_ratio), mtu))
    low, high = (to_integers("ecn", np.ceil(bound * capacity / share)) for bound in bounds)
    if not fabric.marks or (rules.weighted and fabric.ecn is None):
        low[:], high[:] = NEVER_MARKS, NEVER_MARKS + 1
    return LinkSettings(ratio_of(topology, capacity), queue_capacity, low, np.maximum(low + 1, high))
