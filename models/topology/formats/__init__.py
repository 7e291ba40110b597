# SPDX-License-Identifier: Apache-2.0
"""File formats of topologies: one module each, which lists what it reads and writes in ``FORMATS``.

Readers raise ``OSError`` or :class:`FormatError`, whose message begins with ``path:line:``. Writers return the features
that the file does not keep and raise ``OSError`` or :class:`CannotWriteError`.
"""

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flitlab.models.readable import FilePath, Readable, Text, head_of
from flitlab.models.topology.formats.attributed import Attributes
from flitlab.models.topology.formats.common import CannotWriteError, FormatError
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.formats.misplaced import misplaced
from flitlab.models.topology.graph import Topology


def _listed() -> dict[str, FileFormat]:
    modules = (import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__))
    return {one.name: one for module in modules for one in getattr(module, "FORMATS", ())}


FORMATS = _listed()
"""Name -> format."""

READ = tuple(name for name, one in FORMATS.items() if one.read is not None)
"""Names of the formats that are read."""

WRITTEN = tuple(name for name, one in FORMATS.items() if one.write is not None)
"""Names of the formats that are written."""

if TYPE_CHECKING:
    ReadFormat = str
else:
    ReadFormat = Literal[READ]

HEAD = 10_000
"""Characters of a file in which the sign of its format is looked for."""

DEFAULT = "edgelist"
"""The format of files without a known suffix or sign."""


def suffixes(names: tuple[str, ...] = tuple(FORMATS)) -> dict[str, str]:
    """Return the format of each suffix among formats of these names."""
    formats: dict[str, str] = {}
    for name in names:
        for suffix in FORMATS[name].suffixes:
            formats.setdefault(suffix, name)
    return formats


def format_of(path: FilePath) -> str:
    """Return the format in which a file is written. Raises :class:`CannotWriteError` for an unknown suffix."""
    known = suffixes(WRITTEN)
    try:
        return known[Path(path).suffix.lower()]
    except KeyError:
        choices = ", ".join(filter(None, known))
        raise CannotWriteError(f"{path}: unknown suffix; choices: {choices} or none") from None


def write(topology: Topology, path: FilePath, format: str | None = None) -> list[str]:
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
    writer = FORMATS[format or format_of(path)].write
    if writer is None:
        raise CannotWriteError(f"{format} files are read, not written; formats are {', '.join(WRITTEN)}")
    return writer(topology, path)


def read(
    path: Readable,
    format: str | None = None,
    directed: bool | None = None,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
) -> Topology:
    """Read a topology.

    Parameters
    ----------
    path: file or text.
    format: by default, determined by the content, or else by the suffix.
    directed: whether edges are channels, in formats where edges have a direction; overrides the file.
    attributes: names of the attributes to read, in formats with attributes.

    Raises
    ------
    OSError: the file cannot be read.
    FormatError: it contains no topology in this format, or may be of several.
    """
    chosen = FORMATS[format or detected(path)]
    if attributes.has_custom_names and not chosen.has_attributes:
        some = ", ".join(name for name in READ if FORMATS[name].has_attributes)
        raise FormatError(path, 1, f"{chosen.name} files have no attributes; those of {some} have some")
    if chosen.read is None:
        advice = "; networkx reads them and writes GraphML" if chosen.name == "dot" else ""
        problem = f"{chosen.name} files are written, not read{advice}; format is one of {', '.join(READ)}"
        raise FormatError(path, 1, problem)
    return chosen.read(path, attributes, directed)


def detected(path: Readable) -> str:
    """Return the format of a file by its content, or else by its suffix.

    Raises ``OSError``, or :class:`FormatError` if the content may be of several formats.
    """
    head = _head(path)
    signed = [name for name, one in FORMATS.items() if one.sign is not None and one.sign.search(head)]
    if len(signed) > 1:
        raise FormatError(path, 1, f"may be {' or '.join(signed)}; format says which")
    if signed:
        return signed[0]
    if problem := misplaced(head):
        raise FormatError(path, 1, f"is no topology; {problem}")
    if isinstance(path, Text):
        return {"{": "json", "<": "graphml"}.get(head.lstrip()[:1], DEFAULT)
    return suffixes().get(Path(path).suffix.lower(), DEFAULT)


def _head(path: Readable) -> str:
    """Return the first :data:`HEAD` characters; '' of what is not a regular file. Raises ``OSError``."""
    if isinstance(path, Text):
        return path.content[:HEAD]
    if not Path(path).is_file():
        return ""
    return head_of(path, HEAD)


def is_topology(path: Path) -> bool:
    """Tell whether a file has the sign of a topology format. Raises ``OSError``."""
    return bool(topology_sign(_head(path)))


def topology_sign(head: str) -> str:
    """Return the topology format whose sign is in the beginning of a file; '' if there is none."""
    return next((name for name, one in FORMATS.items() if one.sign is not None and one.sign.search(head)), "")


__all__ = [
    "FORMATS",
    "READ",
    "WRITTEN",
    "Attributes",
    "CannotWriteError",
    "FileFormat",
    "FormatError",
    "ReadFormat",
    "detected",
    "format_of",
    "is_topology",
    "read",
    "suffixes",
    "topology_sign",
    "write",
]
