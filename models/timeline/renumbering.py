# SPDX-License-Identifier: Apache-2.0
"""Routes of a surviving network in the switch and port numbers of the whole network."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flitlab.models.arrays import Bytes, Ints, Masks
from flitlab.models.registry import SpecError
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.routes import PathTable, RouteForm, Routes
from flitlab.models.routing.validation import mark_validated
from flitlab.models.rules.port_sets import allow, allows
from flitlab.models.timeline.surviving import SurvivingNetwork
from flitlab.models.topology.graph import Topology


def renumbered_routes(routes: Routes, surviving: SurvivingNetwork, whole: Topology) -> Routes:
    """Translate the routes of a surviving network to the switch and port numbers of the whole network.

    Parameters
    ----------
    routes: of ``surviving``.
    surviving: the surviving network.
    whole: the network as built.

    Raises
    ------
    SpecError: the routes are computed from switch numbers, or from the distances of all neighbours, which tables of the
        surviving network do not contain.
    """
    if surviving.topology is whole:
        return routes
    if routes.form in (RouteForm.DIGITS, RouteForm.POLARIZED):
        problem = f"{routes.kind} computes next hops from the whole network and does not support a part of it"
        raise SpecError(problem, key="timeline")
    port = surviving.channel - whole.out_start[whole.src[surviving.channel]]
    return replace(
        routes,
        ports=routes.ports if not routes.ports.size else _port_sets(routes.ports, surviving, whole, port),
        paths=None if routes.paths is None else routes.paths._replace(
            pair_start=_pair_start(np.diff(routes.paths.pair_start), surviving, whole),
            port=_path_ports(routes, surviving, port),
        ),
        leg=_per_pair(routes.leg, surviving, whole),
        layer=_layers(routes, surviving, whole),
        escape=_escape(routes.escape, surviving, whole, port),
        group=None if routes.group is None else _per_switch(routes.group, surviving, whole),
        port_threshold=_thresholds(routes.port_threshold, surviving, whole, port),
    )  # fmt: skip


def merged_routes(parts: Sequence[Routes], topology: Topology) -> Routes:
    """Merge the routes of the subnets of a network.

    Parameters
    ----------
    parts: of each subnet in order, each as :func:`renumbered_routes` returns it: with routes of one subnet only.
    topology: all subnets.
    """

    def merged(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return arrays[0] if arrays[0] is None else np.maximum.reduce(arrays)

    first = parts[0]
    paths = None if first.paths is None else _merged_paths([part.paths for part in parts if part.paths is not None])
    layer = merged("layer") if paths is None or first.layer is None else np.concatenate([part.layer for part in parts])
    whole = replace(
        first, ports=merged("ports"), hops_max=max(part.hops_max for part in parts), paths=paths, layer=layer,
        layers=max(part.layers for part in parts), leg=merged("leg"), escape=merged("escape"), group=merged("group"),
        port_threshold=merged("port_threshold"),
    )  # fmt: skip
    return mark_validated(topology, whole)


def _merged_paths(parts: Sequence[PathTable]) -> PathTable:
    """The paths of all subnets: those of a subnet belong to consecutive pairs of switches."""
    first_port = np.cumsum([0, *(len(part.port) for part in parts)])
    starts = [part.path_start[:-1] + first for part, first in zip(parts, first_port, strict=False)]
    return PathTable(
        np.sum([part.pair_start for part in parts], axis=0),
        np.concatenate([*starts, first_port[-1:]]).astype(np.int64),
        np.concatenate([part.port for part in parts]),
        np.concatenate([part.threshold for part in parts]),
    )


def _port_sets(ports: Masks, surviving: SurvivingNetwork, whole: Topology, port: Ints) -> Masks:
    """Translate a table of port sets. port: int64 [channels], the port of each in the whole network."""
    topology, port_sets = surviving.topology, empty_table(whole)
    for channel, whole_port in enumerate(port.tolist()):
        tail = topology.src[channel]
        allowed = allows(ports, np.arange(topology.switches), tail, channel - topology.out_start[tail])
        allow(port_sets, surviving.switch[allowed], surviving.switch[tail], whole_port)
    return port_sets


def _pair_start(count: Ints, surviving: SurvivingNetwork, whole: Topology) -> Ints:
    """Return where the paths of each pair begin, int64 [pairs + 1]. count: paths of each surviving pair."""
    counts = np.zeros((whole.switches, whole.switches), np.int64)
    counts[np.ix_(surviving.switch, surviving.switch)] = count.reshape(surviving.topology.switches, -1)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _path_ports(routes: Routes, surviving: SurvivingNetwork, port: Ints) -> Bytes:
    """Translate the ports of all paths. port: as in :func:`_port_sets`."""
    topology, paths = surviving.topology, routes.paths
    assert paths is not None
    length = np.diff(paths.path_start)
    switch = np.repeat(np.arange(topology.switches**2) // topology.switches, np.diff(paths.pair_start))
    ports = paths.port.copy()
    for hop in range(int(length.max(initial=0))):
        paths_with_hop = np.flatnonzero(length > hop)
        index = paths.path_start[paths_with_hop] + hop
        channel = topology.out_start[switch[paths_with_hop]] + paths.port[index]
        ports[index] = port[channel]
        switch[paths_with_hop] = topology.dst[channel]
    return ports


def _per_pair(table: Bytes | None, surviving: SurvivingNetwork, whole: Topology) -> Bytes | None:
    """Translate a table [switches, switches]; the entries of all other switches are 0."""
    if table is None:
        return None
    full_table = np.zeros((whole.switches, whole.switches), table.dtype)
    full_table[np.ix_(surviving.switch, surviving.switch)] = table
    return full_table


def _layers(routes: Routes, surviving: SurvivingNetwork, whole: Topology) -> Bytes | None:
    """Translate the layer of each path, or of each pair of switches where there are no paths."""
    if routes.layer is None or routes.paths is not None:
        return routes.layer
    table = _per_pair(routes.layer.reshape(surviving.topology.switches, -1), surviving, whole)
    assert table is not None
    return table.ravel()


def _escape(table: Bytes | None, surviving: SurvivingNetwork, whole: Topology, port: Ints) -> Bytes | None:
    """Translate the ports of escape channels, uint8 [switches, switches]. port: as in :func:`_port_sets`."""
    if table is None:
        return None
    topology = surviving.topology
    channel = topology.out_start[None, :-1] + table
    last = np.maximum(topology.channels - 1, 0)
    return _per_pair(port[np.minimum(channel, last)].astype(np.uint8), surviving, whole)


def _per_switch(table: np.ndarray, surviving: SurvivingNetwork, whole: Topology) -> np.ndarray:
    """Translate an array [switches]; the entries of failed switches are -1."""
    full_table = np.full(whole.switches, -1, table.dtype)
    full_table[surviving.switch] = table
    return full_table


def _thresholds(table: Bytes | None, surviving: SurvivingNetwork, whole: Topology, port: Ints) -> Bytes | None:
    """Translate thresholds of ports, uint8 [switches, switches, ports]. port: as in :func:`_port_sets`."""
    if table is None:
        return None
    topology = surviving.topology
    thresholds = np.zeros((whole.switches, whole.switches, int(whole.out_degree.max(initial=1))), table.dtype)
    for channel, whole_port in enumerate(port.tolist()):
        tail = int(topology.src[channel])
        thresholds[surviving.switch, surviving.switch[tail], whole_port] = table[
            :, tail, channel - topology.out_start[tail]
        ]
    return thresholds
