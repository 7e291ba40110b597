# SPDX-License-Identifier: Apache-2.0
"""The constants and the state that the kernels of sprayed packets work on."""

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

# Fields of a packet record, uint32. A packet is in one list of one link at a time.
NEXT = 0  # behind it in that list
PREVIOUS = 1  # before it in the low FIFO
ENDED = 1  # beyond the server: tick at which its service ended, its low 32 bits
KIND = 2
FLOW = 3
SIZE = 4
ENTROPY = 5
PATH = 6  # the number of its path, where routes are paths
HOST = 7  # to which it goes
HOP = 8  # channels between switches behind it
NUMBER = 9  # of data; of an answer the data that caused it
VALUE = 10  # of data and requests the pull target, of a pull what is granted, of an ACK the first packet missing
START = 11  # of an ACK: the first packet of which BITS says whether it has come
RECEIVED = 12  # of an ACK: distinct bytes, in two words
BITS = 14  # in two words
RECORD = 16  # one cache line

# KIND is one of these, and flags.
DATA, ACK, NACK, PULL, REQUEST = (np.uint32(kind) for kind in range(5))
KINDS = np.uint32(7)
ACK_REQUESTED, RETRANSMISSION = np.uint32(8), np.uint32(16)
ECN_MARK, TRIMMED_FLAG, LAST_HOP = np.uint32(32), np.uint32(64), np.uint32(128)

# Fields of a link, int64. Of lists the first packet, and behind it the last.
IN_FLIGHT = 0  # beyond the server
CONTROL_FIFO = 2  # the high FIFO
DATA_FIFO = 4  # the low FIFO
SERVING = 6
SERVICE_END = 7  # tick at which its service does
DATA_BYTES, CONTROL_BYTES = 8, 9  # bytes of data and of control, what is served included
FULL_COUNT = 10  # times that the queue was full
MARK_DRAWS = 11  # times that a mark was drawn
ACCEPTED, MAX_DATA_BYTES, BUSY_TICKS, MARKED = 12, 13, 14, 15  # columns of Counters.link
LINK = 16  # two cache lines

DROPS, TRIMS = 0, 1  # columns of SprayState.lost

# Constants of a link, int64.
DELAY, RATIO, MTU_TICKS, CONTROL_TICKS, CAPACITY, MARK_LOW, MARK_HIGH, END_NODE = range(8)

NO_CAPACITY = -1  # the room of a link that does not work, for which nothing is small enough

# Fields of the network interface of a host, int64. Those who wait are flows.
FIRST_TURN, LAST_TURN, WAITING, CYCLE = range(4)
NIC = 8

NOT_LISTED = np.int64(-2)

# Kinds of timers, in the order in which those of one tick ring.
START_TIMER, TIMEOUT_TIMER, PACE_TIMER, PULL_TIMER = (np.int64(kind) for kind in range(4))
SETTLE_TIMER = np.int64(4)  # of an interface that is watched
PROBE_TIMER = np.int64(5)  # of a sender that finds losses itself
KIND_BITS = 3

# Entries of SprayState.wants: flags, and how many entries of the trace there are.
POOL, TRACE, TRACED = 0, 1, 2

_UNLIMITED = 1 << 62


class SprayConstants(NamedTuple):
    """The constants of a run of sprayed packets; times are in ticks."""

    inject: int  # first of the links from hosts
    eject: int  # first of the links to hosts
    links: int
    mask: int  # slots of the wheel, less 1
    reserve: int  # packets that may be made in one tick, a timer, and the turn of a program
    index_bits: int  # of a timer, for its flow or host
    latest: int  # last tick that a timer can have
    watched: bool  # a timeout, or a program, may come before anybody else looks at the interface that has sent
    rules: Any  # Rules; where a run has several transports a record of such fields, of ``SpraySession.rules``
    transport_rules: Any  # records of the rules of each transport where there are several, else None
    kind: Any  # int64 [flows]: which of them each flow has, or None
    fixed: Ints  # int64 [links, 8]
    hosts_of_flow: Ints  # int64 [flows, 2]: hosts from which and to which each goes


class SwitchRouting(NamedTuple):
    """What switches choose by."""

    at_switch: int
    routes: Tables
    built: Tables  # the routes at first
    moved: bool  # whether these were others
    salts: Ints
    out_start: Ints
    host_switch: Ints
    switches: Switches  # of which the queues' bytes are those of the links


class SprayState(NamedTuple):
    """The state of a run of sprayed packets: all that changes."""

    packet: Words  # uint32 [packets, RECORD]
    free: Words  # uint32 [packets + 1]: a stack of unused records; its height is in the last entry
    link: Ints  # int64 [links, LINK]
    next_in_bucket: Words  # uint32 [links]: next link in the same slot of the wheel
    bucket: Words  # uint32 [ticks]: first of the links whose first packet arrives then
    occupied: Masks  # uint64 [ticks / 64]: slots that are not empty
    members: Ints  # int64: scratch, the links of one tick
    scratch: Ints  # int64: to put them in order
    out_link: Ints  # int64: scratch, the links onto which their packets go
    nic: Ints  # int64 [hosts, NIC]
    next_in_turn: Ints  # int64 [flows]: which waits next for its turn at the same host, -1: none, or NOT_LISTED
    timers_set: Bytes  # uint8 [flows]: bits of the timers that are awaited
    timers: Ints  # int64: a heap of tick, kind and flow or host; how many they are is in the last entry
    senders: Senders
    receivers: Receivers
    pacers: Pacers
    cycle: Bytes  # uint8 [links]: turns of the outputs of switches (``Rules.weighted``)
    dropped: Ints  # int64 [links, 2]: packets dropped and trimmed
    trace: Ints  # int64 [entries, 3]
    growth_needed: Ints  # int64: what has to grow before the next tick
    program: Any  # a program and its messages (:class:`~flitlab.sim.engines.compiled.spray.messages.Talk`), or None


def build(session: SpraySession, traced: bool, program: Any = None) -> tuple[SprayConstants, SprayState, SwitchRouting]:
    """Make the constants and the state of a run at tick 0.

    traced: whether every whole data packet is recorded. talk: of a session with a program.
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
    """Lay out rules as records of an array, of which compiled code takes one by its number."""
    types = [(name, np.float64 if isinstance(value, float) else np.int64) for name, value in rules[0]._asdict().items()]
    return np.array([tuple(each) for each in rules], types)


def _switch_routing(session: SpraySession, link: Ints) -> SwitchRouting:
    topology = session.topology
    salts = np.zeros(topology.switches + 1, np.int64)
    make_salts(session.seed, salts)
    switches = make_switches(
        session.at_switch, session.seed, session.room, topology.out_degree, 2 * len(session.flows.source),
        session.fresh, session.silence,
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
    fixed[:, CAPACITY], fixed[:, MARK_LOW], fixed[:, MARK_HIGH] = session.room, session.low, session.high
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
    """Ticks that each link takes to send so many bytes, as :func:`flitlab.models.rules.datagram.service_ticks`."""
    return (size * ratio + (1 << RATIO_BITS) - 1) >> RATIO_BITS


def _first_timers(session: SpraySession, constants: SprayConstants) -> Ints:
    """Make the heap of timers, in which flows begin; there is room for two of each flow and of each host.

    Those of a program begin when it posts them.
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
    """Make room for twice as many entries of the trace."""
    return state._replace(trace=np.concatenate([state.trace, np.zeros_like(state.trace)]))
