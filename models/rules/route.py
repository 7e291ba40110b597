# SPDX-License-Identifier: Apache-2.0
"""Which of the allowed outputs a packet takes."""

import numpy as np

from flitlab.models.arrays import Bytes, Int, Integers, Words
from flitlab.models.jit import kernel, routine
from flitlab.models.rules.bits import lowest, popcount, select
from flitlab.models.rules.draw import FLOW_HASH, ROUTE, below, draw, paired
from flitlab.models.rules.polarized import polarized_ports
from flitlab.models.rules.port_sets import leads_nowhere, ports_towards
from flitlab.models.rules.tables import DIGITS, HASH, PATHS, POLARIZED, TABLE, VIA, Tables


@kernel
def route_word(seed: Int, host: Int, sequence: Int, hop: Int) -> int:
    """The 63-bit draw that belongs to a packet's hop-th decision (0 is at its first switch)."""
    return draw(seed, ROUTE, host, paired(np.int64(sequence), np.int64(hop), np.int64(20)))


@kernel
def pick(ports: np.uint64, word: Int) -> int:
    """One port of a non-empty set, uniformly."""
    count = popcount(ports)
    if count == 1:
        return lowest(ports)
    return select(ports, below(word, count))


@kernel
def fixed_port(
    ports: np.uint64,
    rule: int,
    seed: Int,
    switch: Int,
    source: Int,
    destination: Int,
    hosts: Int,
    sequence: Int,
    hop: Int,
) -> int:
    """The port of a RANDOM or HASH choice: the same whenever it is asked for.

    HASH depends on flow (source, destination) and switch, so equal flows part at no switch and
    hashes at consecutive switches are independent.
    """
    if popcount(ports) == 1:
        return lowest(ports)
    if rule == HASH:
        return pick(ports, draw(seed, FLOW_HASH, switch, source * hosts + destination))
    return pick(ports, route_word(seed, source, sequence, hop))


# A packet's *way* is one number, fixed at its first switch, from which its routes follow: the index of its path
# (PATHS), (VIA) its intermediate switch and, from bit LEG_AT on, the hops to it, or (POLARIZED) the switch that sent
# it. Otherwise it is 0, and ON_ESCAPE from the escape channel on that it has taken.
LEG_AT = np.int64(24)
ON_ESCAPE = np.int64(1)

_NO_SWITCH = np.int64(0xFFFFFFFF)  # draws of the way are none of those made at any hop or switch
_NO_HOP = np.int64((1 << 20) - 1)
_VIA_MASK = np.int64((1 << 24) - 1)
_ALONE = np.uint64(1)
_WORDS = 2.0**32
_BYTES = 2.0**8


@routine
def _way_word(seed: Int, flow: Int, host: Int, sequence: Int, turn: Int, by_flow: bool) -> int:
    """The 63-bit draw that belongs to a packet, or to all packets of its flow; turn: 1, 2, ... for further ones."""
    if by_flow:
        return draw(seed, FLOW_HASH, _NO_SWITCH, flow)
    return route_word(seed, host, sequence, _NO_HOP - turn)


@routine
def _weighed_path(threshold: Words, first: Int, end: Int, drawn: Int) -> int:
    """The first of the paths first .. end - 1 whose threshold exceeds a draw of 32 bits, or else the last."""
    path = first
    while path + 1 < end and np.int64(threshold[path]) <= drawn:
        path += 1
    return path


@kernel
def _path_of(r: Tables, word: Int, pair: Int) -> int:
    """One of the paths of a pair of switches by a 63-bit draw: each with the probability :func:`path_share`."""
    first, end = r.pair_start[pair], r.pair_start[pair + 1]
    if len(r.path_threshold) == 0:
        return first + below(word, end - first)
    return _weighed_path(r.path_threshold, np.int64(first), np.int64(end), word >> 31)


@kernel
def path_share(r: Tables, path: Int, first: Int, end: Int) -> float:
    """The probability with which a path is drawn of those numbered first .. end - 1, which are all of its pair."""
    if len(r.path_threshold) == 0:
        return 1.0 / (end - first)
    begin = 0.0 if path == first else float(r.path_threshold[path - 1])
    return ((_WORDS if path + 1 == end else float(r.path_threshold[path])) - begin) / _WORDS


@kernel
def choose_way(
    r: Tables, seed: Int, source: Int, destination: Int, hosts: Int, sequence: Int, origin: Int, target: Int
) -> int:
    """The way of a packet; r: :class:`~flitlab.models.rules.tables.Tables`. origin, target: its switches.

    RANDOM draws for every packet, HASH for every pair (source, destination) of hosts: among the paths, uniformly or
    by their thresholds, or uniformly among the hosts whose switch is the intermediate one.
    """
    if r.form == POLARIZED:
        return np.int64(origin)
    if r.form != PATHS and r.form != VIA:
        return np.int64(0)
    flow = source * hosts + destination
    word = _way_word(seed, flow, source, sequence, np.int64(0), r.rule == HASH)
    if r.form == PATHS:
        pair = origin * r.switches + target
        return _path_of(r, word, pair)
    middle = r.host_switch[below(word, hosts)]
    return middle | np.int64(r.leg[origin, middle]) << LEG_AT


@kernel
def another_path(r: Tables, seed: Int, source: Int, sequence: Int, origin: Int, target: Int, turn: Int) -> int:
    """A further path of a packet (PATHS), drawn as that of :func:`choose_way` is; turn: 1, 2, ... of one packet."""
    word = _way_word(seed, np.int64(0), source, sequence, np.int64(turn), False)
    return _path_of(r, word, origin * r.switches + target)


@kernel
def way_from(r: Tables, seed: Int, source: Int, hosts: Int, sequence: Int, here: Int, hop: Int) -> int:
    """A further way of a packet, from the switch to which it has taken ``hop`` channels (PROGRESSIVE).

    It is drawn as that of :func:`choose_way` is: the switch of a host with equal probability from all hosts.
    """
    word = _way_word(seed, np.int64(0), source, sequence, np.int64(1), False)
    middle = r.host_switch[below(word, hosts)]
    return middle | (hop + np.int64(r.leg[here, middle])) << LEG_AT


@kernel
def middle_of(way: Int) -> int:
    """The intermediate switch of a way (VIA)."""
    return way & _VIA_MASK


@kernel
def at_target(r: Tables, way: Int, hop: Int, here: Int, target: Int) -> bool:
    """Whether a packet leaves the network here: not on its way to an intermediate switch."""
    return here == target and (r.form != VIA or hop >= way >> LEG_AT)


@kernel
def channels_from(degree: Int, shift: Int, switches: Int, start: Int, target: Int) -> int:
    """How many channels from ``start`` lead to ``target`` where v leads to degree v + shift + 0 .. degree - 1 (DIGITS).

    After r of them the switches that can be reached are degree**r in a row.
    """
    first, size, steps = start, np.int64(1), np.int64(0)
    while (target - first) % switches >= size:
        first = (first * degree + shift) % switches
        size *= degree
        steps += 1
    return steps


@routine
def _computed_ports(
    degree: int, shift: int, switches: int, out_start: Integers, dst: Integers, here: Int, target: Int
) -> np.uint64:
    """The set of channels on a shortest path, from the numbers of the switches alone (DIGITS)."""
    rest = channels_from(degree, shift, switches, here, target) - 1
    ports = np.uint64(0)
    for c in range(out_start[here], out_start[here + 1]):
        first, size = np.int64(dst[c]), np.int64(1)
        for _ in range(rest):
            first = (first * degree + shift) % switches
            size *= degree
        if (target - first) % switches < size:
            ports |= _ALONE << np.uint64(c - out_start[here])
    return ports


@kernel
def next_hops(r: Tables, way: Int, hop: Int, here: Int, target: Int) -> np.uint64:
    """The set of ports that the routes allow a packet that is not at its target (not for PATHS)."""
    if r.form == TABLE:
        return ports_towards(r.ports, target, here)
    if r.form == DIGITS:
        return _computed_ports(r.degree, r.shift, r.switches, r.out_start, r.dst, here, target)
    if r.form == POLARIZED:
        return polarized_ports(r, way, hop, here, target)
    return ports_towards(r.ports, toward_of(r, way, hop, target), here)


@kernel
def toward_of(r: Tables, way: Int, hop: Int, target: Int) -> int:
    """The switch to which the next hops lead (TABLE, VIA): the target, or the intermediate one before that."""
    return middle_of(way) if r.form == VIA and hop < way >> LEG_AT else target


@kernel
def is_stranded(r: Tables, here: Int, target: Int) -> bool:
    """Whether no next hop leads from switch ``here`` to ``target``, as it may be where a network has changed."""
    return (r.form == TABLE or r.form == VIA) and leads_nowhere(r.ports, target, here)


@routine
def _weighed_port(
    threshold: Bytes,
    ports: np.uint64,
    rule: int,
    seed: Int,
    here: Int,
    toward: Int,
    source: Int,
    destination: Int,
    hosts: Int,
    sequence: Int,
    hop: Int,
) -> int:
    """One of the ports that are allowed at a switch for ``toward``: each with the probability of :func:`port_part`."""
    if rule == HASH:
        word = draw(seed, FLOW_HASH, here, source * hosts + destination)
    else:
        word = route_word(seed, source, sequence, hop)
    port, drawn = lowest(ports), word >> 55
    while popcount(ports) > 1 and np.int64(threshold[toward, here, port]) <= drawn:
        ports &= ports - _ALONE
        port = lowest(ports)
    return port


@kernel
def port_part(amount: float, threshold: Bytes, ports: np.uint64, target: Int, here: Int, port: Int) -> float:
    """What of an amount goes to a port of the set that is allowed at a switch for a target.

    threshold: uint8 [switches, switches, ports], as ``port_threshold`` of the tables; empty: all are drawn alike.
    """
    if len(threshold) == 0:
        return amount / popcount(ports)
    begin, end = 0.0, 0.0
    while True:
        p = lowest(ports)
        ports &= ports - _ALONE
        begin = end
        end = float(threshold[target, here, p]) if ports != 0 else _BYTES
        if p == port or ports == 0:
            return amount * ((end - begin) / _BYTES)


@kernel
def next_port(
    r: Tables,
    way: Int,
    seed: Int,
    here: Int,
    target: Int,
    source: Int,
    destination: Int,
    hosts: Int,
    sequence: Int,
    hop: Int,
) -> int:
    """The port of a packet that is not at its target, where that is not adaptive."""
    if r.form == PATHS:
        return np.int64(r.path_port[r.path_start[way] + hop])
    ports = next_hops(r, way, hop, here, target)
    if len(r.port_threshold) == 0:
        return fixed_port(ports, r.rule, seed, here, source, destination, hosts, sequence, hop)
    toward = toward_of(r, way, hop, target)
    return _weighed_port(r.port_threshold, ports, r.rule, seed, here, toward, source, destination, hosts, sequence, hop)


@kernel
def usable_ports(r: Tables, way: Int, hop: Int, here: Int, target: Int) -> np.uint64:
    """The set of ports of an adaptive packet: those that its routes allow and its escape channel."""
    if len(r.escape) == 0:
        return next_hops(r, way, hop, here, target)
    escape = _ALONE << np.uint64(r.escape[target, here])
    return escape if way == ON_ESCAPE else next_hops(r, way, hop, here, target) | escape
