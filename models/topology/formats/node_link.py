# SPDX-License-Identifier: Apache-2.0
"""Graphs of nodes and links in JSON, as networkx (``node_link_data``), D3 and Topohub write them."""

import json
import re

from flitlab.models.mappings import JsonObject
from flitlab.models.readable import Readable
from flitlab.models.topology.formats.attributed import Attributed, Attributes, Edge
from flitlab.models.topology.formats.common import GraphBuilder, json_of, text_of
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology

EDGES = ("links", "edges")
"""Keys of the list of edges: ``links`` of D3 and of networkx before 3.4, ``edges`` since."""


def read_node_link(
    path: Readable,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
    directed: bool | None = None,
) -> Topology:
    """Read nodes with an ``id`` and edges with ``source`` and ``target``; numbers and texts among their keys count.

    Edges of an undirected graph, or without the key ``directed``, are bi-directional links. Nodes are called by their
    ``label`` or ``name`` where those are unique.

    Parameters
    ----------
    path: file or text.
    attributes: the names of those that are read.
    directed: whether edges are channels, whatever the file says.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: networkx, ``networkx.readwrite.json_graph.node_link_data``.
    """
    text = text_of(path)
    document = json_of(path, text)
    network = GraphBuilder(path)
    key = next((one for one in EDGES if isinstance(document, dict) and isinstance(document.get(one), list)), None)
    if key is None or not isinstance(document.get("nodes"), list):
        network.fail(1, "expected lists of nodes and of links or edges")
    network.parallel = document.get("multigraph") is True
    graph = Attributed(network, document.get("directed") is True)
    lines = _Lines(text)
    for index, node in enumerate(document["nodes"]):
        if not isinstance(node, dict) or not isinstance(node.get("id"), str | int):
            network.fail(1, f"nodes[{index}] needs an id")
        data = _scalars(node)
        if "label" not in data and "name" in data:
            data["label"] = data["name"]
        if (label := str(node["id"])) in graph.nodes:
            network.fail(1, f"node {label} is listed twice")
        graph.nodes[label] = lines.of("id", node["id"]), data
    for index, edge in enumerate(document[key]):
        ends = [edge.get(end) for end in ("source", "target")] if isinstance(edge, dict) else []
        if len(ends) != 2 or not all(isinstance(end, str | int) for end in ends):
            network.fail(1, f"{key}[{index}] needs a source and a target, which are ids of nodes")
        data = {name: value for name, value in _scalars(edge).items() if name not in ("source", "target")}
        graph.edges.append(Edge(lines.of("source", ends[0]), str(ends[0]), str(ends[1]), data))
    return graph.topology("node_link", attributes, directed)


def _scalars(mapping: JsonObject) -> dict[str, str]:
    """The numbers and texts of a mapping, as texts."""
    return {key: str(value) for key, value in mapping.items() if isinstance(value, str | int | float)}


class _Lines:
    """Lines of nodes and edges, which are asked for in the order of the file."""

    def __init__(self, text: str):
        self._text, self._line = text, 1
        self._at = {"id": text.find('"nodes"'), "source": max(text.find(f'"{key}"') for key in EDGES)}
        self._lines = {key: 1 + text.count("\n", 0, max(at, 0)) for key, at in self._at.items()}

    def of(self, key: str, value: object) -> int:
        """The line of the next ``"key": value``; that of the one before where it is written in another way."""
        sign = re.compile(rf'"{key}"\s*:\s*{re.escape(json.dumps(value))}')
        if match := sign.search(self._text, max(self._at[key], 0)):
            self._lines[key] += self._text.count("\n", max(self._at[key], 0), match.start())
            self._at[key] = match.end()
        return self._lines[key]


SIGN = re.compile(
    r'\A\s*\{(?![\s\S]*"switches"\s*:)'
    r'(?=[\s\S]*("nodes"\s*:\s*\[|"(links|edges)"\s*:\s*\[\s*\{[^{}]*"(source|target)"\s*:))'
)
"""A mapping with a list of nodes, or of links with a source or target, and no topology of flitlab."""

FORMATS = (FileFormat("node_link", sign=SIGN, read=read_node_link, has_attributes=True),)
