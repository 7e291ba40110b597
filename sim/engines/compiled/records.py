"""Records of packets and hosts, the same in every compiled discipline.

Functions take a discipline's constants ``c`` and state ``s``, of which they use the fields named alike.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from flitlab.models.histogram import BUCKETS, bucket
from flitlab.models.jit import inner
from flitlab.models.rules.arrivals import LONGEST_RUN, Arrivals, next_arrival
from flitlab.models.rules.packets import Packets, destination, length
from flitlab.models.rules.ports import Ports
from flitlab.models.rules.route import choose_way
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
from flitlab.sim.engines.compiled.messages import FIRST, cut, deliver_part, first_in_queue, join
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, turn

# Fields of a packet record, uint32.
NEXT, TARGET, SOURCE, BORN, SENT, SEQUENCE, HOP, FLITS, OUTPUT, INPUT_VC, DEFLECTED, WAY, SEND = range(13)
RECORD = 16  # one cache line; the last fields are a discipline's own; SEND: the operation whose message it is of

# Fields of a host record, int64.
H_COUNTER, H_POSITION, H_SEQUENCE, H_BORN, H_FLITS, H_FREE, H_SENT_FLITS = range(7)
HOST_RECORD = 8

# int64 rather than Python ints: each literal would compile its own copy of a function
NOBODY: Any = np.int64(0xFFFFFFFF)  # records are unsigned, so that indices read from them need no check of sign
ZERO = np.int64(0)
LATE = np.int64(LONGEST_RUN)
NEVER = LATE << 32


class Net(NamedTuple):
    """The part of a discipline's constants that says who sends what, and where it goes in and comes out.

    seed: of all draws. host_switch: uint32 [hosts], the switch of each. ports: uint32, NOBODY where there is none. arrivals, packets:
    when hosts create packets, and which; empty where hosts run a program.
    """

    seed: int
    switches: int
    hosts: int
    host_switch: np.ndarray
    ports: Ports
    arrivals: Arrivals
    packets: Packets


def make_net(topology: Topology, ports: Ports, arrivals: Arrivals, packets: Packets, seed: int) -> Net:
    """The net of a topology, whose ports come as the rules number them."""
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
    """Port numbers as uint32, NOBODY where there is none."""
    return Ports(*(np.where(field < 0, NOBODY, field).astype(np.uint32) for field in ports))


class Pool(NamedTuple):
    """The records of the packets in the network, which are used again.

    packet: uint32 [packets, RECORD]. free: uint32 [packets + 1], a stack of unused records; its height is in the last
    entry.
    """

    packet: np.ndarray
    free: np.ndarray


def make_pool(packets: int, order: Literal["C", "F"] = "C") -> Pool:
    """A pool of unused records; order: of memory, of one packet's fields (C) or of one field of all packets (F)."""
    free = np.append(np.arange(packets)[::-1], packets).astype(np.uint32)
    return Pool(packet=np.zeros((packets, RECORD), np.uint32, order=order), free=free)


class Tally(NamedTuple):
    """What is counted (see :mod:`flitlab.sim.engines.base`).

    scalars: int64 [SCALARS]. histogram: int64 [BUCKETS], delivered packets by latency. hops, deflections: int64 [LONG],
    delivered packets by how many they had. channel_flits: int64 [channels], flits granted. pairs: int64
    [switches * switches], by_source, by_destination: int64 [hosts], flits delivered. log: int64 [entries, 3], of which
    the delivered packets are used: the packet's number, the tick of its tail, its hops.
    """

    scalars: np.ndarray
    histogram: np.ndarray
    hops: np.ndarray
    deflections: np.ndarray
    channel_flits: np.ndarray
    pairs: np.ndarray
    by_source: np.ndarray
    by_destination: np.ndarray
    log: np.ndarray


def make_tally(topology: Topology) -> Tally:
    """All zero, without a log."""
    return Tally(
        scalars=np.zeros(SCALARS, np.int64),
        histogram=np.zeros(BUCKETS, np.int64),
        hops=np.zeros(LONG, np.int64),
        deflections=np.zeros(LONG, np.int64),
        channel_flits=np.zeros(topology.channels, np.int64),
        pairs=np.zeros(topology.switches**2, np.int64),
        by_source=np.zeros(topology.hosts, np.int64),
        by_destination=np.zeros(topology.hosts, np.int64),
        log=np.zeros((0, 3), np.int64),
    )


def first_packets(c, s) -> None:
    """Draw every host's first packet."""
    for h in range(c.net.hosts):
        if c.net.arrivals.keep[h] < 0:
            s.host[h, H_BORN] = NEVER
            continue
        counter, position = next_arrival(c.net.arrivals, c.net.packets, c.net.seed, h, 0, -c.net.arrivals.base)
        s.host[h, H_COUNTER] = counter
        s.host[h, H_POSITION] = position
        s.host[h, H_BORN] = position >> c.net.arrivals.shift
        s.host[h, H_FLITS] = length(c.net.packets, c.net.seed, h, counter)


@inner
def create(c, s, h, tick):
    """Turn host h's oldest packet into a record, sent at ``tick``, and move the host on to its next one."""
    host = s.host[h]
    top = len(s.pool.free) - 1
    s.pool.free[top] -= 1
    p = np.int64(s.pool.free[s.pool.free[top]])
    s.pool.packet[p, SOURCE] = h
    s.pool.packet[p, BORN] = host[H_BORN]
    s.pool.packet[p, SENT] = tick
    s.pool.packet[p, SEQUENCE] = host[H_SEQUENCE]
    s.pool.packet[p, HOP] = 0
    s.pool.packet[p, FLITS] = host[H_FLITS]
    s.pool.packet[p, DEFLECTED] = 0
    s.tally.scalars[SENT_PACKETS] += 1
    host[H_FREE] = tick + host[H_FLITS]
    host[H_SENT_FLITS] += host[H_FLITS]
    host[H_SEQUENCE] += 1
    _address(s.program, c, s, h, p)
    return p


@inner
def _address(program, c, s, h, p):
    """Where host h's oldest packet goes; the host moves on to its next one."""
    host = s.host[h]
    if program is None:
        s.pool.packet[p, TARGET] = destination(c.net.packets, c.net.seed, h, host[H_SEQUENCE] - 1)
        counter, position = next_arrival(
            c.net.arrivals, c.net.packets, c.net.seed, h, host[H_COUNTER] + 1, host[H_POSITION]
        )
        host[H_COUNTER] = counter
        host[H_POSITION] = position
        host[H_BORN] = position >> c.net.arrivals.shift
        host[H_FLITS] = length(c.net.packets, c.net.seed, h, counter)
    else:
        s.pool.packet[p, SEND] = program.queue[h, FIRST]
        s.pool.packet[p, TARGET] = cut(program, h)
        _show_next(program, host, h)


@inner
def _show_next(program, host, h):
    """Put down what the next packet of a host that runs a program is."""
    send, flits = first_in_queue(program, h)
    host[H_FLITS] = flits
    host[H_BORN] = NEVER if send < 0 else program.joined[send]


@inner
def run_program(program, c, s, tick, notice):
    """Let hosts do what their program asks for at ``tick``; notice: function (c, s, host, tick), it has packets."""
    if program is None:
        return
    ranks = program.ranks
    if next_event(ranks) > tick:
        return
    s.tally.scalars[EVENTS] += turn(ranks, tick)
    for i in range(ranks.totals[OUTBOX]):
        h, packets = join(program, ranks.outbox[i], tick)
        s.tally.scalars[CREATED_PACKETS] += packets
        _show_next(program, s.host[h], h)
        notice(c, s, h, tick)
    ranks.totals[OUTBOX] = 0


@inner
def set_way(c, s, p):
    """Fix the way of a packet that has just been created; ``c.routes``: ``flitlab.models.rules.tables.Tables``."""
    source, target = np.int64(s.pool.packet[p, SOURCE]), np.int64(s.pool.packet[p, TARGET])
    origin, there = np.int64(c.net.host_switch[source]), np.int64(c.net.host_switch[target])
    sequence = np.int64(s.pool.packet[p, SEQUENCE])
    s.pool.packet[p, WAY] = choose_way(c.routes, c.net.seed, source, target, c.net.hosts, sequence, origin, there)


@inner
def deliver(c, s, p, tick):
    """Count a packet whose tail has reached its host, and free its record."""
    flits, source, target = s.pool.packet[p, FLITS], s.pool.packet[p, SOURCE], s.pool.packet[p, TARGET]
    latency, hops, deflections = tick - s.pool.packet[p, BORN], s.pool.packet[p, HOP], s.pool.packet[p, DEFLECTED]
    if len(s.tally.log):
        entry = s.tally.scalars[DELIVERED_PACKETS]
        s.tally.log[entry, 0] = np.int64(s.pool.packet[p, SEQUENCE]) * c.net.hosts + source
        s.tally.log[entry, 1] = tick
        s.tally.log[entry, 2] = hops
    s.tally.scalars[DELIVERED_PACKETS] += 1
    s.tally.scalars[DELIVERED_FLITS] += flits
    s.tally.scalars[LATENCY] += latency
    s.tally.scalars[NETWORK_LATENCY] += tick - s.pool.packet[p, SENT]
    s.tally.scalars[HOPS] += hops
    s.tally.scalars[DEFLECTIONS] += deflections
    s.tally.scalars[HOPS_MAX] = max(s.tally.scalars[HOPS_MAX], hops)
    s.tally.histogram[bucket(latency)] += 1
    s.tally.hops[min(hops, LONG - 1)] += 1
    s.tally.deflections[min(deflections, LONG - 1)] += 1
    s.tally.pairs[c.net.host_switch[source] * c.net.switches + c.net.host_switch[target]] += flits
    s.tally.by_source[source] += flits
    s.tally.by_destination[target] += flits
    top = len(s.pool.free) - 1
    s.pool.free[s.pool.free[top]] = p
    s.pool.free[top] += 1
    deliver_part(s.program, s.pool.packet[p, SEND], tick)


@inner
def deliver_all(c, s, tick, mask):
    """Count the packets whose tail reaches its host at ``tick``; ``mask``: ticks of the ring, less 1."""
    p = np.int64(s.leaving[tick & mask])
    s.leaving[tick & mask] = NOBODY
    while p != NOBODY:
        following = np.int64(s.pool.packet[p, NEXT])
        deliver(c, s, p, tick)
        p = following
        s.tally.scalars[EVENTS] += 1


@inner
def log_is_full(c, s):
    """Whether a log is kept that may not hold the packets of one more tick."""
    return len(s.tally.log) > 0 and s.tally.scalars[DELIVERED_PACKETS] + c.net.hosts > len(s.tally.log)


def sent(s) -> np.ndarray:
    """The first unsent packet of every host, as :func:`flitlab.sim.engines.compiled.sources.count_created` wants it."""
    return s.host[:, [H_COUNTER, H_POSITION, H_SEQUENCE, H_SENT_FLITS]]


def in_network(s) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(source host, destination host, flits) of every packet sent and not delivered, int64."""
    used = np.ones(len(s.pool.packet), bool)
    used[s.pool.free[: s.pool.free[-1]]] = False
    record = s.pool.packet[used].astype(np.int64)
    return record[:, SOURCE], record[:, TARGET], record[:, FLITS]
