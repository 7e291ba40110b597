# SPDX-License-Identifier: Apache-2.0
"""File formats of topologies, by name and by suffix.

Readers raise ``OSError`` or :class:`FormatError`, whose message begins with ``path:line:``. Writers return the features
that the file does not keep and raise ``OSError`` or :class:`CannotWriteError`.
"""

import re
from pathlib import Path
from typing import Literal, get_args

from flitlab.models.readable import FilePath, Readable, Text
from flitlab.models.topology.formats.anynet import read_anynet, write_anynet
from flitlab.models.topology.formats.attributed import Attributes
from flitlab.models.topology.formats.common import CannotWriteError, FormatError
from flitlab.models.topology.formats.dot import write_dot
from flitlab.models.topology.formats.edgelist import read_edgelist, write_edgelist
from flitlab.models.topology.formats.gml import read_gml, write_gml
from flitlab.models.topology.formats.graphml import read_graphml, write_graphml
from flitlab.models.topology.formats.own_json import read_json, write_json
from flitlab.models.topology.formats.simgrid import write_simgrid
from flitlab.models.topology.formats.topobench import read_topobench, write_topobench
from flitlab.models.topology.graph import Topology

ReadFormat = Literal[
    "edgelist", "graphml", "gml", "json", "anynet", "topobench", "topobench_servers", "topobench_capacities"
]  # fmt: skip
"""File formats that can be read; they can be written too."""

Format = ReadFormat | Literal["simgrid", "dot"]
"""File formats that can be written."""

SUFFIXES: dict[str, Format] = {
    ".json": "json",
    ".graphml": "graphml",
    ".gml": "gml",
    ".anynet": "anynet",
    ".topobench": "topobench",
    ".topobench_servers": "topobench_servers",
    ".topobench_capacities": "topobench_capacities",
    ".xml": "simgrid",
    ".dot": "dot",
    ".gv": "dot",
    ".txt": "edgelist",
    ".edges": "edgelist",
    ".edgelist": "edgelist",
    "": "edgelist",
}
"""Formats by suffix. Files with other suffixes are read as edge lists, and not written."""

ATTRIBUTED = ("graphml", "gml", "edgelist")
"""Formats with named attributes of edges; of edge lists only those of networkx have them."""

BEGINS: dict[str, Format] = {"{": "json", "<": "graphml"}
"""Formats by the first character of a text; all others are edge lists."""


def format_of(path: FilePath) -> Format:
    """Return the format of a file name. Raises :class:`CannotWriteError` for an unknown suffix."""
    try:
        return SUFFIXES[Path(path).suffix.lower()]
    except KeyError:
        choices = ", ".join(filter(None, SUFFIXES))
        raise CannotWriteError(f"{path}: unknown suffix; choices: {choices} or none") from None


def write(topology: Topology, path: FilePath, format: Format | None = None) -> list[str]:
    """Write a topology.

    Parameters
    ----------
    topology: the network.
    path: the file.
    format: by default, determined by the suffix.

    Returns
    -------
    The features that the file does not keep: hosts, capacities, ...

    Raises
    ------
    OSError: the file cannot be written.
    CannotWriteError: the file would describe another network, or the suffix is unknown.
    """
    match format or format_of(path):
        case "json":
            return write_json(topology, path)
        case "graphml":
            return write_graphml(topology, path)
        case "gml":
            return write_gml(topology, path)
        case "anynet":
            return write_anynet(topology, path)
        case "simgrid":
            return write_simgrid(topology, path)
        case "dot":
            return write_dot(topology, path)
        case "topobench" | "topobench_servers" | "topobench_capacities" as layout:
            return write_topobench(topology, path, layout)
        case _:
            return write_edgelist(topology, path)


def read(
    path: Readable,
    format: ReadFormat | None = None,
    directed: bool | None = None,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
) -> Topology:
    """Read a topology.

    Parameters
    ----------
    path: file or text.
    format: by default, determined by the suffix; of a text, and of a file *.xml, by its beginning.
    directed: whether edges are channels, in formats where edges have a direction; overrides the file.
    attributes: names of the attributes to read, in formats with attributes.

    Raises
    ------
    OSError: the file cannot be read.
    FormatError: it contains no topology in this format.
    """
    chosen = format or _begins_as(path)
    if attributes.has_custom_names and chosen not in ATTRIBUTED:
        raise FormatError(path, 1, f"{chosen} files have no attributes; those of {', '.join(ATTRIBUTED)} have some")
    match chosen:
        case "json":
            return read_json(path)
        case "graphml":
            return read_graphml(path, attributes, directed)
        case "gml":
            return read_gml(path, attributes, directed)
        case "anynet":
            return read_anynet(path)
        case "topobench" | "topobench_servers" | "topobench_capacities" as layout:
            return read_topobench(path, layout)
        case "simgrid" | "dot" as unread:
            choices = ", ".join(get_args(ReadFormat))
            advice = "; networkx reads them and writes GraphML" if unread == "dot" else ""
            problem = f"{unread} files are written, not read{advice}; format is one of {choices}"
            raise FormatError(path, 1, _SNDLIB if _begins(path, "<network") else problem)
        case _:
            return read_edgelist(path, directed, attributes)


_SNDLIB = "SNDlib's XML is not read; its GML is, or an edge list of the source and target of its links"


def _begins_as(path: Readable) -> Format:
    """Detect the format of a file from its name, or of a text from its beginning."""
    if isinstance(path, Text):
        is_gml = re.search(r"^\s*graph\s*\[", path.content, re.MULTILINE)
        return BEGINS.get(path.content.lstrip()[:1], "gml" if is_gml else "edgelist")
    by_suffix = SUFFIXES.get(Path(path).suffix.lower(), "edgelist")
    return "graphml" if by_suffix == "simgrid" and _begins(path, "<graphml") else by_suffix


def _begins(path: Readable, element: str) -> bool:
    """Whether an XML file has an element near its beginning. Raises ``OSError``."""
    if isinstance(path, Text):
        return element in path.content[:2000]
    with open(path, "rb") as file:
        return element.encode() in file.read(2000)


__all__ = [
    "SUFFIXES",
    "Attributes",
    "CannotWriteError",
    "Format",
    "FormatError",
    "ReadFormat",
    "format_of",
    "read",
    "read_anynet",
    "read_edgelist",
    "read_gml",
    "read_graphml",
    "read_json",
    "read_topobench",
    "write",
    "write_anynet",
    "write_dot",
    "write_edgelist",
    "write_gml",
    "write_graphml",
    "write_json",
    "write_simgrid",
    "write_topobench",
]
