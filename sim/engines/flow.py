# SPDX-License-Identifier: Apache-2.0
"""A message at flow level: its size, its share of every channel and its latency. Both engines use this model."""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.messages import flits_of, packets_of
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Int, Ints
from flitlab.models.jit import device_function, inline, kernel
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.route import (
    at_destination,
    choose_route,
    intermediate_of,
    next_hops,
    next_port,
    path_share,
    port_part,
)
from flitlab.models.rules.tables import RouteForm, Selection, Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.models.timeline.network_changes import network_changes

RESOLUTION = 1024
"""Time units of a tick."""

DRAWS = 16
"""The most intermediate switches that one message draws (VIA, drawn by packet)."""

FAILED_CAPACITY = 2.0**-200
"""Capacity of a failed channel in flits/tick: messages over it stall. Not 0, since rates are compared by ratio."""

_ROUND = 2.0**21 + 1.0
_SLOWEST = 2.0**-100  # rates below it are those of messages over channels that do not work
_STAGES = 4


class FlowConstants(NamedTuple):
    """Constants of a run of mode flow: the network, its routes and the packet format of messages.

    capacity: float64 [channels + 2 * hosts], flits/tick: channels between switches, then injection channels, then
    ejection channels. link: int64 [channels + 2 * hosts], the channel whose capacity each channel uses: itself, or,
    half duplex, the first of the two channels of its link. hop: float64 [channels], delay in ticks. end_delay: delay of
    injection, ejection and switch in ticks, less the tick of the flit itself. access: int64 [hosts], extra delay of the
    channels from and to each host in ticks. packet_bytes ..: see
    :class:`~flitlab.models.application.messages.Messages`.
    """

    seed: int
    hosts: int
    channels: int
    routes: Tables
    host_switch: Ints
    ejection_switch: Ints
    out_start: Ints
    dst: Ints
    capacity: Floats
    link: Ints
    hop: Floats
    end_delay: float
    access: Ints
    packet_bytes: int
    flit_bytes: int
    header_flits: int
    packet_flits: int
    whole: bool


class FlowStep(NamedTuple):
    """The state of the network from a tick of a timeline on.

    capacity: float64 [channels + 2 * hosts], as in :class:`FlowConstants`; ``FAILED_CAPACITY`` for failed channels.
    routes: the updated routes; None if the routing does not react.
    """

    tick: int
    capacity: Floats
    routes: Tables | None


class ChannelShares(NamedTuple):
    """The channels of one message with the share that each carries, and scratch memory to compute them.

    channel: int64 [channels + 2 * hosts], the channels used, in order of discovery. share: float64 [channels + 2 *
    hosts], flits on a channel per flit of the message, by channel; 0 for unused channels. weight: float64 [2,
    switches], switches: int64 [2, switches]: the shares at the switches before and after a hop.
    """

    channel: Ints
    share: Floats
    weight: Floats
    switches: Ints


class Flowing(NamedTuple):
    """Messages that have not left their sources, in the order of their sends.

    send: int64 [messages], the operations. rate: float64 [messages], flits/tick. start: int64 [messages + 1]: message i
    uses channel[j] with share[j] for start[i] <= j < start[i + 1]; channels as in ``FlowConstants.capacity``.
    """

    send: Ints
    rate: Floats
    start: Ints
    channel: Ints
    share: Floats


def make_network(scenario: Scenario[Flow, Workload], seed: int) -> FlowConstants:
    """Return the constants of a run of mode flow. Raises ``ValueError`` for a routing that depends on congestion."""
    topology, model, routes = scenario.topology, scenario.switching, scenario.routes
    if routes.deflection or routes.select not in (Selection.RANDOM, Selection.HASH):
        raise ValueError(
            f"routing {routes.kind!r} depends on congestion, which mode 'flow' does not model; "
            "use a routing with select: random or hash"
        )
    messages = scenario.work.messages
    between, to_hosts = topology.channels, topology.channels + topology.hosts
    link = np.arange(to_hosts + topology.hosts)
    if model.half_duplex:
        link[:between] = np.where(topology.reverse >= 0, np.minimum(link[:between], topology.reverse), link[:between])
    if model.half_duplex_hosts:
        link[to_hosts:] = link[between:to_hosts]
    host_capacity = np.full(2 * topology.hosts, topology.host_capacity)
    return FlowConstants(
        seed=seed,
        hosts=topology.hosts,
        channels=topology.channels,
        routes=routes.tables(topology),
        host_switch=topology.host_switch,
        ejection_switch=topology.ejection_switch,
        out_start=topology.out_start,
        dst=topology.dst,
        capacity=np.concatenate([topology.capacity, host_capacity]),
        link=link,
        hop=np.asarray(topology.delay + float(model.header + model.switch + model.link), np.float64),
        end_delay=float(model.injection + model.header + model.switch + model.ejection - 1),
        access=topology.access_delay,
        packet_bytes=messages.packet_bytes,
        flit_bytes=messages.flit_bytes,
        header_flits=messages.header_flits,
        packet_flits=messages.packet_flits,
        whole=messages.whole,
    )


def make_steps(scenario: Scenario[Flow, Workload], network: FlowConstants) -> tuple[FlowStep, ...]:
    """Return the states of the network over the timeline of a scenario, in order of ticks."""
    topology, steps = scenario.topology, []
    for step in network_changes(scenario.timeline, scenario.routes):
        capacity = network.capacity.copy()
        capacity[: topology.channels] = np.where(step.works, topology.capacity * step.rate, FAILED_CAPACITY)
        routes = None if step.routes is None else step.routes.tables(topology)
        steps.append(FlowStep(step.tick, capacity, routes))
    return tuple(steps)


def has_later_step(steps: tuple[FlowStep, ...], now: int) -> bool:
    """Whether the network changes at or after time ``now``, in ticks / ``RESOLUTION``."""
    return bool(steps) and steps[-1].tick * RESOLUTION >= now


def make_channel_shares(network: FlowConstants, switches: int) -> ChannelShares:
    """Return empty channel shares for a network; switches: number of switches."""
    channels = len(network.capacity)
    return ChannelShares(
        channel=np.zeros(channels, np.int64),
        share=np.zeros(channels),
        weight=np.zeros((2, switches)),
        switches=np.zeros((2, switches), np.int64),
    )


@inline
def flits_in(n: FlowConstants, size: int) -> int:
    """Return the flits of all packets of a message of ``size`` bytes."""
    last = flits_of(size, 1, n.packet_bytes, n.flit_bytes, n.header_flits, n.packet_flits, n.whole)
    return (packets_of(size, n.packet_bytes) - 1) * n.packet_flits + last


@kernel
def round_rate(rate: float) -> float:
    """Round a rate in flits/tick to 32 bits, so that it does not depend on the order of summation (Dekker 1971).

    Returns 0 for messages over failed channels.
    """
    if rate < _SLOWEST:
        return 0.0
    high = rate * _ROUND
    return high - (high - rate)


@inline
def _add_share(w: ChannelShares, count: Int, channel: Int, share: float) -> Int:
    """Add a share of the message to a channel and return the number of channels used."""
    if w.share[channel] == 0.0:
        w.channel[count] = channel
        count += 1
    w.share[channel] += share
    return count


@device_function
def _walk(
    n: FlowConstants,
    w: ChannelShares,
    count: Int,
    path: Int,
    share: float,
    source: Int,
    destination: Int,
    sequence: Int,
) -> Int:
    """Put a share of the message on one path and return the number of channels used."""
    here, target, hop = n.host_switch[source], n.ejection_switch[destination], 0
    while not at_destination(n.routes, path, hop, here, target):
        port = next_port(n.routes, path, n.seed, here, target, source, destination, n.hosts, sequence, hop)
        channel = n.out_start[here] + port
        count = _add_share(w, count, channel, share)
        here = n.dst[channel]
        hop += 1
    return count


@device_function
def _spread(n: FlowConstants, w: ChannelShares, count: Int, origin: Int, target: Int, share: float) -> Int:
    """Split a share of the message over all next hops to ``target`` and return the number of channels used."""
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
            while not is_empty(left):
                port = lowest(left)
                channel = n.out_start[here] + port
                left = without_lowest(left)
                part = port_part(whole, n.routes.port_threshold, ports, target, here, port)
                count = _add_share(w, count, channel, part)
                there = n.dst[channel]
                if w.weight[after, there] == 0.0:
                    w.switches[after, there_count] = there
                    there_count += 1
                w.weight[after, there] += part
        if there_count == 0:
            return count
        now, here_count = after, there_count


@inline
def _merge_shares(n: FlowConstants, w: ChannelShares, count: Int) -> Int:
    """Move the share of each channel to that whose capacity it uses, and return the number of channels used."""
    merged: Int = np.int64(0)
    for i in range(count):
        channel = w.channel[i]
        link, share = n.link[channel], w.share[channel]
        w.share[channel] = 0.0
        merged = _add_share(w, merged, link, share)
    return merged


@inline
def _draw_route(n: FlowConstants, source: Int, destination: Int, sequence: Int) -> int:
    """Draw the route of a packet of a message between two hosts."""
    origin, target = n.host_switch[source], n.ejection_switch[destination]
    return choose_route(n.routes, n.seed, source, destination, n.hosts, sequence, origin, target)


@device_function
def compute_channel_shares(
    n: FlowConstants, w: ChannelShares, source: Int, destination: Int, send: Int, stage: Int, packets: Int
) -> tuple[Int, Int]:
    """Compute the channels of a message and the share that each carries.

    Where packets draw their routes, the shares are averages; a message with intermediate switches draws one for each
    packet, ``DRAWS`` at most.

    Parameters
    ----------
    w : ChannelShares
        Receives channels and shares; must be empty (:func:`clear_channel_shares`).
    source, destination : int
        Hosts.
    send, stage : int
        The operation, and the stage of its message (request, consent or data).
    packets : int
        Packets of the message.

    Returns
    -------
    tuple of int
        Number of channels, and the latency of a flit on the average path, less a tick, in ticks / ``RESOLUTION``.
    """
    count: Int
    r, count = n.routes, np.int64(0)
    origin, target = n.host_switch[source], n.ejection_switch[destination]
    first = (send * _STAGES + stage) * DRAWS
    if r.rule == Selection.HASH:
        if origin != target or r.form == RouteForm.VIA:
            count = _walk(n, w, count, _draw_route(n, source, destination, 0), 1.0, source, destination, 0)
    elif r.form == RouteForm.PATHS:
        pair = origin * r.switches + target
        begin, end = r.pair_start[pair], r.pair_start[pair + 1]
        if origin != target:
            for path in range(begin, end):
                count = _walk(n, w, count, path, path_share(r, path, begin, end), source, destination, 0)
    elif r.form == RouteForm.VIA:
        draws = min(packets, DRAWS)
        for k in range(draws):
            intermediate = intermediate_of(_draw_route(n, source, destination, first + k))
            count = _spread(n, w, count, origin, intermediate, 1.0 / draws)
            count = _spread(n, w, count, intermediate, target, 1.0 / draws)
    else:
        count = _spread(n, w, count, origin, target, 1.0)
    ticks = n.end_delay + n.access[source] + n.access[destination]
    for i in range(count):
        ticks += w.share[w.channel[i]] * n.hop[w.channel[i]]
    count = _merge_shares(n, w, count)
    count = _add_share(w, count, n.link[np.int64(n.channels + source)], 1.0)
    count = _add_share(w, count, n.link[np.int64(n.channels + n.hosts + destination)], 1.0)
    return count, np.int64(np.floor(ticks * RESOLUTION + 0.5))


@kernel
def clear_channel_shares(w: ChannelShares, count: Int) -> None:
    """Clear ``w``, which holds ``count`` channels, for the next message."""
    for i in range(count):
        w.share[w.channel[i]] = 0.0
