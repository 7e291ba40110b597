# SPDX-License-Identifier: Apache-2.0
"""What a message is at flow level: its size, its share of every channel, its latency. The same for both engines."""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.application.messages import flits_of, packets_of
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Int, Ints
from flitlab.models.jit import device_function, inline, kernel
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.route import (
    at_destination,
    choose_route,
    intermediate_of,
    next_hops,
    next_port,
    path_share,
    port_part,
)
from flitlab.models.rules.tables import HASH, PATHS, RANDOM, VIA, Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.models.timeline.steps import steps_of

RESOLUTION = 1024
"""Time units of a tick."""

DRAWS = 16
"""Intermediate switches of a message of as many packets or more (VIA, drawn by packet)."""

DEAD = 2.0**-200
"""The capacity of a channel that does not work, in flits a tick: so little that what shares it does not go at all, and
not 0, as rates are compared by their ratios."""

_ROUND = 2.0**21 + 1.0
_SLOWEST = 2.0**-100  # rates below it are those of messages over channels that do not work
_STAGES = 4


class Network(NamedTuple):
    """The constants of a run of mode flow: the network, its routes and how messages are cut.

    capacity: float64 [channels + 2 * hosts], flits a tick, of the channels between switches, from the hosts, and to
    them. link: int64 [channels + 2 * hosts], the channel whose capacity each uses: its own, or, half duplex, that of
    the first of the two channels of its link. hop: float64 [channels], ticks by which each delays. ends: ticks by which
    all else does, less the one in which a flit passes. access: int64 [hosts], ticks by which the channels from and to
    each host delay besides. packet_bytes ..: see
    :class:`~flitlab.models.application.messages.Messages`.
    """

    seed: int
    hosts: int
    channels: int
    routes: Tables
    host_switch: Ints
    out_start: Ints
    dst: Ints
    capacity: Floats
    link: Ints
    hop: Floats
    ends: float
    access: Ints
    packet_bytes: int
    flit_bytes: int
    header_flits: int
    packet_flits: int
    whole: bool


class NetworkStep(NamedTuple):
    """What is so of a network from a tick on.

    capacity: float64 [channels + 2 * hosts], as in :class:`Network`, ``DEAD`` of channels that do not work. routes:
    that the routing learns of, None where it learns nothing.
    """

    tick: int
    capacity: Floats
    routes: Tables | None


class Way(NamedTuple):
    """The channels that a message takes, in the order in which they were met, and scratch memory.

    channel: int64 [all channels]. share: float64 [all channels], by channel, 0 of all others. weight: float64
    [2, switches], switches: int64 [2, switches], how much is where before and after a hop.
    """

    channel: Ints
    share: Floats
    weight: Floats
    switches: Ints


class Flowing(NamedTuple):
    """Messages that have not left their sources, in the order of their sends.

    send: int64 [messages]. rate: float64 [messages], flits a tick. Of every flit, message i has share[j] on channel[j],
    j from start[i] to start[i + 1] - 1 (channels as in ``Network.capacity``).
    """

    send: Ints
    rate: Floats
    start: Ints
    channel: Ints
    share: Floats


def make_network(scenario: Scenario[Flow, Workload], seed: int) -> Network:
    """The network of a scenario. Raises ``ValueError`` where its routing decides by what it meets on the way."""
    topology, model, routes = scenario.topology, scenario.switching, scenario.routes
    if routes.deflection or routes.select not in (RANDOM, HASH):
        raise ValueError(
            f"routing {routes.kind!r} decides by the congestion that packets meet, which flows have none of; "
            "mode 'flow' takes a routing that draws its ways (select: random or hash)"
        )
    messages = scenario.work.messages
    between, to_hosts = topology.channels, topology.channels + topology.hosts
    link = np.arange(to_hosts + topology.hosts)
    if model.half_duplex:
        link[:between] = np.where(topology.reverse >= 0, np.minimum(link[:between], topology.reverse), link[:between])
    if model.half_duplex_hosts:
        link[to_hosts:] = link[between:to_hosts]
    host_capacity = np.full(2 * topology.hosts, topology.host_capacity)
    return Network(
        seed=seed,
        hosts=topology.hosts,
        channels=topology.channels,
        routes=routes.tables(topology),
        host_switch=topology.host_switch,
        out_start=topology.out_start,
        dst=topology.dst,
        capacity=np.concatenate([topology.capacity, host_capacity]),
        link=link,
        hop=np.asarray(topology.delay + float(model.header + model.switch + model.link), np.float64),
        ends=float(model.injection + model.header + model.switch + model.ejection - 1),
        access=topology.access_delay,
        packet_bytes=messages.packet_bytes,
        flit_bytes=messages.flit_bytes,
        header_flits=messages.header_flits,
        packet_flits=messages.packet_flits,
        whole=messages.whole,
    )


def make_steps(scenario: Scenario[Flow, Workload], network: Network) -> tuple[NetworkStep, ...]:
    """What happens to the network of a scenario, in the order of the ticks."""
    topology, found = scenario.topology, []
    for step in steps_of(scenario.timeline, scenario.routes):
        capacity = network.capacity.copy()
        capacity[: topology.channels] = np.where(step.works, topology.capacity * step.rate, DEAD)
        routes = None if step.routes is None else step.routes.tables(topology)
        found.append(NetworkStep(step.tick, capacity, routes))
    return tuple(found)


def comes_more(steps: tuple[NetworkStep, ...], now: int) -> bool:
    """Whether something happens to the network at a time, in ticks / ``RESOLUTION``, or after it."""
    return bool(steps) and steps[-1].tick * RESOLUTION >= now


def make_way(network: Network, switches: int) -> Way:
    """Make room for ways, with none in it yet; switches: of the topology."""
    room = len(network.capacity)
    return Way(
        channel=np.zeros(room, np.int64),
        share=np.zeros(room),
        weight=np.zeros((2, switches)),
        switches=np.zeros((2, switches), np.int64),
    )


@inline
def flits_in(n: Network, size: int) -> int:
    """Count the flits of all packets of a message of ``size`` bytes."""
    last = flits_of(size, 1, n.packet_bytes, n.flit_bytes, n.header_flits, n.packet_flits, n.whole)
    return (packets_of(size, n.packet_bytes) - 1) * n.packet_flits + last


@kernel
def steady(rate: float) -> float:
    """Round a rate to the nearest 32 bits: those below depend on the order of the sums in it (Dekker 1971).

    It is 0 for messages over channels that do not work.
    """
    if rate < _SLOWEST:
        return 0.0
    high = rate * _ROUND
    return high - (high - rate)


@inline
def _take(w: Way, count: Int, channel: Int, share: float) -> Int:
    """Add a share of the message to a channel; how many channels the way then has."""
    if w.share[channel] == 0.0:
        w.channel[count] = channel
        count += 1
    w.share[channel] += share
    return count


@device_function
def _walk(n: Network, w: Way, count: Int, way: Int, share: float, source: Int, destination: Int, sequence: Int) -> Int:
    """Lead a share of the message along one path; how many channels the way then has."""
    here, target, hop = n.host_switch[source], n.host_switch[destination], 0
    while not at_destination(n.routes, way, hop, here, target):
        port = next_port(n.routes, way, n.seed, here, target, source, destination, n.hosts, sequence, hop)
        channel = n.out_start[here] + port
        count = _take(w, count, n.link[channel], share)
        here = n.dst[channel]
        hop += 1
    return count


@device_function
def _spread(n: Network, w: Way, count: Int, origin: Int, target: Int, share: float) -> Int:
    """Lead a share of the message over all next hops to ``target``, in the parts that each has at its switch."""
    now, here_count = 0, 1
    w.switches[0, 0] = origin
    w.weight[0, origin] = share
    while True:
        after, there_count = 1 - now, 0
        for i in range(here_count):
            here = w.switches[now, i]
            whole = w.weight[now, here]
            w.weight[now, here] = 0.0
            if here == target:
                continue
            ports = next_hops(n.routes, np.int64(0), 0, here, target)
            left = ports
            while left != 0:
                port = lowest(left)
                channel = n.out_start[here] + port
                left &= left - np.uint64(1)
                part = port_part(whole, n.routes.port_threshold, ports, target, here, port)
                count = _take(w, count, n.link[channel], part)
                there = n.dst[channel]
                if w.weight[after, there] == 0.0:
                    w.switches[after, there_count] = there
                    there_count += 1
                w.weight[after, there] += part
        if there_count == 0:
            return count
        now, here_count = after, there_count


@inline
def _choose(n: Network, source: Int, destination: Int, sequence: Int) -> Any:
    """Draw the way of a packet of a message between two hosts."""
    origin, target = n.host_switch[source], n.host_switch[destination]
    return choose_route(n.routes, n.seed, source, destination, n.hosts, sequence, origin, target)


@device_function
def find_way(n: Network, w: Way, source: Int, destination: Int, send: Int, stage: Int, packets: Int) -> tuple[Int, Int]:
    """Find the channels and shares of a message, put into ``w``; how many channels, and its latency in time units.

    source, destination: hosts. send, stage: the operation, and what of its message is under way. packets: of it.
    Where packets draw their ways, the shares are those that they have on average, but that of intermediate switches
    there are as many as packets, ``DRAWS`` at most. The latency is that of a flit on the average way, less a tick.
    """
    count: Int
    r, count = n.routes, np.int64(0)
    origin, target = n.host_switch[source], n.host_switch[destination]
    first = (send * _STAGES + stage) * DRAWS
    if r.rule == HASH:
        if origin != target or r.form == VIA:
            count = _walk(n, w, count, _choose(n, source, destination, 0), 1.0, source, destination, 0)
    elif r.form == PATHS:
        pair = origin * r.switches + target
        begin, end = r.pair_start[pair], r.pair_start[pair + 1]
        if origin != target:
            for way in range(begin, end):
                count = _walk(n, w, count, way, path_share(r, way, begin, end), source, destination, 0)
    elif r.form == VIA:
        draws = min(packets, DRAWS)
        for k in range(draws):
            middle = intermediate_of(_choose(n, source, destination, first + k))
            count = _spread(n, w, count, origin, middle, 1.0 / draws)
            count = _spread(n, w, count, middle, target, 1.0 / draws)
    else:
        count = _spread(n, w, count, origin, target, 1.0)
    ticks = n.ends + n.access[source] + n.access[destination]
    for i in range(count):
        ticks += w.share[w.channel[i]] * n.hop[w.channel[i]]
    count = _take(w, count, n.link[np.int64(n.channels + source)], 1.0)
    count = _take(w, count, n.link[np.int64(n.channels + n.hosts + destination)], 1.0)
    return count, np.int64(np.floor(ticks * RESOLUTION + 0.5))


@kernel
def leave_way(w: Way, count: Int) -> None:
    """Empty ``w``, which has a way of so many channels, for the next one."""
    for i in range(count):
        w.share[w.channel[i]] = 0.0
