# SPDX-License-Identifier: Apache-2.0
"""Classes of traffic: their arrival processes, and which class a host serves next.

The packets of class c of n have the sequence numbers c, c + n, c + 2 n, ... at their host, so a packet's class follows
from its sequence number. Each class draws with a seed of its own; that of class 0 is the seed of the run.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Integers, Ints
from flitlab.models.hashing import content_hash
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.arrivals import Arrivals, make_arrivals
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.rules.packets import Packets, make_packets
from flitlab.models.traffic.demand import Traffic
from flitlab.models.traffic.source import Source

NO_LIMIT = np.int64(1) << np.int64(62)
"""Replies that a host may owe, where there is no limit."""


class Process(NamedTuple):
    """When the hosts create packets of a class, which, and the seed of the draws."""

    arrivals: Arrivals
    packets: Packets
    seed: int


def make_processes(
    source: Source, traffic: Traffic, load: float, seed: int, flit_ticks: int = 1
) -> list[Process]:  # fmt: skip
    """Make the process of every class; of all packets where there are no classes.

    Parameters
    ----------
    source: arrivals; lengths where there are no classes.
    traffic: the demand.
    load: flits per tick of a host of rate 1.
    seed: of the run.
    flit_ticks: ticks of a flit on a host's channel.

    Raises
    ------
    ValueError: hosts cannot create the load; the traffic has a background.
    """
    if not traffic.classes:
        arrivals = make_arrivals(
            source.arrivals, load, source.mean_flits, traffic.rate, source.burst, flit_ticks=flit_ticks
        )  # fmt: skip
        return [Process(arrivals, make_packets(traffic, source.flits, source.shares), seed)]
    processes = []
    for number, one in enumerate(traffic.classes):
        offered, demand = 0.0 if one.request is not None else one.offered(load), one.demand
        kind, burst = one.process(source)
        arrivals = make_arrivals(kind, offered, one.mean_flits, demand.rate, burst, flit_ticks=flit_ticks)
        own = int(content_hash("class", seed, number)[:15], 16) if number else seed
        processes.append(Process(arrivals, make_packets(demand, one.flits, one.shares), own))
    return processes


class ClassTables(NamedTuple):
    """Tables of the classes of a run; the arrays of all processes lie behind one another.

    class_count, hosts: numbers of classes and hosts. by_class: whether switches serve the greatest priority first.
    priority, first_vc, end_vc, seed: int64 [classes]. rank: int64 [classes], what the greatest priority exceeds that of
    the class by. reply, delay: int64 [classes], the class of the replies to its packets, negative without, and the
    ticks to their creation. request: int64 [classes], the class that its packets reply to, negative
    without. reply_limit: int64 [classes], replies to its packets that a host may owe (:data:`NO_LIMIT`). numbers:
    int64 [classes, 6], the scalar fields of :class:`Arrivals`, and the law of
    :class:`Packets`. subnets: number of subnets. subnet: int64 [classes], that of its packets, negative if each draws
    one. begin: int64 [classes + 1, 11], where the arrays of a class begin, in the order of the fields
    below: those of :class:`Arrivals` and :class:`Packets`.
    """

    class_count: int
    hosts: int
    by_class: bool
    subnets: int
    subnet: Ints
    priority: Ints
    rank: Ints
    reply: Ints
    delay: Ints
    request: Ints
    reply_limit: Ints
    first_vc: Ints
    end_vc: Ints
    seed: Ints
    numbers: Ints
    begin: Ints
    coarse: Ints
    coarse_guide: Integers
    fine: Ints
    fine_guide: Integers
    keep: Ints
    fixed: Ints
    start: Ints
    column: Ints
    cumulative: Ints
    flits: Ints
    share: Ints


_OF_ARRIVALS = "coarse", "coarse_guide", "fine", "fine_guide", "keep"
_OF_PACKETS = "fixed", "start", "column", "cumulative", "flits", "share"


def make_class_tables(traffic: Traffic, processes: Sequence[Process], vcs: int, by_class: bool = False) -> ClassTables:
    """Make the tables of the classes of a run.

    Parameters
    ----------
    traffic: the demand, with classes.
    processes: from :func:`make_processes`.
    vcs: virtual channels of a channel.
    by_class: whether switches serve the greatest priority first.
    """
    classes = traffic.classes
    parts = [
        [getattr(process.arrivals, name) for name in _OF_ARRIVALS]
        + [getattr(process.packets, name) for name in _OF_PACKETS]
        for process in processes
    ]
    sizes = np.array([[0] * len(parts[0]), *([len(array) for array in one] for one in parts)], np.int64)
    ranges = np.array([one.vcs or (0, vcs) for one in classes], np.int64)
    scalars = [
        (a.kind, a.shift, a.base, a.stop, a.end, p.law, a.flit_ticks)
        for a, p in ((one.arrivals, one.packets) for one in processes)
    ]
    priority = np.array([one.priority for one in classes], np.int64)
    reply, delay = np.full(len(classes), -1), np.zeros(len(classes), np.int64)
    request, reply_limit = np.full(len(classes), -1), np.full(len(classes), NO_LIMIT)
    for number, one in enumerate(classes):
        if one.request is not None:
            reply[one.request], delay[one.request], request[number] = number, one.delay, one.request
            reply_limit[one.request] = NO_LIMIT if one.queue is None else one.queue
    return ClassTables(
        len(classes), traffic.topology.hosts, by_class, traffic.topology.subnets,
        np.array([-1 if one.subnet is None else one.subnet for one in classes], np.int64),
        priority, priority.max() - priority, reply, delay,
        request, reply_limit,
        ranges[:, 0].copy(), ranges[:, 1].copy(), np.array([one.seed for one in processes], np.int64),
        np.array(scalars, np.int64), np.cumsum(sizes, axis=0),
        *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)),
    )  # fmt: skip


@kernel
def arrivals_of(t: ClassTables, c: Int) -> Arrivals:
    """The arrival process of a class.

    Parameters
    ----------
    t: the tables.
    c: number of the class.
    """
    b, e = t.begin[c], t.begin[c + 1]
    return Arrivals(
        t.numbers[c, 0], t.numbers[c, 1], t.numbers[c, 2], t.coarse[b[0] : e[0]], t.coarse_guide[b[1] : e[1]],
        t.fine[b[2] : e[2]], t.fine_guide[b[3] : e[3]], t.numbers[c, 3], t.keep[b[4] : e[4]], t.numbers[c, 4], None,
        t.numbers[c, 6],
    )  # fmt: skip


@kernel
def packets_of(t: ClassTables, c: Int) -> Packets:
    """Destinations and lengths of the packets of a class.

    Parameters
    ----------
    t: the tables.
    c: number of the class.
    """
    b, e = t.begin[c], t.begin[c + 1]
    return Packets(
        t.hosts, t.numbers[c, 5], t.fixed[b[5] : e[5]], t.start[b[6] : e[6]], t.column[b[7] : e[7]],
        t.cumulative[b[8] : e[8]], t.flits[b[9] : e[9]], t.share[b[10] : e[10]],
    )  # fmt: skip


@kernel
def goes_before(priority: Ints, c: Int, best: Int) -> bool:
    """Whether a host serves a class that can send instead of the best one of those before it in rotation.

    Hosts go through the classes in rotation, from the one behind the class served last on.

    Parameters
    ----------
    priority: int64 [classes].
    c: number of the class.
    best: number of the best class so far, negative if there is none.
    """
    return best < 0 or priority[c] > priority[best]


@device_function
def ends_of_reply(
    t: ClassTables, seed: Int, reply: Int, src_host: Int, dst_host: Int, sequence: Int
) -> tuple[int, int]:
    """Source and destination of the reply to a packet: its ends exchanged, in the subnet of the reply.

    Parameters
    ----------
    t: the tables.
    seed: of the class of replies.
    reply: number of this class.
    src_host, dst_host, sequence: of the packet that is replied to.
    """
    if t.subnets == 1:
        return dst_host, src_host
    hosts, subnet = t.hosts // t.subnets, t.subnet[reply]
    if subnet < 0:
        subnet = below(draw(seed, Stream.SUBNET, src_host, sequence), t.subnets)
    return subnet * hosts + dst_host % hosts, subnet * hosts + src_host % hosts


@device_function
def host_in_class(t: ClassTables, c: Int, host: Int) -> int:
    """A host in the subnet of a class, which names one where there are several.

    Parameters
    ----------
    t: the tables.
    c: number of the class.
    host: the host in any subnet.
    """
    if t.subnets == 1:
        return host
    hosts = t.hosts // t.subnets
    return t.subnet[c] * hosts + host % hosts


@device_function
def vcs_of(t: ClassTables, sequence: Int) -> tuple[int, int]:
    """The first VC that a packet may take, and one past the last.

    Parameters
    ----------
    t: the tables.
    sequence: sequence number of the packet.
    """
    c = sequence % t.class_count
    return t.first_vc[c], t.end_vc[c]
