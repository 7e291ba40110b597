# SPDX-License-Identifier: Apache-2.0
"""All pages in one self-contained file of HTML."""

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from flitlab.models.files import read_file
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

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --line: #ddd; --head: #f5f5f5 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #161616; --line: #383838; --head: #222 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 64rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-top: 3rem } h2 { font-size: 1.1rem; margin-top: 2.6rem }
a { color: inherit } code { font-size: .9em } li { margin: .2rem 0 }
.wide { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top }
th { background: var(--head) } td a { white-space: nowrap }
img { width: 560px; max-width: 100%; background: #fff; border: 1px solid var(--line); border-radius: 4px }
pre { background: var(--head); padding: .6rem .8rem; overflow-x: auto; font-size: .82rem; border-radius: 4px }
"""


def write(pages: Sequence[Page], figures: Path) -> str:
    """The text of the file. figures: the folder that holds them."""
    body = "\n".join(_block(block, figures) for page in pages for block in page.blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Reproduction</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _block(block: Block, figures: Path) -> str:
    match block:
        case Heading(level, text, anchor):
            return f'<h{level} id="{escape(anchor)}">{escape(text)}</h{level}>'
        case Paragraph(line):
            return f"<p>{_line(line)}</p>"
        case Items(items, numbered):
            return _list("ol" if numbered else "ul", [_item(item) for item in items])
        case Table(head, rows):
            return _table(head, rows)
        case Verbatim(text):
            return f"<pre>{escape(text)}</pre>"
        case Picture(file, caption):
            if not (figures / file).exists():
                return ""
            data = base64.b64encode(read_file(figures / file)).decode("ascii")
            return f'<p><img alt="{escape(caption)}" src="data:image/png;base64,{data}"></p>'


def _item(item: Item) -> str:
    return _line(item.line) + (_list("ul", [_line(line) for line in item.below]) if item.below else "")


def _list(tag: str, items: Sequence[str]) -> str:
    inner = "\n".join(f"<li>{item}</li>" for item in items)
    return f"<{tag}>\n{inner}\n</{tag}>"


def _table(head: Sequence[str], rows: Sequence[Sequence[Line]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "\n".join("".join(["<tr>", *(f"<td>{_line(cell)}</td>" for cell in row), "</tr>"]) for row in rows)
    return f'<div class="wide"><table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{lines}\n</tbody></table></div>'


def _line(line: Line) -> str:
    return "".join(map(_piece, pieces(line)))


def _piece(piece: Piece) -> str:
    match piece:
        case Strong(text):
            return f"<b>{escape(text)}</b>"
        case Link(text, page, anchor):
            return f'<a href="#{escape(anchor or page)}">{escape(text)}</a>'
        case _:
            parts = re.split(r"`+", piece)
            return "".join(f"<code>{escape(part)}</code>" if i % 2 else escape(part) for i, part in enumerate(parts))
