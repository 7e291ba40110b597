"""GraphML, the XML format that networkx, Gephi, yEd and igraph share."""

import xml.sax
from xml.sax.xmlreader import AttributesImpl as Attributes

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.common import PAIRS, FormatError, Network, lost, text_of
from flitlab.models.topology.graph import Topology


def write_graphml(topology: Topology, path: FilePath) -> list[str]:
    """Write directed GraphML: node attribute hosts; edge attributes capacity, delay, reverse (-1 or edge id).

    Returns what the file does not keep.
    """
    import networkx as nx

    nx.write_graphml_xml(topology.to_networkx(), path)
    return lost(topology, "hosts", "capacities", "delays", "parallel channels", PAIRS)


def read_graphml(path: Readable) -> Topology:
    """Read GraphML; the attributes that :func:`write_graphml` writes are used where they are given.

    An undirected graph's edges become bi-directional links.
    """
    reader = _GraphmlReader(path)
    try:
        xml.sax.parseString(text_of(path), reader)
    except xml.sax.SAXParseException as error:
        raise FormatError(path, error.getLineNumber() or 1, f"not XML: {error.getMessage()}") from None
    return reader.topology()


class _GraphmlReader(xml.sax.ContentHandler):
    """Collects nodes and edges with their data, and the line each stands on."""

    def __init__(self, path: Readable) -> None:
        super().__init__()
        self.network = Network(path)
        self.directed: bool | None = None
        self.names: dict[str, str] = {}  # key id -> attribute name
        self.defaults: dict[str, str] = {}
        self.nodes: dict[str, tuple[int, dict[str, str]]] = {}
        self.edges: list[tuple[int, dict[str, str], dict[str, str]]] = []
        self.data: dict[str, str] = {}
        self.key = ""
        self.text: list[str] = []

    @property
    def line(self) -> int:
        number: int = self._locator.getLineNumber()  # type: ignore[attr-defined]
        return number

    def startElement(self, name: str, attrs: Attributes) -> None:
        match name:
            case "key":
                self.key = self._need(name, attrs, "id")
                self.names[self.key] = attrs.get("attr.name", self.key)
            case "graph":
                if self.directed is not None:
                    self.network.fail(self.line, "only one graph is allowed in a file")
                self.directed = self._need(name, attrs, "edgedefault") == "directed"
            case "node":
                self.data = {}
                label = self._need(name, attrs, "id")
                if label in self.nodes:
                    self.network.fail(self.line, f"node {label!r} stands on line {self.nodes[label][0]} too")
                self.nodes[label] = (self.line, self.data)
            case "edge":
                self.data = {}
                ends = {end: self._need(name, attrs, end) for end in ("source", "target")}
                if attrs.get("directed", own := str(self.directed).lower()) != own:
                    self.network.fail(self.line, f"directed differs from the graph's ({own})")
                self.edges.append((self.line, ends, self.data))
            case "data":
                self.key = self._need(name, attrs, "key")
        self.text = []

    def characters(self, content: str) -> None:
        self.text.append(content)

    def endElement(self, name: str) -> None:
        text = "".join(self.text).strip()
        if name == "data":
            self.data[self.names.get(self.key, self.key)] = text
        elif name == "default":
            self.defaults[self.names[self.key]] = text
        elif name in ("node", "edge"):
            self.data = {}  # data that follow belong to the graph

    def _need(self, element: str, attrs: Attributes, name: str) -> str:
        if name not in attrs:
            self.network.fail(self.line, f"<{element}> without {name}")
        return attrs[name]

    def topology(self) -> Topology:
        network, hosts = self.network, {}
        for label, (line, data) in self.nodes.items():
            network.node(label)
            if (count := (self.defaults | data).get("hosts")) is not None:
                hosts[label] = network.whole(line, "hosts", count)
        for line, ends, data in self.edges:
            values = {"capacity": "1", "delay": "0"} | self.defaults | data
            for end in ends.values():
                if end not in self.nodes:
                    network.fail(line, f"unknown node {end!r}")
            about = line, ends["source"], ends["target"], values["capacity"], values["delay"]
            if self.directed:
                network.channel(*about, values.get("reverse", "-1"))
            else:
                network.link(*about)
        return network.topology("graphml", hosts or None)
