# SPDX-License-Identifier: Apache-2.0
"""Constants and state of a run of mode datagram, and both at tick 0.

Record layouts are documented here; kernels refer to them. NONE stands for no entity.
"""

from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.mappings import Fields
from flitlab.models.rules.datagram import NEARLY_FULL
from flitlab.models.transport.law import AckPath
from flitlab.models.transport.newreno import Rules, Senders, connect, make_senders
from flitlab.models.transport.paths import Paths
from flitlab.models.transport.session import LATEST, Session, first_samples, serialization_ticks, services
from flitlab.models.transport.tcp import Tcp
from flitlab.models.transport.times import LONGEST
from flitlab.sim.engines.compiled.memory import aligned, aligned_records, copy_aligned
from flitlab.sim.engines.compiled.pool import NONE, full_stack
from flitlab.sim.engines.compiled.transport import Growth, make_trace

# A packet, half a cache line. It is in the list of one link: in its queue, or in flight behind it.
PACKET = np.dtype(
    [
        ("next", np.uint32),  # next packet on the same link, or NONE
        ("followed", np.uint32),  # low 32 bits of the tick at which that packet leaves the queue
        ("path_index", np.uint32),  # index of its link in ``DatagramState.path``
        ("next_link", np.uint32),  # the link behind that index
        ("kind", np.uint32),
        ("subflow", np.uint32),
        ("sequence", np.uint32),  # of data; of an ACK the first packet that the receiver lacks
        ("stamp", np.uint32),  # low 32 bits of the tick at which the data left the sender
    ]
)


class Kind(IntEnum):
    """What a packet is; an ACK of a packet is its kind and ACK_BIT."""

    DATA = 0
    SYN = 1
    MARKED_DATA = 2
    ACK = ACK_BIT = 4
    SYN_ACK = 5
    MARKED_ACK = 6


ODD_SIZE_BITS = np.uint32(5)
"""Kinds with one of these bits have another size than a data packet."""

# A link, two cache lines; nearly all events use only the first. The occupancy of its queue follows from ``free_at`` as
# long as all packets have the size of data. Otherwise the queue is ``data_run`` data packets, and behind them the list
# from ``first_in_queue`` on.
LINK = np.dtype(
    [
        ("free_at", np.int64),  # tick at which all accepted packets will have left
        ("accepted", np.int64),  # packets of any kind
        ("queueing_ticks", np.int64),  # from arrival to departure, summed over accepted packets
        ("accepted_bytes", np.int64),
        ("first_packet", np.uint32),  # on the link, or NONE
        ("last_packet", np.uint32),
        ("left", np.uint32),  # low 32 bits of the tick at which the first packet leaves the queue
        ("odd_size_packets", np.uint32),  # packets of another size than data; one more if ACKs pass queues
        ("max_occupancy", np.uint32),  # bytes
        ("delay", np.uint32),  # ticks
        ("data_ticks", np.uint32),  # service time of a data packet
        ("capacity", np.uint32),  # bytes; 0 if the link has failed
        ("occupied_bytes", np.int64),  # bytes not known to have left
        ("first_departure", np.int64),  # tick at which the first of these packets leaves
        ("ratio", np.int64),  # ticks per byte times 2**RATIO_BITS
        ("drops", np.int64),
        ("marks", np.int64),
        ("first_in_queue", np.uint32),
        ("data_run", np.uint32),
        ("decisions", np.int64),  # of the random drop
        ("unused", np.uint32, 2),
    ]
)

LINK_COUNTS = ("accepted", "drops", "queueing_ticks", "max_occupancy", "marks", "accepted_bytes")
"""Fields of a link that are the columns of :attr:`~flitlab.sim.engines.transport.datagram.Counters.link`.

Packets count when they are accepted; :func:`~flitlab.sim.engines.compiled.datagram.links.queued` has what to subtract.
"""

# A subflow, without the congestion control of its sender, two cache lines; nearly all events use only the first.
SUBFLOW = np.dtype(
    [
        ("expected", np.uint32),  # first packet that the receiver lacks
        ("out_of_order", np.uint32),  # packets that it has behind that
        ("path_start", np.uint32),  # index in ``DatagramState.path`` of its path
        ("ack_path_start", np.uint32),  # index of the path of its ACKs
        ("flow", np.uint32),
        ("first", np.uint32),  # first subflow of its flow
        ("last", np.uint32),  # one past the last subflow of its flow
        ("pipe", np.uint32),  # link of ACKs that bypass queues
        ("sent", np.int64),  # packets
        ("received", np.int64),  # distinct packets
        ("samples", np.int64),  # of the round-trip time
        ("rtt", np.int64),  # ticks, summed over samples
        ("duplicates", np.int64),  # received packets that the receiver had
        ("retransmissions", np.int64),
        ("dropped", np.int64),
        ("timeouts", np.int64),
        ("unused", np.int64, 4),
    ]
)
SUBFLOW_COUNTS = ("sent", "received", "received", "retransmissions", "dropped", "timeouts", "samples", "rtt")
"""Fields of a subflow that are the columns of :attr:`~flitlab.sim.engines.transport.datagram.Counters.subflow`.

The column of arrivals is the distinct packets plus the duplicates.
"""


class DatagramConstants(NamedTuple):
    """Constants of a run of mode datagram; times are in ticks."""

    seed: int
    links: int  # with queues; behind them come the pipes of ACKs that bypass queues, one for each path of a subflow
    eject: int  # first link to a host
    feeders: int  # first of the queues before the network, behind those links
    ack_path: int
    pipes: int
    packet_bytes: int
    ack_bytes: int
    mixed: bool  # ACKs pass the queues, too
    early_drop_bytes: int  # occupancy from which a queue drops at random
    mark_bytes: int  # occupancy above which a queue marks; 0: never
    paced: bool  # constant-rate senders without congestion control
    no_retransmissions: bool  # every packet that arrives is distinct
    mask: int  # buckets of the timing wheel, less 1
    reserve: int  # packets that can be created in a tick
    rules: Rules  # of the first transport
    transport_rules: Any  # tuple of the Rules of each transport where there are several, else None
    kind: Ints | None  # [subflows]: transport of each subflow
    first: Ints  # int64 [flows + 1]: first subflow of each flow
    packets: Ints  # int64 [flows]
    gap: Ints  # int64 [subflows]: ticks between packets of constant-rate senders


class DatagramState(NamedTuple):
    """State of a run of mode datagram: all that changes."""

    packet: np.ndarray  # PACKET [packets]
    free: np.ndarray  # uint32 [packets + 1]: stack of unused records; its height is in the last entry
    link: np.ndarray  # LINK [links and pipes]
    next_in_bucket: np.ndarray  # uint32 [links]: next link in the same bucket of the timing wheel
    bucket: np.ndarray  # uint32 [ticks]: first link whose first packet arrives in that tick
    occupied: np.ndarray  # uint64 [ticks / 64]: buckets that are not empty
    members: Ints  # int64: scratch, the links or the timers of a tick
    scratch: Ints  # int64: for sorting them
    path: np.ndarray  # uint32: links of all paths, forward and then backward; each ends with the first link of the
    # opposite direction
    subflow: np.ndarray  # SUBFLOW [subflows]
    senders: Senders
    unsent: Ints  # int64 [flows]: packets never sent
    undelivered: Ints  # int64 [flows]: packets that the receiver lacks
    reorder_bits: np.ndarray  # uint64 [subflows, words]: out-of-order packets of the receiver, a bit each; room for all
    # that are in flight (:func:`larger_windows`)
    timers: Ints  # int64 [subflows + 1]: a heap of tick << 24 | subflow
    finished: Ints  # int64 [flows]: tick of completion, or -1
    trace: Ints  # int64 [entries, 3]: (tick, subflow, sequence) of every arrival
    growth_needed: Ints  # int64: arrays to enlarge before the next tick
    program: Any  # :class:`~flitlab.sim.engines.compiled.datagram.messages.DatagramProgram`, or None


UNLIMITED_PACKETS = 1 << 62

_ONE = np.uint64(1)


def build(session: Session, traced: bool, program: Any = None) -> tuple[DatagramConstants, DatagramState]:
    """Make the constants and the state of a run at tick 0.

    Parameters
    ----------
    session: flows, paths, queues and transport.
    traced: whether every arrival is recorded.
    program: of a session with a program.
    """
    constants = _constants(session, program is None)
    senders, first = _aligned_senders(make_senders(session.subflows)), np.minimum(session.start, LATEST)
    timers = np.append(np.sort(first << 24 | np.arange(session.subflows)), session.subflows)  # a sorted array is a heap
    if program is not None:
        timers[-1] = 0
        if session.transport.law:
            _connect(constants.rules, senders, first_samples(session))
    return constants, _state(session, traced, program, constants, senders, timers)


def _constants(session: Session, no_program: bool) -> DatagramConstants:
    """Make the constants of a run; no_program: the session has none."""
    queues, transport = session.queues, session.transport
    links, subflows, hosts = len(session.delay), session.subflows, session.topology.hosts
    feeders = session.topology.channels + 2 * hosts
    ack_delay = (
        _ack_delays(session) if transport.law and transport.ack_path == AckPath.PURE_DELAY else np.zeros(0, np.int64)
    )
    largest = max(queues.packet_bytes, transport.ack_bytes if session.back else 0)
    longest = max((session.delay + serialization_ticks(session.slowest, largest)).max(), ack_delay.max(initial=0))
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
        ack_path=transport.ack_path if transport.law else AckPath.INSTANT,
        pipes=len(ack_delay),
        packet_bytes=queues.packet_bytes,
        mixed=session.back is not None,
        ack_bytes=transport.ack_bytes,
        early_drop_bytes=queues.queue_bytes - NEARLY_FULL * queues.packet_bytes
        if queues.random_drop
        else UNLIMITED_PACKETS,
        mark_bytes=session.mark_bytes,
        paced=transport.law is None,
        no_retransmissions=transport.law is None and no_program,
        mask=ticks - 1,
        reserve=reserve,
        rules=session.rules[0] if session.rules else _no_rules(session),
        transport_rules=session.rules if len(session.rules) > 1 else None,
        kind=session.subflow_kind if len(session.rules) > 1 else None,
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
    pipe = constants.links + np.arange(subflows)
    path, start, back = _path_arrays(constants, pipe, session.paths, session.back)
    of_flow = np.diff(session.first)
    subflow = aligned_records(subflows, SUBFLOW)
    subflow["path_start"], subflow["ack_path_start"], subflow["pipe"] = start, back, pipe
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
        trace=make_trace(session.topology.hosts, traced),
        growth_needed=np.zeros(8, np.int64),
        program=program,
    )


def _links(session: Session, constants: DatagramConstants) -> np.ndarray:
    """Make the records of empty links and pipes."""
    links, queues = constants.links, session.queues
    link = aligned_records(links + constants.pipes, LINK)
    link["delay"] = np.append(session.delay, _ack_delays(session)[: constants.pipes])
    link_record = link[:links]
    link_record["ratio"] = session.ratio
    link_record["data_ticks"] = services(session, queues.packet_bytes)
    link_record["capacity"] = queues.queue_bytes
    link_record["capacity"][constants.feeders :] = queues.feeder_packets * queues.packet_bytes
    link_record["odd_size_packets"] = constants.mixed
    for end in ("first_packet", "last_packet", "first_in_queue"):
        link[end] = NONE
    return link


def _ack_delays(session: Session) -> Ints:
    """Ticks of ACKs that bypass queues, of each path that a subflow takes in turn.

    Each has a pipe of its own, since an ACK may overtake those of a longer path.
    """
    return np.concatenate([session.ack_delay, *(change.ack_delay for change in session.changes)])


def _path_arrays(
    const: DatagramConstants, pipe: Ints, paths: Paths, back: Paths | None
) -> tuple[np.ndarray, Ints, Ints]:
    """Make ``DatagramState.path`` of some subflows: (links, start of each path, start of each ACK path).

    pipe, paths, back: of these subflows.
    """
    first = paths.link[paths.start[:-1]]
    if back is None:
        link, start = _paths_with_return(paths, pipe if const.pipes else first)
        return link, start, start
    link, start = _paths_with_return(paths, back.link[back.start[:-1]])
    more, after = _paths_with_return(back, first)
    return np.concatenate([link, more]), start, len(link) + after


def _paths_with_return(paths: Paths, next_link: Integers) -> tuple[np.ndarray, Ints]:
    """Paths that end with one more link, and the start of each."""
    link = np.insert(paths.link, paths.start[1:], next_link).astype(np.uint32)
    return link, paths.start[:-1] + np.arange(len(next_link))


def _aligned_senders(senders: Senders) -> Senders:
    """Copy the records of senders so that they begin with a cache line."""
    window, rtt = (copy_aligned(column[:, None]).reshape(-1) for column in (senders.window, senders.rtt))
    return senders._replace(seq=copy_aligned(senders.seq), win=copy_aligned(senders.win), window=window, rtt=rtt)


@njit
def _connect(rules, senders, samples):
    """Open all connections, with a sample of their round-trip time.

    samples: int64 [subflows], ticks.
    """
    for subflow in range(len(samples)):
        connect(rules, senders, subflow, samples[subflow])


def _no_rules(session: Session) -> Rules:
    """Make rules of the type that congestion control has, for senders without any."""
    from flitlab.models.transport.newreno import make_rules

    times: Fields = LONGEST
    transport = replace(Tcp(kind="tcp").build(), **times)
    return make_rules(transport, session.queues.packet_bytes, session.tick_s)


def larger_windows(state: DatagramState) -> DatagramState:
    """Enlarge the reorder buffers for every packet that can be out of order.

    A packet arrives after the tick of its transmission, so enlarging after each tick is early enough. A packet's
    position is its number modulo the size, which is at least doubled. Hence bits at or above the position of the first
    missing packet go to one block of the larger buffer, and the others to the next block.
    """
    subflows, words = state.reorder_bits.shape
    size, larger = 64 * words, 1 << int(state.growth_needed[Growth.WINDOW] - 1).bit_length()
    expected, blocks, each = state.subflow["expected"].astype(np.int64), larger // size, np.arange(subflows)
    low = np.clip(expected[:, None] % size - 64 * np.arange(words), 0, 64).astype(np.uint64)
    wrapped = state.reorder_bits & np.where(low < 64, (_ONE << (low & np.uint64(63))) - _ONE, ~np.uint64(0))
    held = aligned(subflows, larger // 64, np.uint64)
    parts, block = held.reshape(subflows, blocks, words), expected // size % blocks
    parts[each, block] = state.reorder_bits ^ wrapped
    parts[each, (block + 1) % blocks] = wrapped
    return state._replace(reorder_bits=held)


def with_paths(
    const: DatagramConstants, state: DatagramState, moved: Ints, pipe: Ints, paths: Paths, back: Paths | None
) -> DatagramState:
    """Move subflows, and their ACKs, to new paths; packets in flight keep theirs.

    Parameters
    ----------
    moved: int64, the subflows.
    pipe: int64 [moved], links of ACKs that bypass queues.
    paths, back: new paths of data and of ACKs.
    """
    path, start, back_start = _path_arrays(const, pipe, paths, back)
    state.subflow["path_start"][moved] = len(state.path) + start
    state.subflow["ack_path_start"][moved] = len(state.path) + back_start
    state.subflow["pipe"][moved] = pipe
    return state._replace(path=np.concatenate([state.path, path]))
