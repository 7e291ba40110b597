# SPDX-License-Identifier: Apache-2.0
"""Networks of SNDlib, the survivable network design library, in its native format and in its XML."""

import re
import xml.sax
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from math import inf
from typing import Any
from xml.sax.xmlreader import AttributesImpl

from flitlab.models.delimited import number_of
from flitlab.models.readable import Readable
from flitlab.models.topology.formats.attributed import Attributed, Attributes, Edge
from flitlab.models.topology.formats.common import FormatError, GraphBuilder, text_of
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology

LINK = ("pre_installed_capacity", "pre_installed_cost", "routing_cost", "setup_cost")
"""Numbers of a link, in the order of the native format."""

MODULE = ("module_capacity", "module_cost")
"""Numbers of the first capacity module of a link."""

MOST = {"LINKS": len(LINK), "DEMANDS": 3}
"""The most values of an entry outside parentheses: of a demand its routing unit, value and longest path."""

DEPTH = 3
"""The most parentheses that are open: a section, an entry and its numbers."""

SIGN = re.compile(r"\A\s*\?SNDlib native format|<network\b[^>]*sndlib")

_XML_NAMES = {
    "preInstalledModule.capacity": LINK[0], "preInstalledModule.cost": LINK[1], "routingCost": LINK[2],
    "setupCost": LINK[3], "addModule.capacity": MODULE[0], "addModule.cost": MODULE[1],
}  # fmt: skip

_TOKEN = re.compile(r"#[^\n]*|([()])|([^\s()#]+)")

Demand = tuple[int, str, str, str]
"""Line, source, target, and volume of a demand: its value times its routing unit."""


@dataclass
class Instance:
    """What a file holds. nodes: name -> line."""

    nodes: dict[str, int] = field(default_factory=dict)
    links: list[Edge] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)
    """(kind, id) of links and demands -> line."""

    def name(self, path: Readable, kind: str, label: str, line: int) -> None:
        """Record the id of a link or demand. Raises :class:`FormatError` if another one has it."""
        if (first := self.lines.get((kind, label))) is not None:
            raise FormatError(path, line, f"{kind} {label!r} stands on line {first} too")
        self.lines[kind, label] = line


def read_sndlib(
    path: Readable,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
    directed: bool | None = None,
) -> Topology:
    """Read a network: its links are bi-directional, or channels if ``directed``.

    The capacity of a link is the pre-installed one, or without one that of its first module, with a warning. Where some
    link has neither, all capacities are 1. All numbers of links are columns. Hosts have unlimited channels: the file
    knows none.

    Parameters
    ----------
    path: file or text.
    attributes: the names of those that are read.
    directed: whether links are channels.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: Orlowski et al. 2010, doi:10.1002/net.20371; sndlib.zib.de, network formats.
    """
    instance, network = parsed(path), GraphBuilder(path)
    graph = Attributed(network, directed=bool(directed))
    graph.nodes = {name: (line, {}) for name, line in instance.nodes.items()}
    graph.edges = instance.links
    for edge in graph.edges:
        network.check_numbers(edge.line, edge.data)
    network.parallel = True  # every link has a name of its own
    if "capacity" not in attributes.chosen:
        capacities = [
            next((edge.data[of] for of in (LINK[0], MODULE[0]) if _has(edge, of)), "") for edge in graph.edges
        ]
        if without := sum(not _has(edge, LINK[0]) for edge in graph.edges):
            instead = "that of one module is taken" if all(capacities) else "some have no module: all capacities are 1"
            network.warn(f"{without} of {len(graph.edges)} links without pre-installed capacity; {instead}")
        if all(capacities):
            for edge, capacity in zip(graph.edges, capacities, strict=True):
                edge.data["capacity"] = capacity
    return replace(graph.topology("sndlib", attributes, directed), host_capacity=inf)


def _has(edge: Edge, name: str) -> bool:
    """Whether an edge has a positive number of this name."""
    return number_of(edge.data.get(name, 0)) > 0


def parsed(path: Readable) -> Instance:
    """Read nodes, links and demands. Raises ``OSError`` or :class:`FormatError`."""
    text = text_of(path)
    if text.lstrip().startswith("<"):
        reader = _XmlReader(path)
        try:
            xml.sax.parseString(text, reader)
        except xml.sax.SAXParseException as error:
            raise FormatError(path, error.getLineNumber() or 1, f"not XML: {error.getMessage()}") from None
        return reader.instance
    return _NativeReader(path, text).instance


Group = list[Any]
"""Words with their lines, (int, str), and groups in parentheses."""


class _NativeReader:
    """Sections such as ``LINKS ( id ( source target ) number ... ( number ... ) ... )``."""

    def __init__(self, path: Readable, text: str) -> None:
        self.path, self.instance = path, Instance()
        text = re.sub(r"\A\s*\?[^\n]*", "", text)  # the first line names the format
        items = self._group(_tokens(text))
        for place, item in enumerate(items):
            body = items[place + 1] if place + 1 < len(items) else None
            if isinstance(item, tuple) and isinstance(body, list):
                self._section(item[1], body)

    def _group(self, tokens: Iterator[tuple[int, str]], opened: tuple[int, ...] = ()) -> Group:
        """Return the items up to the end of a group. opened: lines of the parentheses that are open."""
        items: Group = []
        for line, token in tokens:
            if token == "(":
                if len(opened) == DEPTH:
                    raise FormatError(self.path, line, f"more than {DEPTH} parentheses are open")
                items.append(self._group(tokens, (*opened, line)))
            elif token == ")":
                if not opened:
                    raise FormatError(self.path, line, ") without (")
                return items
            else:
                items.append((line, token))
        if opened:
            raise FormatError(self.path, opened[-1], "( is never closed")
        return items

    def _section(self, name: str, body: Group) -> None:
        if name == "NODES":
            self.instance.nodes = {label: line for line, label in filter(_is_word, body)}
        if name not in ("LINKS", "DEMANDS"):
            return
        starts = [place for place, item in enumerate(body) if self._is_entry(name, body, place)]
        if words := [item for item in body[: next(iter(starts), len(body))] if _is_word(item)]:
            raise FormatError(self.path, words[0][0], f"{words[0][1]!r} where an id ( source target ) is expected")
        for start, end in pairwise([*starts, len(body)]):
            (line, label), *rest = body[start:end]
            self.instance.name(self.path, name[:-1].lower(), label, line)
            source, target = self._ends(line, rest)
            words = [item for item in rest[1:] if _is_word(item)]
            values = [word for _, word in words]
            if len(values) > MOST[name]:
                over, word = words[MOST[name]]
                raise FormatError(self.path, over, f"{word!r} after the {MOST[name]} values of {label}")
            if name == "LINKS":
                modules = [word for item in rest[1:] if not _is_word(item) for _, word in filter(_is_word, item)]
                numbers = dict(zip(LINK, values, strict=False)) | dict(zip(MODULE, modules, strict=False))
                self.instance.links.append(Edge(line, source, target, numbers))
            elif len(values) < 2:
                raise FormatError(self.path, line, f"demand {label} has no value")
            else:
                volume = _volume(self.path, line, values[0], values[1])
                self.instance.demands.append((line, source, target, volume))

    @staticmethod
    def _is_entry(name: str, body: Group, place: int) -> bool:
        """Whether a word begins an entry: its ends are behind it, and before it no number of the same link.

        The values of a demand may end with a group of its paths, which is empty in the format's documentation.
        """
        group = body[place + 1] if place + 1 < len(body) else None
        is_first = group != [] if name != "LINKS" else not place or isinstance(body[place - 1], list)
        return is_first and isinstance(body[place], tuple) and isinstance(group, list)

    def _ends(self, line: int, rest: Group) -> tuple[str, str]:
        ends = [word for _, word in filter(_is_word, rest[0])] if rest and not _is_word(rest[0]) else []
        if len(ends) != 2:
            raise FormatError(self.path, line, "expected ( source target )")
        return ends[0], ends[1]


def _volume(path: Readable, line: int, unit: str, value: str) -> str:
    """Return the capacity that a demand takes: ``value`` routing units of capacity ``unit``."""
    try:
        factor, _ = number_of(unit), number_of(value)
        return value if factor == 1 else str(Decimal(unit) * Decimal(value))
    except (ValueError, InvalidOperation):
        raise FormatError(path, line, f"routing unit {unit!r} and demand {value!r} must be numbers") from None


def _is_word(item: object) -> bool:
    return isinstance(item, tuple)


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        if token := match[1] or match[2]:
            yield line, token


class _XmlReader(xml.sax.ContentHandler):
    """Elements ``node``, ``link`` and ``demand`` with an ``id``, and the texts of what they contain."""

    def __init__(self, path: Readable) -> None:
        super().__init__()
        self.path, self.instance = path, Instance()
        self.open: list[str] = []
        self.name, self.began, self.data = "", 1, dict[str, str]()
        self.text: list[str] = []

    @property
    def line(self) -> int:
        number: int = self._locator.getLineNumber()  # type: ignore[attr-defined]
        return number

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        if name in ("node", "link", "demand"):
            self.name, self.began, self.data = attrs.get("id", ""), self.line, {}
            if not self.name:
                raise FormatError(self.path, self.line, f"<{name}> without id")
        self.open.append(name)
        self.text = []

    def characters(self, content: str) -> None:
        self.text.append(content)

    def endElement(self, name: str) -> None:
        text = "".join(self.text).strip()
        self.open.pop()
        key = f"{self.open[-1]}.{name}" if self.open and self.open[-1].endswith("Module") else name
        if text:
            self.data.setdefault(_XML_NAMES.get(key, key), text)
        self.text = []
        if name == "node":
            self.instance.nodes[self.name] = self.began
        elif name in ("link", "demand"):
            self.instance.name(self.path, name, self.name, self.began)
            ends = self.data.get("source"), self.data.get("target")
            if None in ends:
                raise FormatError(self.path, self.began, f"<{name}> without source and target")
            source, target = map(str, ends)
            if name == "link":
                numbers = {key: self.data[key] for key in (*LINK, *MODULE) if key in self.data}
                self.instance.links.append(Edge(self.began, source, target, numbers))
            elif "demandValue" in self.data:
                volume = _volume(self.path, self.began, self.data.get("routingUnit", "1"), self.data["demandValue"])
                self.instance.demands.append((self.began, source, target, volume))
            else:
                raise FormatError(self.path, self.began, "<demand> without demandValue")


FORMATS = (FileFormat("sndlib", sign=SIGN, read=read_sndlib, has_attributes=True),)
