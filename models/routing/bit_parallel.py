# SPDX-License-Identifier: Apache-2.0
"""Bit-parallel search of next hops: one word per channel or switch, one bit for each of 64 destinations.

One search serves 64 destinations, and reads the graph from memory once for all of them.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Bytes, Ints, Masks
from flitlab.models.jit import njit
from flitlab.models.routing.port_table import empty_table
from flitlab.models.table_cache import TableCache
from flitlab.models.threads import map_row_blocks
from flitlab.models.topology.graph import Topology

WORD = 64
"""Destinations of one search."""

FARTHEST = 255
"""The byte that stands for 255 channels or more."""


class ChannelIndex(NamedTuple):
    """The channels of a graph by both of their ends.

    out_start, dst, in_start: as those of :class:`~flitlab.models.topology.graph.Topology`. in_tail: int64 [channels],
    the switches with a channel into v are in_tail[in_start[v]:in_start[v + 1]]. mask_start: int64 [masks + 1], first
    channel of each mask in a row of a table of port sets. degree: most channels of a mask.
    """

    out_start: Ints
    dst: Ints
    in_start: Ints
    in_tail: Ints
    mask_start: Ints
    degree: int


def channel_index(topology: Topology) -> ChannelIndex:
    """The channels of a topology by both of their ends.

    Parameters
    ----------
    topology: the network.
    """
    degree, masks = int(topology.out_degree.max(initial=0)), topology.out_start
    if degree > WORD:  # two for each switch
        masks = np.append(np.minimum(masks[:-1, None] + [0, WORD], masks[1:, None]).ravel(), masks[-1])
    in_tail = topology.src[topology.in_channels]
    return ChannelIndex(topology.out_start, topology.dst, topology.in_start, in_tail, masks, min(degree, WORD))


class _BreadthFirst(NamedTuple):
    """A breadth-first search against the channels, in rounds, to 64 destinations.

    reached: uint64 [switches], destinations for which a switch is reached. fresh: uint64 [switches], reached in the
    last round; new: in this one. queued: bool [switches], whether a switch is in the frontier. frontier: int64
    [switches], to be visited. changed: int64 [switches], with new destinations.
    """

    reached: Masks
    fresh: Masks
    new: Masks
    queued: Bools
    frontier: Ints
    changed: Ints


@njit
def _new_search(n: int) -> _BreadthFirst:
    """A search to start with."""
    reached, fresh, new = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    return _BreadthFirst(reached, fresh, new, np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n, np.int64))


@njit
def _end_round(star: ChannelIndex, search: _BreadthFirst, changed: int) -> int:
    """End a round with ``changed`` changed switches; returns the size of the next frontier."""
    search.fresh[:] = np.uint64(0)
    count = 0
    for i in range(changed):
        v = search.changed[i]
        search.fresh[v] = search.new[v]
        search.reached[v] |= search.new[v]
        for k in range(star.in_start[v], star.in_start[v + 1]):
            u = star.in_tail[k]
            if not search.queued[u]:
                search.queued[u] = True
                search.frontier[count] = u
                count += 1
    for i in range(count):
        search.queued[search.frontier[i]] = False
    return count


@njit
def _begin(star: ChannelIndex, search: _BreadthFirst, first: int, targets: int) -> int:
    """Start at the destinations, switches ``first`` and on; returns the size of the frontier."""
    search.reached[:] = np.uint64(0)
    for i in range(targets):
        search.new[first + i] = np.uint64(1) << np.uint64(i)
        search.changed[i] = first + i
    return _end_round(star, search, targets)


@njit
def _shortest(star: ChannelIndex, search: _BreadthFirst, first: int, targets: int, allowed: Masks) -> int:
    """Set ``allowed`` [channels] to the destinations whose shortest paths a channel is on.

    Returns the distance of the farthest switch in channels, or -1 if some switch has no path.
    """
    everything = ~np.uint64(0) >> np.uint64(WORD - targets)
    allowed[:] = np.uint64(0)
    rounds, count = 0, _begin(star, search, first, targets)
    while count > 0:
        changed = 0
        for i in range(count):
            v = search.frontier[i]
            new = np.uint64(0)
            for c in range(star.out_start[v], star.out_start[v + 1]):
                new |= search.fresh[star.dst[c]]
            new &= ~search.reached[v]
            if new != 0:
                for c in range(star.out_start[v], star.out_start[v + 1]):
                    allowed[c] |= search.fresh[star.dst[c]] & new
                search.new[v] = new
                search.changed[changed] = v
                changed += 1
        rounds += changed > 0
        count = _end_round(star, search, changed)
    return rounds if (search.reached == everything).all() else -1


@njit
def _longest(star: ChannelIndex, search: _BreadthFirst, first: int, targets: int, allowed: Masks, digits: Masks) -> int:
    """Set ``digits`` [8, switches] to the binary digits of the longest allowed path to each destination.

    allowed: uint64 [channels], the destinations for which a channel is allowed. A path that does not end has none.
    Returns the number of digits in use.
    """
    digits[:] = np.uint64(0)
    rounds, count = 0, _begin(star, search, first, targets)
    while count > 0:
        changed, rounds = 0, min(rounds + 1, FARTHEST)
        for i in range(count):
            v = search.frontier[i]
            allowed_dsts, all_end = np.uint64(0), ~search.reached[v]
            for c in range(star.out_start[v], star.out_start[v + 1]):
                allowed_dsts |= allowed[c]
                all_end &= search.reached[star.dst[c]] | ~allowed[c]
            new = allowed_dsts & all_end
            if new == 0:
                continue
            for b in range(len(digits)):
                if rounds >> b & 1:
                    digits[b, v] |= new
            search.new[v] = new
            search.changed[changed] = v
            changed += 1
        count = _end_round(star, search, changed)
    used = 0
    while rounds >> used:
        used += 1
    return used


@njit
def _transpose(word: Masks) -> None:
    """Exchange bit i of word k with bit k of word i, of 64 words."""
    size, mask = 32, np.uint64(0xFFFFFFFF)
    while size > 0:
        shift = np.uint64(size)
        for start in range(0, 64, 2 * size):
            for k in range(start, start + size):
                swap = (word[k] >> shift ^ word[k + size]) & mask
                word[k] ^= swap << shift
                word[k + size] ^= swap
        size >>= 1
        mask ^= mask << np.uint64(size)


@njit
def _write(star: ChannelIndex, allowed: Masks, ports: Masks) -> None:
    """Set rows of ``ports`` [destinations, masks] from the sets of destinations of each channel.

    Masks that fit into one word together are handled at once.
    """
    width = 1
    while width < star.degree:
        width *= 2
    n, together, mask = len(star.mask_start) - 1, WORD // width, ~np.uint64(0) >> np.uint64(WORD - width)
    word = np.empty(WORD, np.uint64)
    for start in range(0, n, together):
        end = min(start + together, n)
        word[:] = np.uint64(0)
        for v in range(start, end):
            low = star.mask_start[v]
            for c in range(low, star.mask_start[v + 1]):
                word[(v - start) * width + c - low] = allowed[c]
        _transpose(word)
        for i in range(len(ports)):
            for v in range(start, end):
                ports[i, v] = word[i] >> np.uint64((v - start) * width) & mask


@njit
def _read(star: ChannelIndex, ports: Masks, allowed: Masks) -> None:
    """Set ``allowed`` [channels], sets of destinations, from rows of sets of ports; the inverse of :func:`_write`."""
    width = 1
    while width < star.degree:
        width *= 2
    n, together = len(star.mask_start) - 1, WORD // width
    word = np.empty(WORD, np.uint64)
    for start in range(0, n, together):
        end = min(start + together, n)
        word[:] = np.uint64(0)
        for i in range(len(ports)):
            for v in range(start, end):
                word[i] |= np.uint64(ports[i, v]) << np.uint64((v - start) * width)
        _transpose(word)
        for v in range(start, end):
            low = star.mask_start[v]
            for c in range(low, star.mask_start[v + 1]):
                allowed[c] = word[(v - start) * width + c - low]


def shortest_ports(topology: Topology) -> tuple[Masks, int]:
    """The channels of v on a shortest path to t, a table of port sets, and the diameter in channels.

    At most 128 channels per switch. A diameter of -1: some pair of switches has no path. In a multistage network that
    serves its hosts, the channels of the longest path between any switches stand for it.

    Parameters
    ----------
    topology: the network.
    """
    ports, star = empty_table(topology), channel_index(topology)
    rows = ports.reshape(len(ports), -1)
    farthest = map_row_blocks(lambda first, last: int(_fill_shortest(star, rows, first, last)), len(ports))
    if min(farthest, default=0) < 0:
        return ports, most_channels(topology, ports) if serves_hosts(topology) else -1
    return ports, max(farthest, default=0)


def serves_hosts(topology: Topology) -> bool:
    """Whether it is a multistage network with paths between all its hosts, though not between all its switches.

    Parameters
    ----------
    topology: the network.
    """
    return topology.is_multistage and topology.unreachable_pair() is None


@njit
def _fill_shortest(star: ChannelIndex, ports: Masks, begin: int, end: int) -> int:
    """Fill rows of the table of :func:`shortest_ports`, all zero before; the largest distance, or -1."""
    n, diameter, reached = len(ports), 0, True
    search, allowed = _new_search(n), np.zeros(len(star.dst), np.uint64)
    for first in range(begin, end, WORD):
        targets = min(WORD, end - first)
        farthest = _shortest(star, search, first, targets, allowed)
        reached &= farthest >= 0
        diameter = max(diameter, farthest)
        _write(star, allowed, ports[first : first + targets])
    return diameter if reached else -1


def longest_paths(topology: Topology, ports: Masks) -> Bytes:
    """Channels of the longest path from v to t by next hops, uint8 [t, v]; 255 also if there are more.

    Parameters
    ----------
    topology: the network.
    ports: table of port sets, next hops, none at t.

    Returns
    -------
    The table; 0 where there is no path, or some path from v does not end at t.
    """
    key = topology.content_hash, id(ports)
    known = _longest_paths_of.get(key)
    if known is not None:
        return known[1]
    longest, rows = np.zeros(ports.shape[:2], np.uint8), ports.reshape(len(ports), -1)
    star = channel_index(topology)
    map_row_blocks(lambda first, last: _fill_longest(star, rows, longest, first, last), len(ports))
    _longest_paths_of.put(key, ports, longest)
    return longest


_longest_paths_of: TableCache[Bytes] = TableCache()
"""The longest paths by live next hops: at 10,000 switches they take seconds to compute."""


def most_channels(topology: Topology, ports: Masks) -> int:
    """Channels of the longest path by next hops; from 255 on the bound ``switches`` - 1.

    Parameters
    ----------
    topology: the network.
    ports: table of port sets, next hops without loops.
    """
    longest = int(longest_paths(topology, ports).max(initial=0))
    return longest if longest < FARTHEST else topology.switches - 1


@njit
def _fill_longest(star: ChannelIndex, ports: Masks, longest: Bytes, begin: int, end: int) -> None:
    """Fill rows of the table of :func:`longest_paths`, all zero before."""
    n = len(ports)
    search, allowed = _new_search(n), np.zeros(len(star.dst), np.uint64)
    digits = np.zeros((8, n), np.uint64)
    for first in range(begin, end, WORD):
        targets = min(WORD, end - first)
        _read(star, ports[first : first + targets], allowed)
        used = _longest(star, search, first, targets, allowed, digits)
        for i in range(targets):
            for b in range(used):
                for v in range(n):
                    longest[first + i, v] |= np.uint8((digits[b, v] >> np.uint64(i) & np.uint64(1)) << np.uint64(b))


def has_dependency_cycle(topology: Topology, ports: Masks, starts: Ints, ends: Ints | None = None) -> bool:
    """Whether packets may wait for each other in a cycle if they take any VC.

    A packet that holds a channel requests the next allowed ones. Destinations are checked 64 at a time, the others only
    if the first close no cycle.

    Parameters
    ----------
    topology: the network.
    ports: table of port sets, next hops, none at t.
    starts, ends: int64, the switches at which hosts inject, and eject; ends: None where they are the same.
    """
    ends = starts if ends is None else ends
    star, degree = channel_index(topology), int(topology.out_degree.max(initial=0))
    waits, masks = np.zeros((topology.channels, degree), np.bool_), ports.reshape(len(ports), -1)
    rows = -(-len(ends) // WORD)
    for batch in (range(min(rows, 1)), range(1, rows)):
        for row in batch:
            targets = ends[row * WORD : (row + 1) * WORD]
            _collect_dependencies(star, masks[targets], targets, starts, waits)
        if len(batch) > 0 and _has_cycle(star, waits):
            return True
    return False


@njit
def _collect_dependencies(star: ChannelIndex, ports: Masks, targets: Ints, starts: Ints, waits: Bools) -> None:
    """Set waits[c, p] where a packet may hold channel c and request port p at its end.

    ports: uint64 [destinations, masks]. starts: where packets start. waits: bool [channels, degree].
    """
    n = len(star.out_start) - 1
    allowed, present, frontier = np.zeros(len(star.dst), np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.int64)
    queued = np.zeros(n, np.bool_)
    _read(star, ports, allowed)
    for i in range(len(starts)):  # a word per switch: destinations of the packets that may be there
        present[starts[i]] = ~np.uint64(0) >> np.uint64(WORD - len(targets))
        frontier[i] = starts[i]
        queued[starts[i]] = True
    for i in range(len(targets)):
        present[targets[i]] &= ~(np.uint64(1) << np.uint64(i))
    first, count = 0, len(starts)  # of a circular queue of switches, each in it at most once
    while count > 0:
        v = frontier[first]
        first = (first + 1) % n
        count -= 1
        queued[v] = False
        for c in range(star.out_start[v], star.out_start[v + 1]):
            w = star.dst[c]
            new = present[v] & allowed[c] & ~present[w]
            if new != 0:
                present[w] |= new
                if not queued[w]:
                    queued[w] = True
                    frontier[(first + count) % n] = w
                    count += 1
    for v in range(n):
        for c in range(star.out_start[v], star.out_start[v + 1]):
            holds = present[v] & allowed[c]
            low = star.out_start[star.dst[c]]
            for e in range(low, star.out_start[star.dst[c] + 1]):
                if holds & allowed[e]:
                    waits[c, e - low] = True


@njit
def _has_cycle(star: ChannelIndex, waits: Bools) -> bool:
    """Whether channels wait for each other in a cycle: a depth-first search up to the first."""
    channels = len(star.dst)
    state, port, stack = np.zeros(channels, np.int8), np.zeros(channels, np.int64), np.zeros(channels, np.int64)
    for root in range(channels):
        if state[root] != 0:
            continue
        stack[0], top = root, 0
        state[root] = 1  # on the present path; 2: done
        while top >= 0:
            c = stack[top]
            low, high = star.out_start[star.dst[c]], star.out_start[star.dst[c] + 1]
            if low + port[c] == high:
                state[c] = 2
                top -= 1
                continue
            e, depends = low + port[c], waits[c, port[c]]
            port[c] += 1
            if not depends or state[e] == 2:
                continue
            if state[e] == 1:
                return True
            top += 1
            stack[top] = e
            state[e] = 1
    return False
