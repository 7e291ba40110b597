# SPDX-License-Identifier: Apache-2.0
"""Racks of a network, and its cables with their ports, lengths and bundles.

Source: SIN section 6.5: switches in a cluster at the centre of the floor, and cables between the same racks in bundles.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.delimited import csv_text
from flitlab.models.files import replace_file
from flitlab.models.layout.constants import Floor
from flitlab.models.layout.floor import cabinet_places, cables_of
from flitlab.models.layout.nodes import are_switches, standing_with
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names, switch_names

Arrangement = Literal["cluster", "mixed"]
"""Where switches stand: in racks of their own at the centre of the floor, or in racks with their hosts."""

COLUMNS = ("cable", "from_rack", "from", "from_port", "to_rack", "to", "to_port", "length_m", "bundle")
"""Columns of a blueprint."""


class Racks(NamedTuple):
    """The racks of a network.

    place: float64 [racks, 2], metres. of_switch: int64 [switches]. of_host: int64 [hosts]. switch_racks: number of
    racks with switches, which have the lowest numbers.
    """

    place: Floats
    of_switch: Ints
    of_host: Ints
    switch_racks: int


class Blueprint(NamedTuple):
    """All cables of a network: those to hosts first, then those between switches.

    ends: int64 [cables, 2], the switch, and the host or the other switch (a server, where servers are linked); of a
    uni-directional cable first the sender.
    ports: int64 [cables, 2], of these ends from 0. racks: int64 [cables, 2]. metres: float64
    [cables]. bundle: int64 [cables], cables between the same two racks share one; -1 inside a rack. hosts: number of
    cables to hosts.
    """

    ends: Ints
    ports: Ints
    racks: Ints
    metres: Floats
    bundle: Ints
    hosts: int


def racks_of(topology: Topology, arrangement: Arrangement, switches: int, hosts: int, floor: Floor) -> Racks:
    """Assign switches and hosts to racks in the order of their numbers; a card or server is where its host is.

    Parameters
    ----------
    topology: the network.
    arrangement: where switches stand. The racks of a ``cluster`` are those nearest to the centre of the floor.
    switches: switches in a rack that has some.
    hosts: hosts in a rack without switches; of no effect on ``mixed`` racks.
    floor: distances between racks.
    """
    is_switch = are_switches(topology)
    number = np.maximum(np.cumsum(is_switch) - 1, 0)
    of_switch = number[standing_with(topology)] // switches
    switch_racks = int(of_switch.max()) + 1
    if arrangement == "mixed":
        return Racks(
            cabinet_places(switch_racks, floor.pitch), of_switch, of_switch[topology.host_switch], switch_racks
        )
    host_rack = np.arange(topology.hosts) // hosts
    place = cabinet_places(switch_racks + int(host_rack.max(initial=-1)) + 1, floor.pitch)
    centre = (place.min(axis=0) + place.max(axis=0)) / 2
    inwards = np.argsort(np.abs(place - centre).sum(axis=1).round(9), kind="stable")
    order = np.concatenate([inwards[:switch_racks], np.sort(inwards[switch_racks:])])
    of_host = switch_racks + host_rack
    first = _first_hosts(topology)
    of_switch[first >= 0] = of_host[first[first >= 0]]
    return Racks(place[order], of_switch, of_host, switch_racks)


def _first_hosts(topology: Topology) -> Ints:
    """The first host of each card or server, int64 [switches]; -1 of those without hosts, and of switches."""
    first = np.full(topology.switches, -1)
    first[topology.host_switch[::-1]] = np.arange(topology.hosts)[::-1]
    first[are_switches(topology)] = -1
    return first


def blueprint(topology: Topology, racks: Racks, floor: Floor) -> Blueprint:
    """List the cables of a network.

    Parameters
    ----------
    topology: the network.
    racks: where its switches and hosts stand.
    floor: lengths within a rack, and what is added between racks.
    """
    first, every = _first_hosts(topology), cables_of(topology)
    at_servers = every.to_host & (first[every.ends] >= 0).any(axis=1)
    cables, of_servers = every.only(~at_servers), np.sort(first[every.ends[at_servers]], axis=1)[:, 1]
    switch = np.where(first[every.ends[at_servers]] < 0, every.ends[at_servers], -1).max(axis=1, initial=-1)
    hosts = np.flatnonzero(first[topology.host_switch] < 0)
    to_hosts = np.concatenate([
        np.column_stack([topology.host_switch[hosts], hosts]), np.column_stack([switch, of_servers]),
    ])  # fmt: skip
    ends = np.concatenate([to_hosts, cables.ends])
    one_way = np.concatenate([np.zeros(len(to_hosts), bool), cables.unidirectional])
    host_rack = np.column_stack([racks.of_switch[to_hosts[:, 0]], racks.of_host[to_hosts[:, 1]]])
    rack = np.concatenate([host_rack, racks.of_switch[cables.ends]])
    metres = np.abs(racks.place[rack[:, 0]] - racks.place[rack[:, 1]]).sum(axis=1)
    is_inside = rack[:, 0] == rack[:, 1]
    metres = np.where(is_inside, floor.intra_cabinet, metres + floor.overhead)
    pair = np.sort(rack, axis=1) @ [len(racks.place), 1]
    bundle = np.full(len(ends), -1)
    bundle[~is_inside] = np.unique(pair[~is_inside], return_inverse=True)[1]
    return Blueprint(ends, _ports(ends, topology, one_way, len(to_hosts)), rack, metres, bundle, len(to_hosts))


def _ports(ends: Ints, topology: Topology, one_way: np.ndarray, of_hosts: int) -> Ints:
    """The ports of all ends, int64 [cables, 2]: numbered by node in the order of the cables.

    A bi-directional cable takes the next port of each node; a uni-directional one the first port of the sender whose
    output is free, and the first of the receiver whose input is. of_hosts: number of cables to hosts, the first ones.
    """
    is_switch = are_switches(topology)
    count = [0] * topology.switches
    directed_ports: list[list[int]] = [[] for _ in count]  # ports of uni-directional cables
    taken = [[0, 0] for _ in count]  # outputs, and inputs, of directed_ports

    def take(node: int, direction: int | None) -> int:
        if direction is not None:
            taken[node][direction] += 1
            if taken[node][direction] <= len(directed_ports[node]):
                return directed_ports[node][taken[node][direction] - 1]
            directed_ports[node].append(count[node])
        count[node] += 1
        return count[node] - 1

    ports = np.zeros_like(ends)
    for k, (a, b) in enumerate(ends.tolist()):
        ports[k, 0] = take(a, 0 if one_way[k] else None)
        if k < of_hosts:
            b = int(topology.host_switch[b])
        if k >= of_hosts or not is_switch[b]:
            ports[k, 1] = take(b, 1 if one_way[k] else None)
    return ports


def rows(topology: Topology, plan: Blueprint) -> Iterator[tuple[object, ...]]:
    """The cables as rows with :data:`COLUMNS`: racks as r0, switches as s0 and hosts as h0, or by their labels.

    Parameters
    ----------
    topology: the network.
    plan: its cables.
    """
    switch, host, first = switch_names(topology), host_names(topology), _first_hosts(topology)

    def name(node: int) -> str:
        return f"s{switch.label(node)}" if first[node] < 0 else f"h{host.label(int(first[node]))}"

    for k, ((a, b), (p, q), (m, n)) in enumerate(
        zip(plan.ends.tolist(), plan.ports.tolist(), plan.racks.tolist(), strict=True)
    ):
        other = f"h{host.label(b)}" if k < plan.hosts else name(b)
        bundle = "" if plan.bundle[k] < 0 else int(plan.bundle[k])
        yield k, f"r{m}", name(a), p, f"r{n}", other, q, round(float(plan.metres[k]), 3), bundle


def write(topology: Topology, plan: Blueprint, file: Path) -> None:
    """Write the cables as CSV.

    Parameters
    ----------
    topology: the network.
    plan: its cables.
    file: the file.
    """
    replace_file(file, csv_text(COLUMNS, rows(topology, plan)))
