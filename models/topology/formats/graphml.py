# SPDX-License-Identifier: Apache-2.0
"""GraphML, the XML format that networkx, Gephi, yEd and igraph share."""

import re
import xml.sax
from dataclasses import replace
from xml.sax.xmlreader import AttributesImpl

from flitlab.models.files import replacing
from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.attributed import Attributed, Attributes, Edge
from flitlab.models.topology.formats.common import COLUMNS, PAIRS, FormatError, GraphBuilder, omitted_features, text_of
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology


def write_graphml(topology: Topology, path: FilePath) -> list[str]:
    """Write directed GraphML: node attributes label, hosts; edge attributes capacity, delay, reverse (-1 or edge id).

    Returns what the file does not keep.
    """
    import networkx as nx

    graph = replace(topology, host_delay=None, ejection=None).to_networkx()  # GraphML has no lists
    with replacing(path) as file:
        nx.write_graphml_xml(graph, file)
    return omitted_features(topology, "hosts", "capacities", "delays", "parallel channels", "labels", PAIRS, COLUMNS)


def read_graphml(
    path: Readable,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
    directed: bool | None = None,
) -> Topology:
    """Read GraphML; by default, the optional attributes are those that :func:`write_graphml` writes.

    Edges that are undirected, as the graph or they themselves say, are bi-directional links. Nodes are called by their
    attribute ``label`` or ``name``, or else the text that yEd draws on them (the first ``y:NodeLabel``), or by their id
    where there is none or it is not unique. A node with a graph of its own, as groups of yEd are, is no switch: the
    nodes of that graph are.

    Parameters
    ----------
    path: file or text.
    attributes: the names of those that are read.
    directed: whether edges are channels, whatever the file says.

    Raises
    ------
    OSError, FormatError: as all readers; also for an edge of a group.

    Source: GraphML primer, http://graphml.graphdrawing.org/primer/graphml-primer.html.
    """
    reader = _GraphmlReader(path)
    try:
        xml.sax.parseString(text_of(path), reader)
    except xml.sax.SAXParseException as error:
        raise FormatError(path, error.getLineNumber() or 1, f"not XML: {error.getMessage()}") from None
    return reader.topology(attributes, directed)


class _GraphmlReader(xml.sax.ContentHandler):
    """Collects nodes and edges with their data and line numbers."""

    def __init__(self, path: Readable) -> None:
        super().__init__()
        self.network = GraphBuilder(path)
        self.directed: bool | None = None
        self.names: dict[str, str] = {}  # key id -> attribute name
        self.domain: dict[str, str] = {}  # key id -> node, edge, graph or all
        self.defaults: dict[str, str] = {}  # key id -> value
        self.graph = Attributed(self.network)
        self.data: dict[str, str] = {}
        self.key = ""
        self.text: list[str] = []
        self.is_drawn_label = False
        self.open: list[str] = []  # nodes whose elements are not ended
        self.groups: set[str] = set()  # nodes with a graph of their own

    @property
    def line(self) -> int:
        number: int = self._locator.getLineNumber()  # type: ignore[attr-defined]
        return number

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        self._end_drawn_label()
        match name:
            case "key":
                self.key = self._need(name, attrs, "id")
                self.names[self.key] = attrs.get("attr.name", self.key)
                self.domain[self.key] = attrs.get("for", "all")
            case "graph":
                directed = self._need(name, attrs, "edgedefault") == "directed"
                if self.directed is not None and not self.open:
                    self.network.fail(self.line, "only one graph is allowed in a file")
                if self.directed not in (None, directed):
                    self.network.fail(self.line, f"edgedefault of group {self.open[-1]!r} is another one")
                self.directed = directed
                self.groups.update(self.open[-1:])
            case "node":
                self.data = {}
                label = self._need(name, attrs, "id")
                if label in self.graph.nodes:
                    self.network.fail(self.line, f"node {label!r} stands on line {self.graph.nodes[label][0]} too")
                self.graph.nodes[label] = (self.line, self.data)
                self.open.append(label)
            case "edge":
                self.data = {}
                source, target = (self._need(name, attrs, end) for end in ("source", "target"))
                own = {"true": True, "false": False}.get(attrs.get("directed", ""))
                self.network.parallel |= "id" in attrs
                self.graph.edges.append(Edge(self.line, source, target, self.data, own))
            case "hyperedge":
                self.network.fail(self.line, "a hyperedge is no channel; write a node and an edge to each of its ends")
            case "data":
                self.key = self._need(name, attrs, "key")
            case "y:NodeLabel":
                self.is_drawn_label = True
        self.text = []

    def characters(self, content: str) -> None:
        self.text.append(content)

    def endElement(self, name: str) -> None:
        self._end_drawn_label()
        text = "".join(self.text).strip()
        if name == "data":
            self.data[self.names.get(self.key, self.key)] = text
        elif name == "default":
            self.defaults[self.key] = text
        elif name in ("node", "edge"):
            self.data = {}  # data that follow belong to the graph
            if name == "node":
                self.open.pop()

    def _end_drawn_label(self) -> None:
        """Name a node by the text so far, if it is that of a label; elements of the layout may follow it."""
        if self.is_drawn_label and (label := " ".join("".join(self.text).split())):
            self.data.setdefault("label", label)
        self.is_drawn_label = False

    def _need(self, element: str, attrs: AttributesImpl, name: str) -> str:
        if name not in attrs:
            self.network.fail(self.line, f"<{element}> without {name}")
        return attrs[name]

    def topology(self, attributes: Attributes, directed: bool | None) -> Topology:
        """Build the topology, with the default values of attributes and without groups."""
        for edge in self.graph.edges:
            if group := next((end for end in (edge.source, edge.target) if end in self.groups), None):
                self.network.fail(edge.line, f"an edge of group {group!r}: it must end at a node of the group")
        for group in self.groups:
            del self.graph.nodes[group]
        if self.groups:
            phrase = "groups are" if len(self.groups) > 1 else "group is"
            self.network.warn(f"{len(self.groups)} {phrase} not read, only the nodes in them")
        of = {"node": [data for _, data in self.graph.nodes.values()], "edge": [edge.data for edge in self.graph.edges]}
        for kind, value in of.items():
            values = {self.names[k]: text for k, text in self.defaults.items() if self.domain[k] in ("all", kind)}
            for data in value:
                data |= values | data
        self.graph.directed = bool(self.directed)
        return self.graph.topology("graphml", attributes, directed)


FORMATS = (
    FileFormat("graphml", (".graphml",), re.compile("<graphml"), read_graphml, write_graphml, has_attributes=True),
)
