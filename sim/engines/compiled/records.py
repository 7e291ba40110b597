# SPDX-License-Identifier: Apache-2.0
"""Records of packets and hosts, the same in every compiled switching mode.

Functions take the constants of any mode, which have a ``net``, and its state, which has a ``pool``, the host records
``host``, a ``program`` and ``counters``; :func:`deliver_packets` also reads ``ejecting``, a calendar of packets.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Ints, Words
from flitlab.models.histogram import BUCKETS, bucket
from flitlab.models.jit import device_function, inline, interpreted
from flitlab.models.mappings import Fields
from flitlab.models.rules.arrivals import LONGEST_RUN, Arrivals, arrival_by, next_arrival
from flitlab.models.rules.classes import ClassTables, Process, arrivals_of, packets_of, vcs_of
from flitlab.models.rules.draw import Stream, draw_with_block
from flitlab.models.rules.packets import Packets, destination_by, length
from flitlab.models.rules.ports import Ports
from flitlab.models.rules.route import choose_route, next_port
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.base import CLASS_COLUMNS, HOP_BUCKETS, ChannelCounter, ClassCounter, PacketLog, Scalar
from flitlab.sim.engines.compiled import Constants, State
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    prefetch_next_block,
    release_block,
    take_bucket,
)
from flitlab.sim.engines.compiled.memory import aligned_records, prefetch, unlikely
from flitlab.sim.engines.compiled.messages import (
    FIRST,
    enqueue_message,
    make_program,
    next_packet,
    record_delivery,
    take_packet,
)
from flitlab.sim.engines.compiled.pool import NONE as NONE
from flitlab.sim.engines.compiled.pool import allocate_record, doubled, free_record, make_pool
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, process_events
from flitlab.sim.engines.compiled.replies import (
    create_reply,
    doubled_replies,
    lacks_replies,
    make_replies,
    take_reply,
)

# A packet, a cache line; ticks, lengths in flits, and indices.
PACKET = np.dtype(
    [
        ("next", np.uint32),  # next packet in a list, or NONE
        ("dst_host", np.uint32),
        ("src_host", np.uint32),
        ("created_at", np.uint32),  # tick
        ("injected_at", np.uint32),  # tick of its first flit on the injection channel
        ("sequence", np.uint32),  # packets that its host created before it
        ("hop", np.uint32),  # channels between switches granted so far
        ("flits", np.uint32),
        ("output", np.uint32),  # requested output; in wormhole switching, the output that ejects it
        ("input_vc", np.uint32),  # that it is in, or in flight to
        ("deflections", np.uint32),  # number
        ("route", np.uint32),  # routing state: see flitlab.models.rules.route
        ("send", np.uint32),  # operation of a program whose message it belongs to
        ("arrives_at", np.uint32),  # ideal switches: tick at which it leaves its delivery queue; virtual
        # cut-through, where channels differ in speed: tick at which its tail arrives
        ("switch", np.uint32),  # deflection: that it is in, or in flight to; wormhole switching: dst_switch
        ("eligible_at", np.uint32),  # deflection: tick from which on it may be granted in its switch
    ]
)


def renamed_fields(names: dict[str, str]) -> np.dtype:
    """Return the record of a packet with other names of some fields.

    names: new names by those of PACKET.
    """
    return np.dtype([(names.get(name, name), PACKET[name]) for name in PACKET.names or ()])


# A host, a cache line: its next packet, not yet injected. With classes of traffic, a host has a record for each class,
# number class * hosts + host, its *source*; ``free_at`` and ``last_class`` are those of class 0.
HOST = np.dtype(
    [
        ("counter", np.int64),  # of the arrival draws
        ("position", np.int64),  # creation time, in units finer than ticks (Arrivals.shift)
        ("sequence", np.int64),
        ("created_at", np.int64),  # tick
        ("flits", np.int64),
        ("free_at", np.int64),  # tick from which on the injection channel is free
        ("sent_flits", np.int64),  # flits of all packets injected so far
        ("last_class", np.int64),  # class of traffic served last
    ]
)


class _Tick(NamedTuple):
    """Ticks that no event has; int64s, as each Python integer would compile its own copy of a function.

    LIMIT: of a run of packets; it fits into 32 bits. Events that never happen are at or behind it. NEVER: tick, or
    cost, above all others.
    """

    LIMIT: np.int64 = np.int64(LONGEST_RUN)
    NEVER: np.int64 = np.int64(LONGEST_RUN << 32)


Tick = _Tick()


class Net(NamedTuple):
    """Part of the constants that says what hosts send, and by which ports packets enter and leave.

    seed: of all draws. host_switch, ejection_switch: uint32 [hosts], the switches where each injects, and ejects; one
    array where they are the same. ports: uint32, NONE where there is none.
    arrivals, packets: when hosts create packets, and which; unused if hosts run a program, or with classes of traffic,
    whose lengths they give. classes: of traffic; None where all packets are of one class.
    """

    seed: int
    switches: int
    hosts: int
    host_switch: np.ndarray
    ejection_switch: np.ndarray
    ports: Ports
    arrivals: Arrivals
    packets: Packets
    classes: ClassTables | None = None

    @property
    def sources(self) -> int:
        """Source queues of all hosts."""
        return self.hosts * (1 if self.classes is None else self.classes.class_count)


def make_net(
    topology: Topology, ports: Ports, arrivals: Arrivals, packets: Packets, seed: int,
    classes: ClassTables | None = None,
) -> Net:  # fmt: skip
    """Make the net of a topology.

    Parameters
    ----------
    topology: of the run.
    ports: its port numbers (:func:`flitlab.models.rules.ports.make_ports`).
    arrivals, packets: when hosts create packets, and their lengths and destinations.
    seed: of all draws.
    classes: of traffic, None without.
    """
    host_switch = topology.host_switch.astype(np.uint32)
    return Net(
        seed=seed,
        switches=topology.switches,
        hosts=topology.hosts,
        host_switch=host_switch,
        ejection_switch=host_switch if topology.ejection is None else topology.ejection.astype(np.uint32),
        ports=_unsigned(ports),
        arrivals=arrivals,
        packets=packets,
        classes=classes,
    )


def _unsigned(ports: Ports) -> Ports:
    """Convert port numbers to uint32, NONE where there is none."""
    return Ports(*(np.where(field < 0, NONE, field).astype(np.uint32) for field in ports))


class RunCounters(NamedTuple):
    """Counters of a run (see :mod:`flitlab.sim.engines.base`).

    scalars: int64 [scalars]. histogram: int64 [BUCKETS], delivered packets by latency. hops, deflections: int64 [LONG],
    delivered packets by their number. channel_flits: int64 [channels], flits granted. pairs: uint32 [switches *
    switches], flits delivered by source and destination switch; read and zeroed before they can overflow. by_src_host,
    by_dst_host: int64 [hosts], flits delivered. log: int64 [entries, columns], of which the delivered packets are used;
    columns as in :class:`~flitlab.sim.engines.base.PacketLog`. channels: as in
    :class:`~flitlab.sim.engines.base.Snapshot`, None unless the run counts the traffic of channels; entries of a
    channel belong to the switch or host that sends into it. classes: int64 [classes, counters], the same; None where
    all packets are of one class.
    """

    scalars: Ints
    histogram: Ints
    hops: Ints
    deflections: Ints
    channel_flits: Ints
    pairs: Words
    by_src_host: Ints
    by_dst_host: Ints
    log: Ints
    channels: Ints | None
    classes: Ints | None = None


def make_counters(topology: Topology, classes: ClassTables | None = None) -> RunCounters:
    """Make counters that are zero, without a log.

    Parameters
    ----------
    topology: of the run.
    classes: of traffic, None without.
    """
    return RunCounters(
        scalars=np.zeros(len(Scalar), np.int64),
        histogram=np.zeros(BUCKETS, np.int64),
        hops=np.zeros(HOP_BUCKETS, np.int64),
        deflections=np.zeros(HOP_BUCKETS, np.int64),
        channel_flits=np.zeros(topology.channels, np.int64),
        pairs=np.zeros(topology.switches**2, np.uint32),
        by_src_host=np.zeros(topology.hosts, np.int64),
        by_dst_host=np.zeros(topology.hosts, np.int64),
        log=np.zeros((0, len(PacketLog._fields)), np.int64),
        channels=None,
        classes=None if classes is None else np.zeros((classes.class_count, CLASS_COLUMNS), np.int64),
    )


def make_common_state(scenario: Scenario, net: Net, records: int, dtype: np.dtype = PACKET) -> Fields:
    """Make the fields that the state of every mode has, by name: ``pool``, ``host``, ``program`` and ``counters``.

    Parameters
    ----------
    scenario: of the run.
    net: of its constants.
    records: packets that the pool holds.
    dtype: of a packet.

    Raises
    ------
    ValueError
        A program has times too long to be counted in ticks.
    """
    return {
        "pool": make_pool(records, dtype)._replace(replies=make_replies(net.classes)),
        "host": aligned_records(net.sources, HOST),
        "program": make_program(scenario),
        "counters": make_counters(scenario.topology, net.classes),
    }


def channels_of_outputs(const: Constants, state: State) -> Ints:
    """Return the row of ``state.counters.channels`` of each output's channel, int64 [outputs]."""
    ports, channels = const.net.ports, len(state.counters.channel_flits)
    rows: Ints = ports.out_channel.astype(np.int64)
    rows[ports.eject] = channels + const.net.hosts + np.arange(const.net.hosts)
    return rows


def draw_first_packets(const: Constants, state: State) -> None:
    """Draw the first packet of every host; with classes of traffic, of every class."""
    processes, hosts = processes_of(const.net), const.net.hosts
    for number, process in enumerate(processes):
        _draw_all(*process, state.host[number * hosts : (number + 1) * hosts])
    state.host["last_class"] = len(processes) - 1


def processes_of(net: Net) -> list[Process]:
    """List the arrival process of every class of traffic; that of all packets where there are no classes."""
    t = net.classes
    if t is None:
        return [Process(net.arrivals, net.packets, net.seed)]
    arrivals, packets = interpreted(arrivals_of), interpreted(packets_of)
    return [Process(arrivals(t, c), packets(t, c), int(t.seed[c])) for c in range(t.class_count)]


@device_function
def _draw_all(arrivals: Arrivals, packets: Packets, seed: Int, records: np.ndarray) -> None:
    """Draw the first packets of hosts into their records, HOST [hosts]."""
    for host in range(len(records)):
        record = records[host]
        if arrivals.keep[host] < 0:
            record.created_at = Tick.NEVER
            continue
        counter, position = next_arrival(arrivals, packets, seed, host, 0, -arrivals.base)
        record.counter, record.position = counter, position
        record.created_at = position >> arrivals.shift
        record.flits = length(packets, seed, host, counter)


@inline
def host_of_source(classes, net, source):
    """Return the host of a source queue (see HOST). classes: ``net.classes``."""
    if classes is None:
        return source
    return source % net.hosts


@inline
def _sequence_of(classes, net, source, sequence):
    """Return the sequence number of a packet that is number ``sequence`` of its source. classes: ``net.classes``."""
    if classes is None:
        return sequence
    return sequence * classes.class_count + source // net.hosts


@inline
def inject_packet(const, state, source, tick):
    """Inject the next packet of a source at ``tick``: fill in its record, and draw the next packet of the source.

    source: int64, the host; with classes of traffic see HOST. Returns the packet.
    """
    host_record = state.host[source]
    host = host_of_source(const.net.classes, const.net, source)
    packet = allocate_record(state.pool)
    record = state.pool.packet[packet]
    record.src_host, record.flits = host, host_record.flits
    record.sequence = _sequence_of(const.net.classes, const.net, source, host_record.sequence)
    record.created_at, record.injected_at = host_record.created_at, tick
    record.hop = record.deflections = 0
    state.counters.scalars[Scalar.SENT_PACKETS] += 1
    count_flits(state.counters.channels, injection_channel(state, host), host_record.flits)
    host_record.free_at = tick + host_record.flits
    host_record.sent_flits += host_record.flits
    host_record.sequence += 1
    _set_destination(state.program, const, state, source, packet)
    return packet


@inline
def _set_destination(program, const, state, source, packet):
    """Fill in the destination of a source's next packet, and draw the one after it.

    program: ``state.program``.
    """
    record = state.pool.packet[packet]
    host_record = state.host[source]
    if program is None:
        if not take_reply(state.pool.replies, const, state, source, packet):
            arrivals, packets, seed = _process_of_source(const.net.classes, const.net, source)
            host = host_of_source(const.net.classes, const.net, source)
            candidate, position_before = host_record.counter + 1, host_record.position
            word, block = draw_with_block(
                seed, host, Stream.DESTINATION, host_record.sequence - 1, Stream.ARRIVAL, candidate
            )
            record.dst_host = destination_by(packets, host, word)
            counter, position = arrival_by(arrivals, packets, seed, host, candidate, position_before, block)
            host_record.counter = counter
            host_record.position = position
            host_record.created_at = position >> arrivals.shift
            host_record.flits = length(packets, seed, host, counter)
    else:
        host = source
        record.send = program.queue[host, FIRST]
        record.dst_host = take_packet(program, host)
        _set_next_packet(program, host_record, host)


@inline
def _process_of_source(classes, net, source):
    """Return (arrivals, packets, seed) of a source. classes: ``net.classes``."""
    if classes is None:
        return net.arrivals, net.packets, net.seed
    c = source // net.hosts
    return arrivals_of(classes, c), packets_of(classes, c), classes.seed[c]


@inline
def first_creation(const, state, host):
    """Return the tick at which the oldest unsent packet of a host is created, of all classes of traffic."""
    earliest = Tick.NEVER
    for c in range(const.net.classes.class_count):
        earliest = min(earliest, state.host[c * const.net.hosts + host].created_at)
    return earliest


@inline
def _set_next_packet(program, host_record, host):
    """Copy the next packet of a host that runs a program into the host's record."""
    send, flits = next_packet(program, host)
    host_record.flits = flits
    host_record.created_at = Tick.NEVER if send < 0 else program.enqueued_at[send]


@inline
def run_program(program, const, state, tick, schedule_host):
    """Process the events of the hosts' program at ``tick``.

    Parameters
    ----------
    program: ``state.program``.
    tick: int64.
    schedule_host: function (const, state, host, tick), called for each host with a new message.
    """
    if program is None:
        return
    ranks = program.ranks
    if next_event(ranks) > tick:
        return
    state.counters.scalars[Scalar.EVENTS] += process_events(ranks, tick)
    for i in range(ranks.totals[OUTBOX]):
        host, packets = enqueue_message(program, ranks.outbox[i], tick)
        state.counters.scalars[Scalar.CREATED_PACKETS] += packets
        _set_next_packet(program, state.host[host], host)
        schedule_host(const, state, host, tick)
    ranks.totals[OUTBOX] = 0


@inline
def count_flits(channels, channel, flits):
    """Count the grant of a packet on a channel.

    Parameters
    ----------
    channels: ``state.counters.channels``; None: nothing is counted.
    channel: int64, a row of it.
    flits: int64, of the packet.
    """
    if channels is None:
        return
    channels[channel, ChannelCounter.FLITS] += flits
    channels[channel, ChannelCounter.PACKETS] += 1


@inline
def injection_channel(state, host):
    """Return the row of ``state.counters.channels`` of the channel from a host."""
    return len(state.counters.channel_flits) + host


@inline
def ejection_channel(const, state, host):
    """Return the row of ``state.counters.channels`` of the channel to a host."""
    return len(state.counters.channel_flits) + const.net.hosts + np.int64(host)


@inline
def draw_packet_route(const, state, packet):
    """Draw the route of a packet at injection, independent of congestion.

    const.routes: :class:`~flitlab.models.rules.tables.Tables`.
    """
    record = state.pool.packet[packet]
    src_host, dst_host = np.int64(record.src_host), np.int64(record.dst_host)
    src_switch, dst_switch = np.int64(const.net.host_switch[src_host]), np.int64(const.net.ejection_switch[dst_host])
    sequence = np.int64(record.sequence)
    record.route = choose_route(
        const.routes, const.net.seed, src_host, dst_host, const.net.hosts, sequence, src_switch, dst_switch
    )


@inline
def port_of_route(const, record, route, switch, dst_switch, hop):
    """Return the port by which a packet leaves a switch on a route, where routing is not adaptive.

    Parameters
    ----------
    const: with ``routes``, :class:`~flitlab.models.rules.tables.Tables`.
    record: of the packet.
    route, hop: int64, its routing state, and the channels taken so far.
    switch, dst_switch: int64, the switch, and that of its destination.

    Returns
    -------
    int64.
    """
    src_host, dst_host, sequence = np.int64(record.src_host), np.int64(record.dst_host), np.int64(record.sequence)
    return next_port(
        const.routes, route, const.net.seed, switch, dst_switch, src_host, dst_host, const.net.hosts, sequence, hop
    )


@inline
def vcs_of_packet(classes, const, record):
    """Return the first VC of the class of traffic of a packet, and one past the last, int64.

    classes: ``const.net.classes``. record: of the packet.
    """
    if classes is None:
        return np.int64(0), np.int64(const.vcs)
    return vcs_of(classes, np.int64(record.sequence))


@inline
def message_of(program, record):
    """Return the operation whose message a packet belongs to; -1 where hosts draw their packets.

    program: ``state.program``. record: of the packet.
    """
    if program is None:
        return np.int64(-1)
    return np.int64(record.send)


@inline
def deliver_packet(const, state, packet, tick):
    """Count a packet whose tail has reached its host, and free its record."""
    record = state.pool.packet[packet]
    flits, hops = record.flits, record.hop
    src_host, dst_host = record.src_host, record.dst_host
    latency, deflections = tick - record.created_at, record.deflections
    if len(state.counters.log):
        entry = state.counters.scalars[Scalar.DELIVERED_PACKETS]
        log = state.counters.log[entry]
        log[0] = np.int64(record.sequence) * const.net.hosts + src_host
        log[1], log[2], log[3], log[4] = tick, hops, record.created_at, record.injected_at
        log[5], log[6], log[7], log[8] = dst_host, flits, deflections, message_of(state.program, record)
    state.counters.scalars[Scalar.DELIVERED_PACKETS] += 1
    state.counters.scalars[Scalar.DELIVERED_FLITS] += flits
    state.counters.scalars[Scalar.LATENCY] += latency
    state.counters.scalars[Scalar.NETWORK_LATENCY] += tick - record.injected_at
    state.counters.scalars[Scalar.HOPS] += hops
    state.counters.scalars[Scalar.DEFLECTIONS] += deflections
    state.counters.scalars[Scalar.HOPS_MAX] = max(state.counters.scalars[Scalar.HOPS_MAX], hops)
    state.counters.histogram[bucket(latency)] += 1
    state.counters.hops[min(hops, HOP_BUCKETS - 1)] += 1
    state.counters.deflections[min(deflections, HOP_BUCKETS - 1)] += 1
    state.counters.pairs[switch_pair(const.net, state.pool, packet)] += flits
    state.counters.by_src_host[src_host] += flits
    state.counters.by_dst_host[dst_host] += flits
    _count_class(state.counters.classes, record, latency, tick)
    create_reply(state.pool.replies, const, state, record, tick)
    free_record(state.pool, packet)
    record_delivery(state.program, record.send, tick)


@inline
def _count_class(counters, record, latency, tick):
    """Count a delivered packet for its class of traffic.

    Parameters
    ----------
    counters: ``state.counters.classes``; None: there are no classes.
    record: of the packet.
    latency: ticks since its creation.
    tick: of its delivery.
    """
    if counters is None:
        return
    c = np.int64(record.sequence) % len(counters)
    counters[c, ClassCounter.DELIVERED_PACKETS] += 1
    counters[c, ClassCounter.DELIVERED_FLITS] += record.flits
    counters[c, ClassCounter.LATENCY] += latency
    counters[c, ClassCounter.NETWORK_LATENCY] += tick - record.injected_at
    counters[c, len(ClassCounter) + bucket(latency)] += 1


@inline
def deliver_packets(const, state, tick):
    """Deliver the packets whose tail reaches its host at ``tick``."""
    ejecting = state.ejecting
    block, count = take_bucket(ejecting, tick)
    while block != NONE:
        prefetch_next_block(ejecting, block)
        if unlikely(count == BLOCK_ENTRIES):
            _prefetch_pairs(const.net, ejecting, state.pool, state.counters.pairs, block)
        for i in range(count):
            deliver_packet(const, state, entry_in(ejecting, block, i), tick)
        state.counters.scalars[Scalar.EVENTS] += count
        block, count = release_block(ejecting, block), BLOCK_ENTRIES


@device_function
def _prefetch_pairs(net, ejecting, pool, pairs, block):
    """Prefetch the packets of a full block, and the counters of their pairs."""
    for i in range(BLOCK_ENTRIES):
        prefetch(pool.packet, entry_in(ejecting, block, i))
    for i in range(BLOCK_ENTRIES):
        prefetch(pairs, switch_pair(net, pool, entry_in(ejecting, block, i)))


@inline
def switch_pair(net, pool, packet):
    """Return the pair index of a packet: source switch * switches + destination switch.

    Parameters
    ----------
    net: of the run.
    pool: of its packets.
    packet: int64.

    Returns
    -------
    int64.
    """
    src_host, dst_host = pool.packet[packet].src_host, pool.packet[packet].dst_host
    return np.int64(net.host_switch[src_host]) * net.switches + np.int64(net.ejection_switch[dst_host])


@inline
def log_is_full(const, state):
    """Tell whether a log is kept, or are replies, that cannot take the packets of one more tick."""
    used = state.counters.scalars[Scalar.DELIVERED_PACKETS] + const.net.hosts
    is_full = len(state.counters.log) > 0 and used > len(state.counters.log)
    return is_full or lacks_replies(state.pool.replies, const.net.hosts)


@inline
def pool_is_low(const, state):
    """Tell whether the pool may lack records for one more tick."""
    return state.pool.free[len(state.pool.free) - 1] < const.net.hosts


def enlarged(state: State, hosts: int) -> State:
    """Return the state with the log, the pool, or the replies doubled where they are too few for one more tick."""
    log, pool, counters = state.counters.log, state.pool, state.counters
    if len(log) and counters.scalars[Scalar.DELIVERED_PACKETS] + hosts > len(log):
        state = state._replace(counters=counters._replace(log=np.concatenate([log, np.zeros_like(log)])))
    if pool.free[-1] < hosts:
        state = state._replace(pool=doubled(pool))
    if pool.replies is not None and interpreted(lacks_replies)(pool.replies, hosts):
        state = state._replace(pool=state.pool._replace(replies=doubled_replies(pool.replies)))
    return state


def packet_grants(state: State) -> int:
    """Return the number of packets granted so far: a packet counts at every hop, and again when it is ejected."""
    return int(state.counters.scalars[Scalar.GRANTS])


def never_deadlocks(const: Constants, state: State, now: int) -> bool:
    """Return False: no packet waits for a buffer."""
    return False


def first_unsent(state: State) -> Ints:
    """Return the first unsent packet of every source, int64 [sources, 4].

    Columns as in :func:`flitlab.sim.engines.compiled.sources.count_created`.
    """
    unsent: Ints = np.stack([state.host[name] for name in ("counter", "position", "sequence", "sent_flits")], axis=1)
    return unsent


def in_flight_records(state: State) -> np.ndarray:
    """List the records of all packets in flight, PACKET [packets]."""
    used = np.ones(len(state.pool.packet), bool)
    used[state.pool.free[: state.pool.free[-1]]] = False
    in_flight: np.ndarray = state.pool.packet[used]
    return in_flight


def in_flight_packets(state: State) -> tuple[Ints, Ints, Ints]:
    """List (source host, destination host, flits) of all packets in flight; int64 [packets] each."""
    record = in_flight_records(state)
    src_host, dst_host, flits = (record[name].astype(np.int64) for name in ("src_host", "dst_host", "flits"))
    return src_host, dst_host, flits
