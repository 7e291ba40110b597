# SPDX-License-Identifier: Apache-2.0
"""The constants and the state that the datagram kernels work on."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.rules.datagram import NEARLY_FULL
from flitlab.models.transport.law import INSTANT, PURE_DELAY
from flitlab.models.transport.newreno import Rules, Senders, connect, make_senders
from flitlab.models.transport.paths import Paths
from flitlab.models.transport.session import LATEST, Session, first_samples, sending, services
from flitlab.models.transport.tcp import Tcp
from flitlab.models.transport.times import LONGEST
from flitlab.sim.engines.compiled.memory import aligned, aligned_records, copy_aligned
from flitlab.sim.engines.compiled.pool import NONE, full_stack

# A packet, half a cache line. It is in one list at a time: of the link that it is on, in its queue or beyond.
PACKET = np.dtype(
    [
        ("next", np.uint32),  # behind it on the same link
        ("followed", np.uint32),  # tick at which that one has left the queue, its low 32 bits
        ("path_index", np.uint32),  # its link's place in ``DatagramState.path``
        ("next_link", np.uint32),  # the link behind that place
        ("kind", np.uint32),
        ("subflow", np.uint32),
        ("sequence", np.uint32),  # of data; of an acknowledgement the first packet that the receiver lacks
        ("stamp", np.uint32),  # tick at which the data left the sender, its low 32 bits
    ]
)

DATA, SYN, MARKED_DATA = np.uint32(0), np.uint32(1), np.uint32(2)
ACK, SYN_ACK, MARKED_ACK = np.uint32(4), np.uint32(5), np.uint32(6)
ACK_BIT = np.uint32(4)
ODD_SIZE_BITS = np.uint32(5)
"""Kinds with one of these bits are not as long as a data packet."""

# A link, two cache lines; nearly all that happens takes the first alone. How much is in its queue follows from
# ``free_at`` as long as all packets are of the same size. While there are odd ones on the link, the queue consists of
# ``run`` data packets, and behind them the list from ``serving`` on.
LINK = np.dtype(
    [
        ("free_at", np.int64),  # tick at which all that it has accepted will have left
        ("accepted", np.int64),  # packets of any kind
        ("queueing_ticks", np.int64),  # ticks from arrival to departure, summed over them
        ("decisions", np.int64),  # of the random drop
        ("first_packet", np.uint32),  # first packet on it
        ("last_packet", np.uint32),
        ("left", np.uint32),  # tick at which the first packet has left the queue, its low 32 bits
        (
            "odd_size_packets",
            np.uint32,
        ),  # packets on it of another size than data; where acknowledgements pass queues, one more
        ("max_occupancy", np.uint32),  # largest occupancy, bytes
        ("delay", np.uint32),
        ("data_ticks", np.uint32),  # ticks for a data packet
        ("capacity", np.uint32),  # room in bytes; a broken link has none
        ("occupied_bytes", np.int64),  # bytes that are not known to have left
        ("first_departure", np.int64),  # tick at which the first of these packets has left
        ("ratio", np.int64),  # ticks for a byte times 2**RATIO_BITS
        ("drops", np.int64),
        ("marks", np.int64),
        ("first_in_queue", np.uint32),
        ("data_run", np.uint32),
        ("unused", np.uint32, 4),
    ]
)

LINK_COUNTS = ("accepted", "drops", "queueing_ticks", "max_occupancy", "marks")
"""Fields of a link that are the columns of :attr:`~flitlab.sim.engines.datagram.base.Counters.link`."""

# A subflow but for the window of its sender, two cache lines; nearly all that happens takes the first alone.
SUBFLOW = np.dtype(
    [
        ("expected", np.uint32),  # first packet that the receiver lacks
        ("out_of_order", np.uint32),  # packets that it has beyond
        ("path_start", np.uint32),  # of its path in ``DatagramState.path``
        ("ack_path_start", np.uint32),  # of that of its acknowledgements
        ("flow", np.uint32),
        ("first", np.uint32),  # subflow of its flow
        ("last", np.uint32),  # and the one behind the last
        ("spare", np.uint32),
        ("sent", np.int64),
        ("received", np.int64),
        ("samples", np.int64),
        ("rtt", np.int64),
        ("duplicates", np.int64),  # packets that arrived, but that the receiver had
        ("retransmissions", np.int64),
        ("dropped", np.int64),
        ("timeouts", np.int64),
        ("unused", np.int64, 4),
    ]
)
SUBFLOW_COUNTS = ("sent", "received", "received", "retransmissions", "dropped", "timeouts", "samples", "rtt")
"""Fields of a subflow that are the columns of :attr:`~flitlab.sim.engines.datagram.base.Counters.subflow`.

Of those that arrived the record has only how many more they are than those received.
"""

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
    pipes: int
    packet_bytes: int
    ack_bytes: int
    mixed: bool  # acknowledgements pass the queues, too
    early_drop_bytes: int  # occupancy in bytes from which a queue drops at random
    mark_bytes: int  # occupancy in bytes above which it marks; 0: never
    paced: bool
    no_retransmissions: bool  # nobody sends a packet again, so that every one that arrives is new
    mask: int  # slots of the wheel, less 1
    reserve: int  # packets that may be made in one tick
    rules: Rules
    first: Ints  # int64 [flows + 1]
    packets: Ints  # int64 [flows]
    gap: Ints  # int64 [subflows]


class DatagramState(NamedTuple):
    """The state of a run of the datagram discipline: all that changes."""

    packet: np.ndarray  # PACKET [packets]
    free: np.ndarray  # uint32 [packets + 1]: a stack of unused records; its height is in the last entry
    link: np.ndarray  # LINK [links and pipes]
    next_in_bucket: np.ndarray  # uint32 [links]: next link in the same slot of the wheel
    bucket: np.ndarray  # uint32 [ticks]: first of the links whose first packet arrives then
    occupied: np.ndarray  # uint64 [ticks / 64]: slots that are not empty
    members: Ints  # int64: scratch, the links or the timers of one tick
    scratch: Ints  # int64: to put them in order
    path: np.ndarray  # uint32: links of all paths, forwards and then backwards, each with the link onto which goes what
    # its end gives rise to
    subflow: np.ndarray  # SUBFLOW [subflows]
    senders: Senders
    unsent: Ints  # int64 [flows]: packets that have not been sent for the first time
    undelivered: Ints  # int64 [flows]: packets that the receiver lacks
    reorder_bits: (
        np.ndarray
    )  # uint64 [subflows, words]: a bit for each packet that it has beyond the first it lacks; room
    # for all that have been sent beyond (:func:`larger_windows`)
    timers: Ints  # int64 [subflows + 1]: a heap of tick << 24 | subflow
    finished: Ints
    trace: Ints  # int64 [entries, 3]
    growth_needed: Ints  # int64: what has to grow before the next tick
    program: Any  # a program and its messages (:class:`~flitlab.sim.engines.compiled.datagram.messages.Talk`), or None


UNLIMITED_PACKETS = 1 << 62

_ONE = np.uint64(1)


def build(session: Session, traced: bool, program: Any = None) -> tuple[DatagramConstants, DatagramState]:
    """Make the constants and the state of a run at tick 0.

    traced: whether every arrival is recorded. talk: of a session with a program.
    """
    constants = _constants(session, program is None)
    senders, first = _aligned_senders(make_senders(session.subflows)), np.minimum(session.start, LATEST)
    timers = np.append(np.sort(first << 24 | np.arange(session.subflows)), session.subflows)  # sorted is a heap
    if program is not None:
        timers[-1] = 0
        if session.transport.law:
            _connect(constants.rules, senders, first_samples(session))
    return constants, _state(session, traced, program, constants, senders, timers)


def _constants(session: Session, no_program: bool) -> DatagramConstants:
    """Make the constants of a run of a session; alone: there is no program."""
    queues, transport = session.queues, session.transport
    links, subflows, hosts = len(session.delay), session.subflows, session.topology.hosts
    feeders = session.topology.channels + 2 * hosts
    pipes = subflows if transport.law and transport.ack_path == PURE_DELAY else 0
    largest = max(queues.packet_bytes, transport.ack_bytes if session.back else 0)
    longest = max((session.delay + sending(session.slowest, largest)).max(), session.ack_delay[:pipes].max(initial=0))
    horizon = int(longest) + 2
    ticks = max(64, 1 << (horizon - 1).bit_length())
    reserve = hosts * (queues.queue_bytes // queues.packet_bytes + 4) + subflows * (queues.feeder_packets + 1)
    is_long_lived = session.flows.packets == 0
    packets = np.where(is_long_lived, UNLIMITED_PACKETS, session.flows.packets)
    return DatagramConstants(
        seed=session.seed,
        links=links,
        eject=feeders - hosts,
        feeders=feeders,
        ack_path=transport.ack_path if transport.law else INSTANT,
        pipes=pipes,
        packet_bytes=queues.packet_bytes,
        mixed=session.back is not None,
        ack_bytes=transport.ack_bytes,
        early_drop_bytes=queues.queue_bytes - NEARLY_FULL * queues.packet_bytes
        if queues.random_drop
        else UNLIMITED_PACKETS,
        mark_bytes=transport.mark_packets * queues.packet_bytes,
        paced=transport.law is None,
        no_retransmissions=transport.law is None and no_program,
        mask=ticks - 1,
        reserve=reserve,
        rules=session.rules or _no_rules(session),
        first=session.first,
        packets=packets,
        gap=session.gap,
    )


def _state(
    session: Session, traced: bool, program: Any, constants: DatagramConstants, senders: Senders, timers: Ints
) -> DatagramState:
    """Make the state of a run at tick 0, with its senders and the heap of their timers."""
    subflows, packets = session.subflows, constants.packets
    pool, ticks = 2 * constants.reserve, constants.mask + 1
    link = _links(session, constants)
    most = max(len(link), subflows)
    path, start, back = _path_arrays(constants, np.arange(subflows), session.paths, session.back)
    of_flow = np.diff(session.first)
    subflow = aligned_records(subflows, SUBFLOW)
    subflow["path_start"], subflow["ack_path_start"] = start, back
    subflow["flow"] = np.repeat(np.arange(len(packets)), of_flow)
    subflow["first"], subflow["last"] = np.repeat(session.first[:-1], of_flow), np.repeat(session.first[1:], of_flow)
    return DatagramState(
        packet=aligned_records(pool, PACKET),
        free=full_stack(pool),
        link=link,
        next_in_bucket=np.full(len(link), NONE, np.uint32),
        bucket=np.full(ticks, NONE, np.uint32),
        occupied=np.zeros(ticks // 64, np.uint64),
        members=np.zeros(most, np.int64),
        scratch=np.zeros(2 * most + 1, np.int64),
        path=path,
        subflow=subflow,
        senders=senders,
        unsent=packets.copy() if program is None else np.zeros_like(packets),
        undelivered=packets.copy(),
        reorder_bits=np.zeros((subflows, 1), np.uint64),
        timers=timers,
        finished=np.full(len(packets), -1, np.int64),
        trace=np.zeros(((1 << 12) + 2 * session.topology.hosts if traced else 0, 3), np.int64),
        growth_needed=np.zeros(8, np.int64),
        program=program,
    )


def _links(session: Session, constants: DatagramConstants) -> np.ndarray:
    """Make the records of links and pipes, on which nothing is."""
    links, queues = constants.links, session.queues
    link = aligned_records(links + constants.pipes, LINK)
    link["delay"] = np.append(session.delay, session.ack_delay[: constants.pipes])
    link_record = link[:links]
    link_record["ratio"] = session.ratio
    link_record["data_ticks"] = services(session, queues.packet_bytes)
    link_record["capacity"] = queues.queue_bytes
    link_record["capacity"][constants.feeders :] = queues.feeder_packets * queues.packet_bytes
    link_record["odd_size_packets"] = constants.mixed
    for end in ("first_packet", "last_packet", "first_in_queue"):
        link[end] = NONE
    return link


def _path_arrays(
    const: DatagramConstants, subflows: Ints, paths: Paths, back: Paths | None
) -> tuple[np.ndarray, Ints, Ints]:
    """Make what ``DatagramState.path`` has of some subflows, and where each begins therein, forwards and backwards.

    paths, back: those of these subflows.
    """
    first = paths.link[paths.start[:-1]]
    if back is None:
        link, start = _paths_with_return(paths, const.links + subflows if const.pipes else first)
        return link, start, start
    link, start = _paths_with_return(paths, back.link[back.start[:-1]])
    more, after = _paths_with_return(back, first)
    return np.concatenate([link, more]), start, len(link) + after


def _paths_with_return(paths: Paths, next_link: Integers) -> tuple[np.ndarray, Ints]:
    """Paths of which each ends with one more link, and where each begins."""
    link = np.insert(paths.link, paths.start[1:], next_link).astype(np.uint32)
    return link, paths.start[:-1] + np.arange(len(next_link))


def _aligned_senders(senders: Senders) -> Senders:
    """Copy the records of senders so that they begin with a cache line."""
    window, rtt = (copy_aligned(column[:, None]).reshape(-1) for column in (senders.window, senders.rtt))
    return senders._replace(seq=copy_aligned(senders.seq), win=copy_aligned(senders.win), window=window, rtt=rtt)


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

    times: dict[str, Any] = LONGEST
    transport = replace(Tcp(kind="tcp").build(), **times)
    return make_rules(transport, session.queues.packet_bytes, session.tick_s)


def larger_windows(state: DatagramState) -> DatagramState:
    """Make room for every packet sent that its receiver may have beyond the first that it lacks.

    What is sent in a tick arrives in a later one: to make room after each tick is early enough, however many packets a
    law lets go at once. A packet's place is its number modulo the room, which is doubled at least. Hence what lies
    at or above the place of the first that is lacking goes to one block of the larger room, and the rest to the next.
    """
    subflows, words = state.reorder_bits.shape
    size, larger = 64 * words, 1 << int(state.growth_needed[WINDOW] - 1).bit_length()
    expected, blocks, each = state.subflow["expected"].astype(np.int64), larger // size, np.arange(subflows)
    low = np.clip(expected[:, None] % size - 64 * np.arange(words), 0, 64).astype(np.uint64)
    wrapped = state.reorder_bits & np.where(low < 64, (_ONE << (low & np.uint64(63))) - _ONE, ~np.uint64(0))
    held = aligned(subflows, larger // 64, np.uint64)
    parts, block = held.reshape(subflows, blocks, words), expected // size % blocks
    parts[each, block] = state.reorder_bits ^ wrapped
    parts[each, (block + 1) % blocks] = wrapped
    return state._replace(reorder_bits=held)


def longer_trace(state: DatagramState) -> DatagramState:
    """Make room for twice as many entries of the trace."""
    return state._replace(trace=np.concatenate([state.trace, np.zeros_like(state.trace)]))


def with_paths(
    const: DatagramConstants, state: DatagramState, moved: Ints, paths: Paths, back: Paths | None
) -> DatagramState:
    """Let some subflows, and their acknowledgements, go by new paths; packets under way keep theirs."""
    path, start, back_start = _path_arrays(const, moved, paths, back)
    state.subflow["path_start"][moved] = len(state.path) + start
    state.subflow["ack_path_start"][moved] = len(state.path) + back_start
    return state._replace(path=np.concatenate([state.path, path]))
