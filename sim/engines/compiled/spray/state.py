# SPDX-License-Identifier: Apache-2.0
"""Constants and state of a run of mode spray, and both at tick 0.

Record layouts are documented here; kernels refer to them. NONE stands for no entity.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Bytes, Ints, Masks, Words
from flitlab.models.rules.datagram import RATIO_BITS
from flitlab.models.rules.spray.credit import Pacers, make_pacers
from flitlab.models.rules.spray.layout import PACED, Receivers, Rules, Senders, make_receivers, make_senders
from flitlab.models.rules.spray.ports import Switches, make_salts, make_switches
from flitlab.models.rules.tables import Tables
from flitlab.models.transport.fabric import LATEST, SpraySession
from flitlab.sim.engines.compiled.memory import aligned, copy_aligned
from flitlab.sim.engines.compiled.pool import NONE, full_stack

# Fields of a packet record, uint32. A packet is in one list of one link.
NEXT = 0  # next packet in that list
PREVIOUS = 1  # previous packet in the data FIFO
ENDED = 1  # in flight: low 32 bits of the tick at which its service ended
KIND = 2
FLOW = 3
SIZE = 4  # bytes
ENTROPY = 5  # entropy value that ECMP hashes
PATH = 6  # number of its path, where routes are paths
HOST = 7  # destination
HOP = 8  # channels between switches crossed
NUMBER = 9  # of data; of a response the data that caused it
VALUE = 10  # of data and requests the pull target, of a pull the credit granted, of an ACK the first missing packet
START = 11  # of an ACK: the first packet that BITS is about
RECEIVED = 12  # of an ACK: distinct bytes received, in two words
BITS = 14  # of an ACK: packets received from START on, a bit each, in two words
RECORD = 16  # one cache line

# KIND is one of these, and flags.
DATA, ACK, NACK, PULL, REQUEST = (np.uint32(kind) for kind in range(5))
KINDS = np.uint32(7)
ACK_REQUESTED, RETRANSMISSION = np.uint32(8), np.uint32(16)
ECN_MARK, TRIMMED_FLAG, LAST_HOP = np.uint32(32), np.uint32(64), np.uint32(128)

# Fields of a link, int64. Lists have two fields: first and last packet.
IN_FLIGHT = 0  # packets behind the server
CONTROL_FIFO = 2  # high priority
DATA_FIFO = 4  # low priority
SERVING = 6  # packet in service, or NONE
SERVICE_END = 7  # tick
DATA_BYTES, CONTROL_BYTES = 8, 9  # in the queue, with the packet in service
FULL_COUNT = 10  # arrivals at a full queue
MARK_DRAWS = 11  # random ECN decisions
ACCEPTED, MAX_DATA_BYTES, BUSY_TICKS, MARKED = 12, 13, 14, 15  # columns of Counters.link
LINK = 16  # two cache lines

DROPS, TRIMS = 0, 1  # columns of SprayState.dropped

# Constants of a link, int64: ticks of delay, ticks per byte times 2**RATIO_BITS, ticks of a full data and of a control
# packet, capacity and ECN thresholds in bytes, switch or host at the end.
DELAY, RATIO, MTU_TICKS, CONTROL_TICKS, CAPACITY, MARK_LOW, MARK_HIGH, END_NODE = range(8)

NO_CAPACITY = -1  # of a failed link

# Fields of a host's network interface, int64: first and last flow that wait for their turn, how many wait, and the
# position in the weighted round robin of control and data.
FIRST_TURN, LAST_TURN, WAITING, CYCLE = range(4)
NIC = 8

NOT_LISTED = np.int64(-2)

# Kinds of timers, in the order in which those of a tick expire.
START_TIMER, TIMEOUT_TIMER, PACE_TIMER, PULL_TIMER = (np.int64(kind) for kind in range(4))
SETTLE_TIMER = np.int64(4)  # of a watched interface
PROBE_TIMER = np.int64(5)  # of a sender that detects losses itself
KIND_BITS = 3

# Entries of SprayState.growth_needed: flags, and the entries of the trace.
POOL, TRACE, TRACED = 0, 1, 2

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
    kind: Any  # int64 [flows]: transport of each flow, or None
    fixed: Ints  # int64 [links, 8]: see DELAY ...
    hosts_of_flow: Ints  # int64 [flows, 2]: source and destination host


class SwitchRouting(NamedTuple):
    """Data by which switches choose output ports."""

    at_switch: int
    routes: Tables
    built: Tables  # the routes at tick 0
    moved: bool  # whether routes have changed since
    salts: Ints  # int64 [switches + 1]: of hashes
    out_start: Ints
    host_switch: Ints
    switches: Switches  # its queue lengths are the fields of links


class SprayState(NamedTuple):
    """State of a run of mode spray: all that changes."""

    packet: Words  # uint32 [packets, RECORD]
    free: Words  # uint32 [packets + 1]: stack of unused records; its height is in the last entry
    link: Ints  # int64 [links, LINK]
    next_in_bucket: Words  # uint32 [links]: next link in the same bucket of the timing wheel
    bucket: Words  # uint32 [ticks]: first link whose first packet arrives in that tick
    occupied: Masks  # uint64 [ticks / 64]: buckets that are not empty
    members: Ints  # int64: scratch, the links of a tick
    scratch: Ints  # int64: for sorting them
    out_link: Ints  # int64: scratch, the next links of their packets
    nic: Ints  # int64 [hosts, NIC]
    next_in_turn: Ints  # int64 [flows]: next flow in the round robin of the host, -1: none, or NOT_LISTED
    timers_set: Bytes  # uint8 [flows]: bits of the timers that are set
    timers: Ints  # int64: a heap of (tick, kind, flow or host); their number is in the last entry
    senders: Senders
    receivers: Receivers
    pacers: Pacers
    cycle: Bytes  # uint8 [links]: position in the weighted round robin of switch outputs (``Rules.weighted``)
    dropped: Ints  # int64 [links, 2]: packets dropped and trimmed
    trace: Ints  # int64 [entries, 3]: (tick, flow, number) of every untrimmed data packet
    growth_needed: Ints  # int64: arrays to enlarge before the next tick
    program: Any  # :class:`~flitlab.sim.engines.compiled.spray.messages.SprayProgram`, or None


def build(session: SpraySession, traced: bool, program: Any = None) -> tuple[SprayConstants, SprayState, SwitchRouting]:
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
    link = aligned(links, LINK, np.int64)
    link[:, [IN_FLIGHT, CONTROL_FIFO, DATA_FIFO, SERVING]] = NONE
    senders = make_senders(session.transports, session.kind, flows.packets, flows.last_size)
    receivers = make_receivers(senders)
    state = SprayState(
        packet=aligned(pool, RECORD, np.uint32),
        free=full_stack(pool),
        link=link,
        next_in_bucket=np.full(links, NONE, np.uint32),
        bucket=np.full(ticks, NONE, np.uint32),
        occupied=np.zeros(ticks // 64, np.uint64),
        members=np.zeros(links, np.int64),
        scratch=np.zeros(2 * links + 1, np.int64),
        out_link=np.zeros(links, np.int64),
        nic=aligned(hosts, NIC, np.int64),
        next_in_turn=np.full(count, NOT_LISTED),
        timers_set=np.zeros(count, np.uint8),
        timers=_first_timers(session, constants),
        senders=senders._replace(seq=copy_aligned(senders.seq)),
        receivers=receivers._replace(got=copy_aligned(receivers.got)),
        pacers=make_pacers(hosts, count, session.idle_entries),
        cycle=np.zeros(links, np.uint8),
        dropped=np.zeros((links, 2), np.int64),
        trace=np.zeros(((1 << 12) + 2 * hosts if traced else 0, 3), np.int64),
        growth_needed=np.zeros(8, np.int64),
        program=program,
    )
    return constants, state, _switch_routing(session, link)


def records(rules: Sequence[Rules]) -> np.ndarray:
    """Lay out rules as records of an array, so that compiled code selects one by its number."""
    types = [(name, np.float64 if isinstance(value, float) else np.int64) for name, value in rules[0]._asdict().items()]
    return np.array([tuple(each) for each in rules], types)


def _switch_routing(session: SpraySession, link: Ints) -> SwitchRouting:
    topology = session.topology
    salts = np.zeros(topology.switches + 1, np.int64)
    make_salts(session.seed, salts)
    switches = make_switches(
        session.at_switch, session.seed, session.queue_bytes, topology.out_degree, 2 * len(session.flows.source),
        session.fresh, session.flowlet_gap,
    )  # fmt: skip
    return SwitchRouting(
        at_switch=session.at_switch,
        routes=session.routes,
        built=session.routes,
        moved=False,
        salts=salts,
        out_start=topology.out_start.astype(np.int64),
        host_switch=topology.host_switch.astype(np.int64),
        switches=switches._replace(low=link[:, DATA_BYTES], high=link[:, CONTROL_BYTES]),
    )


def _constants(session: SpraySession) -> SprayConstants:
    topology, rules, flows = session.topology, session.rules, session.flows
    links, hosts = len(session.delay), topology.hosts
    inject, eject = topology.channels, topology.channels + hosts
    fixed = aligned(links, 8, np.int64)
    fixed[:, DELAY], fixed[:, RATIO] = session.delay, session.ratio
    for field, size in ((MTU_TICKS, rules.mtu), (CONTROL_TICKS, rules.control)):
        fixed[:, field] = _ticks(session.ratio, size)
    fixed[:, CAPACITY], fixed[:, MARK_LOW], fixed[:, MARK_HIGH] = session.queue_bytes, session.low, session.high
    fixed[inject:eject, [MARK_LOW, MARK_HIGH]] = _UNLIMITED
    fixed[:, END_NODE] = np.concatenate([topology.dst, topology.host_switch, np.arange(hosts)])
    longest = session.delay + np.maximum(*(_ticks(session.slowest, size) for size in (rules.mtu, rules.control)))
    least = int(flows.last_size.min(initial=rules.mtu))
    at_once = int((session.delay[inject:eject] // np.maximum(_ticks(session.ratio, least)[inject:eject], 1) + 3).sum())
    shortest = min(each.timeout for each in session.transports)
    others = records(session.transports) if len(session.transports) > 1 else None
    index_bits = max(len(flows.source), hosts).bit_length()
    return SprayConstants(
        inject=inject,
        eject=eject,
        links=links,
        mask=max(64, 1 << int(longest.max() + 1).bit_length()) - 1,
        reserve=at_once + (2 if session.program is None else 3) * hosts,
        index_bits=index_bits,
        latest=min(LATEST, (1 << (63 - KIND_BITS - index_bits)) - 1),
        watched=session.program is not None or bool(shortest <= session.delay[inject:eject].max()),
        rules=rules if others is None else records([rules])[0],
        transport_rules=others,
        kind=None if others is None else session.kind,
        fixed=fixed,
        hosts_of_flow=np.stack([flows.source, flows.destination], axis=1).astype(np.int64),
    )


def _ticks(ratio: Ints, size: int) -> Ints:
    """Ticks of each link for a number of bytes, as :func:`flitlab.models.rules.datagram.service_ticks`."""
    return (size * ratio + (1 << RATIO_BITS) - 1) >> RATIO_BITS


def _first_timers(session: SpraySession, constants: SprayConstants) -> Ints:
    """Make the heap of timers, with the starts of flows; it has room for two timers per flow and per host.

    Flows of a program start when it posts them.
    """
    flows = len(session.flows.start)
    paced = np.array([each.credit == PACED for each in session.transports])[session.kind]
    kind = np.where(paced, PACE_TIMER, START_TIMER)
    keys = (np.minimum(session.flows.start, constants.latest) << KIND_BITS | kind) << constants.index_bits
    timers = np.zeros(2 * (flows + session.topology.hosts) + 1, np.int64)
    if session.program is None:
        timers[:flows], timers[-1] = np.sort(keys | np.arange(flows)), flows  # sorted is a heap
    return timers


def longer_trace(state: SprayState) -> SprayState:
    """Double the capacity of the trace."""
    return state._replace(trace=np.concatenate([state.trace, np.zeros_like(state.trace)]))
