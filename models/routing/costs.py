# SPDX-License-Identifier: Apache-2.0
"""The least and the greatest cost of routes between hosts, given a cost per channel, such as ticks."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Ints, Masks
from flitlab.models.jit import njit
from flitlab.models.routing.next_hops import Walk, follow, new_walk
from flitlab.models.routing.route_set import PathTable, Routes
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.port_sets import ports_at
from flitlab.models.rules.tables import RouteForm, Selection
from flitlab.models.topology.graph import Topology

_FAR = np.int64(1) << np.int64(60)


class Costs(NamedTuple):
    """The least and the greatest cost of routes between different hosts."""

    least: int
    most: int


def route_costs(topology: Topology, routes: Routes, channel: Ints, host: Ints) -> Costs:
    """The least and the greatest cost of a route between two different hosts; 0 and 0 without two hosts.

    Next hops are followed wherever they lead; escape channels and deflections are ignored. Both values are bounds for
    routes over an intermediate switch, for computed ones (DIGITS, POLARIZED), and where hosts of different costs share
    the switch where they inject and another where they eject.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    channel: int64 [channels], cost of each channel between switches, at least 0.
    host: int64 [hosts], cost of the injection channel of each host, and of its ejection channel.
    """
    if topology.hosts < 2:
        return Costs(0, 0)
    src, dst = topology.src_switches, topology.dst_switches
    into, out = (_costs_by_switch(topology, one, host) for one in (topology.host_switch, topology.ejection_switch))
    own = _own_target(topology)
    local = _same_switch_costs(topology, host, into, out, own)
    if len(src) == len(dst) == 1 == (src == dst).sum():
        return Costs(*local)
    graph = topology.out_start, topology.dst
    if routes.form == RouteForm.PATHS:
        assert routes.paths is not None
        least, most = _path_costs(routes.paths, graph, channel, into, out, own)
    elif routes.form in (RouteForm.TABLE, RouteForm.VIA):
        walk = new_walk(routes.ports)
        least, most, first, second = _hop_costs(routes.ports, (src, dst), graph, channel, into, out, own, walk)
        if routes.form == RouteForm.VIA:
            most = int((first + second)[dst].max())
            most += int(channel.max(initial=0)) * (routes.select == Selection.PROGRESSIVE)
    else:
        spread = 2 * int(host.min()), 2 * int(host.max())
        bounds = spread[0] + int(channel.min()), spread[1] + routes.hops_max * int(channel.max())
        return Costs(min(bounds[0], local[0]), max(bounds[1], local[1]))
    return Costs(min(int(least), local[0]), max(int(most), local[1]))


def _costs_by_switch(topology: Topology, switch: Ints, host: Ints) -> Ints:
    """The least and the greatest cost of a host channel at each switch, int64 [2, switches].

    switch, host: int64 [hosts], the switch of each host channel, and its cost.
    """
    costs = np.array([[_FAR], [-_FAR]]).repeat(topology.switches, 1)
    np.minimum.at(costs[0], switch, host)
    np.maximum.at(costs[1], switch, host)
    return costs


def _own_target(topology: Topology) -> Ints:
    """The switch where the host of each switch ejects: int64 [switches], -1 if other hosts inject or eject there, too.

    A host sends nothing to itself, so no packet takes the routes between them.
    """
    own = np.full(topology.switches, -1)
    start, end = topology.host_switch, topology.ejection_switch
    is_single = (topology.host_count[start] == 1) & (topology.ejection_count[end] == 1)
    own[start[is_single]] = end[is_single]
    return own


def _same_switch_costs(topology: Topology, host: Ints, into: Ints, out: Ints, own: Ints) -> tuple[int, int]:
    """The least and the greatest cost from a host to another that ejects at the same switch; (far, 0) if none does.

    into, out, own: as of :func:`_hop_costs`.
    """
    if topology.is_multistage:
        here = (topology.host_count > 0) & (topology.ejection_count > 0) & (own != np.arange(topology.switches))
        least, most = (into + out)[:, here]
        return int(least.min(initial=_FAR)), int(most.max(initial=0))
    order = np.lexsort((host, topology.host_switch))
    switch, cost = topology.host_switch[order], host[order]
    pairs = (cost[:-1] + cost[1:])[switch[:-1] == switch[1:]]
    return int(pairs.min(initial=_FAR)), int(pairs.max(initial=0))


@njit
def _hop_costs(
    ports: Masks, ends: tuple[Ints, Ints], graph: tuple[Ints, Ints], channel: Ints, into: Ints, out: Ints, own: Ints,
    w: Walk,
) -> tuple[Int, Int, Ints, Ints]:  # fmt: skip
    """Least and greatest cost between hosts by next hops, and the greatest to, and from, each switch.

    ends: switches at which hosts inject, and eject. into, out: int64 [2, switches], least and greatest cost of the
    injection, and ejection, channel of a host there. own: as :func:`_own_target` returns. w: scratch.
    """
    out_start, dst = graph
    sources, targets = ends
    n = len(ports)
    low_cost, high_cost = np.zeros(n, np.int64), np.zeros(n, np.int64)
    least, most = _FAR, np.int64(0)
    most_to, most_from = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for t in targets:
        _, done = follow(ports[t], out_start, dst, t, sources, w)
        low_cost[t] = high_cost[t] = 0
        for v in w.order[:done]:  # those farther on come first
            here = ports_at(ports[t], v)
            low_cost[v], high_cost[v] = _FAR, 0
            while not is_empty(here):
                c = out_start[v] + lowest(here)
                here = without_lowest(here)
                low_cost[v] = min(low_cost[v], channel[c] + low_cost[dst[c]])
                high_cost[v] = max(high_cost[v], channel[c] + high_cost[dst[c]])
        for s in sources:
            if s != t and t != own[s]:
                least = min(least, into[0, s] + low_cost[s] + out[0, t])
                most = max(most, into[1, s] + high_cost[s] + out[1, t])
            most_to[t] = max(most_to[t], into[1, s] + (high_cost[s] if s != t else 0))
            most_from[s] = max(most_from[s], out[1, t] + (high_cost[s] if s != t else 0))
    return least, most, most_to, most_from


@njit
def _path_costs(
    paths: PathTable, graph: tuple[Ints, Ints], channel: Ints, into: Ints, out: Ints, own: Ints
) -> tuple[Int, Int]:
    """The least and the greatest cost of paths; arguments as of :func:`_hop_costs`."""
    pair_start, path_start, port, _ = paths
    out_start, dst = graph
    n, least, most = len(out_start) - 1, _FAR, np.int64(0)
    for pair in range(n * n):
        s, t = pair // n, pair % n
        if t == own[s]:
            continue
        for p in range(pair_start[pair], pair_start[pair + 1]):
            v, cost = s, np.int64(0)
            for i in range(path_start[p], path_start[p + 1]):
                c = out_start[v] + np.int64(port[i])
                cost += channel[c]
                v = dst[c]
            least = min(least, into[0, s] + cost + out[0, t])
            most = max(most, into[1, s] + cost + out[1, t])
    return least, most
