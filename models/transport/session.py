# SPDX-License-Identifier: Apache-2.0
"""A packet-level run of transports: queues, paths and flows, laid out for the engines."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.jit import interpreted, njit
from flitlab.models.registry import SpecError, SpecWarning
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.datagram import RATIO_BITS, service_ticks
from flitlab.models.rules.draw import Stream, below_wide, draw
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.law import AckPath, Transport
from flitlab.models.transport.messages import Connections
from flitlab.models.transport.newreno import Rules, make_rules
from flitlab.models.transport.paths import PathDraw, Paths, backwards, draw_paths, most_paths, subflow_counts
from flitlab.models.transport.queues import Links, Queues, exact, fastest_capacity, propagation_ticks, tick_of
from flitlab.models.transport.times import LONGEST, with_times

SYN_BYTES = 1
MOST_SUBFLOWS = 1 << 24
LATEST = (1 << 39) - 1
"""The last tick of a run: a timer's tick and its subflow share an integer."""

LONGEST_TRANSIT = 1 << 31
"""Ticks that a packet may be in flight: differences of ticks have 32 bits."""

LONGEST_HOP = 1 << 28
"""Ticks that a packet may take on one link: the calendar of arrivals has a slot of 4 bytes per tick."""

SLOWEST = 1 << 30
"""Ticks of a byte on the slowest link: times of the largest packet stay far from overflow in 64 bits."""


@dataclass(frozen=True, eq=False)
class Change:
    """A change of the network at the beginning of a tick.

    broken: int64, links that fail: they drop their packets, and all that arrive. mended: int64, links that return.
    other: int64, links whose ticks per byte become ``ratio`` (int64, as in :class:`Session`), also for the rest of the
    packet in service. moved: int64, subflows that take ``paths`` from now on, and their acknowledgements ``back``
    (AckPath.REVERSE_PATH). ack_delay: int64 [moved], ticks of their acknowledgements without queues.
    """

    tick: int
    broken: Ints
    mended: Ints
    other: Ints
    ratio: Ints
    moved: Ints
    paths: Paths
    back: Paths | None
    ack_delay: Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class TransportSession:
    """The inputs of a run that modes datagram and spray share.

    A tick is the time of one byte on the fastest channel, ``tick_s`` seconds. delay: int64 [links], ticks of each link
    (numbered as in :class:`~flitlab.models.transport.paths.Paths`); ratio: int64 [links], ticks of a byte times
    2**RATIO_BITS. changes: of the network, in order of their ticks; each has ``other``, the links whose ticks per byte
    become ``ratio``.
    """

    topology: Topology
    tick_s: Fraction
    delay: Ints
    ratio: Ints
    changes: tuple[Any, ...] = ()

    @property
    def retransmits(self) -> bool:
        """Whether senders retransmit dropped packets."""
        raise NotImplementedError

    def cautions(self) -> Iterator[SpecWarning]:
        """What of the transport is probably not meant."""
        yield from ()

    @property
    def slowest(self) -> Ints:
        """The most ticks per byte, times 2**RATIO_BITS, that each link ever takes: int64 [links]."""
        most = self.ratio.copy()
        for change in self.changes:
            most[change.other] = np.maximum(most[change.other], change.ratio)
        return most

    def ticks(self, seconds: float | Fraction) -> int:
        """Ticks in ``seconds``, rounded up."""
        return ceil(exact(seconds) / self.tick_s)


@dataclass(frozen=True, eq=False, kw_only=True)
class Session(TransportSession):
    """All inputs of a run of mode datagram.

    transports, names: of the flows. first: int64 [flows + 1], the subflows of each flow. start: int64 [subflows],
    ticks. back: paths of acknowledgements (AckPath.REVERSE_PATH). ack_delay: int64 [subflows], ticks of an
    acknowledgement without queues. gap: int64 [subflows], ticks between packets at a constant rate. rules: of each
    transport; () without congestion control. program: of the hosts; flows are then its connections, open from the
    start.
    """

    routes: Routes
    transports: tuple[Transport, ...]
    names: tuple[str, ...]
    queues: Queues
    seed: int
    flows: Flows
    first: Ints
    start: Ints
    paths: Paths
    back: Paths | None
    ack_delay: Ints
    gap: Ints
    rules: tuple[Rules, ...]
    changes: tuple[Change, ...] = ()
    program: Connections | None = None

    @property
    def subflows(self) -> int:
        """Number of subflows."""
        return len(self.start)

    @property
    def transport(self) -> Transport:
        """The first transport; all have its path of acknowledgements, and a congestion control if it has."""
        return self.transports[0]

    @property
    def mark_bytes(self) -> int:
        """Bytes in a queue above which packets are marked; 0: never."""
        return max(transport.mark_packets for transport in self.transports) * self.queues.packet_bytes

    @property
    def subflow_kind(self) -> Ints:
        """The transport of each subflow: int64 [subflows]."""
        return np.repeat(self.flows.kinds, np.diff(self.first))

    @property
    def retransmits(self) -> bool:
        """Whether senders retransmit dropped packets."""
        return self.transport.law is not None


def path_delays(paths: Paths, delay: Ints) -> Ints:
    """Ticks of delay on the links of each path: int64 [paths].

    Parameters
    ----------
    paths: the paths.
    delay: int64 [links], ticks.
    """
    ticks: Ints = np.add.reduceat(delay[paths.link], paths.start[:-1])
    return ticks


def first_samples(session: Session) -> Ints:
    """The round trip of each opening packet through empty queues: int64 [subflows].

    Parameters
    ----------
    session: the session.
    """
    trip = _crossing(session, session.paths, SYN_BYTES)
    if session.transport.ack_path == AckPath.PURE_DELAY:
        return trip + session.ack_delay
    return trip if session.back is None else trip + _crossing(session, session.back, session.transport.ack_bytes)


def _crossing(session: Session, paths: Paths, size: int) -> np.ndarray:
    """Ticks of a packet of ``size`` bytes over each path."""
    return np.add.reduceat((services(session, size) + session.delay)[paths.link], paths.start[:-1])


def services(session: Session, size: int) -> Ints:
    """Ticks of each link for a packet of ``size`` bytes, at the start of the run: int64 [links]."""
    return serialization_ticks(session.ratio, size)


def serialization_ticks(ratio: Ints, size: int) -> Ints:
    """Ticks that links take to send a packet, int64.

    Parameters
    ----------
    ratio: int64 [links], as in :class:`Session`.
    size: bytes of the packet.
    """
    ticks: Ints = interpreted(service_ticks)(ratio, size)
    return ticks


def ratios(topology: Topology, rate: Floats | float = 1.0, key: str = "capacity") -> Ints:
    """Ticks per byte, times 2**RATIO_BITS, of the channels between switches: int64 [channels].

    Parameters
    ----------
    topology: the network.
    rate: float64 [channels] or one number, fraction of their capacity.
    key: of the error.

    Raises
    ------
    SpecError: a byte takes more than :data:`SLOWEST` ticks.
    """
    return ratio_of(topology, topology.capacity * rate, key)


def ratio_of(topology: Topology, capacity: Floats, key: str = "capacity") -> Ints:
    """Ticks per byte, times 2**RATIO_BITS, of links: int64 [links].

    Parameters
    ----------
    topology: the network.
    capacity: float64 [links].
    key: of the error.

    Raises
    ------
    SpecError: a byte takes more than :data:`SLOWEST` ticks.
    """
    with np.errstate(over="ignore", divide="ignore"):
        ticks = fastest_capacity(topology) / capacity
    if (slowest := float(ticks.max(initial=1.0))) > SLOWEST:
        raise SpecError(f"a byte takes {slowest:.3g} ticks on the slowest link; at most {SLOWEST}", key=key)
    fastest = exact(fastest_capacity(topology))
    values, index = np.unique(capacity, return_inverse=True)
    ratio = [ceil(fastest / exact(value) * 2**RATIO_BITS) for value in values.tolist()]
    return np.array(ratio, np.int64)[index]


def links_of(topology: Topology, links: Links, switch_ticks: int = 0) -> tuple[Ints, Ints]:
    """Delay and ratio of all links, int64 [links] each, as in :class:`TransportSession`.

    Parameters
    ----------
    topology: the network.
    links: their rate and propagation delay.
    switch_ticks: delay of the switch at the end of a link.

    Raises
    ------
    SpecError: a byte takes more than :data:`SLOWEST` ticks.
    """
    channels, hosts = topology.channels, topology.hosts
    delay = np.full(channels + 2 * hosts, propagation_ticks(topology, links))
    delay[: channels + hosts] += switch_ticks
    delay += np.concatenate([topology.delay, topology.access_delay, topology.access_delay])
    of_hosts = ratio_of(topology, np.full(2 * hosts, topology.host_capacity), "host_capacity")
    return delay, np.concatenate([ratios(topology), of_hosts])


def check_hop(delay: Ints, ratio: Ints, size: int, slow: str, late: str) -> None:
    """Check the time of a packet on one link.

    Parameters
    ----------
    delay: int64 [links], ticks.
    ratio: int64 [links], as in :class:`Session`.
    size: bytes of the largest packet.
    slow: key at fault for a long serialization time.
    late: key at fault for a long delay.

    Raises
    ------
    SpecError: a packet takes more than :data:`LONGEST_HOP` ticks on a link.
    """
    service = serialization_ticks(ratio, size)
    longest = int((delay + service).max(initial=0))
    if longest > LONGEST_HOP:
        key = late if int(delay.max()) > LONGEST_HOP // 2 else slow
        raise SpecError(f"a packet takes {longest} ticks on the slowest link; at most {LONGEST_HOP}", key=key)


@njit
def _start_ticks(seed: int, begin: Ints, within: Ints, ticks: Ints) -> None:
    """Start every subflow at random within ``within`` ticks of ``begin``."""
    for i in range(len(ticks)):
        ticks[i] = begin[i] + (below_wide(draw(seed, Stream.START, i, 0), within[i]) if within[i] > 0 else 0)


def make_session(
    topology: Topology,
    routes: Routes,
    transport: Transport | Mapping[str, Transport],
    queues: Queues,
    flows: Flows,
    *,
    path_draw: int = PathDraw.DISTINCT,
    seed: int = 1,
    program: Connections | None = None,
) -> Session:
    """Draw paths and starts, and check that everything fits together.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    transport: the transport, or several by name; timeouts have defaults
        (:func:`~flitlab.models.transport.times.default_times`).
    queues: links and queues.
    flows: in order of their start.
    path_draw: :data:`~flitlab.models.transport.paths.PathDraw`.
    seed: of all draws.
    program: connections of a program; None for plain flows.

    Returns
    -------
    The session.

    Raises
    ------
    SpecError: flows of a host to itself, more subflows than paths, queues below a packet, a retransmission timeout
        below a tick, and too large runs.
    """
    queues.check()
    tick = tick_of(topology, queues)
    named = {"": transport} if isinstance(transport, Transport) else transport
    transports = tuple(with_times(one, topology, routes, queues, LONGEST["start_ms"]) for one in named.values())
    kind = flows.kinds
    check_flows(topology, flows, program is not None)
    _check_together(transports)
    per_flow = np.array([one.subflows for one in transports])[kind]
    _check(topology, routes, transports, int(per_flow.sum()), path_draw, tick)
    if path_draw == PathDraw.LIMITED:
        per_flow = subflow_counts(topology, routes, flows.source, flows.destination, per_flow)
    first = np.append(0, np.cumsum(per_flow))
    # flows of one pair that start together draw their paths together
    pair = flows.source * topology.hosts + flows.destination
    group = np.flatnonzero((np.diff(pair, prepend=-1) != 0) | (np.diff(flows.start, prepend=-1) != 0))
    group_start = np.append(first[group], first[-1])
    paths = draw_paths(topology, routes, flows.source[group], flows.destination[group], group_start, path_draw, seed)
    within = np.array([ceil(exact(one.start_ms or 0.0) / 1000 / tick) for one in transports])[kind]
    start = np.zeros(first[-1], np.int64)
    _start_ticks(seed, np.repeat(flows.start, per_flow), np.repeat(within, per_flow), start)
    delay, ratio = links_of(topology, queues)
    back = _ack_paths(topology, transports[0], queues, paths)
    largest = max(queues.packet_bytes, transports[0].ack_bytes if back else 0)
    check_hop(delay, ratio, largest, "capacity", "link_us")
    for paths_of_direction in (paths, back):
        check_transit(paths_of_direction, delay, ratio, queues)
    rules = tuple(make_rules(one, queues.packet_bytes, tick) for one in transports if one.law)
    nic = int(np.ceil(queues.packet_bytes * fastest_capacity(topology) / topology.host_capacity))
    gap = np.maximum(np.rint(np.minimum(nic * per_flow / transports[0].rate, LATEST)).astype(np.int64), 1)
    return Session(
        topology=topology, routes=routes, transports=transports, names=tuple(named), queues=queues,
        seed=seed, tick_s=tick,
        delay=delay, ratio=ratio, flows=flows, first=first, start=start, paths=paths, back=back,
        ack_delay=path_delays(paths, delay), gap=np.repeat(gap, per_flow), rules=rules,
        program=program,
    )  # fmt: skip


def check_flows(topology: Topology, flows: Flows, of_program: bool) -> None:
    """Raise ``SpecError`` if there are no flows, which a program may lack, or one of a host to itself."""
    if not of_program and not len(flows.source):
        raise SpecError("no host sends anything", key="traffic")
    if (own := np.flatnonzero(flows.source == flows.destination)).size:
        name = host_names(topology).label(flows.source[own[0]])
        raise SpecError(f"host {name} would send to itself", key="traffic")


def _check_together(transports: tuple[Transport, ...]) -> None:
    """Reject transports that cannot share a run."""
    if len(transports) == 1:
        return
    for index, one in enumerate(transports):
        if one.law is None:
            raise SpecError("has no congestion control: in mode datagram it runs alone", key=f"of.{index}.kind")
    if len({(one.ack_path, one.ack_bytes) for one in transports}) > 1:
        raise SpecError("all must have the same ack_path and ack_bytes", key="of")
    if len({one.mark_packets for one in transports if one.mark_packets}) > 1:
        raise SpecError("mark_packets must be the same: a queue has one threshold", key="of")


def _check(
    topology: Topology, routes: Routes, transports: tuple[Transport, ...], subflows: int, path_draw: int, tick: Fraction
) -> None:
    together = sum(transport.subflows * transport.flows for transport in transports)
    if subflows > MOST_SUBFLOWS:
        raise SpecError(f"{subflows} subflows are more than {MOST_SUBFLOWS}", key="subflows")
    paths = most_paths(topology, routes)
    if path_draw == PathDraw.DISTINCT and paths is not None and together > paths:
        count = f"{paths} path" + "s" * (paths != 1)
        problem = f"{together} subflows of a pair of hosts, but no pair has more than {count}; path_draw: limited"
        raise SpecError(
            f"{problem} opens no more, path_draw: with_replacement draws some twice",
            key="of" if len(transports) > 1 else "subflows",
        )
    if any(one.law and exact(one.min_rto_ms or 0.0) / 1000 < tick for one in transports):
        raise SpecError(f"is below the tick, {float(tick) * 1e3:.3g} ms", key="min_rto_ms")


def _ack_paths(topology: Topology, transport: Transport, queues: Queues, paths: Paths) -> Paths | None:
    """Paths of acknowledgements through the queues, None where there are none."""
    if not transport.law or transport.ack_path != AckPath.REVERSE_PATH:
        return None
    if transport.ack_bytes > queues.queue_bytes:
        problem = f"an acknowledgement does not fit into a queue of {queues.queue_bytes} bytes"
        raise SpecError(problem, key="ack_bytes")
    return backwards(topology, paths)


def check_transit(
    paths: Paths | None, delay: np.ndarray, ratio: np.ndarray, queues: Queues, key: str = "queue_packets"
) -> None:
    """Check the time of packets in flight, which has 32 bits.

    Parameters
    ----------
    paths: the paths, None: nothing to check.
    delay: int64 [links], ticks.
    ratio: int64 [links], as in :class:`Session`.
    queues: links and queues.
    key: of the error.

    Raises
    ------
    SpecError: a packet may be in flight for :data:`LONGEST_TRANSIT` ticks.
    """
    if paths is None or not len(paths.link):
        return
    longest = float(longest_transit_ticks(paths, delay, ratio, queues).max())
    if longest >= LONGEST_TRANSIT:
        of_byte = float(np.max(-(-ratio >> RATIO_BITS)))
        problem = (
            f"a packet may be in flight for {longest:.0f} ticks, in full queues of {queues.queue_bytes} bytes on links "
            f"where a byte takes up to {of_byte:.0f} ticks; at most {LONGEST_TRANSIT - 1}"
        )
        raise SpecError(problem, key=key)


def longest_transit_ticks(paths: Paths, delay: np.ndarray, ratio: np.ndarray, queues: Queues) -> Floats:
    """The most ticks of a packet over each path, through full queues: float64 [paths].

    A channel takes whole ticks per packet, and a packet may have one byte. The sums are doubles, as 64-bit integers
    overflow where links are slow.

    Parameters
    ----------
    paths: the paths.
    delay: int64 [links], ticks.
    ratio: int64 [links], as in :class:`Session`.
    queues: links and queues.
    """
    of_byte = -(-ratio >> RATIO_BITS).astype(np.float64)
    stay = delay + queues.queue_bytes * of_byte
    feeder = queues.feeder_packets * queues.packet_bytes * float(of_byte[-1])
    ticks: Floats = np.add.reduceat(stay[paths.link], paths.start[:-1]) + feeder
    return ticks


def longest_round_trips(session: Session) -> Ints:
    """Ticks after which a packet without acknowledgement, or its acknowledgement, was dropped: int64 [subflows].

    Parameters
    ----------
    session: the session.
    """
    slowest, queues = session.slowest, session.queues
    ticks = longest_transit_ticks(session.paths, session.delay, slowest, queues)
    if session.back is not None:
        ticks = ticks + longest_transit_ticks(session.back, session.delay, slowest, queues)
    elif session.transport.ack_path == AckPath.PURE_DELAY:
        ticks = ticks + session.ack_delay
    return ticks.astype(np.int64)
