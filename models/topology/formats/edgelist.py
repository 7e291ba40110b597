# SPDX-License-Identifier: Apache-2.0
"""Edge lists: one channel or link per line."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from flitlab.models.delimited import delimiter_of, fields_of, is_number, quoted
from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.attributes import unread_attributes, unread_warning
from flitlab.models.topology.formats.attributed import Attributes, repeated_link_error
from flitlab.models.topology.formats.common import (
    PAIRS,
    CannotWriteError,
    GraphBuilder,
    need_channels,
    omitted_features,
    text_of,
    write_lines,
)
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

_ARROW = re.compile(r'("(?:[^"]|"")*")|\s*(<->|->|--)\s*')
"""A quoted field, or the symbol between both ends of a link, a channel or a link."""

_COMMENT = re.compile(r'("(?:[^"]|"")*")|(?:^|(?<=\s))[#%].*')
"""A quoted field, or a comment, which begins the line or follows a blank."""


def write_edgelist(topology: Topology, path: FilePath) -> list[str]:
    """Write lines ``u v [capacity delay]``, links if all channels are paired alike, else channels.

    The first line says how to read it back. Switches go by their labels, if they have some; they are then numbered by
    the order in which the file names them. Returns what the file does not keep.

    Raises :class:`~flitlab.models.topology.formats.CannotWriteError` if there are no channels, or a label has several
    lines.
    """
    need_channels(topology, "edge list")
    names = switch_names(topology)
    ends = [_name_field(names.label(v)) for v in range(topology.switches)]
    rows = np.arange(topology.channels)
    other = topology.reverse
    alike = all((values == values[other]).all() for values in (topology.capacity, topology.delay))
    both = not topology.directed and alike
    if both:
        rows = rows[rows < other]
    plain = (topology.capacity == 1).all() and not topology.delay.any()
    lines = [f"# {topology.kind}, {topology.switches} switches; directed: {str(not both).lower()}; parallel: true"]
    first = {names.label(end[rows[0]]).lower() for end in (topology.src, topology.dst)}
    if any(first == {*pair} for pair in ENDS.items()):
        lines.append("source target" if plain else "source target capacity delay")  # as the first edge would be one
    for c in rows.tolist():
        values = "" if plain else f" {float(topology.capacity[c])!r} {topology.delay[c]}"
        lines.append(f"{ends[topology.src[c]]} {ends[topology.dst[c]]}{values}")
    write_lines(path, lines)
    order = dict.fromkeys(np.stack([topology.src[rows], topology.dst[rows]], axis=1).ravel().tolist())
    kept_features = ["capacities", "delays", "parallel channels", "labels", *([PAIRS] if both else [])]
    renumbered = names.labelled and list(order) != list(range(topology.switches))
    others = {"switches without channels": len(order) < topology.switches, "the numbers of switches": renumbered}
    return [*omitted_features(topology, *kept_features), *(name for name, present in others.items() if present)]


def _name_field(name: str) -> str:
    """Return the name of a switch as a field. Raises ``CannotWriteError`` for a name of several lines."""
    if name.splitlines() != [name]:
        raise CannotWriteError(f"the label {name!r} does not fit on one line, as edge lists need it")
    return quoted(name, "{#%-" if re.search("--|->", name) else "{#%")


def read_edgelist(
    path: Readable,
    directed: bool | None = None,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
) -> Topology:
    """Read lines ``u v [capacity] [delay]``, each a channel if ``directed``, else a link.

    Fields are separated by tabs, semicolons, commas or blanks; double quotes hold a name that contains some.
    ``u -> v`` is a channel, ``u -- v`` and ``u <-> v`` are links, whatever other lines are. In place of numbers a line
    may end with the mapping of attributes that networkx writes, in which ``weight`` is a capacity, too. # and % begin
    comments, at the beginning of a line or behind a blank.

    A header such as ``source,target,capacity`` names the columns, in any order, possibly with further ones:
    ``capacity`` or ``weight``, ``delay``, and ``type``, whose values are ``directed`` and ``undirected``. Numbers in
    others, and in entries of mappings, are columns of the topology where every line has them.

    Parameters
    ----------
    path: file or text.
    directed: None for what a comment on the first line, such as :func:`write_edgelist` puts there, says of it
        (channels if it says nothing).
    attributes: the names of the columns, or entries of mappings, that are read.

    Raises
    ------
    OSError, FormatError: as all readers.
    """
    network, text = GraphBuilder(path), text_of(path)
    _reject_other_formats(network, text)
    first = re.match(r"[#%].*", text)
    requested, first_comment = directed, first[0] if first else ""
    stated = directed is not None or re.search(r"\bdirected: (true|false)\b", first_comment) is not None
    if directed is None:
        directed = re.search(r"\bdirected: false\b", first_comment) is None
    network.parallel = re.search(r"\bparallel: true\b", first_comment) is not None
    reader = _LineParser(network, attributes)
    for number, line in enumerate(text.splitlines(), 1):
        values = _without_comment(line).strip().removesuffix(";")
        if not values or (not network.ends and not reader.header and reader.is_header(values)):
            continue
        edge = reader.edge(number, values)
        if requested is not None and edge.arrow and requested != (edge.arrow == "->"):
            network.fail(number, f"{edge.arrow} contradicts directed: {str(requested).lower()}")
        stated = stated or bool(edge.arrow)
        if edge.arrow == "->" or (not edge.arrow and directed):
            network.channel(number, edge.source, edge.target, edge.capacity, edge.delay, attributes=edge.data)
        else:
            reader.link(edge, number)
    if not network.ends:
        network.fail(1, "no channels")
    reader.warn_of_unread()
    _warn_of_counts(network, text)
    if not stated and not {end[::-1] for end in network.ends}.intersection(network.ends):
        problem = "this line and all others are uni-directional channels, none the reverse of another; directed: false"
        network.warn(f"{problem} reads bi-directional links, directed: true confirms", network.lines[0])
    return network.topology("edgelist")


def _reject_other_formats(network: GraphBuilder, text: str) -> None:
    """Reject files of other formats, with advice."""
    begin = text.lstrip()[:200]
    if re.match(r"\*vertices", begin, re.IGNORECASE):
        network.fail(1, "Pajek's format is not read; networkx.write_graphml writes one that is")
    if re.match(r"(strict\s+)?(di)?graph\b[^\n]*\{", begin):
        network.fail(1, "DOT is written, not read; networkx.write_graphml writes a format that is")
    if (nodes := _listed_nodes(text)) > 0:
        problem = (
            f"nodes and edges are counted here and listed below, as by Inet; an edge list begins at line {nodes + 2}"
        )
        network.fail(1, problem)


def _listed_nodes(text: str) -> int:
    """The nodes that Inet's format lists with coordinates before its edges; 0 for another format."""
    first, *rows = text.rstrip().splitlines() or [""]
    counts = first.split()
    if len(counts) != 2 or not all(re.fullmatch("[0-9]{1,9}", one) for one in counts):
        return 0
    nodes, edges = map(int, counts)
    listed = [row.split() for row in rows[:nodes]]
    in_order = all(len(row) == 3 and row[0] == str(i) for i, row in enumerate(listed))
    return nodes if in_order and len(listed) == nodes and len(rows) == nodes + edges else 0


def _warn_of_counts(network: GraphBuilder, text: str) -> None:
    """Warn if the first line is an edge, but may count the nodes and edges that follow it."""
    first = next(line for line in map(_without_comment, text.splitlines()) if line.strip())
    match = re.fullmatch(r"\s*([0-9]{1,9})[\s,;]+([0-9]{1,9})\s*", first)
    if not match or int(match[2]) != len(set(network.lines)) - 1:
        return
    rows = zip(network.ends, network.lines, strict=True)
    nodes = {end for ends, line in rows if line != network.lines[0] for end in ends}
    if int(match[1]) == len(nodes):
        problem = f"is read as an edge; if it counts {match[1]} nodes and {match[2]} edges, begin it with #"
        network.warn(problem, network.lines[0])


ENDS = {
    "source": "target", "src": "dst", "from": "to", "from_node": "to_node", "u": "v", "node1": "node2", "tail": "head",
}  # fmt: skip
"""Names of the columns with the two ends of an edge."""


@dataclass(frozen=True)
class _Edge:
    """A line of an edge list: both ends, the arrow between them or '', capacity and delay, as texts.

    data: all attributes of the line by name, including these.
    """

    source: str
    arrow: str
    target: str
    capacity: str
    delay: str
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _LineParser:
    """Parses the lines of an edge list.

    header: the column names in the file. ends: the columns of both ends. delimiter: of the header. data: attributes of
    edges. weighted: whether the capacity of some edge is a ``weight``.
    """

    network: GraphBuilder
    attributes: Attributes
    header: list[str] = field(default_factory=list)
    ends: tuple[int, int] = (0, 1)
    delimiter: str | None = None
    data: list[dict[str, str]] = field(default_factory=list)
    first_line: dict[tuple[str, str], int] = field(default_factory=dict)
    weighted: bool = False

    def is_header(self, values: str) -> bool:
        """Whether a line names columns; stores them."""
        self.delimiter = delimiter_of(values)
        names = fields_of(values, self.delimiter)
        lower = [name.lower() for name in names]
        for source, target in ENDS.items():
            if source in lower and target in lower:
                self.header, self.ends = names, (lower.index(source), lower.index(target))
                return True
        return False

    def edge(self, number: int, values: str) -> _Edge:
        """Parse a line. Fails if it is no edge."""
        if self.header and "{" not in values:
            return self._named(number, fields_of(values, self.delimiter))
        values, mapping = self._mapping(number, values)
        source, arrow, rest = _at_arrow(values)
        fields = self._fields(number, rest, 1 if arrow else 2)
        if arrow:
            first = fields_of(source, None)
            if len(first) > 1:
                self.network.fail(number, f"{source!r} before {arrow} is no name; one with blanks needs quotes")
            fields = [*(first or [""]), *fields]
        if not 2 <= len(fields) <= (2 if mapping is not None else 4) or not all(fields[:2]):
            self.network.fail(number, f"{len(fields)} fields where 'u v [capacity] [delay]' is expected")
        if mapping is not None:
            return self._with(number, fields[0], arrow, fields[1], mapping)
        if self.attributes.has_custom_names:
            names = "a header names, or networkx writes as u v {'capacity': 2.0}"
            self.network.fail(number, f"has no attributes, which {names}")
        u, v, capacity, delay = [*fields, "1", "0"][:4] if len(fields) != 3 else [*fields, "0"]
        if not is_number(capacity):
            hint = "a header, as in source,target,name, names other columns"
            self.network.fail(number, f"capacity {capacity!r} is not a number; {hint}")
        return _Edge(u, arrow, v, capacity, delay)

    def _fields(self, number: int, values: str, ends: int) -> list[str]:
        """Return the fields of a line, or of its part behind an arrow. ends: number of names among them."""
        delimiter = delimiter_of(values)
        fields = fields_of(values, delimiter)
        if '"' in values or not any(" " in name for name in fields):
            return fields
        blanks = fields_of(values, None)
        numbers = blanks[ends:] if ends < len(blanks) <= ends + 2 else []
        if delimiter == "\t" and numbers and all(map(is_number, numbers)):
            self.network.fail(number, "separates fields by tabs and by blanks; use one of them, or quotes around names")
        separates = any("," in name for name in blanks[:ends])
        if delimiter == "," and not separates and any(re.fullmatch(r"\d+,\d+", one) for one in numbers):
            self.network.fail(number, "has a comma in a number; write a point, or quotes around names with blanks")
        return fields

    def _named(self, number: int, fields: list[str]) -> _Edge:
        """Return an edge with named columns."""
        if len(fields) != len(self.header):
            self.network.fail(number, f"{len(fields)} fields where the header has {len(self.header)}")
        data = {name: value for name, value in zip(self.header, fields, strict=True) if value}
        source, target = (fields[column] for column in self.ends)
        if not source or not target:
            self.network.fail(number, "an end is empty")
        kind = next((value.lower() for name, value in data.items() if name.lower() == "type"), "")
        arrow = {"directed": "->", "undirected": "--"}.get(kind, "")
        for column in self.ends:
            data.pop(self.header[column], None)
        return self._with(number, source, arrow, target, data)

    def _with(self, number: int, source: str, arrow: str, target: str, data: dict[str, str]) -> _Edge:
        """Return an edge with attributes; ``weight`` is its capacity unless another name is set."""
        lower = {name.lower(): value for name, value in data.items()}
        for usual in ("capacity", "delay"):
            if usual in lower:
                data.setdefault(usual, lower[usual])
        if self.attributes.capacity == "capacity" and "weight" in lower and "capacity" not in data:
            data["capacity"], self.weighted = lower["weight"], True
        self.data.append(data)
        capacity = self.attributes.capacity_of(self.network, number, f"edge {source}-{target}", data)
        return _Edge(source, arrow, target, capacity, self.attributes.delay_of(self.network, number, data), data)

    def _mapping(self, number: int, values: str) -> tuple[str, dict[str, str] | None]:
        """Split a line into its ends and its attributes; None without attributes."""
        ends, brace, inner = values.partition("{")
        if not brace or ends.count('"') % 2:
            return values, None
        try:
            mapping = ast.literal_eval(brace + inner)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            self.network.fail(number, f"{brace + inner} is no mapping of attributes")
        if not isinstance(mapping, dict):
            self.network.fail(number, f"{brace + inner} is no mapping of attributes")
        return ends.strip(), {str(key): str(value) for key, value in mapping.items()}

    def link(self, edge: _Edge, number: int) -> None:
        """Add a link, unless an earlier line has it in the opposite direction."""
        u, v = edge.source, edge.target
        if u != v and (v, u) in self.first_line:
            self.network.fail(number, repeated_link_error(u, v, self.first_line[v, u]))
        self.first_line.setdefault((u, v), number)
        self.network.link(number, u, v, edge.capacity, edge.delay, attributes=edge.data)

    def warn_of_unread(self) -> None:
        """Warn of weights that are read as capacities, and of attributes that resemble those that are read."""
        if self.weighted:
            self.network.warn("weight is read as the capacity; a cost of routing needs another name, such as cost")
        for kind in ("capacity", "delay"):
            if kind not in self.attributes.chosen:
                names = unread_attributes(self.data, kind, kind)
                self.network.warn(unread_warning(names, kind, f"{kind}_from"))


def _without_comment(line: str) -> str:
    if "#" not in line and "%" not in line:
        return line
    return _COMMENT.sub(lambda match: match[1] or "", line)


def _at_arrow(values: str) -> tuple[str, str, str]:
    """Split at the first arrow outside quotes: text before it, arrow, text behind it."""
    if "-" not in values:
        return "", "", values
    for match in _ARROW.finditer(values):
        if match[2]:
            return values[: match.start()].strip(), match[2], values[match.end() :].strip()
    return "", "", values


FORMATS = (
    FileFormat(
        "edgelist",
        (".txt", ".edges", ".edgelist", ""),
        read=lambda path, attributes, directed: read_edgelist(path, directed, attributes),
        write=write_edgelist,
        has_attributes=True,
    ),
)
