# SPDX-License-Identifier: Apache-2.0
"""Networks and demands of REPETITA, a collection of traffic-engineering instances."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.file_delays import stated_delays
from flitlab.models.topology.formats.attributed import Attributed, Attributes, Edge
from flitlab.models.topology.formats.common import GraphBuilder, need_channels, omitted_features, text_of, write_lines
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

EDGE = ("weight", "bw", "delay_us")
"""Attributes of an edge: its IGP weight, its capacity in kbit/s, and its delay."""


def read_repetita(
    path: Readable,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
    directed: bool | None = None,
) -> Topology:
    """Read the nodes, ``label x y``, and the edges, ``label src dest weight bw delay``, of a ``.graph`` file.

    Edges are channels between nodes by number; ``bw`` is their capacity unless ``attributes`` name another, and all
    three numbers are columns, the delay as ``delay_us``. Hosts have unlimited channels: the file knows none.

    Parameters
    ----------
    path: file or text.
    attributes: the names of those that are read.
    directed: whether edges are channels, whatever the file says.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: Gay, Schaus and Vissicchio 2017, arXiv:1710.08665; files in github.com/svissicchio/Repetita.
    """
    network = GraphBuilder(path)
    graph = Attributed(network, directed=True)
    lines = ((number, line.strip()) for number, line in enumerate(text_of(path).splitlines(), 1) if line.strip())
    sections = _sections(network, lines)
    for number, (label, *_) in sections("NODES", 3):
        graph.nodes[str(len(graph.nodes))] = (number, {"label": label})
    for number, (_, source, target, *numbers) in sections("EDGES", 6):
        data = dict(zip(EDGE, numbers, strict=True))
        network.check_numbers(number, data)
        graph.edges.append(Edge(number, source, target, data))
    for number, line in lines:
        network.fail(number, f"{line[:40]!r} after the edges that are announced")
    network.parallel = True  # every edge has a name of its own
    topology = graph.topology("repetita", attributes.by_default(capacity="bw"), directed)
    return replace(topology, host_capacity=inf)


def _sections(
    network: GraphBuilder, lines: Iterator[tuple[int, str]]
) -> Callable[[str, int], Iterator[tuple[int, list[str]]]]:
    """Return a function that yields the lines of the next section: (line number, fields)."""

    def section(name: str, fields: int) -> Iterator[tuple[int, list[str]]]:
        number, line = next(lines, (1, ""))
        match line.split():
            case [word, number_of_lines] if word == name:
                count = network.whole(number, name, number_of_lines)
            case _:
                network.fail(number, f"{line[:40]!r} where {name} and a number are expected")
        next(lines, None)  # names of the columns
        for place in range(count):
            number, line = next(lines, (number, ""))
            if len(words := line.split()) != fields:
                network.fail(number, f"{len(words)} fields where {fields} are expected, on line {place + 1} of {count}")
            yield number, words

    return section


def write_repetita(topology: Topology, path: FilePath) -> list[str]:
    """Write a ``.graph`` file: ``bw`` is the capacity, ``weight`` a column or 1, the delay what a file states or 0.

    Returns what the file does not keep. Raises :class:`~flitlab.models.topology.formats.CannotWriteError` if there are
    no channels.
    """
    need_channels(topology, "repetita")
    names = switch_names(topology)
    lines = [f"NODES {topology.switches}", "label x y"]
    labels = [names.label(v) for v in range(topology.switches)]
    written = ["_".join(label.split()) or "_" for label in labels]
    lines += [f"{label} 0 0" for label in written]
    lines += ["", f"EDGES {topology.channels}", "label src dest weight bw delay"]
    cost, stated = topology.columns.get("weight", [1.0] * topology.channels), stated_delays(topology)
    delay_us = np.zeros(topology.channels) if stated is None else stated[0] / 1000
    rows = zip(topology.src, topology.dst, cost, topology.capacity, delay_us, strict=True)
    lines += [f"edge_{c} {u} {v} {weight:.17g} {bw:.17g} {us:.17g}" for c, (u, v, weight, bw, us) in enumerate(rows)]
    write_lines(path, lines)
    blanks = ["blanks in labels (_ is written)"] if written != labels else []
    return [*omitted_features(topology, "capacities", "parallel channels", "labels"), *blanks]


FORMATS = (
    FileFormat(
        "repetita",
        (".graph",),
        re.compile(r"\A\s*NODES\s+\d+\s*\n\s*label\b"),
        read_repetita,
        write_repetita,
        has_attributes=True,
    ),
)
