# SPDX-License-Identifier: Apache-2.0
"""Edge lists: one channel or link a line."""

import ast
import re

import numpy as np

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.attributed import Attributes
from flitlab.models.topology.formats.common import PAIRS, Network, lost, need_channels, text_of, write_lines
from flitlab.models.topology.graph import Topology


def write_edgelist(topology: Topology, path: FilePath) -> list[str]:
    """Write lines ``u v [capacity delay]``, links if all channels are paired alike, else channels.

    The first line says how to read it back. Returns what the file does not keep.

    Raises :class:`~flitlab.models.topology.formats.CannotWriteError` if there are no channels.
    """
    need_channels(topology, "edge list")
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
    write_lines(path, lines)
    kept = ["capacities", "delays", "parallel channels", *([PAIRS] if both else [])]
    return lost(topology, *kept)


def read_edgelist(
    path: Readable,
    directed: bool | None = None,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
) -> Topology:
    """Read lines ``u v [capacity] [delay]``, each a channel if ``directed``, else a link.

    Fields are separated by blanks, by single commas or by single semicolons. ``u -> v`` is a channel, ``u -- v`` and
    ``u <-> v`` are links, whatever other lines are. In place of numbers a line may end with the mapping of attributes
    that networkx writes, in which ``weight`` is a capacity, too. # and % begin comments; a header such as
    ``source,target`` is skipped.

    directed: None for what a comment on the first line, such as :func:`write_edgelist` puts there, says of it
    (channels if it says nothing).
    """
    network = Network(path)
    text = text_of(path)
    found = _Lines(network, attributes)
    asked = directed
    if directed is None:
        directed = re.match(r"[#%].*\bdirected: false\b", text) is None
    for number, line in enumerate(text.splitlines(), 1):
        values = re.split("[#%]", line, maxsplit=1)[0].strip().removesuffix(";")
        if not values or (not network.ends and _is_header(values)):
            continue
        u, arrow, v, capacity, delay = found.fields(number, values)
        if asked is not None and arrow and asked != (arrow == "->"):
            network.fail(number, f"{arrow} contradicts directed: {str(asked).lower()}")
        if arrow == "->" or (not arrow and directed):
            network.channel(number, u, v, capacity, delay)
        else:
            found.link(number, u, v, capacity, delay)
    if not network.ends:
        network.fail(1, "no channels")
    return network.topology("edgelist")


HEADERS = ({"source", "target"}, {"src", "dst"}, {"from", "to"}, {"u", "v"}, {"node1", "node2"})
"""Names of the first two columns of tables of edges."""


def _is_header(values: str) -> bool:
    names = [name.strip().strip('"').lower() for name in re.split(r"[\s,;]+", values)]
    return set(names[:2]) in HEADERS


class _Lines:
    """Takes the lines of an edge list apart."""

    def __init__(self, network: Network, attributes: Attributes) -> None:
        self.network = network
        self.attributes = attributes
        self.first_line: dict[tuple[str, str], int] = {}

    def fields(self, number: int, values: str) -> tuple[str, str, str, str, str]:
        """Both ends, the arrow between them or '', capacity and delay, as texts."""
        values, mapping = self._mapping(number, values)
        parts = re.split(r"\s*(<->|->|--)\s*", values, maxsplit=1)
        arrow = parts[1] if len(parts) == 3 else ""
        rest = parts[2] if arrow else values
        separator = next((one for one in ",;" if one in rest), None)
        fields = [field.strip() for field in rest.split(separator)]
        fields = [parts[0].strip(), *fields] if arrow else fields
        if not 2 <= len(fields) <= (2 if mapping is not None else 4) or not all(fields[:2]):
            self.network.fail(number, f"{len(fields)} fields where 'u v [capacity] [delay]' is expected")
        if mapping is None:
            if self.attributes != Attributes():
                self.network.fail(number, "has no attributes, which networkx writes as u v {'capacity': 2.0}")
            u, v, capacity, delay = [*fields, "1", "0"][:4] if len(fields) != 3 else [*fields, "0"]
            return u, arrow, v, capacity, delay
        edge = f"edge {fields[0]}-{fields[1]}"
        if self.attributes.capacity == "capacity" and "capacity" not in mapping and "weight" in mapping:
            mapping["capacity"] = mapping["weight"]
        capacity = self.attributes.capacity_of(self.network, number, edge, mapping)
        return fields[0], arrow, fields[1], capacity, self.attributes.delay_of(self.network, number, mapping)

    def _mapping(self, number: int, values: str) -> tuple[str, dict[str, str] | None]:
        """A line without its attributes, and these; None if it has none."""
        ends, brace, inner = values.partition("{")
        if not brace:
            return values, None
        try:
            found = ast.literal_eval(brace + inner)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            self.network.fail(number, f"{brace + inner} is no mapping of attributes")
        if not isinstance(found, dict):
            self.network.fail(number, f"{brace + inner} is no mapping of attributes")
        return ends.strip(), {str(key): str(value) for key, value in found.items()}

    def link(self, number: int, u: str, v: str, capacity: str, delay: str) -> None:
        """Adds a link, unless an earlier line has it the other way round."""
        if u != v and (v, u) in self.first_line:
            message = f"link {u} {v} repeats line {self.first_line[v, u]} backwards"
            self.network.fail(number, f"{message}; directed: true if lines are channels")
        self.first_line.setdefault((u, v), number)
        self.network.link(number, u, v, capacity, delay)
