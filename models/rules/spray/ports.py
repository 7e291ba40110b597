# SPDX-License-Identifier: Apache-2.0
"""The output port of a sprayed packet.

An entropy value selects a path: by a hash at every switch where routes are next hops, or one of the paths of the switch
pair where routes are whole paths.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numba import uint64

from flitlab.models.arrays import Int, Ints, PortSet
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.bits import (
    contains,
    empty_set,
    is_empty,
    lowest,
    popcount,
    select,
    with_port,
    without_lowest,
)  # fmt: skip
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.rules.route import next_hops
from flitlab.models.rules.tables import RouteForm, Tables


class AtSwitch(IntEnum):
    """How a switch chooses among equal next hops: ``at_switch`` of the configuration."""

    ECMP = 0
    ROUND_ROBIN = 1
    ADAPTIVE = 2
    FLOWLET = 3
    ECMP_ADAPTIVE = 4


_LEAST_IN_TURN, _LEAST_BY_LEVEL = 128, 100
"""Bytes below which data follows the hash, as control packets do."""

_GAMMA, _DELTA, _SIGMA = uint64(0x9E3779B97F4A7C15), uint64(0xD1B54A32D192ED03), uint64(0xA0761D6478BD642F)
_MIX1, _MIX2 = uint64(0xBF58476D1CE4E5B9), uint64(0x94D049BB133111EB)
_27, _30, _31 = uint64(27), uint64(30), uint64(31)


@kernel
def mixed(a: Int, b: Int, c: Int) -> int:
    """A hash of three numbers, 0 .. 2**63 - 1: the mix of SplitMix64, twice.

    Parameters
    ----------
    a: first number.
    b: second number.
    c: third number.

    Source: Steele, Lea, Flood, OOPSLA 2014, doi:10.1145/2714064.2660195.
    """
    word = uint64(a) * _GAMMA + uint64(b) * _DELTA
    word = (word ^ (word >> _30)) * _MIX1
    word = (word ^ (word >> _27)) * _MIX2
    word = (word ^ (word >> _31)) + uint64(c) * _SIGMA
    word = (word ^ (word >> _30)) * _MIX1
    word = (word ^ (word >> _27)) * _MIX2
    return np.int64((word ^ (word >> _31)) >> uint64(1))


@device_function
def make_salts(seed: Int, salts: Ints) -> None:
    """Draw the salt of every switch, and one more for the paths of flows.

    Parameters
    ----------
    seed: of the run.
    salts: int64 [switches + 1], filled.
    """
    for switch in range(len(salts)):
        salts[switch] = draw(seed, Stream.SALT, switch, 0)


@kernel
def flow_key(flow: Int, backwards: bool) -> int:
    """The number by which hashes identify a flow's packets, or the control packets in the other direction."""
    return np.int64(2 * flow + backwards)


@kernel
def spray_route(r: Tables, salts: Ints, paths: Int, src_switch: Int, dst_switch: Int, key: Int, entropy: Int) -> int:
    """The route of a packet, fixed at its first switch: the index of its path (PATHS), else 0.

    The entropy values 0 .. paths - 1 of a flow are spread evenly over the paths of its switch pair, in proportion to
    their weights. Successive values take different paths: their bits are reversed (the van der Corput sequence), so
    that of 2**k paths of equal weight any 2**k values from a multiple of 2**k on take each path once.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    salts: int64 [switches + 1], from :func:`make_salts`.
    paths: entropy values of a flow.
    src_switch, dst_switch: ends of the path.
    key: from :func:`flow_key`.
    entropy: entropy value of the packet.
    """
    if r.form != RouteForm.PATHS or src_switch == dst_switch:
        return np.int64(0)
    return _path_of(
        r, salts[len(salts) - 1], np.int64(paths), src_switch * r.switches + dst_switch, key, np.int64(entropy)
    )


@device_function
def _reversed_bits(number: Int, size: Int) -> int:
    """``number`` modulo ``size``, a power of two, with its bits in reverse order."""
    backwards = np.int64(0)
    while size > 1:
        backwards = 2 * backwards + (number & 1)
        number, size = number >> 1, size >> 1
    return backwards


@device_function
def _path_of(r: Tables, salt: Int, paths: Int, pair: Int, key: Int, entropy: Int) -> int:
    word = mixed(salt, key, 0)
    offset = (_reversed_bits(entropy, paths) + (word >> 40)) % paths
    drawn = ((offset << 32) + (word & 0xFFFFFFFF)) // paths  # 32 bits
    first, end = r.pair_start[pair], r.pair_start[pair + 1]
    if len(r.path_threshold) == 0:
        return first + (drawn * (end - first) >> 32)
    path = first
    while path + 1 < end and np.int64(r.path_threshold[path]) <= drawn:
        path += 1
    return path


@kernel
def hashed_port(r: Tables, salts: Ints, ports: PortSet, switch: Int, dst_switch: Int, key: Int, entropy: Int) -> int:
    """The port that the hash of a packet selects from a set, by the weights of the routes if they have any.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    salts: int64 [switches + 1], from :func:`make_salts`.
    ports: set of allowed ports.
    switch: the present switch.
    dst_switch: the destination switch.
    key: from :func:`flow_key`.
    entropy: entropy value of the packet.

    Returns
    -------
    Port number.
    """
    count = popcount(ports)
    if count == 1:
        return lowest(ports)
    word = mixed(salts[switch], key, entropy)
    if len(r.port_threshold) == 0:
        return select(ports, (word >> 31) * count >> 32)
    port, drawn = lowest(ports), word >> 55
    while popcount(ports) > 1 and np.int64(r.port_threshold[dst_switch, switch, port]) <= drawn:
        ports = without_lowest(ports)
        port = lowest(ports)
    return port


class SprayRoutes(NamedTuple):
    """The routes that entropy values select from.

    present: tables of the routes; built: those at the start of the run; moved: whether they differ. salts: int64
    [switches + 1], from :func:`make_salts`.
    """

    present: Tables
    built: Tables
    moved: bool
    salts: Ints


@device_function
def rehashed_port(routes: SprayRoutes, switch: Int, dst_switch: Int, hop: Int, key: Int, entropy: Int) -> int:
    """The port that the hash of a packet selects after the routes have changed.

    Without weights it stays the original port while that is allowed, so that only entropy values whose path is gone
    move.

    Parameters
    ----------
    routes: present and former routes.
    switch: the present switch.
    dst_switch: the destination switch.
    hop: channels taken so far.
    key: from :func:`flow_key`.
    entropy: entropy value of the packet.

    Returns
    -------
    Port number.
    """
    r, b, salts = routes.present, routes.built, routes.salts
    ports = next_hops(r, np.int64(0), hop, switch, dst_switch)
    if len(r.port_threshold) > 0:
        return hashed_port(r, salts, ports, switch, dst_switch, key, entropy)
    first = hashed_port(b, salts, next_hops(b, np.int64(0), hop, switch, dst_switch), switch, dst_switch, key, entropy)
    if contains(ports, first):
        return first
    return hashed_port(r, salts, ports, switch, dst_switch, mixed(key, switch, first), entropy)


@kernel
def spray_port(routes: SprayRoutes, route: Int, hop: Int, switch: Int, dst_switch: Int, key: Int, entropy: Int) -> int:
    """The output port of a packet where switches only hash (AtSwitch.ECMP).

    Parameters
    ----------
    routes: present and former routes.
    route: from :func:`spray_route`.
    hop: channels taken so far.
    switch: the present switch, not ``dst_switch``.
    dst_switch: the destination switch.
    key: from :func:`flow_key`.
    entropy: entropy value of the packet.

    Returns
    -------
    Port number.
    """
    r = routes.present
    if r.form == RouteForm.PATHS:
        return np.int64(r.path_port[r.path_start[route] + hop])
    if routes.moved:
        return rehashed_port(routes, switch, dst_switch, hop, key, entropy)
    return hashed_port(r, routes.salts, next_hops(r, route, hop, switch, dst_switch), switch, dst_switch, key, entropy)


class PortChoice(NamedTuple):
    """How switches choose ports: AtSwitch. fresh: ticks for which a sampled fill level is valid.

    flowlet_gap: ticks after which a flow may move (AtSwitch.FLOWLET).
    """

    policy: int
    fresh: int
    flowlet_gap: int


class Switches(NamedTuple):
    """The state of switches that choose ports themselves.

    choice: how; seed: of draws. low, high: int64 [links], bytes of data and of control in each queue, updated by
    the engine; queue_bytes: int64 [links], capacity for data. level, level_at: int64 [links], last sampled fill level
    of each queue, and its tick. order: int64 [switches, ports], a permutation of the ports; place: int64 [switches],
    index of the next one; draws: int64 [switches], draws so far. kept, kept_at: int64 [switches, flow keys], the port
    of a flow and the tick of its last packet (AtSwitch.FLOWLET).
    """

    choice: PortChoice
    seed: int
    low: Ints
    high: Ints
    queue_bytes: Ints
    level: Ints
    level_at: Ints
    order: Ints
    place: Ints
    draws: Ints
    kept: Ints
    kept_at: Ints


def make_switches(choice: PortChoice, seed: int, queue_bytes: Ints, degrees: Ints, keys: int) -> Switches:
    """The state of switches with empty queues.

    Parameters
    ----------
    choice: how they choose ports.
    seed: of draws.
    queue_bytes: int64 [links], capacity of each queue.
    degrees: int64 [switches], ports of each switch.
    keys: flow keys of all flows, both directions.

    Returns
    -------
    The switches.
    """
    links, count = len(queue_bytes), len(degrees)
    most = int(degrees.max(initial=1))
    order = np.tile(np.arange(most), (count, 1))
    none = np.full((count, keys), -1, np.int64) if choice.policy == AtSwitch.FLOWLET else np.zeros((1, 1), np.int64)
    return Switches(
        choice,
        seed,
        np.zeros(links, np.int64),
        np.zeros(links, np.int64),
        queue_bytes.astype(np.int64),
        np.zeros(links, np.int64),
        np.full(links, -choice.fresh - 1, np.int64),
        order,
        np.full(count, most),
        np.zeros(count, np.int64),
        none,
        none.copy(),
    )


class Routing(NamedTuple):
    """Data by which switches choose output ports.

    out_start: int64 [switches + 1], first channel of each switch. host_switch: int64 [hosts]. switches: state of those
    that choose themselves.
    """

    routes: SprayRoutes
    out_start: Ints
    host_switch: Ints
    switches: Switches


@device_function
def chosen_port(
    routing: Routing, switch: Int, dst_switch: Int, hop: Int, key: Int, entropy: Int, data: Int, now: Int
) -> int:
    """The output port of a packet where switches choose themselves.

    Parameters
    ----------
    routing: routes and switches, whose state changes.
    switch: the present switch.
    dst_switch: the destination switch.
    hop: channels taken so far.
    key: from :func:`flow_key`.
    entropy: entropy value of the packet.
    data: bytes of an untrimmed data packet, else 0.
    now: the present tick.

    Returns
    -------
    Port number.
    """
    routes, w, out_start = routing.routes, routing.switches, routing.out_start
    ports = next_hops(routes.present, np.int64(0), hop, switch, dst_switch)
    count = popcount(ports)
    if count == 1:
        return lowest(ports)
    if w.choice.policy == AtSwitch.FLOWLET:
        return _flowlet(w, out_start, ports, switch, key, now)
    if routes.moved:
        hashed = np.int64(rehashed_port(routes, switch, dst_switch, hop, key, entropy))
    else:
        hashed = np.int64(hashed_port(routes.present, routes.salts, ports, switch, dst_switch, key, entropy))
    if w.choice.policy == AtSwitch.ECMP_ADAPTIVE:
        return _unless_worst(w, out_start, ports, hashed, switch, now)
    if data < (_LEAST_IN_TURN if w.choice.policy == AtSwitch.ROUND_ROBIN else _LEAST_BY_LEVEL):
        return hashed
    if w.choice.policy == AtSwitch.ROUND_ROBIN:
        return _in_turn(w, ports, switch)
    return _least(w, out_start, ports, switch, now)


@kernel
def _word(w: Switches, switch: Int) -> int:
    """The next draw of a switch."""
    w.draws[switch] += 1
    return draw(w.seed, Stream.SWITCH, switch, w.draws[switch] - 1)


@device_function
def _in_turn(w: Switches, ports: PortSet, switch: Int) -> int:
    """The next of the allowed ports in a random order of all. A new order follows the last port."""
    order, degree = w.order[switch], np.int64(w.order.shape[1])
    while True:
        if w.place[switch] >= degree:
            for k in range(degree - 1, 0, -1):
                other = below(_word(w, switch), k + 1)
                order[k], order[other] = order[other], order[k]
            w.place[switch] = 0
        port = order[w.place[switch]]
        w.place[switch] += 1
        if contains(ports, port):
            return np.int64(port)


@kernel
def _level(w: Switches, link: Int, now: Int) -> int:
    """The sampled fill level of a queue: 0 below 5 % of its capacity, 1 below 10 %, 2 below 20 %, else 3."""
    if now - w.level_at[link] > w.choice.fresh:
        queued, capacity = w.low[link] + w.high[link], w.queue_bytes[link]
        w.level[link] = (
            np.int64(20 * queued >= capacity) + np.int64(10 * queued >= capacity) + np.int64(5 * queued >= capacity)
        )
        w.level_at[link] = now
    return w.level[link]


@device_function
def _least(w: Switches, out_start: Ints, ports: PortSet, switch: Int, now: Int) -> int:
    """The port of the lowest fill level; ties are drawn."""
    best: Int = np.int64(4)
    ties, rest = empty_set(ports), ports
    while not is_empty(rest):
        port = lowest(rest)
        rest = without_lowest(rest)
        level = _level(w, out_start[switch] + port, now)
        if level < best:
            best, ties = level, empty_set(ports)
        if level == best:
            ties = with_port(ties, port)
    count = popcount(ties)
    return lowest(ties) if count == 1 else select(ties, below(_word(w, switch), count))


@device_function
def _flowlet(w: Switches, out_start: Ints, ports: PortSet, switch: Int, key: Int, now: Int) -> int:
    """The flow's port. It changes if it is no longer allowed, or after a gap if another port is strictly better."""
    port, idle = w.kept[switch, key], now - w.kept_at[switch, key] > w.choice.flowlet_gap
    if port < 0 or not contains(ports, port):
        port = _least(w, out_start, ports, switch, now)
    elif idle and _word(w, switch) & 1:
        other = _least(w, out_start, ports, switch, now)
        if _level(w, out_start[switch] + other, now) < _level(w, out_start[switch] + port, now):
            port = other
    w.kept[switch, key], w.kept_at[switch, key] = port, now
    return port


@device_function
def _unless_worst(w: Switches, out_start: Ints, ports: PortSet, hashed: Int, switch: Int, now: Int) -> int:
    """The hashed port. If it is at the worst level, and others are not, half of the packets take a best port."""
    if _word(w, switch) & 1:
        return hashed
    worst, best, rest = np.int64(-1), np.int64(4), ports
    while not is_empty(rest):
        level = np.int64(_level(w, out_start[switch] + lowest(rest), now))
        worst, best = max(worst, level), min(best, level)
        rest = without_lowest(rest)
    if best == worst or _level(w, out_start[switch] + hashed, now) < worst:
        return hashed
    return _least(w, out_start, ports, switch, now)
