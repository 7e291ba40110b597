# SPDX-License-Identifier: Apache-2.0
"""Shortest paths by channel weights: the next hops of Dijkstra's algorithm, and whole paths along them."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Int, Integers, Ints, Masks
from flitlab.models.jit import njit
from flitlab.models.mappings import Notes
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.paths.search import UNREACHED, Star, Tree, new_tree, settle
from flitlab.models.registry import SpecError
from flitlab.models.routing.bit_parallel import most_channels, serves_hosts, shortest_ports
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.routes import RoutingSpec
from flitlab.models.rules.bits import empty_set, is_empty, lowest, with_port, without_lowest
from flitlab.models.rules.draw import Stream, below, draw, paired
from flitlab.models.rules.port_sets import ports_at, set_ports
from flitlab.models.rules.tables import MaxPorts
from flitlab.models.threads import map_row_blocks
from flitlab.models.topology.graph import DELAY, HOPS, Topology
from flitlab.models.topology.names import switch_names

LATENCY = "latency"
"""Weight of a channel: the ticks of a hop over it, header, switch, link and its own delay."""

MOST_WEIGHT = 1 << 40
"""Upper limit of weights. No path may weigh so much that numbers overflow."""

_MANY = np.int64(1) << np.int64(30)


class Hops(NamedTuple):
    """Next hops of shortest paths.

    ports: table of port sets, as :class:`~flitlab.models.routing.route_set.Routes` has it. longest: channels of the
    longest path that they allow. notes: weight and ties, where they are not hops and all.
    """

    ports: Masks
    longest: int
    notes: Notes


class ChannelWeightSpec(RoutingSpec):
    """Keys of a routing by the weight of channels, by default hops."""

    weight: str | None = None
    """Length of a channel: hops, delay, latency, or a column of the file. null: hops; of minimal
    and ecmp delay for an anynet file whose links differ in latency."""
    hop_ticks: int | None = Field(default=None, ge=0)
    """Ticks of a hop before the delay, with latency. null: of the switching mode."""

    def weight_name(self, topology: Topology) -> str:
        """The weight in force: ``hops``, ``delay``, ``latency`` or a column.

        Parameters
        ----------
        topology: the network.
        """
        return self.weight or HOPS

    def weights(self, topology: Topology) -> Ints | None:
        """The weight of each channel, int64 [channels]; None where each is 1.

        Raises ``SpecError`` for a weight that the topology lacks, that is no whole number from 1, or so large that
        distances overflow.

        Parameters
        ----------
        topology: the network.
        """
        weight = self._weights(topology, self.weight_name(topology))
        n = topology.switches
        if weight is not None and int(weight.max(initial=1)) * n >= int(UNREACHED) // max(n, 1):
            raise SpecError(f"weights up to {weight.max()} are too large for {n} switches", key="weight")
        return weight

    def _weights(self, topology: Topology, name: str) -> Ints | None:
        if name == HOPS:
            return None
        if name == DELAY:
            return topology.delay + 1
        if name == LATENCY:
            if self.hop_ticks is None:
                problem = "latency needs the ticks of a hop: those of switching, in a mode that has them, or hop_ticks"
                raise SpecError(problem, key="weight")
            return np.maximum(topology.delay + self.hop_ticks, 1)
        if name not in topology.columns:
            choices = (HOPS, DELAY, LATENCY, *topology.columns)
            raise SpecError(f"{name!r} is no column of the topology's file", key="weight", choices=choices)
        values = topology.columns[name]
        wrong = np.flatnonzero((values < 1) | (values != np.rint(values)) | (values >= MOST_WEIGHT))
        if len(wrong):
            c = wrong[0]
            ends = " to ".join(map(switch_names(topology).label, (topology.src[c], topology.dst[c])))
            problem = f"{name} of the channel from {ends} is {values[c]:g}: weights must be whole numbers from 1"
            raise SpecError(problem, key="weight")
        return values.astype(np.int64)

    def weight_notes(self, topology: Topology) -> Notes:
        """Notes for the results on weights, where they are not hops.

        Parameters
        ----------
        topology: the network.
        """
        name = self.weight_name(topology)
        return {} if name == HOPS else {"weight": name}


class WeightedSpec(ChannelWeightSpec):
    """Keys of a routing by shortest paths: the weight of channels, and the choice among equally short paths."""

    ties: Literal["all", "first"] = "all"
    """Whether all equally short paths are used, or Dijkstra's first one."""

    def weight_name(self, topology: Topology) -> str:
        """The weight in force, by default that of the topology."""
        return self.weight or topology.default_weight

    def next_hops(self, topology: Topology) -> Hops:
        """The next hops of shortest paths, none where there is no path. Raises ``SpecError`` for too many channels.

        Parameters
        ----------
        topology: the network.
        """
        degree = int(topology.out_degree.max(initial=0))
        if degree > MaxPorts.TABLE:
            raise SpecError(f"serves at most {MaxPorts.TABLE} channels out of a switch; the topology has {degree}")
        weight = self.weights(topology)
        if weight is None and self.ties == "all":
            ports, longest = shortest_ports(topology)
        else:
            ports, longest = weighted_ports(topology, weight, self.ties == "first")
        if longest < 0:  # the sets of unreachable destinations are empty
            ports, longest = part_connected_ports(topology, weight, self.ties == "first")
        return Hops(ports, longest, self._notes(topology))

    def _notes(self, topology: Topology) -> Notes:
        """Notes for the results on weights and ties, where they are not hops and all."""
        notes = self.weight_notes(topology)
        if self.weight is None and self.weight_name(topology) == DELAY:
            notes = {"weight": "delay (latencies of the file, as BookSim2 routes)"}
        return notes if self.ties == "all" else {**notes, "ties": self.ties}


def distances_from(topology: Topology, switch: int, weight: Ints) -> Ints:
    """The distance from a switch to every switch, int64 [switches]; ``UNREACHED`` without a path.

    Parameters
    ----------
    topology: the network.
    switch: the beginning of all paths.
    weight: int64 [channels], 1 or more.
    """
    far, before, by_channel, order = np.empty((4, topology.switches), np.int64)
    tree = Tree(far, before, by_channel, order, np.empty(topology.channels + 2, np.int64))
    settle(switch, Star(topology.out_start, topology.dst, weight), tree)
    return far


def weighted_ports(topology: Topology, weight: Ints | None, first: bool) -> tuple[Masks, int]:
    """The channels on shortest paths, a table of port sets, and the channels of the longest such path.

    Serves at most 128 channels per switch (not checked).

    Parameters
    ----------
    topology: the network.
    weight: int64 [channels], 1 or more; None: 1 each.
    first: of equally short paths from v only the one found first by Dijkstra's algorithm, which settles switches by
        distance from v, then number, tries channels in order, and replaces a path only by a shorter one.

    Returns
    -------
    (ports, longest). Bit i of ports[t, v] is the i-th channel out of v, for packets to t; ports[t, t] is 0. longest:
    channels of the longest path; from 255 on the bound ``switches`` - 1; -1: some pair of switches has no path, and its
    set is empty.

    Source: Dijkstra, Numerische Mathematik 1, 1959, doi:10.1007/BF01386390; for ``first``, src/networks/anynet.cpp of
    BookSim 2, github.com/booksim/booksim2.
    """
    n = topology.switches
    weight = np.ones(topology.channels, np.int64) if weight is None else weight
    ports = empty_table(topology)
    out = Star(topology.out_start, topology.dst, weight)
    into = Star(topology.in_start, topology.src[topology.in_channels], weight[topology.in_channels])
    fill = _fill_first if first else _fill_all
    reached = map_row_blocks(lambda begin, end: bool(fill(out, into, ports, begin, end)), n)
    if not all(reached) and not serves_hosts(topology):
        return ports, -1
    return ports, most_channels(topology, ports)


def part_connected_ports(topology: Topology, weight: Ints | None, first: bool) -> tuple[Masks, int]:
    """The result of :func:`weighted_ports` where some pairs of switches have no path; their sets are empty.

    Parameters
    ----------
    topology, weight, first: as for :func:`weighted_ports`.
    """
    ports, longest = weighted_ports(topology, weight, first)
    return ports, most_channels(topology, ports) if longest < 0 else longest


@njit
def _fill_all(out: Star, into: Star, ports: Masks, begin: int, end: int) -> bool:
    """Fill the rows ``begin`` to ``end`` - 1 of ports [t, v] with all shortest next hops; whether all are reached."""
    n, reached = len(ports), True
    out_start, dst, weight = out
    tree = new_tree(n, len(dst))
    far = tree.far
    for t in range(begin, end):
        reached &= settle(t, into, tree) == n
        for v in range(n):
            here = empty_set(ports_at(ports[t], v))
            for c in range(out_start[v], out_start[v + 1]):
                if v != t and weight[c] + far[dst[c]] == far[v]:
                    here = with_port(here, c - out_start[v])
            set_ports(ports[t], v, here)
    return reached


@njit
def _fill_first(out: Star, into: Star, ports: Masks, begin: int, end: int) -> bool:
    """Fill the columns ``begin`` to ``end`` - 1 of ports [t, v] with first next hops; whether all are reached."""
    n, reached = len(ports), True
    tree, port = new_tree(n, len(out.end)), np.zeros(n, np.int64)
    for v in range(begin, end):
        done = settle(v, out, tree)
        reached &= done == n
        for i in range(1, done):
            t = tree.order[i]
            before = tree.before[t]
            port[t] = tree.by_channel[t] - out.start[v] if before == v else port[before]
            set_ports(ports[t], v, with_port(empty_set(ports_at(ports[t], v)), port[t]))
    return reached


def path_sets(topology: Topology, hops: Hops, most: int, seed: int) -> Iterator[tuple[Ints, PathSet]]:
    """Up to ``most`` paths along next hops between switches with hosts, by destination.

    If a pair has more, ``most`` are drawn uniformly where there are fewer than 2**30. They are not sorted by length.

    Parameters
    ----------
    topology: the network.
    hops: the next hops.
    most: paths per pair.
    seed: of draws.

    Returns
    -------
    (pairs, paths) of each destination.
    """
    ends = topology.src_switches
    for dst_switch in topology.dst_switches.tolist():
        src_switches = ends[ends != dst_switch]
        row = hops.ports[dst_switch]
        counts, lengths, channel = _paths_to(
            dst_switch, src_switches, row, topology.out_start, topology.dst, most, seed
        )
        yield (
            src_switches * topology.switches + dst_switch,
            PathSet(starts(counts), starts(lengths), channel.astype(np.int32)),
        )


@njit
def _count_paths(row: Masks, out_start: Integers, dst: Integers, v: Int, count: Ints) -> Int:
    """The number of paths from v by next hops, at most _MANY.

    count: int64 [switches], known numbers, 1 at the destination; else -1.
    """
    stack = np.zeros(len(row) + 1, np.int64)
    stack[0], top = v, 0
    while top >= 0:
        u = stack[top]
        if count[u] >= 0:
            top -= 1
            continue
        here, total, known = ports_at(row, u), np.int64(0), True
        while not is_empty(here):
            w = dst[out_start[u] + lowest(here)]
            here = without_lowest(here)
            if count[w] >= 0:
                total += count[w]
            elif known:
                known = False
                top += 1
                stack[top] = w
        if known:
            count[u] = min(total, _MANY)
            top -= 1
    paths: Int = count[v]
    return paths


@njit
def _ranked_hop(row: Masks, out_start: Integers, dst: Integers, count: Ints, v: Int, rank: Int) -> tuple[Int, Int]:
    """The channel out of v that the path of a rank takes, and its rank among the paths behind that channel.

    count: int64 [switches], of paths from each, as in :func:`_count_paths`.
    """
    here = ports_at(row, v)
    while True:
        c = out_start[v] + lowest(here)
        here = without_lowest(here)
        if rank < count[dst[c]] or is_empty(here):
            return c, rank
        rank -= count[dst[c]]


@njit
def _paths_to(
    dst_switch: Int, src_switches: Ints, row: Masks, out_start: Integers, dst: Integers, most: int, seed: int
) -> tuple[Ints, Ints, Ints]:
    """(paths of each source, channels of each path, channels of all paths) by next hops ``row`` to a switch."""
    n = len(row)
    count = np.full(n, -1, np.int64)
    count[dst_switch] = 1
    counts, lengths = np.zeros(len(src_switches), np.int64), np.zeros(len(src_switches) * most, np.int64)
    flat, filled, paths = np.zeros(1024, np.int64), 0, 0
    chosen = np.zeros(most, np.int64)
    for k in range(len(src_switches)):
        s = src_switches[k]
        total = _count_paths(row, out_start, dst, s, count)
        counts[k] = min(total, most)
        _draw_distinct(total, counts[k], seed, s, dst_switch, chosen)
        for j in range(counts[k]):
            v, rank, first = s, chosen[j], filled
            while v != dst_switch:
                c, rank = _ranked_hop(row, out_start, dst, count, v, rank)
                if filled == len(flat):
                    longer = np.zeros(2 * filled, np.int64)
                    longer[:filled] = flat
                    flat = longer
                flat[filled] = c
                filled += 1
                v = dst[c]
            lengths[paths] = filled - first
            paths += 1
    return counts, lengths[:paths].copy(), flat[:filled].copy()


@njit
def _draw_distinct(total: Int, count: Int, seed: Int, src_switch: Int, dst_switch: Int, chosen: Ints) -> None:
    """Set chosen[:count] to different numbers below ``total``, drawn for a pair of switches; all of them if equal.

    Source: Bentley and Floyd, Communications of the ACM 30, 1987, doi:10.1145/30401.315746.
    """
    for i in range(count):
        last = total - count + i
        number = (
            last
            if total == count
            else below(draw(seed, Stream.PATH_TIES, src_switch, paired(dst_switch, i, 10)), last + 1)
        )
        for j in range(i):
            if chosen[j] == number:
                number = last
        chosen[i] = number
