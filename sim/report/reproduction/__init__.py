# SPDX-License-Identifier: Apache-2.0
"""The pages of the scoreboard: a summary and a page for each paper, in Markdown, and all of it in one file of HTML."""

from collections.abc import Sequence
from pathlib import Path

from flitlab.models.files import replace_file
from flitlab.sim.experiment.scoreboard.rows import Row
from flitlab.sim.report.reproduction import html, markdown
from flitlab.sim.report.reproduction.content import pages

FIGURES = "figures/reproduction"
"""Where the figures of the rows are, beside the pages."""


def texts(rows: Sequence[Row]) -> dict[str, str]:
    """The pages in Markdown: file -> text. rows: in order."""
    every = pages(rows)
    files = {page.name: f"reproduction/{page.name}.md" if page.name else "reproduction.md" for page in every}
    return {files[page.name]: markdown.write(page, files, FIGURES) for page in every}


def write(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Writes the pages of rows, which are in order; the files of the summary and of all in one."""
    (folder / "reproduction").mkdir(parents=True, exist_ok=True)
    for name, text in texts(rows).items():
        replace_file(folder / name, text)
    whole = folder / "reproduction.html"
    replace_file(whole, html.write(pages(rows), folder / FIGURES))
    return [folder / "reproduction.md", whole]
