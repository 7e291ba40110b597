# SPDX-License-Identifier: Apache-2.0
"""Routes of what is left of a network, in the numbers that its switches and ports have in the whole of it."""

from dataclasses import replace

import numpy as np

from flitlab.models.arrays import Bytes, Ints, Masks
from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import DIGITS, POLARIZED, Routes
from flitlab.models.timeline.epochs import Left
from flitlab.models.topology.graph import Topology


def widened(routes: Routes, left: Left, whole: Topology) -> Routes:
    """The routes of what is left of a network, with the switches and the ports that they have in the whole of it.

    Raises :class:`~flitlab.models.registry.SpecError` for routes that are computed from the numbers of switches, or
    from the distances to all neighbours, which tables of what is left do not say.
    """
    if left.topology is whole:
        return routes
    if routes.form in (DIGITS, POLARIZED):
        problem = f"{routes.kind} computes its next hops from the whole network and cannot serve what is left of one"
        raise SpecError(problem, key="timeline")
    port = left.channel - whole.out_start[whole.src[left.channel]]
    return replace(
        routes,
        ports=routes.ports if not routes.ports.size else _sets(routes.ports, left, whole, port),
        paths=None if routes.paths is None else routes.paths._replace(
            pair_start=_pairs(np.diff(routes.paths.pair_start), left, whole), port=_path_ports(routes, left, port)
        ),
        leg=_spread(routes.leg, left, whole),
        layer=_layers(routes, left, whole),
        escape=_escape(routes.escape, left, whole, port),
        group=None if routes.group is None else _by_switch(routes.group, left, whole),
        port_threshold=_thresholds(routes.port_threshold, left, whole, port),
    )  # fmt: skip


def _sets(ports: Masks, left: Left, whole: Topology, port: Ints) -> Masks:
    """Sets of ports, uint64 [switches, switches]; port: int64 [channels left], what each is in the whole network."""
    small, found = left.topology, np.zeros((whole.switches, whole.switches), np.uint64)
    for channel, now in enumerate(port.tolist()):
        tail = int(small.src[channel])
        before = np.uint64(channel - small.out_start[tail])
        found[left.switch, left.switch[tail]] |= (ports[:, tail] >> before & np.uint64(1)) << np.uint64(now)
    return found


def _pairs(count: Ints, left: Left, whole: Topology) -> Ints:
    """Where the paths of each pair of switches begin, from how many there are of each pair that is left."""
    every = np.zeros((whole.switches, whole.switches), np.int64)
    every[np.ix_(left.switch, left.switch)] = count.reshape(left.topology.switches, -1)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(every)])


def _path_ports(routes: Routes, left: Left, port: Ints) -> Bytes:
    """The ports of all paths; port: as in :func:`_sets`."""
    small, paths = left.topology, routes.paths
    assert paths is not None
    length = np.diff(paths.path_start)
    here = np.repeat(np.arange(small.switches**2) // small.switches, np.diff(paths.pair_start))
    found = paths.port.copy()
    for hop in range(int(length.max(initial=0))):
        on = np.flatnonzero(length > hop)
        place = paths.path_start[on] + hop
        channel = small.out_start[here[on]] + paths.port[place]
        found[place] = port[channel]
        here[on] = small.dst[channel]
    return found


def _spread(table: Bytes | None, left: Left, whole: Topology) -> Bytes | None:
    """A table [switches, switches] of what is left; 0 for all other switches."""
    if table is None:
        return None
    found = np.zeros((whole.switches, whole.switches), table.dtype)
    found[np.ix_(left.switch, left.switch)] = table
    return found


def _layers(routes: Routes, left: Left, whole: Topology) -> Bytes | None:
    """The layer of each path, or of each pair of switches where there are no paths."""
    if routes.layer is None or routes.paths is not None:
        return routes.layer
    table = _spread(routes.layer.reshape(left.topology.switches, -1), left, whole)
    assert table is not None
    return table.ravel()


def _escape(table: Bytes | None, left: Left, whole: Topology, port: Ints) -> Bytes | None:
    """The ports of escape channels, uint8 [switches, switches]; port: as in :func:`_sets`."""
    if table is None:
        return None
    small = left.topology
    channel = small.out_start[None, :-1] + table
    last = np.maximum(small.channels - 1, 0)
    return _spread(port[np.minimum(channel, last)].astype(np.uint8), left, whole)


def _by_switch(table: np.ndarray, left: Left, whole: Topology) -> np.ndarray:
    """A number of each switch; -1 of those that are not left."""
    found = np.full(whole.switches, -1, table.dtype)
    found[left.switch] = table
    return found


def _thresholds(table: Bytes | None, left: Left, whole: Topology, port: Ints) -> Bytes | None:
    """Thresholds of ports, uint8 [switches, switches, ports]; port: as in :func:`_sets`."""
    if table is None:
        return None
    small = left.topology
    found = np.zeros((whole.switches, whole.switches, int(whole.out_degree.max(initial=1))), table.dtype)
    for channel, now in enumerate(port.tolist()):
        tail = int(small.src[channel])
        found[left.switch, left.switch[tail], now] = table[:, tail, channel - small.out_start[tail]]
    return found
