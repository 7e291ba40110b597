# SPDX-License-Identifier: Apache-2.0
"""Records of packets and hosts, the same in every compiled discipline.

Functions take any discipline's constants, which have a ``net``, and its state, which has a ``pool``, the hosts' records
``host``, a ``program`` and a ``tally``; :func:`deliver_all` also reads ``leaving``, packets by tick.
"""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Ints, Words
from flitlab.models.histogram import BUCKETS, bucket
from flitlab.models.jit import device_function, inline
from flitlab.models.rules.arrivals import LONGEST_RUN, Arrivals, arrival_by, next_arrival
from flitlab.models.rules.draw import ARRIVAL, DESTINATION, draw_with_block
from flitlab.models.rules.packets import Packets, destination_by, length
from flitlab.models.rules.ports import Ports
from flitlab.models.rules.route import choose_route
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.base import (
    CREATED_PACKETS,
    DEFLECTIONS,
    DELIVERED_FLITS,
    DELIVERED_PACKETS,
    EVENTS,
    HOPS,
    HOPS_MAX,
    LATENCY,
    LONG,
    NETWORK_LATENCY,
    SCALARS,
    SENT_PACKETS,
)
from flitlab.sim.engines.compiled.due import FULL, ask_for_next, packet_in, release, take
from flitlab.sim.engines.compiled.memory import prefetch, seldom
from flitlab.sim.engines.compiled.messages import FIRST, cut, deliver_part, first_in_queue, join
from flitlab.sim.engines.compiled.pool import NOBODY as NOBODY
from flitlab.sim.engines.compiled.pool import doubled, free_record, take_record
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, turn

# A packet, a cache line.
PACKET = np.dtype(
    [
        ("next", np.uint32),  # the packet behind it in a list
        ("destination", np.uint32),
        ("source", np.uint32),
        ("born", np.uint32),  # tick of its creation
        ("sent", np.uint32),  # tick at which its host began to send it
        ("sequence", np.uint32),  # how many packets its host has created before it
        ("hop", np.uint32),  # channels between switches that it has been granted
        ("flits", np.uint32),
        ("output", np.uint32),  # that it asks for; in wormhole switching, by which it leaves the network
        ("input_vc", np.uint32),  # that it is in, or on its way to
        ("deflected", np.uint32),  # how often
        ("way", np.uint32),  # what a routing keeps of it
        ("send", np.uint32),  # operation of a program whose message it is of
        ("due", np.uint32),  # tick in which it is at the end of its line, where switches are ideal
        ("where", np.uint32),  # switch to which it is on its way, or in which it is, under hot-potato routing; in
        # wormhole switching, that of its destination
        ("eligible", np.uint32),  # tick from which on it may be granted there
    ]
)

# A host, a cache line.
HOST = np.dtype(
    [
        ("counter", np.int64),  # of the draws of its arrivals
        ("position", np.int64),  # of its next packet in time, finer than ticks
        ("sequence", np.int64),  # of its next packet
        ("born", np.int64),  # tick of the creation of that
        ("flits", np.int64),  # length of that
        ("free", np.int64),  # tick from which on it may send
        ("sent_flits", np.int64),
        ("unused", np.int64),
    ]
)

# int64 rather than Python ints: each literal would compile its own copy of a function
ZERO = np.int64(0)
LATE = np.int64(LONGEST_RUN)
NEVER = LATE << 32


class Net(NamedTuple):
    """The part of a discipline's constants that says who sends what, and where it goes in and comes out.

    seed: of all draws. host_switch: uint32 [hosts], the switch of each. ports: uint32, NOBODY where there is none.
    arrivals, packets: when hosts create packets, and which; of no use where hosts run a program.
    """

    seed: int
    switches: int
    hosts: int
    host_switch: np.ndarray
    ports: Ports
    arrivals: Arrivals
    packets: Packets


def make_net(topology: Topology, ports: Ports, arrivals: Arrivals, packets: Packets, seed: int) -> Net:
    """Make the net of a topology, whose ports come as the rules number them."""
    return Net(
        seed=seed,
        switches=topology.switches,
        hosts=topology.hosts,
        host_switch=topology.host_switch.astype(np.uint32),
        ports=_unsigned(ports),
        arrivals=arrivals,
        packets=packets,
    )


def _unsigned(ports: Ports) -> Ports:
    """Turn port numbers into uint32, NOBODY where there is none."""
    return Ports(*(np.where(field < 0, NOBODY, field).astype(np.uint32) for field in ports))


class Tally(NamedTuple):
    """What is counted (see :mod:`flitlab.sim.engines.base`).

    scalars: int64 [SCALARS]. histogram: int64 [BUCKETS], delivered packets by latency. hops, deflections: int64 [LONG],
    delivered packets by how many they had. channel_flits: int64 [channels], flits granted. pairs: uint32
    [switches * switches], flits delivered since somebody set them to 0, before they could overflow, by source and
    destination switch. by_source, by_destination: int64 [hosts], flits delivered. log: int64 [entries, 3], of which
    the delivered packets are used: the packet's number, the tick of its tail, its hops.
    """

    scalars: Ints
    histogram: Ints
    hops: Ints
    deflections: Ints
    channel_flits: Ints
    pairs: Words
    by_source: Ints
    by_destination: Ints
    log: Ints


def make_tally(topology: Topology) -> Tally:
    """Make a tally that is all zero and keeps no log."""
    return Tally(
        scalars=np.zeros(SCALARS, np.int64),
        histogram=np.zeros(BUCKETS, np.int64),
        hops=np.zeros(LONG, np.int64),
        deflections=np.zeros(LONG, np.int64),
        channel_flits=np.zeros(topology.channels, np.int64),
        pairs=np.zeros(topology.switches**2, np.uint32),
        by_source=np.zeros(topology.hosts, np.int64),
        by_destination=np.zeros(topology.hosts, np.int64),
        log=np.zeros((0, 3), np.int64),
    )


def first_packets(const: Any, state: Any) -> None:
    """Draw every host's first packet."""
    _draw_first(const.net.arrivals, const.net.packets, const.net.seed, state.host)


@device_function
def _draw_first(arrivals: Arrivals, packets: Packets, seed: Int, records: np.ndarray) -> None:
    """Draw the first packets of hosts and fill in what their records, HOST [hosts], say of them."""
    for host in range(len(records)):
        record = records[host]
        if arrivals.keep[host] < 0:
            record.born = NEVER
            continue
        counter, position = next_arrival(arrivals, packets, seed, host, 0, -arrivals.base)
        record.counter, record.position = counter, position
        record.born = position >> arrivals.shift
        record.flits = length(packets, seed, host, counter)


@inline
def create(const, state, host, tick):
    """Turn a host's oldest packet into a record, sent at ``tick``, and move the host on to its next packet.

    Returns the packet.
    """
    host_record = state.host[host]
    packet = take_record(state.pool)
    record = state.pool.packet[packet]
    record.source, record.sequence, record.flits = host, host_record.sequence, host_record.flits
    record.born, record.sent = host_record.born, tick
    record.hop = record.deflected = 0
    state.tally.scalars[SENT_PACKETS] += 1
    host_record.free = tick + host_record.flits
    host_record.sent_flits += host_record.flits
    host_record.sequence += 1
    _address(state.program, const, state, host, packet)
    return packet


@inline
def _address(program, const, state, host, packet):
    """Fill in where a host's oldest packet goes, and move the host on to its next packet.

    program: ``state.program``.
    """
    record = state.pool.packet[packet]
    host_record = state.host[host]
    if program is None:
        net = const.net
        candidate, at = host_record.counter + 1, host_record.position
        word, block = draw_with_block(net.seed, host, DESTINATION, host_record.sequence - 1, ARRIVAL, candidate)
        record.destination = destination_by(net.packets, host, word)
        counter, position = arrival_by(net.arrivals, net.packets, net.seed, host, candidate, at, block)
        host_record.counter = counter
        host_record.position = position
        host_record.born = position >> net.arrivals.shift
        host_record.flits = length(net.packets, net.seed, host, counter)
    else:
        record.send = program.queue[host, FIRST]
        record.destination = cut(program, host)
        _show_next(program, host_record, host)


@inline
def _show_next(program, host_record, host):
    """Put down in a host's record what the next packet of a host that runs a program is."""
    send, flits = first_in_queue(program, host)
    host_record.flits = flits
    host_record.born = NEVER if send < 0 else program.joined[send]


@inline
def run_program(program, const, state, tick, notice):
    """Let hosts do what their program asks for at ``tick``.

    program: ``state.program``. notice: function (const, state, host, tick), called for a host that has got packets.
    """
    if program is None:
        return
    ranks = program.ranks
    if next_event(ranks) > tick:
        return
    state.tally.scalars[EVENTS] += turn(ranks, tick)
    for i in range(ranks.totals[OUTBOX]):
        host, packets = join(program, ranks.outbox[i], tick)
        state.tally.scalars[CREATED_PACKETS] += packets
        _show_next(program, state.host[host], host)
        notice(const, state, host, tick)
    ranks.totals[OUTBOX] = 0


@inline
def set_way(const, state, packet):
    """Fix the way of a packet that has just been created, by draws alone.

    const.routes: :class:`~flitlab.models.rules.tables.Tables`.
    """
    record = state.pool.packet[packet]
    source, destination = np.int64(record.source), np.int64(record.destination)
    origin, target = np.int64(const.net.host_switch[source]), np.int64(const.net.host_switch[destination])
    sequence = np.int64(record.sequence)
    record.way = choose_route(
        const.routes, const.net.seed, source, destination, const.net.hosts, sequence, origin, target
    )


@inline
def deliver(const, state, packet, tick):
    """Count a packet whose tail has reached its host, and free its record."""
    record = state.pool.packet[packet]
    flits, hops = record.flits, record.hop
    source, destination = record.source, record.destination
    latency, deflections = tick - record.born, record.deflected
    if len(state.tally.log):
        entry = state.tally.scalars[DELIVERED_PACKETS]
        state.tally.log[entry, 0] = np.int64(record.sequence) * const.net.hosts + source
        state.tally.log[entry, 1] = tick
        state.tally.log[entry, 2] = hops
    state.tally.scalars[DELIVERED_PACKETS] += 1
    state.tally.scalars[DELIVERED_FLITS] += flits
    state.tally.scalars[LATENCY] += latency
    state.tally.scalars[NETWORK_LATENCY] += tick - record.sent
    state.tally.scalars[HOPS] += hops
    state.tally.scalars[DEFLECTIONS] += deflections
    state.tally.scalars[HOPS_MAX] = max(state.tally.scalars[HOPS_MAX], hops)
    state.tally.histogram[bucket(latency)] += 1
    state.tally.hops[min(hops, LONG - 1)] += 1
    state.tally.deflections[min(deflections, LONG - 1)] += 1
    state.tally.pairs[pair_of(const.net, state.pool, packet)] += flits
    state.tally.by_source[source] += flits
    state.tally.by_destination[destination] += flits
    free_record(state.pool, packet)
    deliver_part(state.program, record.send, tick)


@inline
def deliver_all(const, state, tick):
    """Count the packets whose tail reaches its host at ``tick``."""
    leaving = state.leaving
    chunk, filled = take(leaving, tick)
    while chunk != NOBODY:
        ask_for_next(leaving, chunk)
        if seldom(filled == FULL):
            _ask_for_pairs(const.net, leaving, state.pool, state.tally.pairs, chunk)
        for i in range(filled):
            deliver(const, state, packet_in(leaving, chunk, i), tick)
        state.tally.scalars[EVENTS] += filled
        chunk, filled = release(leaving, chunk), FULL


@device_function
def _ask_for_pairs(net, leaving, pool, pairs, chunk):
    """Begin to load the packets of a full chunk, and the counters of their pairs."""
    for i in range(FULL):
        prefetch(pool.packet, packet_in(leaving, chunk, i))
    for i in range(FULL):
        prefetch(pairs, pair_of(net, pool, packet_in(leaving, chunk, i)))


@inline
def pair_of(net, pool, packet):
    """Find the pair of switches between whose hosts a packet goes."""
    source, destination = pool.packet[packet].source, pool.packet[packet].destination
    return np.int64(net.host_switch[source]) * net.switches + np.int64(net.host_switch[destination])


@inline
def log_is_full(const, state):
    """Tell whether a log is kept that may not hold the packets of one more tick."""
    return len(state.tally.log) > 0 and state.tally.scalars[DELIVERED_PACKETS] + const.net.hosts > len(state.tally.log)


@inline
def pool_is_empty(const, state):
    """Tell whether there may be too few unused records for the packets that hosts start in one more tick."""
    return state.pool.free[len(state.pool.free) - 1] < const.net.hosts


def with_room(state: Any, hosts: int) -> Any:
    """Return the state with twice the log, or twice the records, where these are too few for one more tick."""
    log, pool, tally = state.tally.log, state.pool, state.tally
    if len(log) and tally.scalars[DELIVERED_PACKETS] + hosts > len(log):
        state = state._replace(tally=tally._replace(log=np.concatenate([log, np.zeros_like(log)])))
    if pool.free[-1] < hosts:
        state = state._replace(pool=doubled(pool))
    return state


def sent(state: Any) -> Ints:
    """Return the first unsent packet of every host, int64 [hosts, 4].

    Its columns are those of :func:`flitlab.sim.engines.compiled.sources.count_created`.
    """
    first: Ints = np.stack([state.host[name] for name in ("counter", "position", "sequence", "sent_flits")], axis=1)
    return first


def packets_in_network(state: Any) -> np.ndarray:
    """List the records of every packet sent and not delivered, PACKET [packets]."""
    used = np.ones(len(state.pool.packet), bool)
    used[state.pool.free[: state.pool.free[-1]]] = False
    listed: np.ndarray = state.pool.packet[used]
    return listed


def in_network(state: Any) -> tuple[Ints, Ints, Ints]:
    """List (source host, destination host, flits) of every packet sent and not delivered; int64 [packets] each."""
    record = packets_in_network(state)
    source, destination, flits = (record[name].astype(np.int64) for name in ("source", "destination", "flits"))
    return source, destination, flits
