# SPDX-License-Identifier: Apache-2.0
"""The pages of the scoreboard: a summary and a page for each paper, in Markdown, and all of it in one file of HTML."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markupsafe import Markup

from flitlab.models.files import replace_file
from flitlab.sim.experiment.scoreboard.rows import Row
from flitlab.sim.report.html.shell import data_uri, render
from flitlab.sim.report.reproduction.content import FIGURES, address, pages

__all__ = ["FIGURES", "texts", "write"]


def texts(rows: Sequence[Row]) -> dict[str, str]:
    """The pages in Markdown: file -> text. rows: in order."""
    return {address(name) if name else "reproduction.md": text for name, text in pages(rows).items()}


def write(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Writes the pages of rows, which are in order; the files of the summary and of all in one."""
    (folder / "reproduction").mkdir(parents=True, exist_ok=True)
    for name, text in texts(rows).items():
        replace_file(folder / name, text)
    whole = folder / "reproduction.html"
    replace_file(whole, _whole(pages(rows), folder / FIGURES))
    return [folder / "reproduction.md", whole]


def _whole(pages: Mapping[str, str], figures: Path) -> str:
    """All pages in one self-contained file of HTML. pages: Markdown by name. figures: the folder that holds them."""
    parts = [_rendered(name, text, figures) for name, text in pages.items()]
    return render("reproduction.html", title="Reproduction", body=Markup("\n").join(parts))


def _rendered(name: str, text: str, figures: Path) -> Markup:
    """A page as HTML, with links that lead to headings of the same file, and pictures that it holds."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = "".join(part.content for part in tokens[i + 1].children or ())
            token.attrSet("id", name if token.tag == "h1" else heading)
    for part in chain.from_iterable(token.children or () for token in tokens):
        if part.type == "link_open":
            page, _, anchor = str(part.attrGet("href")).partition("#")
            part.attrSet("href", f"#{anchor or PurePosixPath(page).stem}")
        elif part.type == "image":
            file = figures / PurePosixPath(str(part.attrGet("src"))).name
            if file.exists():
                part.attrSet("src", data_uri(file))
            else:
                part.type, part.content = "text", ""
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))
