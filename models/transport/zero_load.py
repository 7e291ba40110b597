# SPDX-License-Identifier: Apache-2.0
"""Zero-load times of packets: over the fastest or the slowest path of a pair of switches.

A path is a list of channels that the routes allow. A packet is stored and forwarded at every switch: each channel adds
its service time and its delay.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int, Ints, Masks
from flitlab.models.jit import device_function, interpreted, kernel, njit
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.bits import empty_set, is_empty, lowest, with_port, without_lowest
from flitlab.models.rules.datagram import service_ticks
from flitlab.models.rules.port_sets import empty_row, ports_at, set_ports
from flitlab.models.rules.route import next_hops
from flitlab.models.rules.tables import RouteForm, Tables
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology

_PAIRS = 4_000_000
"""Pairs of switches whose times are in memory at once."""


class Channels(NamedTuple):
    """The channels between switches.

    out_start: int64 [switches + 1] and dst: int64 [channels], as of a topology. delay: int64 [channels], ticks; ratio:
    int64 [channels], ticks of a byte times 2**RATIO_BITS. rate: float64 [channels], capacity, at most that of a host.
    alike: whether all have the same delay and ratio.
    """

    out_start: Ints
    dst: Ints
    delay: Ints
    ratio: Ints
    rate: Floats
    alike: bool


class HostLinks(NamedTuple):
    """The channels of hosts: ticks of a byte times 2**RATIO_BITS, and the delay to and from a switch.

    The delays do not include the ``access_delay`` of a host.
    """

    ratio: int
    delay_in: int
    delay_out: int


def channels_of(topology: Topology, delay: Ints, ratio: Ints) -> tuple[Channels, HostLinks]:
    """The channels between switches, and those of hosts.

    Parameters
    ----------
    topology: the network.
    delay, ratio: int64 [links], as of a :class:`~flitlab.models.transport.fabric.SpraySession`.
    """
    count = topology.channels
    between = delay[:count], ratio[:count]
    alike = all(len(np.unique(values)) <= 1 for values in between)
    rate = np.minimum(topology.capacity, topology.host_capacity)
    channels = Channels(topology.out_start.astype(np.int64), topology.dst.astype(np.int64), *between, rate, alike)
    own = topology.access_delay
    return channels, HostLinks(int(ratio[-1]), int(delay[count] - own[0]), int(delay[-1] - own[-1]))


class _Packets(NamedTuple):
    """Switches of packets, and their bytes: int64 [packets]."""

    src_switch: Ints
    dst_switch: Ints
    size: Ints


class _Choice(NamedTuple):
    """Which path counts: the slowest, or the fastest, of those without a channel below ``least_rate``."""

    least_rate: float
    slowest: bool


class _DepthFirst(NamedTuple):
    """Scratch of a depth-first search along next hops.

    ticks, known: int64 [switches], ticks to the destination, valid where ``known`` is the number of the search. stack:
    int64 [switches]. rest: a row of a table of port sets.
    """

    ticks: Ints
    known: Ints
    stack: Ints
    rest: Masks


@kernel
def crossing_ticks(n: Channels, channel: Int, size: Int) -> int:
    """Ticks of a packet over a channel.

    Parameters
    ----------
    n: the channels.
    channel: the channel.
    size: bytes of the packet.
    """
    return np.int64(n.delay[channel] + service_ticks(n.ratio[channel], size))


@kernel
def _better(best: Int, ticks: Int, choice: _Choice) -> int:
    if best < 0:
        return np.int64(ticks)
    return np.int64(max(best, ticks) if choice.slowest else min(best, ticks))


@device_function
def _over_paths(r: Tables, n: Channels, src_switch: Int, dst_switch: Int, size: Int, choice: _Choice) -> int:
    """Ticks over the whole paths of a switch pair, -1: there is none."""
    pair, best = src_switch * r.switches + dst_switch, np.int64(-1)
    for path in range(r.pair_start[pair], r.pair_start[pair + 1]):
        switch, ticks = np.int64(src_switch), np.int64(0)
        for index in range(r.path_start[path], r.path_start[path + 1]):
            channel = n.out_start[switch] + np.int64(r.path_port[index])
            if n.rate[channel] < choice.least_rate:
                ticks = np.int64(-1)
                break
            ticks += crossing_ticks(n, channel, size)
            switch = n.dst[channel]
        if ticks >= 0:
            best = np.int64(_better(best, ticks, choice))
    return best


@device_function
def _over_next_hops(
    r: Tables,
    n: Channels,
    src_switch: Int,
    dst_switch: Int,
    size: Int,
    choice: _Choice,
    search: _DepthFirst,
    stamp: Int,
) -> int:
    """Ticks over next hops from a switch to another, -1: there is no path. stamp: number of the search."""
    ticks, known, stack, rest = search
    if known[dst_switch] != stamp:
        known[dst_switch], ticks[dst_switch] = stamp, 0
    if known[src_switch] == stamp:
        return np.int64(ticks[src_switch])
    depth = np.int64(-1)
    switch = np.int64(src_switch)
    while True:
        if known[switch] != stamp:
            known[switch], ticks[switch] = stamp, -1
            ports = next_hops(r, np.int64(0), np.int64(0), switch, dst_switch)
            if n.alike and not is_empty(ports):
                ports = with_port(empty_set(ports), lowest(ports))
            depth += 1
            stack[depth] = switch
            set_ports(rest, depth, ports)
        ports = ports_at(rest, depth)
        if is_empty(ports):
            if depth == 0:
                return np.int64(ticks[src_switch])
            depth -= 1
            switch = stack[depth]
            continue
        channel = n.out_start[switch] + lowest(ports)
        after = n.dst[channel]
        if n.rate[channel] >= choice.least_rate and known[after] != stamp:
            switch = after
            continue
        set_ports(rest, depth, without_lowest(ports))
        if n.rate[channel] >= choice.least_rate and ticks[after] >= 0:
            ticks[switch] = _better(ticks[switch], ticks[after] + crossing_ticks(n, channel, size), choice)


@njit
def _fill(
    r: Tables, n: Channels, packets: _Packets, order: Ints, choice: _Choice, rest: Masks, packet_ticks: Ints
) -> None:  # fmt: skip
    """Fill ``packet_ticks``, -1 where no path has the rate.

    order: packets by destination and size. rest: as of :class:`_DepthFirst`.
    """
    switches, stamp, before = len(n.out_start) - 1, np.int64(0), np.int64(-1)
    ticks, known, stack = np.zeros(switches, np.int64), np.zeros(switches, np.int64), np.zeros(switches, np.int64)
    search = _DepthFirst(ticks, known, stack, rest)
    for i in order:
        s, t, size = packets.src_switch[i], packets.dst_switch[i], packets.size[i]
        if s == t:
            packet_ticks[i] = 0
        elif r.form == RouteForm.PATHS:
            packet_ticks[i] = _over_paths(r, n, s, t, size, choice)
        else:
            if before < 0 or packets.dst_switch[before] != t or packets.size[before] != size:
                stamp += 1
            before = i
            packet_ticks[i] = _over_next_hops(r, n, s, t, size, choice, search, stamp)


def fastest(r: Tables, n: Channels, src_switch: Ints, dst_switch: Ints, size: Ints) -> Ints:
    """Ticks of packets over the fastest path of each, int64 [packets].

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    n: the channels.
    src_switch, dst_switch: int64 [packets].
    size: int64 [packets], bytes.
    """
    packet_ticks = np.zeros(len(src_switch), np.int64)
    order, rest = np.lexsort((size, dst_switch)), empty_row(r.ports, len(n.out_start) - 1)
    _fill(r, n, _Packets(src_switch, dst_switch, size), order, _Choice(0.0, False), rest, packet_ticks)
    return packet_ticks


def slowest(r: Tables, n: Channels, src_switch: Ints, dst_switch: Ints, size: int) -> Ints:
    """Ticks of packets over the slowest path of each that is not narrow, int64 [packets].

    A path is narrow if one of its channels is slower than all channels of another path of the pair, and than hosts.
    Routing and transports do not know such exceptions.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    n: the channels.
    src_switch, dst_switch: int64 [packets].
    size: bytes of each packet.
    """
    packet_ticks, unreached = np.full(len(src_switch), -1, np.int64), np.arange(len(src_switch))
    packets = _Packets(src_switch, dst_switch, np.full(len(src_switch), size))
    rest = empty_row(r.ports, len(n.out_start) - 1)
    for least_rate in np.unique(n.rate)[::-1].tolist() or [0.0]:
        order = unreached[np.argsort(dst_switch[unreached], kind="stable")]
        _fill(r, n, packets, order, _Choice(least_rate, True), rest, packet_ticks)
        unreached = unreached[packet_ticks[unreached] < 0]
        if not len(unreached):
            break
    return packet_ticks


def equal_hops(topology: Topology, routes: Routes, n: Channels) -> np.ndarray | None:
    """The distances between switches, if they determine the time of every path; else None.

    They do where routes are shortest paths over equal channels. Integers [switches, switches].

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    n: the channels.
    """
    if not n.alike or routes.form == RouteForm.PATHS:
        return None
    hops = distances(topology)
    return hops if routes.hops_max <= int(hops.max(initial=0)) else None


def by_distance(hops: np.ndarray, n: Channels, size: Ints | int) -> Ints:
    """Ticks of packets over equal channels, int64 [packets].

    Parameters
    ----------
    hops: integers [packets].
    n: the channels.
    size: bytes, int64 [packets] or one number.
    """
    if not len(n.dst):
        return np.zeros(len(hops), np.int64)
    ticks: Ints = hops.astype(np.int64) * (n.delay[0] + interpreted(service_ticks)(n.ratio[0], size))
    return ticks


def longest_round_trip(
    topology: Topology, routes: Routes, channels: Channels, host: HostLinks, hops: np.ndarray | None, size: int,
    answer: int,
) -> int:  # fmt: skip
    """The longest zero-load round trip, ticks.

    It is the maximum over pairs of hosts and their paths: a packet of ``size`` bytes goes forward and one of ``answer``
    bytes back, each by the channels of its own direction. Narrow paths (:func:`slowest`) do not count.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    channels: the channels between switches.
    host: the channels of hosts.
    hops: from :func:`equal_hops`.
    size: bytes of the forward packet.
    answer: bytes of the packet back.
    """
    at_hosts = 2 * (host.delay_in + host.delay_out)
    at_hosts += sum(2 * int(service_ticks(host.ratio, length)) for length in (size, answer))
    ends, access = topology.src_switches, _Access.of(topology)
    if hops is not None:
        table = hops[np.ix_(ends, ends)]
        trips = (
            by_distance(forward_hops, channels, size) + by_distance(back, channels, answer) + access.trips(end, ends)
            for end, forward_hops, back in zip(ends, table, table.T, strict=True)
        )
        return at_hosts + max(int(trip.max()) for trip in trips)
    tables, most = routes.tables(topology), 0
    step = max(1, _PAIRS // len(ends))
    for first in range(0, len(ends), step):
        batch = ends[first : first + step]
        src_switch, dst_switch = np.repeat(ends, len(batch)), np.tile(batch, len(ends))
        trip = slowest(tables, channels, src_switch, dst_switch, size) + slowest(
            tables, channels, dst_switch, src_switch, answer
        )
        most = max(most, int((trip + access.trips(src_switch, dst_switch)).max(initial=0)))
    return at_hosts + most


class _Access(NamedTuple):
    """The largest and second largest ``access_delay`` of the hosts of each switch, int64 [switches], 0: no host."""

    largest: Ints
    second: Ints

    @classmethod
    def of(cls, topology: Topology) -> "_Access":
        largest, second = np.zeros(topology.switches, np.int64), np.zeros(topology.switches, np.int64)
        order = np.argsort(topology.access_delay, kind="stable")
        switch, delay = topology.host_switch[order], topology.access_delay[order]
        largest[switch] = delay  # of equal indices the last one counts
        last = np.zeros(topology.hosts, bool)
        last[topology.hosts - 1 - np.unique(switch[::-1], return_index=True)[1]] = True
        second[switch[~last]] = delay[~last]
        return cls(largest, second)

    def trips(self, src_switch: Int | Ints, dst_switch: Ints) -> Ints:
        """Ticks of a round trip over the host channels between the farthest hosts of switches, int64 [pairs]."""
        other = np.where(src_switch == dst_switch, self.second[dst_switch], self.largest[dst_switch])
        trip_ticks: Ints = 2 * (self.largest[src_switch] + other)
        return trip_ticks
