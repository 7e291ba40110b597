"""Topologies in files: edge lists, GraphML, and JSON that loses nothing.

Readers raise ``OSError`` or :class:`FormatError`, whose message begins with ``path:line:``.
"""

import json
import math
import xml.sax
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, NoReturn

import networkx as nx
import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from models.topology.graph import Grid, Topology

Format = Literal["edgelist", "graphml", "json"]
"""File formats that are read and written."""


class FormatError(ValueError):
    """A topology file that cannot be used; the message names the file and the line."""

    def __init__(self, path, line: int, message: str):
        super().__init__(f"{path}:{line}: {message}")


def format_of(path) -> Format:
    """Format that a file name stands for: .json, .graphml, and an edge list otherwise."""
    suffix = Path(path).suffix.lower()
    return "json" if suffix == ".json" else "graphml" if suffix == ".graphml" else "edgelist"


def write(topology: Topology, path, format: Format | None = None) -> None:
    """Write a topology, in the format that the file's name stands for unless one is given."""
    writers = {"edgelist": write_edgelist, "graphml": write_graphml, "json": write_json}
    writers[format or format_of(path)](topology, path)


def read(path, format: Format | None = None, directed: bool = True) -> Topology:
    """Read a topology; ``directed`` tells whether a line of an edge list is a channel or a link."""
    match format or format_of(path):
        case "json":
            return read_json(path)
        case "graphml":
            return read_graphml(path)
        case _:
            return read_edgelist(path, directed)


def _text(path) -> str:
    content = Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(path, content[: error.start].count(b"\n") + 1, "not UTF-8 text") from None


class _Network:
    """Nodes and channels as a reader finds them."""

    def __init__(self, path):
        self.path = path
        self.nodes: dict[str, int] = {}  # label -> order of appearance
        self.ends: list[tuple[int, int]] = []
        self.values: list[tuple[float, int, int]] = []  # capacity, delay, reverse
        self.lines: list[int] = []

    def fail(self, line: int, message: str) -> NoReturn:
        raise FormatError(self.path, line, message)

    def node(self, label: str) -> int:
        return self.nodes.setdefault(label, len(self.nodes))

    def channel(self, line: int, tail: str, head: str, capacity: str, delay: str, reverse: str = "-1"):
        """Add a channel, its numbers still text."""
        self.ends.append((self.node(tail), self.node(head)))
        rest = self.whole(line, "delay", delay), self.whole(line, "reverse", reverse, -1)
        self.values.append((self._capacity(line, capacity), *rest))
        self.lines.append(line)

    def link(self, line: int, u: str, v: str, capacity: str, delay: str):
        """Add two channels that are each other's reverse."""
        first = len(self.ends)
        self.channel(line, u, v, capacity, delay, str(first + 1))
        self.channel(line, v, u, capacity, delay, str(first))

    def _capacity(self, line: int, text: str) -> float:
        try:
            capacity = float(text)
        except ValueError:
            self.fail(line, f"capacity {text!r} is not a number")
        if not (capacity > 0 and math.isfinite(capacity)):
            self.fail(line, f"capacity {text} must be positive and finite")
        return capacity

    def whole(self, line: int, what: str, text: str, least: int = 0) -> int:
        """An integer of at least ``least``."""
        try:
            value = int(text)
        except ValueError:
            self.fail(line, f"{what} {text!r} is not an integer")
        if value < least:
            self.fail(line, f"{what} {value} must be {least} or more")
        return value

    def topology(self, kind: str, hosts: dict[str, int] | None = None) -> Topology:
        """The topology; nodes 0 .. n-1 keep their numbers, others are numbered in order (notes: labels)."""
        if not self.ends:
            self.fail(1, "no channels")
        n = len(self.nodes)
        numbers = {str(i): i for i in range(n)}
        notes: dict = {}
        if self.nodes.keys() != numbers.keys():
            numbers = self.nodes
            notes["labels"] = list(self.nodes)
        order = np.array([numbers[label] for label in self.nodes])
        arcs = order[np.array(self.ends)]
        capacity, delay, reverse = zip(*self.values, strict=True)
        wrong = _wrong_reverse(arcs, np.array(reverse))
        if wrong is not None:
            self.fail(self.lines[wrong], f"reverse {reverse[wrong]} is not the opposite channel")
        if loops := {self.lines[c] for c in np.flatnonzero(arcs[:, 0] == arcs[:, 1])}:
            notes["self_loops_dropped"] = len(loops)
        topology = Topology.from_channels(kind, n, arcs, reverse, capacity=capacity, delay=delay, notes=notes)
        counts = np.zeros(n, np.int64)
        for label, count in (hosts or {}).items():
            counts[numbers[label]] = count
        return topology.with_hosts(counts)


def _wrong_reverse(arcs: np.ndarray, reverse: np.ndarray) -> int | None:
    """First channel whose reverse does not exist or does not run back and name it in turn; None if all do."""
    paired = np.flatnonzero(reverse >= 0)
    other = np.minimum(reverse[paired], len(arcs) - 1)
    opposite = (arcs[other] == arcs[paired, ::-1]).all(axis=1)
    good = (other == reverse[paired]) & (reverse[other] == paired) & opposite
    return None if good.all() else int(paired[~good][0])


def write_edgelist(topology: Topology, path) -> None:
    """Write lines ``u v [capacity delay]``, links if all channels are paired alike, else channels.

    The first line says how to read it back. Hosts are not kept, nor pairs if only some channels are paired.
    """
    rows = np.arange(topology.channels)
    other = topology.reverse
    alike = all((values == values[other]).all() for values in (topology.capacity, topology.delay))
    both = not topology.directed and alike
    if both:
        rows = rows[rows < other]
    plain = (topology.capacity == 1).all() and not topology.delay.any()
    lines = [f"# {topology.kind}, {topology.switches} switches; directed: {str(not both).lower()}"]
    for c in rows.tolist():
        values = "" if plain else f" {float(topology.capacity[c])!r} {topology.delay[c]}"
        lines.append(f"{topology.src[c]} {topology.dst[c]}{values}")
    Path(path).write_text("\n".join(lines) + "\n")


def read_edgelist(path, directed: bool) -> Topology:
    """Read lines ``u v [capacity] [delay]``, each a channel if ``directed``, else a link; # is a comment."""
    network = _Network(path)
    first_line: dict[tuple[str, str], int] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        if not 2 <= len(fields) <= 4:
            network.fail(number, f"{len(fields)} fields where 'u v [capacity] [delay]' is expected")
        u, v, capacity, delay = [*fields, "1", "0"][:4] if len(fields) != 3 else [*fields, "0"]
        if directed:
            network.channel(number, u, v, capacity, delay)
            continue
        if u != v and (v, u) in first_line:
            message = f"link {u} {v} repeats line {first_line[v, u]} backwards"
            network.fail(number, f"{message}; directed: true if lines are channels")
        first_line.setdefault((u, v), number)
        network.link(number, u, v, capacity, delay)
    return network.topology("edgelist")


def write_graphml(topology: Topology, path) -> None:
    """Write directed GraphML: node attribute hosts; edge attributes capacity, delay, reverse (-1 or edge id).

    ``host_capacity``, ``grid`` and ``notes`` are not kept.
    """
    nx.write_graphml_xml(topology.to_networkx(), path)


def read_graphml(path) -> Topology:
    """Read GraphML; the attributes that :func:`write_graphml` writes are used where they are given.

    An undirected graph's edges become bi-directional links.
    """
    reader = _GraphmlReader(path)
    try:
        xml.sax.parseString(_text(path), reader)
    except xml.sax.SAXParseException as error:
        raise FormatError(path, error.getLineNumber() or 1, f"not XML: {error.getMessage()}") from None
    return reader.topology()


class _GraphmlReader(xml.sax.ContentHandler):
    """Collects nodes and edges with their data, and the line each stands on."""

    def __init__(self, path):
        super().__init__()
        self.network = _Network(path)
        self.directed: bool | None = None
        self.names: dict[str, str] = {}  # key id -> attribute name
        self.defaults: dict[str, str] = {}
        self.nodes: dict[str, tuple[int, dict]] = {}
        self.edges: list[tuple[int, dict, dict]] = []
        self.data: dict = {}
        self.key = ""
        self.text: list[str] = []

    @property
    def line(self) -> int:
        return self._locator.getLineNumber()  # type: ignore[attr-defined]

    def startElement(self, name, attrs):
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

    def characters(self, content):
        self.text.append(content)

    def endElement(self, name):
        text = "".join(self.text).strip()
        if name == "data":
            self.data[self.names.get(self.key, self.key)] = text
        elif name == "default":
            self.defaults[self.names[self.key]] = text
        elif name in ("node", "edge"):
            self.data = {}  # data that follow belong to the graph

    def _need(self, element, attrs, name) -> str:
        if name not in attrs:
            self.network.fail(self.line, f"<{element}> without {name}")
        return attrs[name]

    def topology(self) -> Topology:
        network, hosts = self.network, {}
        for label, (line, data) in self.nodes.items():
            network.node(label)
            hosts[label] = network.whole(line, "hosts", (self.defaults | data).get("hosts", "0"))
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
        return network.topology("graphml", hosts)


_Whole = Annotated[int, Field(ge=0)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Channel(NamedTuple):
    src: _Whole
    dst: _Whole
    capacity: _Positive
    delay: _Whole
    reverse: Annotated[int, Field(ge=-1)]


class _Grid(BaseModel):
    dims: list[Annotated[int, Field(ge=1)]]
    wrap: bool
    coordinates: list[list[_Whole]]


class _Document(BaseModel):
    """The JSON form: one array [src, dst, capacity, delay, reverse] a channel, hosts counted by switch.

    ``reverse`` is the place of the opposite channel in the list, or -1.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["flitlab-topology"] = "flitlab-topology"
    version: Literal[1] = 1
    kind: str
    switches: Annotated[int, Field(ge=1)]
    host_capacity: _Positive | Literal["inf"] = 1.0
    hosts: list[_Whole]
    grid: _Grid | None = None
    notes: dict = {}
    channels: list[_Channel]


def write_json(topology: Topology, path) -> None:
    """Write everything that a topology holds, one channel a line; :func:`read_json` gives it back."""
    grid = topology.grid
    head = {
        "format": "flitlab-topology",
        "version": 1,
        "kind": topology.kind,
        "switches": topology.switches,
        "host_capacity": topology.host_capacity if math.isfinite(topology.host_capacity) else "inf",
        "hosts": topology.host_count.tolist(),
        "grid": grid and {"dims": grid.dims, "wrap": grid.wrap, "coordinates": grid.coordinates.tolist()},
        "notes": topology.notes,
    }
    columns = (topology.src, topology.dst, topology.capacity, topology.delay, topology.reverse)
    channels = [json.dumps(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in head.items()]
    lines.append('"channels": [\n' + ",\n".join(channels) + "\n]")
    Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read_json(path) -> Topology:
    """Read what :func:`write_json` wrote (or what was written by hand in the same form)."""
    text = _text(path)
    try:
        document = _Document.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            try:
                json.loads(text)
            except json.JSONDecodeError as syntax:
                raise FormatError(path, syntax.lineno, f"not JSON: {syntax.msg}") from None
        where = ".".join(map(str, first["loc"]))
        raise FormatError(path, _line_of(text, first["loc"]), f"{where}: {first['msg']}") from None

    def fail(message: str, *location) -> NoReturn:
        raise FormatError(path, _line_of(text, location), message)

    n = document.switches
    if len(document.hosts) != n:
        fail(f"{len(document.hosts)} entries for {n} switches", "hosts")
    arcs = np.array([channel[:2] for channel in document.channels], np.int64).reshape(-1, 2)
    unknown = np.flatnonzero((arcs >= n).any(axis=1))
    if len(unknown):
        fail(f"unknown switch {arcs[unknown[0]].max()}: there are {n}", "channels", int(unknown[0]))
    reverse = np.array([channel.reverse for channel in document.channels], np.int64)
    wrong = _wrong_reverse(arcs, reverse)
    if wrong is not None:
        fail(f"reverse {reverse[wrong]} is not the opposite channel", "channels", wrong)
    grid = None
    if document.grid is not None:
        dims = tuple(document.grid.dims)
        rows = [row for row in document.grid.coordinates if len(row) == len(dims)]
        coordinates = np.array(rows, np.int64).reshape(-1, len(dims))
        if len(document.grid.coordinates) != n or len(rows) != n or (coordinates >= dims).any():
            fail(f"coordinates do not place {n} switches in {dims}", "grid")
        grid = Grid(dims, document.grid.wrap, coordinates)
    topology = Topology.from_channels(
        document.kind, n, arcs, reverse,
        capacity=[channel.capacity for channel in document.channels],
        delay=[channel.delay for channel in document.channels], grid=grid, notes=document.notes,
    )  # fmt: skip
    return topology.with_hosts(document.hosts, float(document.host_capacity))


def _line_of(text: str, location) -> int:
    """Line on which the value at this path of keys and indices begins, by reading the JSON as YAML."""
    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return 1
    for step in location:
        if isinstance(node, yaml.MappingNode):
            values = [value for key, value in node.value if key.value == step]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            values = node.value[step : step + 1]
        else:
            values = []
        if not values:
            break
        node = values[0]
    return node.start_mark.line + 1
