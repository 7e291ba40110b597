# SPDX-License-Identifier: Apache-2.0
"""The elements of pages, independent of their format."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Strong:
    """Text with emphasis."""

    text: str


@dataclass(frozen=True)
class Link:
    """Text that leads to a heading. page: name of its page. anchor: of the heading, '' for the page itself."""

    text: str
    page: str
    anchor: str = ""


Piece = str | Strong | Link
"""A part of a line: plain text, in which backquotes stand around code, or one of the others."""

Line = Piece | tuple[Piece, ...]
"""A line of text."""


def pieces(line: Line) -> tuple[Piece, ...]:
    """The parts of a line."""
    return line if isinstance(line, tuple) else (line,)


@dataclass(frozen=True)
class Heading:
    """A heading. level: 1 is that of a page. anchor: what links lead to, '' where none do."""

    level: int
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text."""

    line: Line


@dataclass(frozen=True)
class Item:
    """An item of a list, with a list below it."""

    line: Line
    below: Sequence[Line] = ()


@dataclass(frozen=True)
class Items:
    """A list. numbered: from 1."""

    items: Sequence[Item]
    numbered: bool = False


@dataclass(frozen=True)
class Table:
    """A table: the heading of every column, and rows of cells."""

    head: Sequence[str]
    rows: Sequence[Sequence[Line]]


@dataclass(frozen=True)
class Verbatim:
    """Text as a machine has it: a command, a message."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A picture in the folder of figures. caption: what it shows."""

    file: str
    caption: str


Block = Heading | Paragraph | Items | Table | Verbatim | Picture


@dataclass(frozen=True)
class Page:
    """A page. name: of its file, '' for the summary."""

    name: str
    blocks: list[Block] = field(default_factory=list)
