# SPDX-License-Identifier: Apache-2.0
"""Routing tables of other tools: RapidChiplet's JSON files, and the links of gem5's Garnet in its config.ini.

Readers of both give the entries of a table with their lines; :mod:`flitlab.models.routing.table` makes routes of them.
"""

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Masks
from flitlab.models.delimited import is_digits
from flitlab.models.files import read_text
from flitlab.models.readable import JsonError, parse_json
from flitlab.models.registry import SpecError
from flitlab.models.routing.weights import weighted_ports
from flitlab.models.rules.port_sets import allow, allows
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

NODES = "chiplet", "irouter"
"""Kinds of RapidChiplet's nodes; chiplets have the first numbers of switches, routers of the interposer the others."""

_KEY = re.compile(r'"(?:__tuple__:(?:[^"\\]|\\.)*|-1)"\s*:')
_ROUTER, _LINK = re.compile(r"\.routers?(\d*)$"), re.compile(r"\.int_links?\d*$")


class Entry(NamedTuple):
    """The next hop of packets for a switch at another one.

    where: file and line, for messages. target, switch, to: numbers of switches. before: the switch that the packet
    comes from, -1 if from a host; None where next hops do not depend on it.
    """

    where: str
    target: int
    switch: int
    to: int
    before: int | None


def rapidchiplet_entries(path: Path, topology: Topology) -> list[Entry]:
    """Read a routing table of RapidChiplet.

    Its ``type`` is ``default``, with ``table[node][destination]`` the next node, or ``extended``, with
    ``table[node][destination][previous node]``, -1 for packets from the node itself. Nodes are ``chiplet`` or
    ``irouter`` with a number.

    Parameters
    ----------
    path: of the JSON file.
    topology: the network, whose first switches are the chiplets.

    Raises
    ------
    SpecError: it is no such file, or a node is no switch of the topology.

    Source: Iff et al., RapidChiplet, arXiv:2311.06081; github.com/spcl/rapidchiplet.
    """
    text = read_text(path)
    try:
        document = parse_json(text)
    except JsonError as error:
        raise SpecError(f"{path}:{error.line}: {error}", key="path") from None
    table = document.get("table") if isinstance(document, dict) else None
    if not isinstance(table, dict) or document.get("type") not in ("default", "extended"):
        problem = "no routing table of RapidChiplet: needs table, and a type, default or extended"
        raise SpecError(f"{path}:1: {problem}", key="path")
    ends, lines = [match.start() for match in re.finditer("\n", text)], _KEY.finditer(text)
    chiplets = sum(1 for node in table if _node(node)[0] == NODES[0])

    def where() -> str:
        """The line of the next key, as keys are visited in the order of the file."""
        key = next(lines, None)
        return str(path) if key is None else f"{path}:{bisect_left(ends, key.start()) + 1}"

    def number(node: object, line: str) -> int:
        kind, index = _node(node)
        switch = index + (chiplets if kind == NODES[1] else 0)
        if kind not in NODES or not 0 <= switch < topology.switches:
            raise SpecError(f"{line}: {node!r} is no node of these {topology.switches} switches", key="path")
        return switch

    entries = []
    for node, targets in table.items():
        line = where()
        switch = number(node, line)
        if not isinstance(targets, dict):
            raise SpecError(f"{line}: needs a mapping of destinations", key="path")
        for target, to in targets.items():
            line = where()
            if to is None:
                if number(target, line) != switch:
                    raise SpecError(f"{line}: no next hop", key="path")
                continue
            if document["type"] == "default":
                entries.append(Entry(line, number(target, line), switch, number(to, line), None))
                continue
            if not isinstance(to, dict):
                raise SpecError(f"{line}: needs a mapping of previous nodes", key="path")
            for before, after in to.items():
                line = where()
                came = -1 if before == "-1" else number(before, line)
                entries.append(Entry(line, number(target, line), switch, number(after, line), came))
    return entries


def _node(value: Any) -> tuple[Any, int]:
    """Kind and number of a node, from a key or a value of the file; (None, -1) if it is none."""
    try:
        if isinstance(value, str) and value.startswith("__tuple__:"):
            value = {"items": json.loads(value.removeprefix("__tuple__:"))}
        kind, index = value["items"]
    except (TypeError, ValueError, KeyError):
        return None, -1
    return (kind, index) if isinstance(index, int) else (None, -1)


def followed_paths(entries: list[Entry], topology: Topology) -> Iterator[tuple[str, list[int]]]:
    """Follow next hops that depend on the previous switch, from every switch with an entry for packets of its own.

    Yields the line of the first hop, and the switches of the path.

    Parameters
    ----------
    entries: with ``before``.
    topology: the network.

    Raises
    ------
    SpecError: an entry is missing or doubled, or a path is a loop.
    """
    after: dict[tuple[int, int, int | None], Entry] = {}
    for entry in entries:
        if after.setdefault((entry.switch, entry.target, entry.before), entry) is not entry:
            raise SpecError(f"{entry.where}: a second next hop of this node", key="path")
    names = switch_names(topology)
    for first in (entry for entry in entries if entry.before == -1):
        path, entry = [first.switch], first
        while entry.to != first.target:
            path.append(entry.to)
            following = after.get((entry.to, first.target, entry.switch))
            if following is None or len(path) > topology.switches:
                walked = " to ".join(map(names.label, path[:12]))
                kind = "ends at a switch without a next hop" if following is None else "leads in a loop"
                problem = f"the way to switch {names.label(first.target)} {kind}"
                raise SpecError(f"{entry.where}: {problem}: {walked}", key="path")
            entry = following
        yield first.where, [*path, first.target]


def garnet_ports(path: Path, topology: Topology) -> tuple[Masks, int]:
    """Compute the next hops of Garnet from the links in a config.ini of gem5.

    Packets take shortest paths by the ``weight`` of links; of the links out of a router that begin such a path, those
    of least weight, any of them (as on unordered virtual networks).

    Parameters
    ----------
    path: of the file, with sections ``...int_links0``: ``src_node``, ``dst_node``, ``weight``.
    topology: the network, whose switch i is router i.

    Returns
    -------
    Ports, uint64 [switches, switches] as in :class:`~flitlab.models.routing.routes.Routes`, and the channels of the
    longest path.

    Raises
    ------
    SpecError: links and channels differ, or a weight is not a whole number from 1 to 255.

    Source: gem5, src/mem/ruby/network/Topology.cc and garnet/RoutingUnit.cc.
    """
    weight = _link_weights(path, topology)
    ports, most = weighted_ports(topology, weight, first=False)
    if most < 0:
        raise SpecError("a switch cannot reach another one", key="path")
    for v in range(topology.switches):
        first, end = topology.out_start[v : v + 2].tolist()
        own, every = weight[first:end], np.arange(end - first)
        allowed = allows(ports, np.arange(topology.switches)[:, None], v, every)
        least = np.where(allowed, own, own.max(initial=0) + 1).min(axis=1, initial=own.max(initial=0) + 1)
        target, port = np.nonzero(allowed & (own == least[:, None]))  # the least weight among the ports of a set
        ports[:, v] = 0
        allow(ports, target, v, port)
    return ports, most


def _link_weights(path: Path, topology: Topology) -> Ints:
    """The weight of every channel, int64 [channels]; parallel links are those of parallel channels in order."""
    names, between = switch_names(topology), defaultdict[tuple[int, int], list[int]](list)
    for channel, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        between[ends].append(channel)
    weight = np.zeros(topology.channels, np.int64)
    for where, keys in _links(path):
        try:
            ends = _router(keys["src_node"]), _router(keys["dst_node"])
        except KeyError as error:
            raise SpecError(f"{where}: link without {error.args[0]}", key="path") from None
        text = keys.get("weight", "1")
        if not is_digits(text) or not 1 <= int(text) <= 255:
            raise SpecError(f"{where}: weight {text!r} is not a whole number from 1 to 255", key="path")
        if not between.get(ends):
            raise SpecError(f"{where}: no further channel from router {ends[0]} to router {ends[1]}", key="path")
        weight[between[ends].pop(0)] = int(text)
    missing = np.flatnonzero(weight == 0)
    if len(missing):
        u, v = (names.label(end[missing[0]]) for end in (topology.src, topology.dst))
        raise SpecError(f"{path}: no link for the channel from switch {u} to switch {v}", key="path")
    return weight


def _links(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The keys of every section of a link, and its line."""
    where, keys, is_link = "", dict[str, str](), False
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            if is_link:
                yield where, keys
            where, keys, is_link = f"{path}:{number}", {}, bool(_LINK.search(text[1:-1]))
        elif "=" in text:
            key, value = text.split("=", 1)
            keys[key.strip()] = value.strip()
    if is_link:
        yield where, keys


def _router(name: str) -> int:
    """The number of a router from its name in config.ini; -1 for another object."""
    match = _ROUTER.search(name)
    return -1 if match is None else int(match[1] or 0)
