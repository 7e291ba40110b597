# SPDX-License-Identifier: Apache-2.0
"""The constants and the state that the datagram kernels work on."""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.rules.datagram import NEARLY_FULL
from flitlab.models.transport.law import INSTANT, PURE_DELAY
from flitlab.models.transport.newreno import Rules, Senders, connect, make_senders
from flitlab.models.transport.paths import Paths
from flitlab.models.transport.session import LATEST, Session, first_samples, sending, services
from flitlab.models.transport.tcp import Tcp
from flitlab.sim.engines.compiled.awaited import NOBODY
from flitlab.sim.engines.compiled.memory import aligned, in_lines, whole_lines
from flitlab.sim.engines.compiled.pool import all_unused
from flitlab.sim.engines.datagram.base import LINK_COUNTS, SUBFLOW_COUNTS

# Fields of a packet record, uint32. A packet is in one list at a time: of the link that it is on, in its queue or
# beyond.
NEXT = 0  # behind it on the same link
AT = 1  # its link's place in ``DatagramState.path``
SUBFLOW = 2
SEQUENCE = 3  # of data; of an acknowledgement the first packet that the receiver lacks
STAMP = 4  # tick at which the data left the sender, its low 32 bits
FOLLOWED = 5  # tick at which the packet behind it has left the queue, its low 32 bits
SIZE = 6  # bytes
KIND = 7
RECORD = 8

DATA, SYN, MARKED_DATA = np.uint32(0), np.uint32(1), np.uint32(2)
ACK, SYN_ACK, MARKED_ACK = np.uint32(4), np.uint32(5), np.uint32(6)
ACK_BIT = np.uint32(4)

# Fields of a link, int64.
FREE_AT = 0  # tick at which all that it has accepted will have left
HEAD = 1  # first packet on it
SERVING = 2  # first packet that is not known to have left the queue
TAIL = 3
OCCUPIED = 4  # bytes that are not known to have left
DECISIONS = 5  # of the random drop
SERVED = 6  # tick at which the packet in SERVING has left the queue
LEFT = 7  # tick at which the packet in HEAD has
LINK = 8

# Constants of a link, int64.
DELAY, RATIO, LIMIT, SERVICE = range(4)

# Fields of a receiver, int64.
EXPECTED = 0  # first packet that it lacks
AHEAD = 1  # packets that it has beyond

# Entries of DatagramState.wants: flags, but WINDOW is how many packets a receiver may have to hold, and TRACED counts
# entries of the trace.
POOL, WINDOW, TRACE, TRACED = 0, 1, 2, 3


class DatagramConstants(NamedTuple):
    """The constants of a run of the datagram discipline; times are in ticks."""

    seed: int
    links: int  # queues; beyond are the pipes by which acknowledgements come back without queues, one a subflow
    eject: int  # first of the links to hosts
    feeders: int  # first of the queues before the network, past those links
    ack_path: int
    packet_bytes: int
    ack_bytes: int
    early: int  # occupancy in bytes from which a queue drops at random
    mark: int  # occupancy in bytes above which it marks; 0: never
    paced: bool
    once: bool  # nobody sends a packet again, so that every one that arrives is new
    mask: int  # slots of the wheel, less 1
    reserve: int  # packets that may be made in one tick
    rules: Rules
    fixed: Ints  # int64 [links, 4]; a broken link has no room
    first: Ints  # int64 [flows + 1]
    flow: Ints32  # int32 [subflows]
    packets: Ints  # int64 [flows]
    gap: Ints  # int64 [subflows]


class DatagramState(NamedTuple):
    """The state of a run of the datagram discipline: all that changes."""

    packet: np.ndarray  # uint32 [packets, RECORD]
    free: np.ndarray  # uint32 [packets + 1]: a stack of unused records; its height is in the last entry
    link: Ints  # int64 [links, LINK]
    after: np.ndarray  # uint32 [links]: next link in the same slot of the wheel
    slot: np.ndarray  # uint32 [ticks]: first of the links whose first packet arrives then
    bits: np.ndarray  # uint64 [ticks / 64]: slots that are not empty
    members: Ints  # int64: scratch, the links or the timers of one tick
    scratch: Ints  # int64: to put them in order
    path: Ints32  # int32: links of all paths, forwards and then backwards
    path_start: Ints  # int64 [subflows]
    back_start: Ints  # int64 [subflows]
    senders: Senders
    left: Ints  # int64 [flows]: packets that have not been sent for the first time
    missing: Ints  # int64 [flows]: packets that the receiver lacks
    receiver: Ints  # int64 [subflows, 2]
    held: np.ndarray  # uint64 [subflows, words]: a bit for each packet that it has beyond the first it lacks; room
    # for all that have been sent beyond (:func:`larger_windows`)
    timers: Ints  # int64 [subflows + 1]: a heap of tick << 24 | subflow
    subflow_counts: Ints
    link_counts: Ints  # int64 [links, LINK_COUNTS and what fills the cache line]
    finished: Ints
    trace: Ints  # int64 [entries, 3]
    wants: Ints  # int64: what has to grow before the next tick
    talk: Any  # a program and its messages (:class:`~flitlab.sim.engines.compiled.datagram.messages.Talk`), or None


ENDLESS = 1 << 62


def build(session: Session, traced: bool, talk: Any = None) -> tuple[DatagramConstants, DatagramState]:
    """Make the constants and the state of a run at tick 0.

    traced: whether every arrival is recorded. talk: of a session with a program.
    """
    constants = _constants(session, talk is None)
    senders, first = _in_lines(make_senders(session.subflows)), np.minimum(session.start, LATEST)
    timers = np.append(np.sort(first << 24 | np.arange(session.subflows)), session.subflows)  # sorted is a heap
    if talk is not None:
        timers[-1] = 0
        if session.transport.law:
            _connect(constants.rules, senders, first_samples(session))
    return constants, _state(session, traced, talk, constants, senders, timers)


def _constants(session: Session, alone: bool) -> DatagramConstants:
    """Make the constants of a run of a session; alone: there is no program."""
    queues, transport = session.queues, session.transport
    links, subflows, hosts = len(session.delay), session.subflows, session.topology.hosts
    feeders = session.topology.channels + 2 * hosts
    pipes = subflows if transport.law and transport.ack_path == PURE_DELAY else 0
    fixed = aligned(links + pipes, 4, np.int64)
    fixed[:links, DELAY] = session.delay
    fixed[:links, RATIO] = session.ratio
    fixed[:links, LIMIT] = queues.queue_bytes
    fixed[feeders:links, LIMIT] = queues.feeder_packets * queues.packet_bytes
    fixed[:links, SERVICE] = services(session, queues.packet_bytes)
    fixed[links:, DELAY] = session.ack_delay[:pipes]
    largest = max(queues.packet_bytes, transport.ack_bytes if session.back else 0)
    longest = np.append(sending(session.slowest, largest), np.zeros(pipes, np.int64))
    horizon = int((fixed[:, DELAY] + longest).max()) + 2
    ticks = max(64, 1 << (horizon - 1).bit_length())
    reserve = hosts * (queues.queue_bytes // queues.packet_bytes + 4) + subflows * (queues.feeder_packets + 1)
    endless = session.flows.packets == 0
    packets = np.where(endless, ENDLESS, session.flows.packets)
    return DatagramConstants(
        seed=session.seed,
        links=links,
        eject=feeders - hosts,
        feeders=feeders,
        ack_path=transport.ack_path if transport.law else INSTANT,
        packet_bytes=queues.packet_bytes,
        ack_bytes=transport.ack_bytes,
        early=queues.queue_bytes - NEARLY_FULL * queues.packet_bytes if queues.random_drop else ENDLESS,
        mark=transport.mark_packets * queues.packet_bytes,
        paced=transport.law is None,
        once=transport.law is None and alone,
        mask=ticks - 1,
        reserve=reserve,
        rules=session.rules or _no_rules(session),
        fixed=fixed,
        first=session.first,
        flow=np.repeat(np.arange(len(packets)), np.diff(session.first)).astype(np.int32),
        packets=packets,
        gap=session.gap,
    )


def _state(
    session: Session, traced: bool, talk: Any, constants: DatagramConstants, senders: Senders, timers: Ints
) -> DatagramState:
    """Make the state of a run at tick 0, with its senders and the heap of their timers."""
    queues, subflows, packets = len(constants.fixed), session.subflows, constants.packets
    pool, ticks = 2 * constants.reserve, constants.mask + 1
    back = session.back or Paths(session.paths.start, np.zeros(0, np.int32))
    link = aligned(queues, LINK, np.int64)
    link[:, [HEAD, SERVING, TAIL]] = NOBODY
    return DatagramState(
        packet=aligned(pool, RECORD, np.uint32),
        free=all_unused(pool),
        link=link,
        after=np.full(queues, NOBODY, np.uint32),
        slot=np.full(ticks, NOBODY, np.uint32),
        bits=np.zeros(ticks // 64, np.uint64),
        members=np.zeros(max(queues, subflows), np.int64),
        scratch=np.zeros(2 * max(queues, subflows) + 1, np.int64),
        path=np.concatenate([session.paths.link, back.link]),
        path_start=session.paths.start[:-1].copy(),
        back_start=back.start[:-1] + len(session.paths.link),
        senders=senders,
        left=packets.copy() if talk is None else np.zeros_like(packets),
        missing=packets.copy(),
        receiver=np.zeros((subflows, 2), np.int64),
        held=np.zeros((subflows, 1), np.uint64),
        timers=timers,
        subflow_counts=aligned(subflows, SUBFLOW_COUNTS, np.int64),
        link_counts=aligned(queues, whole_lines(LINK_COUNTS, np.int64), np.int64),
        finished=np.full(len(packets), -1, np.int64),
        trace=np.zeros(((1 << 12) + 2 * session.topology.hosts if traced else 0, 3), np.int64),
        wants=np.zeros(8, np.int64),
        talk=talk,
    )


def _in_lines(senders: Senders) -> Senders:
    """Copy the records of senders so that they begin with a cache line."""
    return senders._replace(seq=in_lines(senders.seq), win=in_lines(senders.win))


@njit
def _connect(rules, senders, samples):
    """Open all connections, which have been open since before the run.

    samples: int64 [subflows], round trips in ticks.
    """
    for subflow in range(len(samples)):
        connect(rules, senders, subflow, samples[subflow])


def _no_rules(session: Session) -> Rules:
    """Make rules of the same type as those of a law, for senders that need none."""
    from flitlab.models.transport.newreno import make_rules

    return make_rules(Tcp(kind="tcp").build(), session.queues.packet_bytes, session.tick_s)


def larger_windows(state: DatagramState) -> DatagramState:
    """Make room for every packet sent that its receiver may have beyond the first that it lacks.

    What is sent in a tick arrives in a later one: to make room after each tick is early enough, however many packets a
    law lets go at once.
    """
    expected, size = state.receiver[:, EXPECTED], 64 * state.held.shape[1]
    larger = 1 << int(state.wants[WINDOW] - 1).bit_length()
    held = np.zeros((len(expected), larger // 64), np.uint64)
    for subflow in np.flatnonzero(state.receiver[:, AHEAD]).tolist():
        beyond = expected[subflow] + np.arange(size)
        bits = np.zeros(larger, np.uint8)
        bits[beyond % larger] = np.unpackbits(state.held[subflow].view(np.uint8), bitorder="little")[beyond % size]
        held[subflow] = np.packbits(bits, bitorder="little").view(np.uint64)
    return state._replace(held=held)


def longer_trace(state: DatagramState) -> DatagramState:
    """Make room for twice as many entries of the trace."""
    return state._replace(trace=np.concatenate([state.trace, np.zeros_like(state.trace)]))


def along(state: DatagramState, moved: Ints, paths: Paths, back: Paths | None) -> DatagramState:
    """Let some subflows, and their acknowledgements, go by new paths; packets under way keep theirs."""
    at = len(state.path)
    state.path_start[moved] = at + paths.start[:-1]
    if back is not None:
        state.back_start[moved] = at + len(paths.link) + back.start[:-1]
    links = [state.path, paths.link] if back is None else [state.path, paths.link, back.link]
    return state._replace(path=np.concatenate(links))
