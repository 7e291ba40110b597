# SPDX-License-Identifier: Apache-2.0
"""Pages in Markdown, as MkDocs and GitHub read it."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from flitlab.sim.report.reproduction.blocks import (
    Block,
    Heading,
    Item,
    Items,
    Line,
    Link,
    Page,
    Paragraph,
    Picture,
    Piece,
    Strong,
    Table,
    Verbatim,
    pieces,
)

SPECIAL = re.compile(r"([\\*\[\]#|]|\b_|_\b)")
"""Characters that Markdown obeys."""


def write(page: Page, files: dict[str, str], figures: str) -> str:
    """The text of a page. files: of all pages, by name. figures: their folder."""
    return _Writer(page.name, files, figures).text(page.blocks)


class _Writer:
    def __init__(self, name: str, files: dict[str, str], figures: str):
        self.name = name
        self.files = files
        self.above = "../" * (len(PurePosixPath(files[name]).parts) - 1)
        self.figures = figures

    def text(self, blocks: Sequence[Block]) -> str:
        return "\n\n".join(self.block(block) for block in blocks) + "\n"

    def block(self, block: Block) -> str:
        match block:
            case Heading(level, text):
                return f"{'#' * level} {_escaped(text)}"
            case Paragraph(line):
                return self.line(line)
            case Items(items, numbered):
                return "\n".join(self.item(item, f"{i}." if numbered else "*") for i, item in enumerate(items, 1))
            case Table(head, rows):
                lines = [[self.line(cell) for cell in row] for row in rows]
                return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *lines])
            case Verbatim(text):
                return "\n".join(["```text", text, "```"])
            case Picture(file, caption):
                return f"![{_escaped(caption)}]({self.above}{self.figures}/{file})"

    def item(self, item: Item, mark: str) -> str:
        return "\n".join([f"{mark} {self.line(item.line)}", *(f"    * {self.line(line)}" for line in item.below)])

    def line(self, line: Line) -> str:
        return "".join(map(self.piece, pieces(line)))

    def piece(self, piece: Piece) -> str:
        match piece:
            case Strong(text):
                return f"**{_escaped(text)}**"
            case Link(text, page, anchor):
                return f"[{_escaped(text)}]({self.address(page)}{'#' * bool(anchor)}{anchor})"
            case _:
                parts = re.split(r"`+", re.sub("[ \t\n]+", " ", piece))
                return "".join(f"`{part}`" if i % 2 else _escaped(part) for i, part in enumerate(parts))

    def address(self, page: str) -> str:
        return "" if page == self.name else self.above + self.files[page]


def _escaped(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), ("\u00a0", "&nbsp;")):
        text = text.replace(character, entity)
    return SPECIAL.sub(r"\\\1", text)
