# SPDX-License-Identifier: Apache-2.0
"""Uncontended completion times of sprayed flows: the denominators of slowdowns."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Floats, Int, Ints
from flitlab.models.jit import device_function, kernel, njit
from flitlab.models.rules.bits import is_empty, lowest, popcount, without_lowest
from flitlab.models.rules.datagram import service_ticks
from flitlab.models.rules.route import next_hops
from flitlab.models.rules.spray.layout import Credit, Rules
from flitlab.models.rules.spray.ports import AtSwitch, flow_key, hashed_port, make_salts, spray_route
from flitlab.models.rules.spray.spread import first_entropy
from flitlab.models.rules.tables import RouteForm, Tables
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.zero_load import (
    Channels,
    HostLinks,
    by_distance,
    channels_of,
    crossing_ticks,
    fastest,
)

_FEW = 32
"""Packets of the longest flow that is followed packet by packet."""


class Network(NamedTuple):
    """The routes and links that packets take.

    salts: int64 [switches + 1], of hashes (:func:`~flitlab.models.rules.spray.ports.make_salts`). channels: between
    switches; host: the links of hosts.
    """

    routes: Tables
    salts: Ints
    channels: Channels
    host: HostLinks


class SentFlows(NamedTuple):
    """What flows send.

    src_switch, dst_switch: int64 [flows], the switches of their hosts. packets: int64 [flows]. last: int64 [flows],
    bytes of the last packet. gap: int64 [flows], ticks between packets at the sender, 0 unless it is paced.
    acknowledges: bool [flows], whether the receiver acknowledges.
    """

    src_switch: Ints
    dst_switch: Ints
    packets: Ints
    last: Ints
    gap: Ints
    acknowledges: Bools


class PathTimes(NamedTuple):
    """The paths that the packets of flows may take, and the ticks of the fastest.

    single_forward, single_back: bool [flows], whether data, and control packets, keep the path of entropy value 0.
    access: int64 [flows], the ``access_delay`` of both hosts together. full, last, back: int64 [flows], ticks between
    switches of a full packet, of the last one and of a control packet.
    """

    single_forward: Bools
    single_back: Bools
    access: Ints
    full: Ints
    last: Ints
    back: Ints


def uncontended_ticks(session: SpraySession) -> Floats:
    """The least ticks from a flow's start until its sender knows that all of it has arrived: float64 [flows].

    Every packet takes the fastest path that it may, forward and back, and waits only for packets of its own flow, never
    for window, credit or another flow. This is the exact uncontended time where all of its paths take equally long, and
    neither window nor credit limits it. Where paths differ it is a lower bound.

    Parameters
    ----------
    session: the session.
    """
    topology, flows, rules, network = session.topology, session.flows, session.rules, network_of(session)
    src_switch, dst_switch = topology.host_switch[flows.source], topology.host_switch[flows.destination]
    one = np.array([each.paths == 1 for each in session.transports])[session.flows.kinds]
    path_times = PathTimes(
        one & (session.port_choice.policy == AtSwitch.ECMP),
        one & (session.port_choice.policy in (AtSwitch.ECMP, AtSwitch.ROUND_ROBIN, AtSwitch.ADAPTIVE)),
        topology.access_delay[flows.source] + topology.access_delay[flows.destination],
        *_times(session, network.channels, src_switch, dst_switch),
    )
    gap = np.array([each.gap if each.credit == Credit.PACED else 0 for each in session.transports])[session.flows.kinds]
    sent = SentFlows(src_switch, dst_switch, flows.packets, flows.last_size, gap, session.acknowledges)
    ticks, may_take_longer = np.zeros(len(src_switch), np.int64), np.zeros(len(src_switch), bool)
    _fill(network, sent, path_times, rules.mtu, rules.control, ticks, may_take_longer)
    if session.port_choice.policy == AtSwitch.ECMP:
        for kind, each in enumerate(session.transports):
            if len(selected := np.flatnonzero(may_take_longer & (session.flows.kinds == kind))):
                _follow(each, network, sent, path_times, selected, ticks)
    return ticks.astype(float)


def network_of(session: SpraySession) -> Network:
    """The routes and links of a session, at the start of its run.

    Parameters
    ----------
    session: the session.
    """
    channels, host = channels_of(session.topology, session.delay, session.ratio)
    salts = np.zeros(session.topology.switches + 1, np.int64)
    make_salts(session.seed, salts)
    return Network(session.routes, salts, channels, host)


def _times(session: SpraySession, n: Channels, src_switch: Ints, dst_switch: Ints) -> tuple[Ints, Ints, Ints]:
    """Ticks over the fastest paths of the flows between these switches, as in :class:`PathTimes`."""
    last, mtu, control = session.flows.last_size, session.rules.mtu, session.rules.control
    if session.hops is not None:
        forward_hops, back = session.hops[src_switch, dst_switch], session.hops[dst_switch, src_switch]
        return by_distance(forward_hops, n, mtu), by_distance(forward_hops, n, last), by_distance(back, n, control)
    same = np.ones(len(src_switch), np.int64)
    return (
        fastest(session.routes, n, src_switch, dst_switch, same * mtu),
        fastest(session.routes, n, src_switch, dst_switch, last),
        fastest(session.routes, n, dst_switch, src_switch, same * control),
    )


@device_function
def walk_channels(
    network: Network, src_switch: Int, dst_switch: Int, key: Int, paths: Int, entropy: Int, path: Ints
) -> tuple[int, bool]:
    """Write the channels of a path into ``path``. Returns their number, and whether the switch pair has other paths.

    paths, entropy: entropy values of the flow, and that of the packet, which selects the path.
    """
    r, salts, n = network.routes, network.salts, network.channels
    switch, hops, has_others = np.int64(src_switch), np.int64(0), False
    if switch == dst_switch:
        return hops, False
    if r.form == RouteForm.PATHS:
        pair = src_switch * r.switches + dst_switch
        chosen = np.int64(r.pair_start[pair])
        has_others = r.pair_start[pair + 1] - chosen > 1
        chosen = np.int64(spray_route(r, salts, paths, src_switch, dst_switch, key, entropy))
        for index in range(r.path_start[chosen], r.path_start[chosen + 1]):
            path[hops] = n.out_start[switch] + np.int64(r.path_port[index])
            switch = n.dst[path[hops]]
            hops += 1
        return hops, has_others
    while switch != dst_switch:
        ports = next_hops(r, np.int64(0), hops, switch, dst_switch)
        has_others |= popcount(ports) > 1
        path[hops] = n.out_start[switch] + hashed_port(r, salts, ports, switch, dst_switch, key, entropy)
        switch = n.dst[path[hops]]
        hops += 1
    return hops, has_others


@device_function
def _in_line(network: Network, path: Ints, hops: Int, packets: Int, full: Int, last: Int, gap: Int) -> int:
    """Ticks of all packets of a flow along one path, first come, first served.

    full, last: bytes of each packet before the last, and of the last; gap: ticks between packets at the sender.
    """
    n, host, earlier = network.channels, network.host, packets - 1
    first = np.int64(service_ticks(host.ratio, full))
    period = max(gap, first)
    last_end, delay = earlier * period + np.int64(service_ticks(host.ratio, last)), np.int64(host.delay_in)
    for hop in range(hops + 1):
        ratio = n.ratio[path[hop]] if hop < hops else np.int64(host.ratio)
        service = np.int64(service_ticks(ratio, full))
        first += delay + service
        period = max(period, service)
        ready = last_end + delay
        if earlier > 0:
            ready = max(ready, first + (earlier - 1) * period)
        last_end = ready + np.int64(service_ticks(ratio, last))
        delay = np.int64(n.delay[path[hop]] if hop < hops else host.delay_out)
    return last_end + delay


@device_function
def _first_hops(network: Network, src_switch: Int, dst_switch: Int, channels: Ints) -> int:
    """Write the channels by which packets may leave their first switch into ``channels``. Returns their number."""
    r, n, count = network.routes, network.channels, np.int64(0)
    if r.form != RouteForm.PATHS:
        ports = next_hops(r, np.int64(0), np.int64(0), src_switch, dst_switch)
        while not is_empty(ports):
            channels[count] = n.out_start[src_switch] + lowest(ports)
            ports = without_lowest(ports)
            count += 1
        return count
    pair = src_switch * r.switches + dst_switch
    for chosen in range(r.pair_start[pair], r.pair_start[pair + 1]):
        channel = n.out_start[src_switch] + np.int64(r.path_port[r.path_start[chosen]])
        index = np.int64(0)
        while index < count and channels[index] != channel:
            index += 1
        if index == count:
            channels[count] = channel
            count += 1
    return count


@device_function
def _through(n: Channels, channels: Ints, packets: Int, size: Int, apart: Int) -> tuple[int, int]:
    """Ticks in which parallel channels can send some packets, and ticks of one packet on the slowest; 0: no delay.

    apart: ticks between arriving packets. Channels that carry that rate never delay them.
    """
    share, slowest, quickest = 0.0, np.int64(0), np.int64(1) << 60
    for channel in channels:
        service = np.int64(service_ticks(n.ratio[channel], size))
        share += 1.0 / float(service)
        slowest, quickest = max(slowest, service), min(quickest, service)
    if share * float(apart) >= 1.0:
        return np.int64(0), slowest
    low, high = np.int64(0), packets * quickest
    while low < high:
        middle, sent = (low + high) // 2, np.int64(0)
        for channel in channels:
            sent += middle // service_ticks(n.ratio[channel], size)
        if sent >= packets:
            high = middle
        else:
            low = middle + 1
    return low, slowest


@device_function
def _spread(
    network: Network, first_hops: Ints, over_full: Int, over_last: Int, packets: Int, full: Int, last: Int, gap: Int
) -> int:
    """Ticks below which packets that may take several paths cannot all arrive.

    over_full, over_last: ticks of a full packet and of the last one between switches. Others as of :func:`_in_line`.
    """
    host = network.host
    service, service_last = np.int64(service_ticks(host.ratio, full)), np.int64(service_ticks(host.ratio, last))
    period = max(gap, service)
    at_first = service + host.delay_in + over_full  # at the queue of the last channel
    at_last = (packets - 1) * period + service_last + host.delay_in + over_last
    end = at_last + service_last
    if packets > 1:
        full_ticks = (packets - 1) * service
        end = max(end, at_first + full_ticks, min(at_first, at_last) + full_ticks + service_last)
        end = max(end, at_first + (packets - 2) * period + service)
        count = packets if last == full else packets - 1
        ticks, slowest = _through(network.channels, first_hops, count, full, period)
        if ticks > 0:
            end = max(end, service + host.delay_in + ticks + over_full - slowest + service)
    return end + host.delay_out


@njit
def _fill(
    network: Network,
    flows: SentFlows,
    path_times: PathTimes,
    full: Int,
    control_bytes: Int,
    ticks: Ints,
    may_take_longer: Bools,
) -> None:
    """Compute ``ticks`` of every flow, and whether a short flow may take longer when uncontended.

    full, control_bytes: bytes of a full and of a control packet.
    """
    r, n, host = network.routes, network.channels, network.host
    path, none, one = np.zeros(max(len(n.out_start), 256), np.int64), np.int64(0), np.int64(1)
    for i in range(len(ticks)):
        src_switch, dst_switch = flows.src_switch[i], flows.dst_switch[i]
        packets, last, gap = flows.packets[i], flows.last[i], flows.gap[i]
        hops, has_others = walk_channels(network, src_switch, dst_switch, flow_key(i, False), one, none, path)
        in_line = _in_line(network, path, hops, packets, full, last, gap)
        if has_others and not path_times.single_forward[i]:
            count = _first_hops(network, src_switch, dst_switch, path)
            ticks[i] = _spread(network, path[:count], path_times.full[i], path_times.last[i], packets, full, last, gap)
            may_differ = not n.alike or r.form == RouteForm.PATHS
            may_take_longer[i] = packets <= _FEW and (in_line > ticks[i] or may_differ)
        else:
            ticks[i] = in_line
        ticks[i] += path_times.access[i]
        if not flows.acknowledges[i]:
            continue
        back = path_times.back[i]
        if path_times.single_back[i]:
            hops, _ = walk_channels(network, dst_switch, src_switch, flow_key(i, True), one, none, path)
            back = np.int64(_over(n, path, hops, control_bytes))
        ticks[i] += back + _host_ticks(host, control_bytes) + path_times.access[i]


@njit
def _follow(
    rules: Rules, network: Network, flows: SentFlows, path_times: PathTimes, selected: Ints, ticks: Ints
) -> None:
    """Raise ``ticks`` of the selected flows, of at most ``_FEW`` packets, to what the paths of their packets allow.

    Their packets choose paths before any feedback; other flows keep their ticks. A retransmission may take a faster
    path, and so limits the rise.
    """
    n, host = network.channels, network.host
    shape = (_FEW, len(n.out_start))
    path, begin, rest = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    hops = np.zeros(_FEW, np.int64)
    for i in selected:
        count, size, key = flows.packets[i], flows.last[i], flow_key(i, False)
        src_switch, dst_switch = flows.src_switch[i], flows.dst_switch[i]
        period = max(flows.gap[i], np.int64(service_ticks(host.ratio, rules.mtu)))
        answer = path_times.back[i] + _host_ticks(host, rules.control) + path_times.access[i]
        first_answer = path_times.full[i] + _host_ticks(host, rules.mtu) + path_times.access[i] + answer
        if flows.acknowledges[i] and (count - 1) * period >= first_answer:
            continue
        for number in range(count):
            entropy = first_entropy(rules, i, number)
            hops[number], _ = walk_channels(network, src_switch, dst_switch, key, rules.paths, entropy, path[number])
            path[number, hops[number]] = len(n.dst)
            length = size if number == count - 1 else np.int64(rules.mtu)
            begin[number, 0] = number * period + service_ticks(host.ratio, length) + host.delay_in
        _keep_order(network, hops, count, np.int64(rules.mtu), size, path, begin, rest)
        total = np.int64(_all_arrive(network, hops, count, np.int64(rules.mtu), size, path, begin, rest))
        total += path_times.access[i]
        if flows.acknowledges[i]:
            back = np.int64(0)  # any packet may be the last to arrive
            for number in range(count):
                entropy = first_entropy(rules, i, number)
                channels, _ = walk_channels(
                    network, dst_switch, src_switch, flow_key(i, True), rules.paths, entropy, path[0]
                )
                over = np.int64(_over(n, path[0], channels, rules.control))
                back = over if number == 0 else min(back, over)
            total += back + _host_ticks(host, rules.control) + path_times.access[i]
            # earliest retransmission of a packet: trimmed at once, or after its timeout
            again = min(answer + _host_ticks(host, rules.control) + path_times.access[i], np.int64(rules.timeout))
            quickest = path_times.last[i] + _host_ticks(host, size) + path_times.access[i] + answer
            total = min(total, again + quickest)
        ticks[i] = max(ticks[i], total)


@device_function
def _over(n: Channels, path: Ints, hops: Int, size: Int) -> int:
    """Ticks of a packet over the first ``hops`` channels of a path."""
    ticks = np.int64(0)
    for hop in range(hops):
        ticks += crossing_ticks(n, path[hop], size)
    return ticks


@kernel
def _host_ticks(host: HostLinks, size: Int) -> int:
    """Ticks of a packet over both host channels, without their ``access_delay``."""
    return np.int64(2 * service_ticks(host.ratio, size) + host.delay_in + host.delay_out)


@kernel
def _service(network: Network, channel: Int, size: Int) -> int:
    """Ticks in which a channel sends a packet; after those between switches comes that of the host."""
    n, host = network.channels, network.host
    return np.int64(service_ticks(host.ratio if channel == len(n.dst) else n.ratio[channel], size))


@kernel
def _delay(network: Network, channel: Int) -> int:
    """Ticks from a channel, as of :func:`_service`, to the next queue or the host."""
    n, host = network.channels, network.host
    return np.int64(host.delay_out if channel == len(n.dst) else n.delay[channel])


@device_function
def _keep_order(
    network: Network, hops: Ints, packets: Int, full: Int, last: Int, path: Ints, begin: Ints, rest: Ints
) -> None:
    """Compute the least ticks until each channel begins to send each packet of a flow, and those after it has.

    A packet waits only for those that precede it in the same queues since their host.

    full, last: bytes of each packet before the last, and of the last. path: int64 [packets, hops + 1], channels, of
    which the last is that of the host. begin: int64 [packets, hops + 1], whose first column has the arrival at the
    first queue. rest: int64 [packets, hops + 1], from the end of the packet at the channel to its arrival at the host.
    """
    for number in range(packets):
        size, before, ticks = last if number == packets - 1 else full, number - 1, np.int64(0)
        for hop in range(hops[number], -1, -1):
            ticks += _delay(network, path[number, hop])
            rest[number, hop] = ticks
            ticks += _service(network, path[number, hop], size)
        for hop in range(hops[number] + 1):
            channel = path[number, hop]
            if hop > 0:
                passed = path[number, hop - 1]
                begin[number, hop] = begin[number, hop - 1] + _service(network, passed, size) + _delay(network, passed)
            while before >= 0 and _shared(path[before], path[number], hop + 1) <= hop:
                before -= 1
            if before >= 0:
                begin[number, hop] = max(begin[number, hop], begin[before, hop] + _service(network, channel, full))


@kernel
def _shared(path: Ints, other: Ints, most: Int) -> int:
    """The channels with which both paths begin, at most ``most``."""
    count = np.int64(0)
    while count < most and path[count] == other[count]:
        count += 1
    return count


@device_function
def _all_arrive(
    network: Network, hops: Ints, packets: Int, full: Int, last: Int, path: Ints, begin: Ints, rest: Ints
) -> int:
    """Ticks below which all packets of a flow cannot arrive, each over its own path: arguments of :func:`_keep_order`.

    A channel sends the packets that cross it one after the other, from the earliest ``begin`` on; after the last one
    comes at least the shortest ``rest``. This holds for every group of successive packets, in whatever order they come.
    """
    most = np.int64(0)
    for final in range(packets):
        for hop in range(hops[final] + 1):
            channel, busy = path[final, hop], np.int64(0)
            earliest, after = begin[final, hop], rest[final, hop]
            for number in range(final, -1, -1):
                at = np.int64(0)
                while at <= hops[number] and path[number, at] != channel:
                    at += 1
                if at > hops[number]:
                    continue
                busy += _service(network, channel, last if number == packets - 1 else full)
                earliest, after = min(earliest, begin[number, at]), min(after, rest[number, at])
                most = max(most, earliest + busy + after)
    return most
