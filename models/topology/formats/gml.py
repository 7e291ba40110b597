# SPDX-License-Identifier: Apache-2.0
"""GML, the Graph Modelling Language, as the Internet Topology Zoo and networkx write it."""

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Any

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.attributed import Attributed, Attributes, Edge
from flitlab.models.topology.formats.common import COLUMNS, PAIRS, GraphBuilder, omitted_features, text_of, write_lines
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

TOKEN = re.compile(r'"([^"]*)"|(#[^\n]*)|([\[\]])|([^\s\[\]"#]+)')

Pairs = list[tuple[int, str, Any]]
"""A list of GML: (line, key, value) in order; a value is a text or another list."""


def write_gml(topology: Topology, path: FilePath) -> list[str]:
    """Write directed GML: node attributes label, hosts; edge attributes capacity, delay, reverse (-1 or place of it).

    Columns whose names are keys of GML are edge attributes, too. Returns what the file does not keep.
    """
    names = switch_names(topology)
    labels = [f'label "{escape(names.label(v))}" ' if names.labelled else "" for v in range(topology.switches)]
    lines = ["graph [", "  directed 1", "  multigraph 1"]
    lines += [f"  node [ id {v} {labels[v]}hosts {count} ]" for v, count in enumerate(topology.host_count)]
    of_edges = {
        "source": topology.src, "target": topology.dst, "capacity": topology.capacity, "delay": topology.delay,
        "reverse": topology.reverse,
    }  # fmt: skip
    more = {name: values for name, values in topology.columns.items() if _is_key(name) and name not in of_edges}
    of_edges |= more
    for values in zip(*(column.tolist() for column in of_edges.values()), strict=True):
        pairs = " ".join(f"{name} {value!r}" for name, value in zip(of_edges, values, strict=True))
        lines.append(f"  edge [ {pairs} ]")
    write_lines(path, [*lines, "]"])
    kept_features = ["hosts", "capacities", "delays", "parallel channels", "labels", PAIRS]
    return omitted_features(topology, *kept_features, *([COLUMNS] if len(more) == len(topology.columns) else []))


def read_gml(
    path: Readable,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
    directed: bool | None = None,
) -> Topology:
    """Read GML; nodes are called by their ``label``, or by their ``id`` where labels are not there or not unique.

    Edges of an undirected graph are bi-directional links; those of a directed one are channels. Attributes in inner
    lists have the names of both, as in ``module.capacity``.

    Parameters
    ----------
    path: file or text.
    attributes: the names of those that are read.
    directed: whether edges are channels, whatever the file says.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: M. Himsolt, GML: a portable graph file format, University of Passau, 1997.
    """
    network = GraphBuilder(path)
    tokens = _tokens(text_of(path))
    graphs = [(line, value) for line, key, value in _pairs(network, tokens, 1, None) if key == "graph"]
    if len(graphs) != 1 or not isinstance(graphs[0][1], list):
        network.fail(1, f"{len(graphs) or 'no'} graphs where one is expected: graph [ node [ id 0 ] ... ]")
    graph = Attributed(network)
    for line, key, value in graphs[0][1]:
        if key == "directed":
            graph.directed = value == "1"
        elif key == "multigraph":
            network.parallel = value == "1"
        elif key in ("node", "edge"):
            _add(graph, line, key, value)
    return graph.topology("gml", attributes, directed)


def _add(graph: Attributed, line: int, key: str, value: object) -> None:
    """Add a node or an edge to the graph."""
    network = graph.network
    if not isinstance(value, list):
        network.fail(line, f"{key} without [ ... ]")
    data = dict(_flat(value))
    names = ("id",) if key == "node" else ("source", "target")
    if missing := [name for name in names if name not in data]:
        network.fail(line, f"{key} without {missing[0]}")
    if key == "edge":
        source, target = (data.pop(name) for name in names)
        graph.edges.append(Edge(line, source, target, data))
    elif (node := data.pop("id")) in graph.nodes:
        network.fail(line, f"node {node!r} stands on line {graph.nodes[node][0]} too")
    else:
        graph.nodes[node] = (line, data)


def _flat(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of all attributes; names in inner lists are prefixed with the name of the list and a point."""
    for _, name, value in pairs:
        if isinstance(value, str):
            yield name, value
        else:
            yield from ((f"{name}.{inner}", text) for inner, text in _flat(value))


def _is_key(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z]\w*", text) is not None


def _tokens(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, token, whether it is quoted), without comments."""
    line, position = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if match[2] is None:
            yield line, match[0] if match[1] is None else unescape(match[1]), match[1] is not None


def _pairs(network: GraphBuilder, tokens: Iterator[tuple[int, str, bool]], line: int, opened: int | None) -> Pairs:
    """Return the pairs up to the end of a list. opened: the line where it begins, None for the whole file."""
    pairs: Pairs = []
    for line, key, quoted in tokens:
        if key == "]" and not quoted:
            if opened is None:
                network.fail(line, "] closes nothing")
            return pairs
        if quoted or not _is_key(key):
            network.fail(line, f"{key!r} is no key")
        value_line, value, is_text = next(tokens, (line, "]", False))
        if value == "]" and not is_text:
            network.fail(value_line, f"{key} has no value")
        pairs.append(
            (line, key, _pairs(network, tokens, value_line, value_line) if value == "[" and not is_text else value)
        )
    if opened is not None:
        network.fail(opened, "[ is never closed")
    return pairs


FORMATS = (
    FileFormat(
        "gml", (".gml",), re.compile(r"^[ \t]*graph\s*\[", re.MULTILINE), read_gml, write_gml, has_attributes=True
    ),
)
