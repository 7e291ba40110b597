"""Edge lists: one channel or link a line."""

import re

import numpy as np

from flitlab.models.readable import FilePath, Readable
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


def read_edgelist(path: Readable, directed: bool | None = None) -> Topology:
    """Read lines ``u v [capacity] [delay]``, each a channel if ``directed``, else a link; # is a comment.

    Fields are separated by blanks or by single commas.

    directed: None for what a comment on the first line, such as :func:`write_edgelist` puts there, says of it
    (channels if it says nothing).
    """
    network = Network(path)
    text = text_of(path)
    if directed is None:
        directed = re.match(r"#.*\bdirected: false\b", text) is None
    first_line: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        values = line.partition("#")[0]
        fields = [field.strip() for field in values.split(",")] if "," in values else values.split()
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
    if not network.ends:
        network.fail(1, "no channels")
    return network.topology("edgelist")
