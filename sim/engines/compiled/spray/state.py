# SPDX-License-Identifier: Apache-2.0
"""Constants and state of a run of mode spray, and both at tick 0.

Record layouts are documented here; kernels refer to them. NONE stands for no entity.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Bytes, Ints, Masks, Words
from flitlab.models.jit import inline
from flitlab.models.rules.datagram import RATIO_BITS
from flitlab.models.rules.rdma.layout import Rdma, make_rdma
from flitlab.models.rules.spray.credit import Pacers, make_pacers
from flitlab.models.rules.spray.layout import (
    Credit,
    PacketKind,
    Receivers,
    Rules,
    Senders,
    make_receivers,
    make_senders,
)
from flitlab.models.rules.spray.ports import Routing
from flitlab.models.transport.fabric import SpraySession, make_routing
from flitlab.models.transport.session import LATEST
from flitlab.sim.engines.compiled.memory import aligned_records, copy_aligned
from flitlab.sim.engines.compiled.pool import NONE, allocate_record, full_stack
from flitlab.sim.engines.compiled.spray.lossless import make_classes, make_lossless
from flitlab.sim.engines.compiled.transport import make_trace, push_timer

# A packet, one cache line. It is in one list of one link.
PACKET = np.dtype(
    [
        ("next", np.uint32),  # next packet in that list
        ("previous", np.uint32),  # previous packet in the data FIFO; in a lossless queue the port by which it came
        ("ended", np.uint32),  # in flight: low 32 bits of the tick at which its service ended
        ("kind", np.uint32),  # PacketKind, and flags
        ("flow", np.uint32),
        ("size", np.uint32),  # bytes
        ("entropy", np.uint16),  # entropy value that ECMP hashes
        ("hop", np.uint16),  # channels between switches crossed
        ("path", np.uint32),  # number of its path, where routes are paths
        ("host", np.uint32),  # destination
        ("number", np.uint32),  # of data; of a response the data that caused it
        ("value", np.uint32),  # of data and requests the pull target, of a pull the credit granted, of an ACK the
        # first missing packet
        ("start", np.uint32),  # of an ACK: the first packet that ``bits`` is about
        ("received", np.int64),  # of an ACK: distinct bytes received; of RDMA data: tick at which it was sent
        ("bits", np.int64),  # of an ACK: packets received from ``start`` on, a bit each
    ]
)


class Flag(IntEnum):
    """Bits of the field ``kind`` of a packet."""

    KIND_MASK = 7
    ACK_REQUESTED = 8
    RETRANSMISSION = 16
    ECN_MARK = 32
    TRIMMED = 64
    LAST_HOP = 128


class Fifo(IntEnum):
    """Lists of packets of a link."""

    IN_FLIGHT = 0  # behind the server
    CONTROL = 1  # high priority
    DATA = 2  # low priority


# A link, two cache lines.
LINK = np.dtype(
    [
        ("first", np.int64, len(Fifo)),  # first packet of each list, or NONE
        ("last", np.int64, len(Fifo)),
        ("serving", np.int64),  # packet in service, or NONE
        ("service_end", np.int64),  # tick
        ("data_bytes", np.int64),  # in the queue, with the packet in service
        ("control_bytes", np.int64),
        ("full_count", np.int64),  # arrivals at a full queue
        ("mark_draws", np.int64),  # random ECN decisions
        ("accepted", np.int64),  # this and the next three are columns of Counters.link
        ("max_data_bytes", np.int64),
        ("busy_ticks", np.int64),
        ("marked", np.int64),
    ]
)

# Packets that a link dropped, and trimmed.
DROPPED = np.dtype([("drops", np.int64), ("trims", np.int64)])

# Constants of a link, one cache line.
FIXED = np.dtype(
    [
        ("delay", np.int64),  # ticks
        ("ratio", np.int64),  # ticks per byte times 2**RATIO_BITS
        ("mtu_ticks", np.int64),  # service time of a full data packet
        ("control_ticks", np.int64),  # and of a control packet
        ("capacity", np.int64),  # bytes
        ("mark_low", np.int64),  # ECN thresholds, bytes
        ("mark_high", np.int64),
        ("end_node", np.int64),  # switch or host
    ]
)

NO_CAPACITY = -1  # of a failed link

# The flows of a network interface, of one class where there are several; one cache line.
NIC = np.dtype(
    [
        ("first_turn", np.int64),  # first and last flow that wait for their turn
        ("last_turn", np.int64),
        ("waiting", np.int64),  # how many wait
        ("cycle", np.int64),  # position in the weighted round robin of control and data
        ("unused", np.int64, 4),
    ]
)

NOT_LISTED = np.int64(-2)


class Timer(IntEnum):
    """Kinds of timers, in the order in which those of a tick expire."""

    START = 0
    TIMEOUT = 1
    PACE = 2
    PULL = 3
    SETTLE = 4  # of a watched interface
    PROBE = 5  # of a sender that detects losses itself
    LAW = 6  # of the congestion control of an RDMA sender; its rate has PACE
    CNP = 7  # of an RDMA receiver
    WATCHDOG = 8  # of a link, or of its port of a class


KIND_BITS = 4


_UNLIMITED = 1 << 62


class SprayConstants(NamedTuple):
    """Constants of a run of mode spray; times are in ticks."""

    inject: int  # first link from a host
    eject: int  # first link to a host
    links: int
    mask: int  # buckets of the timing wheel, less 1
    reserve: int  # packets that can be created in a tick, by a timer, and by events of a program
    index_bits: int  # of a timer, for its flow or host
    latest: int  # last tick of timers
    watched: bool  # an interface sets a timer for the end of service, as a timeout or a program may need its state
    rules: Any  # Rules; with several transports a record with the fields of ``SpraySession.rules``
    transport_rules: Any  # records of the rules of each transport where there are several, else None
    kind: Ints | None  # [flows]: transport of each flow
    fixed: np.ndarray  # FIXED [links]
    hosts_of_flow: Ints  # int64 [flows, 2]: source and destination host


class SprayState(NamedTuple):
    """State of a run of mode spray: all that changes."""

    packet: np.ndarray  # PACKET [packets]
    free: Words  # uint32 [packets + 1]: stack of unused records; its height is in the last entry
    link: np.ndarray  # LINK [links]
    next_in_bucket: Words  # uint32 [links]: next link in the same bucket of the timing wheel
    bucket: Words  # uint32 [ticks]: first link whose first packet arrives in that tick
    occupied: Masks  # uint64 [ticks / 64]: buckets that are not empty
    members: Ints  # int64: scratch, the links of a tick
    scratch: Ints  # int64: for sorting them
    out_link: Ints  # int64: scratch, the next links of their packets
    nic: np.ndarray  # NIC [hosts], with several classes of lossless queues [hosts * classes]
    next_in_turn: Ints  # int64 [flows]: next flow in the round robin of the host, -1: none, or NOT_LISTED
    timers_set: Bytes  # uint8 [flows]: bits of the timers that are set
    timers: Ints  # int64: a heap of (tick, kind, flow or host); their number is in the last entry
    senders: Senders
    receivers: Receivers
    pacers: Pacers
    cycle: Bytes  # uint8 [links]: position in the weighted round robin of switch outputs (``Rules.weighted``)
    dropped: np.ndarray  # DROPPED [links]
    lossless: Any  # :class:`~flitlab.sim.engines.compiled.spray.lossless.Lossless`, or None
    classes: Any  # :class:`~flitlab.sim.engines.compiled.spray.lossless.Classes`, or None where there is one
    rdma: Any  # :class:`~flitlab.models.rules.rdma.layout.Rdma`, or None
    trace: Ints  # int64 [entries, 3]: (tick, flow, number) of every untrimmed data packet
    growth_needed: Ints  # int64: arrays to enlarge before the next tick
    program: Any  # :class:`~flitlab.sim.engines.compiled.spray.messages.SprayProgram`, or None


def build(
    session: SpraySession, traced: bool, program: Any = None
) -> tuple[SprayConstants, SprayState, Routing]:  # fmt: skip
    """Make the constants and the state of a run at tick 0, and the data by which switches route.

    Parameters
    ----------
    session: flows, topology, queues and transports.
    traced: whether every untrimmed data packet is recorded.
    program: of a session with a program.
    """
    constants = _constants(session)
    flows, hosts = session.flows, session.topology.hosts
    links, count, ticks, pool = constants.links, len(flows.source), constants.mask + 1, 2 * constants.reserve
    classes = 1 if session.ports is None else session.ports.class_count
    link = aligned_records(links, LINK)
    link["first"] = NONE
    link["serving"] = NONE
    senders = make_senders(session.transports, session.flows.kinds, flows.packets, flows.last_size)
    receivers = make_receivers(senders)
    state = SprayState(
        packet=aligned_records(pool, PACKET),
        free=full_stack(pool),
        link=link,
        next_in_bucket=np.full(links, NONE, np.uint32),
        bucket=np.full(ticks, NONE, np.uint32),
        occupied=np.zeros(ticks // 64, np.uint64),
        members=np.zeros(links, np.int64),
        scratch=np.zeros(2 * links + 1, np.int64),
        out_link=np.zeros(links, np.int64),
        nic=aligned_records(hosts * classes, NIC),
        next_in_turn=np.full(count, NOT_LISTED),
        timers_set=np.zeros(count, np.uint8),
        timers=_first_timers(session, constants),
        senders=senders._replace(seq=copy_aligned(senders.seq)),
        receivers=receivers._replace(got=copy_aligned(receivers.got)),
        pacers=make_pacers(hosts, count, session.idle_entries),
        cycle=np.zeros(links, np.uint8),
        dropped=np.zeros(links, DROPPED),
        lossless=make_lossless(session, ticks),
        classes=make_classes(session, LINK),
        rdma=_rdma(session, pool),
        trace=make_trace(hosts, traced),
        growth_needed=np.zeros(8, np.int64),
        program=program,
    )
    return constants, state, _routing(session, link)


def _rdma(session: SpraySession, packets: int) -> Rdma | None:
    """Make the RDMA flows of a session; None if it has other transports. packets: records of packets."""
    if not session.laws:
        return None
    flows, mtu = session.flows, session.rules.mtu
    return make_rdma(session.laws, session.flows.kinds, flows.packets, flows.last_size, mtu, packets)


def records(rules: Sequence[Rules]) -> np.ndarray:
    """Lay out rules as records of an array, so that compiled code selects one by its number."""
    types = [(name, np.float64 if isinstance(value, float) else np.int64) for name, value in rules[0]._asdict().items()]
    return np.array([tuple(each) for each in rules], types)


def _routing(session: SpraySession, link: np.ndarray) -> Routing:
    """How switches route; the queue lengths of their state are fields of links."""
    routing = make_routing(session)
    return routing._replace(switches=routing.switches._replace(low=link["data_bytes"], high=link["control_bytes"]))


def _constants(session: SpraySession) -> SprayConstants:
    topology, rules, flows = session.topology, session.rules, session.flows
    links, hosts = len(session.delay), topology.hosts
    inject, eject = topology.channels, topology.channels + hosts
    fixed = aligned_records(links, FIXED)
    fixed["delay"], fixed["ratio"] = session.delay, session.ratio
    fixed["mtu_ticks"] = _ticks(session.ratio, rules.mtu)
    fixed["control_ticks"] = _ticks(session.ratio, rules.control)
    fixed["capacity"], fixed["mark_low"], fixed["mark_high"] = session.queue_bytes, session.low, session.high
    for threshold in ("mark_low", "mark_high"):
        fixed[threshold][inject:eject] = _UNLIMITED
    fixed["end_node"] = np.concatenate([topology.dst, topology.host_switch, np.arange(hosts)])
    longest = (
        session.delay + np.maximum(*(_ticks(session.slowest, size) for size in (rules.mtu, rules.control)))
    ).max()
    if session.ports is not None:
        longest = max(longest, session.ports.delay.max())
    least = int(flows.last_size.min(initial=rules.mtu))
    at_once = int((session.delay[inject:eject] // np.maximum(_ticks(session.ratio, least)[inject:eject], 1) + 3).sum())
    shortest = min(each.timeout for each in session.transports)
    others = records(session.transports) if len(session.transports) > 1 else None
    watched = session.ports is not None and session.ports.watchdog is not None
    watchdogs = links * session.ports.class_count if watched and session.ports is not None else 0
    index_bits = max(len(flows.source), hosts, watchdogs).bit_length()
    return SprayConstants(
        inject=inject,
        eject=eject,
        links=links,
        mask=max(64, 1 << int(longest + 1).bit_length()) - 1,
        reserve=at_once + (2 if session.program is None else 3) * hosts + (hosts if session.laws else 0),
        index_bits=index_bits,
        latest=min(LATEST, (1 << (63 - KIND_BITS - index_bits)) - 1),
        watched=session.ports is None
        and (session.program is not None or bool(session.laws) or bool(shortest <= session.delay[inject:eject].max())),
        rules=rules if others is None else records([rules])[0],
        transport_rules=others,
        kind=None if others is None else session.flows.kinds,
        fixed=fixed,
        hosts_of_flow=np.stack([flows.source, flows.destination], axis=1).astype(np.int64),
    )


def _ticks(ratio: Ints, size: int) -> Ints:
    """Ticks of each link for a number of bytes, as :func:`flitlab.models.rules.datagram.service_ticks`."""
    return (size * ratio + (1 << RATIO_BITS) - 1) >> RATIO_BITS


def _first_timers(session: SpraySession, constants: SprayConstants) -> Ints:
    """Make the heap of timers, with the starts of flows; it has room for two timers, RDMA four, per flow and per host,
    and with watchdogs one per link and class.

    Flows of a program start when it posts them.
    """
    flows = len(session.flows.start)
    paced = np.array([each.credit == Credit.PACED for each in session.transports])[session.flows.kinds]
    kind = np.where(paced, Timer.PACE, Timer.START)
    keys = (np.minimum(session.flows.start, constants.latest) << KIND_BITS | kind) << constants.index_bits
    capacity = (4 if session.laws else 2) * (flows + session.topology.hosts)
    if session.ports is not None and session.ports.watchdog is not None:
        capacity += constants.links * session.ports.class_count
    timers = np.zeros(capacity + 1, np.int64)
    if session.program is None:
        timers[:flows], timers[-1] = np.sort(keys | np.arange(flows)), flows  # sorted is a heap
    return timers


@inline
def is_untrimmed(kind):
    """Tell whether a packet of a kind is data that was not trimmed."""
    return kind & (Flag.KIND_MASK | Flag.TRIMMED) == PacketKind.DATA


@inline
def is_response(kind):
    """Tell whether a packet of a kind goes from the destination of its flow to the source."""
    return kind & Flag.KIND_MASK != PacketKind.DATA and kind & Flag.KIND_MASK != PacketKind.REQUEST


@inline
def set_timer(const, state, tick, kind, index):
    """Set a timer of a flow or a host; timers of a tick expire by kind and then index.

    Parameters
    ----------
    tick: int64; at most ``const.latest`` is set.
    kind: Timer.
    index: int64, flow or host.
    """
    push_timer(state.timers, (min(tick, const.latest) << KIND_BITS | kind) << const.index_bits | index)


@inline
def make_packet(const, state, flow, kind, size, entropy, number):
    """Create a packet of a flow."""
    packet = allocate_record(state)
    record = state.packet[packet]
    record.kind, record.flow, record.size, record.entropy = kind, flow, size, entropy
    record.host = const.hosts_of_flow[flow, 0 if is_response(kind) else 1]
    record.hop, record.number = 0, number
    return packet
