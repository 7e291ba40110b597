# SPDX-License-Identifier: Apache-2.0
"""The output that a packet takes of those allowed."""

import numpy as np

from flitlab.models.arrays import Bools, Bytes, Int, Integers, Ints, PortSet, Words
from flitlab.models.jit import device_function, kernel, njit
from flitlab.models.rules.bits import empty_set, is_empty, lowest, popcount, select, with_port, without_lowest
from flitlab.models.rules.draw import Stream, below, draw, paired
from flitlab.models.rules.polarized import polarized_ports
from flitlab.models.rules.port_sets import has_no_port, ports_towards
from flitlab.models.rules.tables import RouteForm, Selection, Tables


@kernel
def route_word(seed: Int, host: Int, sequence: Int, hop: Int) -> int:
    """The 63-bit draw of a packet's hop-th decision (0: at its first switch).

    Parameters
    ----------
    seed: of the run.
    host: the source host.
    sequence: sequence number of the packet at its host.
    hop: channels between switches taken so far.
    """
    return draw(seed, Stream.ROUTE, host, paired(np.int64(sequence), np.int64(hop), np.int64(20)))


@kernel
def pick(ports: PortSet, word: Int) -> int:
    """One port of a non-empty set, uniformly."""
    count = popcount(ports)
    if count == 1:
        return lowest(ports)
    return select(ports, below(word, count))


@kernel
def fixed_port(
    ports: PortSet,
    rule: int,
    seed: Int,
    switch: Int,
    src_host: Int,
    dst_host: Int,
    hosts: Int,
    sequence: Int,
    hop: Int,
) -> int:
    """The port of a RANDOM or HASH choice, the same at every call.

    HASH depends on the flow (source, destination) and the switch. Packets of a flow follow one path, and hashes at
    consecutive switches are independent.

    Parameters
    ----------
    ports: set of allowed ports.
    rule: RANDOM or HASH.
    seed: of the run.
    switch: its present switch.
    src_host: source host.
    dst_host: destination host.
    hosts: number of hosts.
    sequence: sequence number of the packet at its host.
    hop: channels between switches taken so far.

    Returns
    -------
    Port number.
    """
    if popcount(ports) == 1:
        return lowest(ports)
    if rule == Selection.HASH:
        return pick(ports, draw(seed, Stream.FLOW_HASH, switch, src_host * hosts + dst_host))
    return pick(ports, route_word(seed, src_host, sequence, hop))


# A packet's *route* is one number, fixed at its first switch, from which its next hops follow: the index of its path
# (PATHS), (VIA) its intermediate switch and, from bit LEG_AT on, the hops to it, or (POLARIZED) the switch that sent
# it. Otherwise it is 0, and ON_ESCAPE from the escape channel on that it has taken.
LEG_SHIFT = np.int64(24)
ON_ESCAPE = np.int64(1)

_NO_SWITCH = np.int64(0xFFFFFFFF)  # draws of routes differ from those at any hop or switch
_NO_HOP = np.int64((1 << 20) - 1)
_VIA_MASK = np.int64((1 << 24) - 1)
_WORDS = 2.0**32
_BYTES = 2.0**8


@device_function
def _packet_word(seed: Int, flow: Int, host: Int, sequence: Int, attempt: Int, by_flow: bool) -> int:
    """The 63-bit draw of a packet, or of all packets of its flow. attempt: 1, 2, ... for further draws."""
    if by_flow:
        return draw(seed, Stream.FLOW_HASH, _NO_SWITCH, flow)
    return route_word(seed, host, sequence, _NO_HOP - attempt)


@device_function
def _weighed_path(threshold: Words, first: Int, end: Int, drawn: Int) -> int:
    """The first of the paths first .. end - 1 whose threshold exceeds a draw of 32 bits, or else the last."""
    path = first
    while path + 1 < end and np.int64(threshold[path]) <= drawn:
        path += 1
    return path


@kernel
def _path_of(r: Tables, word: Int, pair: Int) -> int:
    """One of the paths of a switch pair by a 63-bit draw, with the probabilities of :func:`path_share`."""
    first, end = r.pair_start[pair], r.pair_start[pair + 1]
    if len(r.path_threshold) == 0:
        return first + below(word, end - first)
    return _weighed_path(r.path_threshold, np.int64(first), np.int64(end), word >> 31)


@kernel
def path_share(r: Tables, path: Int, first: Int, end: Int) -> float:
    """The probability of a path among all paths of its switch pair.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    path: the path.
    first: first path of the pair.
    end: one past its last path.
    """
    if len(r.path_threshold) == 0:
        return 1.0 / (end - first)
    begin = 0.0 if path == first else float(r.path_threshold[path - 1])
    return ((_WORDS if path + 1 == end else float(r.path_threshold[path])) - begin) / _WORDS


@kernel
def choose_route(
    r: Tables, seed: Int, src_host: Int, dst_host: Int, hosts: Int, sequence: Int, src_switch: Int, dst_switch: Int
) -> int:
    """The route of a packet.

    RANDOM draws for every packet, HASH for every pair of hosts: among the paths, uniformly or by their thresholds, or
    an intermediate switch, that of a host drawn uniformly.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    seed: of the run.
    src_host: source host.
    dst_host: destination host.
    hosts: number of hosts.
    sequence: sequence number of the packet at its host.
    src_switch: the packet's first switch.
    dst_switch: its destination switch.
    """
    if r.form == RouteForm.POLARIZED:
        return np.int64(src_switch)
    if r.form != RouteForm.PATHS and r.form != RouteForm.VIA:
        return np.int64(0)
    flow = src_host * hosts + dst_host
    word = _packet_word(seed, flow, src_host, sequence, np.int64(0), r.rule == Selection.HASH)
    if r.form == RouteForm.PATHS:
        pair = src_switch * r.switches + dst_switch
        return _path_of(r, word, pair)
    middle = r.host_switch[below(word, hosts)]
    return middle | np.int64(r.leg[src_switch, middle]) << LEG_SHIFT


@kernel
def another_path(
    r: Tables, seed: Int, src_host: Int, sequence: Int, src_switch: Int, dst_switch: Int, attempt: Int
) -> int:
    """A further path of a packet (PATHS), drawn as by :func:`choose_route`.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    seed: of the run.
    src_host: source host.
    sequence: sequence number of the packet at its host.
    src_switch: the packet's first switch.
    dst_switch: its destination switch.
    attempt: 1, 2, ... for the draws of one packet.
    """
    word = _packet_word(seed, np.int64(0), src_host, sequence, np.int64(attempt), False)
    return _path_of(r, word, src_switch * r.switches + dst_switch)


@kernel
def route_from(r: Tables, seed: Int, src_host: Int, hosts: Int, sequence: Int, switch: Int, hop: Int) -> int:
    """A further route of a packet, from its present switch (PROGRESSIVE).

    The intermediate switch is drawn as by :func:`choose_route`: that of a host drawn uniformly.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    seed: of the run.
    src_host: source host.
    hosts: number of hosts.
    sequence: sequence number of the packet at its host.
    switch: its present switch.
    hop: channels between switches taken so far.
    """
    word = _packet_word(seed, np.int64(0), src_host, sequence, np.int64(1), False)
    middle = r.host_switch[below(word, hosts)]
    return middle | (hop + np.int64(r.leg[switch, middle])) << LEG_SHIFT


@kernel
def intermediate_of(route: Int) -> int:
    """The intermediate switch of a route (VIA).

    Parameters
    ----------
    route: the packet's route (:func:`choose_route`).
    """
    return route & _VIA_MASK


@kernel
def at_destination(r: Tables, route: Int, hop: Int, switch: Int, dst_switch: Int) -> bool:
    """Whether a packet leaves the network here, and is not heading for an intermediate switch.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    route: the packet's route (:func:`choose_route`).
    hop: channels between switches taken so far.
    switch: its present switch.
    dst_switch: its destination switch.
    """
    return switch == dst_switch and (r.form != RouteForm.VIA or hop >= route >> LEG_SHIFT)


@kernel
def channels_from(degree: Int, shift: Int, switches: Int, start: Int, dst_switch: Int) -> int:
    """Channels from a switch to another where v leads to degree v + shift + 0 .. degree - 1 (DIGITS).

    After k channels the reachable switches are degree**k in a row.

    Parameters
    ----------
    degree: channels of each switch.
    shift: offset of the numbering.
    switches: number of switches.
    start: the first switch.
    dst_switch: its destination switch.
    """
    first, size, steps = start, np.int64(1), np.int64(0)
    while (dst_switch - first) % switches >= size:
        first = (first * degree + shift) % switches
        size *= degree
        steps += 1
    return steps


@device_function
def _computed_ports(
    degree: int,
    shift: int,
    switches: int,
    out_start: Integers,
    dst: Integers,
    switch: Int,
    dst_switch: Int,
    mask: PortSet,
) -> PortSet:
    """The set of channels on a shortest path, from the numbers of the switches alone (DIGITS); as wide as ``mask``."""
    rest = channels_from(degree, shift, switches, switch, dst_switch) - 1
    ports = empty_set(mask)
    for c in range(out_start[switch], out_start[switch + 1]):
        first, size = np.int64(dst[c]), np.int64(1)
        for _ in range(rest):
            first = (first * degree + shift) % switches
            size *= degree
        if (dst_switch - first) % switches < size:
            ports = with_port(ports, c - out_start[switch])
    return ports


@kernel
def next_hops(r: Tables, route: Int, hop: Int, switch: Int, dst_switch: Int) -> PortSet:
    """The set of ports that the routes allow a packet that is not at its destination (not for PATHS).

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    route: the packet's route (:func:`choose_route`).
    hop: channels between switches taken so far.
    switch: its present switch.
    dst_switch: its destination switch.
    """
    if r.form == RouteForm.TABLE:
        return ports_towards(r.ports, dst_switch, switch)
    if r.form == RouteForm.DIGITS:
        return _computed_ports(r.degree, r.shift, r.switches, r.out_start, r.dst, switch, dst_switch, r.ports.mask)
    if r.form == RouteForm.POLARIZED:
        return polarized_ports(r, route, hop, switch, dst_switch)
    return ports_towards(r.ports, leg_target(r, route, hop, dst_switch), switch)


@kernel
def leg_target(r: Tables, route: Int, hop: Int, dst_switch: Int) -> int:
    """The switch that the next hops lead to (TABLE, VIA): the intermediate switch first, then the destination.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    route: the packet's route (:func:`choose_route`).
    hop: channels between switches taken so far.
    dst_switch: its destination switch.
    """
    return intermediate_of(route) if r.form == RouteForm.VIA and hop < route >> LEG_SHIFT else dst_switch


@device_function
def is_stranded(r: Tables, switch: Int, dst_switch: Int) -> bool:
    """Whether no next hop leads to a switch, as may happen after a failure.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    switch: its present switch.
    dst_switch: its destination switch.
    """
    return (r.form == RouteForm.TABLE or r.form == RouteForm.VIA) and has_no_port(r.ports, dst_switch, switch)


@njit
def are_stranded(r: Tables, switch: Ints, dst_switch: Ints) -> Bools:
    """Whether no next hop leads to each of some switches: :func:`is_stranded` of arrays.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    switch: int64 [packets], present switches.
    dst_switch: int64 [packets], destination switches.

    Returns
    -------
    bool [packets].
    """
    stranded = np.zeros(len(switch), np.bool_)
    for i in range(len(switch)):
        stranded[i] = is_stranded(r, switch[i], dst_switch[i])
    return stranded


@device_function
def _weighed_port(
    threshold: Bytes,
    ports: PortSet,
    rule: int,
    seed: Int,
    switch: Int,
    toward: Int,
    src_host: Int,
    dst_host: Int,
    hosts: Int,
    sequence: Int,
    hop: Int,
) -> int:
    """One of the ports that are allowed at a switch for ``toward``: each with the probability of :func:`port_part`."""
    if rule == Selection.HASH:
        word = draw(seed, Stream.FLOW_HASH, switch, src_host * hosts + dst_host)
    else:
        word = route_word(seed, src_host, sequence, hop)
    port, drawn = lowest(ports), word >> 55
    while popcount(ports) > 1 and np.int64(threshold[toward, switch, port]) <= drawn:
        ports = without_lowest(ports)
        port = lowest(ports)
    return port


@kernel
def port_part(amount: float, threshold: Bytes, ports: PortSet, dst_switch: Int, switch: Int, port: Int) -> float:
    """The share of an amount of traffic that goes to a port of an allowed set.

    Parameters
    ----------
    amount: the traffic.
    threshold: uint8 [switches, switches, ports], as ``port_threshold`` of the tables; empty: all ports are equally
        likely.
    ports: set of allowed ports.
    dst_switch: its destination switch.
    switch: its present switch.
    port: the port.
    """
    if len(threshold) == 0:
        return amount / popcount(ports)
    begin, end = 0.0, 0.0
    while True:
        p = lowest(ports)
        ports = without_lowest(ports)
        begin = end
        end = _BYTES if is_empty(ports) else float(threshold[dst_switch, switch, p])
        if p == port or is_empty(ports):
            return amount * ((end - begin) / _BYTES)


@kernel
def next_port(
    r: Tables,
    route: Int,
    seed: Int,
    switch: Int,
    dst_switch: Int,
    src_host: Int,
    dst_host: Int,
    hosts: Int,
    sequence: Int,
    hop: Int,
) -> int:
    """The port of a packet that is not at its destination, for oblivious routings.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    route: the packet's route (:func:`choose_route`).
    seed: of the run.
    switch: its present switch.
    dst_switch: its destination switch.
    src_host: source host.
    dst_host: destination host.
    hosts: number of hosts.
    sequence: sequence number of the packet at its host.
    hop: channels between switches taken so far.

    Returns
    -------
    Port number.
    """
    if r.form == RouteForm.PATHS:
        return np.int64(r.path_port[r.path_start[route] + hop])
    ports = next_hops(r, route, hop, switch, dst_switch)
    if len(r.port_threshold) == 0:
        return fixed_port(ports, r.rule, seed, switch, src_host, dst_host, hosts, sequence, hop)
    toward = leg_target(r, route, hop, dst_switch)
    return _weighed_port(
        r.port_threshold, ports, r.rule, seed, switch, toward, src_host, dst_host, hosts, sequence, hop
    )


@kernel
def usable_ports(r: Tables, route: Int, hop: Int, switch: Int, dst_switch: Int) -> PortSet:
    """The ports of an adaptive packet: those that its routes allow, and its escape channel.

    Parameters
    ----------
    r: routes (:class:`~flitlab.models.rules.tables.Tables`).
    route: the packet's route (:func:`choose_route`).
    hop: channels between switches taken so far.
    switch: its present switch.
    dst_switch: its destination switch.
    """
    if len(r.escape) == 0:
        return next_hops(r, route, hop, switch, dst_switch)
    others = empty_set(r.ports.mask) if route == ON_ESCAPE else next_hops(r, route, hop, switch, dst_switch)
    return with_port(others, r.escape[dst_switch, switch])
