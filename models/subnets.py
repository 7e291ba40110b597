# SPDX-License-Identifier: Apache-2.0
"""Subnets: copies of a network that share their hosts and nothing else.

A network of n subnets is one topology of n disjoint copies. Copy s of host h has the number s * H + h: each host has a
source queue, an injection and an ejection channel in every subnet. Routes and demands lead nowhere else, so engines,
certificates and ceilings treat the copies as they treat any network.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import scipy

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Fields, Notes
from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import PathTable, RouteForm, Routes
from flitlab.models.routing.validation import mark_validated
from flitlab.models.switching.buffers import ChannelBuffers
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.graph import Grid, Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.names import OF_HOSTS, OF_SWITCHES, host_names, switch_names
from flitlab.models.traffic.classes import summed_demand
from flitlab.models.traffic.table import MAX_ENTRIES, table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficClass

_FORMS = (RouteForm.TABLE, RouteForm.PATHS)


def topology_in_subnets(topology: Topology, count: int) -> Topology:
    """The topology of ``count`` copies of a network.

    Switch 5 of subnet 1 is ``5@1``, and so are labels. Copies follow one another in the numbers of switches, channels
    and hosts.

    Parameters
    ----------
    topology: of one subnet, with hosts.
    count: number of subnets.

    Raises
    ------
    SpecError: it has too many channels.
    """
    limit_size(count * max(topology.channels, topology.hosts), "subnets")
    n, grid = topology.switches, topology.grid
    copy = np.arange(count)
    reverse = np.where(topology.reverse < 0, -1, topology.reverse + copy[:, None] * topology.channels)
    if grid is not None:  # the subnet is a dimension without channels
        place = np.column_stack([np.repeat(copy, n), np.tile(grid.coordinates, (count, 1))])
        grid = Grid((count, *grid.dims), grid.wrap, place)
    names = {
        "labels": _names(switch_names(topology).values(range(n)), count),
        "nodes": _names(host_names(topology).values(range(topology.hosts)), count),
    }
    notes = {key: note for key, note in topology.notes.items() if key not in (*OF_SWITCHES, *OF_HOSTS, "names")}
    tiled: Fields = {
        name: np.tile(getattr(topology, name), count)
        for name in ("capacity", "delay", "host_delay")
        if getattr(topology, name) is not None
    }
    return replace(
        topology, **tiled, switches=count * n, src=_shifted(topology.src, count, n),
        dst=_shifted(topology.dst, count, n), reverse=reverse.ravel(), grid=grid,
        host_switch=_shifted(topology.host_switch, count, n), subnets=count,
        ejection=None if topology.ejection is None else _shifted(topology.ejection, count, n),
        columns={name: np.tile(values, count) for name, values in topology.columns.items()},
        notes=_without_parts(notes) | names | {"subnets": count},
    )  # fmt: skip


def _without_parts(notes: Notes) -> Notes:
    """Notes without the tiers and clusters of a network, which number the switches of one copy."""
    return {key: note for key, note in notes.items() if key not in ("tiers", "clusters")}


def _names(names: Sequence[object], count: int) -> list[str]:
    return [f"{name}@{copy}" for copy in range(count) for name in names]


def _shifted(numbers: Ints, count: int, size: int) -> Ints:
    """Numbers in one copy of ``size`` entities, as numbers in all copies, one copy behind another."""
    shifted: Ints = (numbers + size * np.arange(count)[:, None]).ravel()
    return shifted


def routes_in_subnets(routes: Routes, topology: Topology, count: int) -> Routes:
    """The routes of every subnet; there are none between subnets.

    Parameters
    ----------
    routes: of one subnet, valid.
    topology: of all subnets.
    count: number of subnets.

    Raises
    ------
    SpecError: routes that are neither a table of next hops nor paths.
    """
    if routes.form not in _FORMS:
        problem = (
            f"{routes.kind} draws or computes next hops by the numbers of all switches; subnets need a table or paths "
            "(dor, ecmp, updown, ksp, table)"
        )
        raise SpecError(problem, key="routing.kind")
    size = topology.switches // count
    by_pair: Fields = {
        name: _block_diagonal(getattr(routes, name), count)
        for name in ("ports", "escape", "port_threshold")
        if getattr(routes, name) is not None and getattr(routes, name).size
    }
    paths, layer = routes.paths, routes.layer
    if layer is not None:
        of_pairs = paths is None
        layer = _block_diagonal(layer.reshape(size, size), count).ravel() if of_pairs else np.tile(layer, count)
    copied = replace(
        routes, **by_pair, layer=layer, paths=paths and _paths(paths, size, count),
        group=None if routes.group is None else np.tile(routes.group, count),
    )  # fmt: skip
    return mark_validated(topology, copied)


def _block_diagonal(array: np.ndarray, count: int) -> np.ndarray:
    """[switches, switches, ...] of one copy as that of all copies, 0 between copies."""
    size = len(array)
    blocks = np.zeros((count * size, count * size, *array.shape[2:]), array.dtype)
    for first in range(0, count * size, size):
        blocks[first : first + size, first : first + size] = array
    return blocks


def _paths(paths: PathTable, size: int, count: int) -> PathTable:
    """The paths within every copy of ``size`` switches."""
    per_pair = _block_diagonal(np.diff(paths.pair_start).reshape(size, size), count)
    ports = len(paths.port)
    starts = [paths.path_start[:-1] + copy * ports for copy in range(count)]
    return PathTable(
        np.concatenate([[0], np.cumsum(per_pair)]).astype(np.int64),
        np.concatenate([*starts, [count * ports]]).astype(np.int64),
        np.tile(paths.port, count),
        np.tile(paths.threshold, count),
    )


def traffic_in_subnets(traffic: Traffic, topology: Topology, count: int) -> Traffic:
    """The demand of every subnet.

    A class with a ``subnet`` has its demand there; of all others each subnet has the same part.

    Parameters
    ----------
    traffic: of one network.
    topology: of all subnets.
    count: number of subnets.

    Raises
    ------
    SpecError: there are too many pairs of hosts.
    """
    if not traffic.classes:
        alternates = tuple(_demand_in(other, topology, range(count), count) for other in traffic.alternates)
        background = traffic.background and _demand_in(traffic.background, topology, range(count), count)
        own = _demand_in(traffic, topology, range(count), count)
        return replace(own, alternates=alternates, background=background)
    classes = tuple(_class_in(one, topology, count) for one in traffic.classes)
    growing, fixed = (
        summed_demand(traffic.kind, topology, [(one.demand, getattr(one, field)) for one in classes
                                               if getattr(one, field)])
        for field in ("share", "load")
    )  # fmt: skip
    assert growing is not None
    return replace(growing, background=fixed, classes=classes, notes=traffic.notes)


def _class_in(one: TrafficClass, topology: Topology, count: int) -> TrafficClass:
    subnets = range(count) if one.subnet is None else [one.subnet]
    return replace(one, demand=_demand_in(one.demand, topology, subnets, len(subnets)))


def _demand_in(traffic: Traffic, topology: Topology, subnets: Any, parts: int) -> Traffic:
    """A demand in some subnets, divided by ``parts`` in each."""
    hosts = traffic.topology.hosts
    source, target, amount = traffic.pairs()
    limit_size(len(amount) * len(subnets), "subnets", "demands between hosts", MAX_ENTRIES)
    first = np.repeat(hosts * np.array(subnets), len(amount))
    ends = tuple(np.tile(end, len(subnets)) + first for end in (source, target))
    weight = np.tile(np.asarray(amount) / parts, len(subnets))
    matrix = scipy.sparse.csr_array((weight, ends), (topology.hosts,) * 2)
    return table_traffic(traffic.kind, topology, matrix, hose=False, notes=traffic.notes)


def mode_in_subnets(mode: SwitchingMode, topology: Topology, count: int) -> Any:
    """A switching mode of one subnet for all of them: it has the buffers of every channel.

    Parameters
    ----------
    mode: built for one subnet.
    topology: of one subnet.
    count: number of subnets.
    """
    if "channel_buffers" not in {field.name for field in fields(mode)}:
        return mode
    buffers: ChannelBuffers | None = getattr(mode, "channel_buffers")  # noqa: B009
    if buffers is None:
        return mode
    network, hosts = np.split(np.array(buffers.flits), [topology.channels])
    flits = np.concatenate([np.tile(network, count), np.tile(hosts, count)])
    return replace(mode, channel_buffers=ChannelBuffers(tuple(flits.tolist()), buffers.keys))  # type: ignore[call-arg]
