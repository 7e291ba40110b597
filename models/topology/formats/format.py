# SPDX-License-Identifier: Apache-2.0
"""What a module says of the file formats that it reads or writes."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.attributed import Attributes
from flitlab.models.topology.graph import Topology

Reader = Callable[[Readable, Attributes, bool | None], Topology]
"""(file or text, names of attributes, whether edges are channels or None) -> the topology; see ``formats.read``."""

Writer = Callable[[Topology, FilePath], list[str]]
"""(topology, file) -> the features that the file does not keep; see ``formats.write``."""


@dataclass(frozen=True)
class FileFormat:
    """A file format of topologies. A module of this package lists its own in ``FORMATS``.

    name: as in ``format``. suffixes: of its files; the first module that lists one, in the order of names, has it by
    default. sign: found near the beginning of each of its files, and of no others; None without such a sign. read:
    None if it is only written. write: None if it is only read. has_attributes: whether its edges have named attributes.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    sign: re.Pattern[str] | None = None
    read: Reader | None = None
    write: Writer | None = None
    has_attributes: bool = False


def without_attributes(read: Callable[[Readable], Topology]) -> Reader:
    """Return the reader of a format in which edges have neither attributes nor an optional direction."""
    return lambda path, attributes, directed: read(path)
