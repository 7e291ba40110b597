# SPDX-License-Identifier: Apache-2.0
"""The path of every subflow, drawn once."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Integers, Ints, Ints32
from flitlab.models.jit import njit
from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.rules.route import at_destination, choose_route, next_port, path_share
from flitlab.models.rules.tables import RouteForm, Tables
from flitlab.models.topology.graph import Topology


class _PathDraw(NamedTuple):
    """How the subflows of a pair of hosts draw paths: without replacement, with it, or no more than there are paths."""

    DISTINCT: int = 0
    WITH_REPLACEMENT: int = 1
    LIMITED: int = 2


PathDraw = _PathDraw()


class Paths(NamedTuple):
    """Links of each subflow's path: those of i are link[start[i]:start[i + 1]].

    Channel c is link c, the injection channel of host h is link channels + h, its ejection channel is link
    channels + hosts + h. start: int64 [subflows + 1]. link: int32.
    """

    start: Ints
    link: Ints32


class _Subflows(NamedTuple):
    """int64 [subflows]: switches of both hosts, number in draws, and route (:func:`choose_route`)."""

    src_switch: Ints
    dst_switch: Ints
    number: Ints
    route: Ints


@njit
def _by_share(r: Tables, order: Ints, used: int, count: int, first: int, word: int) -> int:
    """Which of order[used:count] to take, by a 63-bit draw. They are paths of the pair whose first is ``first``."""
    share_left = 0.0
    for j in range(used, count):
        share_left += path_share(r, order[j], first, first + count)
    share_drawn, chosen = word / 2.0**63 * share_left, used
    while chosen + 1 < count and share_drawn >= path_share(r, order[chosen], first, first + count):
        share_drawn -= path_share(r, order[chosen], first, first + count)
        chosen += 1
    return chosen


@njit
def _draw_distinct(r: Tables, pair: Ints, group_start: Ints, seed: int, path: Ints) -> None:
    """Draw the paths of each group into ``path`` [subflows], all of its pair before any repeats, by their shares."""
    pair_start, weighed, longest = r.pair_start, len(r.path_threshold) > 0, 0
    for g in range(len(pair)):
        longest = max(longest, pair_start[pair[g] + 1] - pair_start[pair[g]])
    order = np.empty(longest, np.int64)
    for g in range(len(pair)):
        first = pair_start[pair[g]]
        count = pair_start[pair[g] + 1] - first
        if count == 0:
            continue
        for i in range(group_start[g], group_start[g + 1]):
            used = (i - group_start[g]) % count
            if used == 0:
                for j in range(count):
                    order[j] = first + j
            word = draw(seed, Stream.SUBFLOW_PATH, g, i - group_start[g])
            if weighed:
                chosen = _by_share(r, order, used, count, first, word)
            else:
                chosen = used + below(word, count - used)
            order[used], order[chosen] = order[chosen], order[used]
            path[i] = order[used]


@njit
def _walk(
    r: Tables, seed: int, out_start: Integers, dst: Integers, subflows: _Subflows, drawn: bool, paths: Paths
) -> None:
    """Follow the route of every subflow. Channels go to ``paths.link`` if it has space, path starts to ``paths.start``.

    drawn: whether the routes are drawn already.
    """
    (src_switch, dst_switch, number, route), (start, link) = subflows, paths
    for i in range(len(src_switch)):
        if not drawn:
            route[i] = choose_route(r, seed, number[i], 0, 1, 0, src_switch[i], dst_switch[i])
        switch, hop = src_switch[i], 0
        first_link = start[i] + 1
        while not at_destination(r, route[i], hop, switch, dst_switch[i]):
            port = next_port(r, route[i], seed, switch, dst_switch[i], number[i], 0, 1, 0, hop)
            if len(link):
                link[first_link + hop] = out_start[switch] + port
            switch = dst[out_start[switch] + port]
            hop += 1
        if not len(link):
            start[i + 1] = start[i] + hop + 2


def draw_paths(
    topology: Topology,
    routes: Routes,
    source: np.ndarray,
    destination: np.ndarray,
    group_start: np.ndarray,
    path_draw: int,
    seed: int,
    number: np.ndarray | None = None,
) -> Paths:
    """A path for every subflow, from the routes of its pair of hosts.

    ``PathDraw.DISTINCT`` draws the paths of a group without replacement, where routes are whole paths; a pair with
    fewer paths than subflows uses all of them as evenly as possible. Otherwise every subflow draws independently: a
    path, or a next hop at every switch by a hash that differs between switches.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    source, destination: hosts, int64 [groups].
    group_start: int64 [groups + 1], the subflows of each group.
    path_draw: :data:`PathDraw`.
    seed: of all draws.
    number: int64 [subflows], numbers of the subflows in draws; None: 0, 1, ...

    Returns
    -------
    The paths.
    """
    r, sizes = routes.tables(topology), np.diff(group_start)
    host_switch = topology.host_switch
    src_switch, dst_switch = np.repeat(host_switch[source], sizes), np.repeat(host_switch[destination], sizes)
    subflows = len(src_switch)
    route = np.zeros(subflows, np.int64)
    distinct = path_draw == PathDraw.DISTINCT and routes.form == RouteForm.PATHS
    if distinct:
        _draw_distinct(r, host_switch[source] * topology.switches + host_switch[destination], group_start, seed, route)
    ends = _Subflows(src_switch, dst_switch, np.arange(subflows) if number is None else number, route)
    start, link = np.zeros(subflows + 1, np.int64), np.zeros(0, np.int32)
    for _ in range(2):  # the first time to count
        _walk(r, seed, topology.out_start, topology.dst, ends, distinct, Paths(start, link))
        link = np.zeros(start[-1], np.int32) if not len(link) else link
    link[start[:-1]] = topology.channels + np.repeat(source, sizes)
    link[start[1:] - 1] = topology.channels + topology.hosts + np.repeat(destination, sizes)
    return Paths(start, link)


def subflow_counts(topology: Topology, routes: Routes, source: Ints, destination: Ints, most: Ints) -> Ints:
    """Subflows of each flow, int64 [flows]: at most the paths of its pair (``PathDraw.LIMITED``).

    Hosts of the same switch have one path.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    source, destination: hosts, int64 [flows].
    most: largest number of subflows of each flow, int64 [flows].

    Raises
    ------
    SpecError: the routes are no whole paths.
    """
    if routes.form != RouteForm.PATHS:
        raise SpecError("limited needs a routing of whole paths, such as ecmp or ksp", key="path_draw")
    assert routes.paths is not None
    host_switch = topology.host_switch
    pair = host_switch[source] * topology.switches + host_switch[destination]
    counts: Ints = np.clip(np.diff(routes.paths.pair_start)[pair], 1, most)
    return counts


def most_paths(topology: Topology, routes: Routes) -> int | None:
    """The most paths of any pair of hosts; None where routes are no whole paths.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    """
    if routes.form != RouteForm.PATHS:
        return None
    assert routes.paths is not None
    return int(np.diff(routes.paths.pair_start).max(initial=1))


def backwards(topology: Topology, paths: Paths) -> Paths:
    """The reverse paths, each channel replaced by its reverse.

    Parameters
    ----------
    topology: the network.
    paths: the paths.

    Raises
    ------
    SpecError: a channel has no reverse.
    """
    channels, hosts = topology.channels, topology.hosts
    reverse = np.concatenate([topology.reverse, channels + hosts + np.arange(hosts), channels + np.arange(hosts)])
    sizes = np.diff(paths.start)
    index = np.repeat(paths.start[:-1] + paths.start[1:] - 1, sizes) - np.arange(len(paths.link))
    link = reverse[paths.link[index]]
    if (link < 0).any():
        raise SpecError("reverse_path needs bi-directional links", key="ack_path", choices=("instant", "pure_delay"))
    return Paths(paths.start, link.astype(np.int32))
