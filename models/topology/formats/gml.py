# SPDX-License-Identifier: Apache-2.0
"""GML, the Graph Modelling Language, as the Internet Topology Zoo and networkx write it."""

import re
from collections.abc import Iterator
from typing import Any

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.attributed import Attributed, Attributes
from flitlab.models.topology.formats.common import PAIRS, Network, lost, text_of, write_lines
from flitlab.models.topology.graph import Topology

TOKEN = re.compile(r'"([^"]*)"|(#[^\n]*)|([\[\]])|([^\s\[\]"#]+)')

Pairs = list[tuple[int, str, Any]]
"""A list of GML: (line, key, value) in order; a value is a text or another list."""


def write_gml(topology: Topology, path: FilePath) -> list[str]:
    """Write directed GML: node attribute hosts; edge attributes capacity, delay, reverse (-1 or place of the edge).

    Returns what the file does not keep.
    """
    lines = ["graph [", "  directed 1"]
    lines += [f"  node [ id {v} hosts {count} ]" for v, count in enumerate(topology.host_count)]
    columns = (topology.src, topology.dst, topology.capacity, topology.delay, topology.reverse)
    for u, v, capacity, delay, reverse in zip(*(column.tolist() for column in columns), strict=True):
        lines.append(
            f"  edge [ source {u} target {v} capacity {capacity!r} delay {delay} reverse {reverse} ]"
        )  # fmt: skip
    write_lines(path, [*lines, "]"])
    return lost(topology, "hosts", "capacities", "delays", "parallel channels", PAIRS)


def read_gml(path: Readable, attributes: Attributes = Attributes()) -> Topology:  # noqa: B008 it is frozen
    """Read GML; nodes are called by their ``id``. An undirected graph's edges become bi-directional links.

    Raises ``OSError`` or :class:`~flitlab.models.topology.formats.FormatError`.

    Source: M. Himsolt, GML: a portable graph file format, University of Passau, 1997.
    """
    network = Network(path)
    tokens = _tokens(text_of(path))
    graphs = [(line, value) for line, key, value in _pairs(network, tokens, 1, None) if key == "graph"]
    if len(graphs) != 1 or not isinstance(graphs[0][1], list):
        network.fail(1, f"{len(graphs) or 'no'} graphs where one is expected: graph [ node [ id 0 ] ... ]")
    found = Attributed(network)
    for line, key, value in graphs[0][1]:
        if key == "directed":
            found.directed = value == "1"
        elif key in ("node", "edge"):
            if not isinstance(value, list):
                network.fail(line, f"{key} without [ ... ]")
            data = {name: inner for _, name, inner in value if isinstance(inner, str)}
            names = ("id",) if key == "node" else ("source", "target")
            if lacking := [name for name in names if name not in data]:
                network.fail(line, f"{key} without {lacking[0]}")
            ends = {name: data.pop(name) for name in names}
            if key == "edge":
                found.edges.append((line, ends, data))
            elif ends["id"] in found.nodes:
                network.fail(line, f"node {ends['id']!r} stands on line {found.nodes[ends['id']][0]} too")
            else:
                found.nodes[ends["id"]] = (line, data)
    return found.topology("gml", attributes)


def _tokens(text: str) -> Iterator[tuple[int, str, bool]]:
    """(line, token, whether it was in quotes), without comments."""
    line, place = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", place, match.start())
        place = match.start()
        if match[2] is None:
            yield line, match[1] if match[1] is not None else match[0], match[1] is not None


def _pairs(network: Network, tokens: Iterator[tuple[int, str, bool]], line: int, opened: int | None) -> Pairs:
    """The pairs up to the end of a list. opened: the line on which it begins, None for the whole file."""
    found: Pairs = []
    for line, key, quoted in tokens:
        if key == "]" and not quoted:
            if opened is None:
                network.fail(line, "] closes nothing")
            return found
        if quoted or not re.fullmatch(r"[A-Za-z]\w*", key):
            network.fail(line, f"{key!r} is no key")
        place, value, is_text = next(tokens, (line, "]", False))
        if value == "]" and not is_text:
            network.fail(place, f"{key} has no value")
        found.append((line, key, _pairs(network, tokens, place, place) if value == "[" and not is_text else value))
    if opened is not None:
        network.fail(opened, "[ is never closed")
    return found
