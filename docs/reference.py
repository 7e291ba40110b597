# SPDX-License-Identifier: Apache-2.0
"""mkdocs hook: the pages under reference/ that follow from the code, and the notebooks as pages.

Nothing of it is kept in a file, so nothing of it can be out of date.
"""

import base64
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))  # what is documented is what lies here
os.environ["COLUMNS"] = "100"  # for --help

from docs.tables import parameter_table, with_columns
from flitlab.sim.cli.components import LISTED, documentation, kinds, parameters
from flitlab.sim.cli.parser import commands
from flitlab.sim.experiment.scoreboard.rows import PAPERS

TITLES = {
    "topology": ("Topologies", "topology: {{kind: {}}}"),
    "routing": ("Routings", "routing: {{kind: {}}}"),
    "traffic": ("Traffic", "traffic: {{kind: {}}}"),
    "switching": ("Switching modes", "switching: {{mode: {}}}"),
    "transport": ("Transports", "transport: {{kind: {}}}"),
    "application": ("Applications", "application: {{kind: {}}}"),
    "placement": ("Placements", "placement: {{kind: {}}}"),
    "metric": ("Metrics", "metrics: [{}]"),
    "ceiling": ("Ceilings", "ceilings: [{}]"),
    "algorithm": ("Algorithms of collectives", "collective: {{algorithm: {}}}"),
    "column": ("Columns", "{}"),
    "figure": ("Figures", "outputs: {{figures: [{}]}}"),
}
"""Category -> title of its page, and how a configuration names one of its kinds."""

SEE = {
    "topology": "[Topology families](../topologies.md) has a picture of each.",
    "routing": "[Routing and deadlock](../routing.md) compares them and explains VC policies.",
    "traffic": "[Traffic](../traffic.md) compares them.",
    "switching": "[The model](../model.md) has them; [their keys](../configuration.md#switching-modes).",
    "transport": "[Datagrams](../datagram.md) explains them.",
    "application": "[Applications](../applications.md) explains skeletons, formats and results.",
    "placement": "[Applications](../applications.md#placement) compares them.",
    "metric": "They are asked for under `metrics:` or by `simrun topology ... --metrics`.",
    "ceiling": "[Fluid ceilings](../fluid.md) has their linear programs and certificates.",
    "algorithm": "[Collectives](../collectives.md#simulate-one) explains them and compares them with what is possible.",
    "column": "[Files of a run](../results.md) has them by table; [a plugin](../howto/column.md) may add some.",
    "figure": "[Make a figure for a paper](../howto/figure.md) says how to ask for them, and of panels and axes; "
    "the [gallery](../gallery.md) has the commands of the pictures.",
}
"""Category -> where to read on."""


SENTENCE = 60
"""Letters beyond which the text of a cell counts as a sentence."""

PAPER = rf"\b({'|'.join(PAPERS).upper()})\b"
"""A paper whose results are reproduced, as sources name it."""

FIGURES = Path(__file__).with_name("figures")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    pages = {f"reference/{category}.md": components(category) for category in LISTED}
    pages["reference/commands.md"] = command_line()
    for notebook in sorted((Path(config.docs_dir) / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{notebook.stem}.md"] = notebook_page(json.loads(notebook.read_text("utf-8")))
        files.remove(files.src_uris[f"notebooks/{notebook.name}"])
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to notebooks lead to their pages, tables of columns are at their places, and lists are written as mkdocs
    reads them, which is not as others do.
    """
    return "\n".join(lists_indented(with_columns(markdown).replace(".ipynb)", ".md)").splitlines()))


def lists_indented(lines: list[str]) -> Iterator[str]:
    """Lines with what belongs to an item indented by four, and an empty line before an item that follows a long one."""
    offset, fenced, long = 0, False, False
    for line in lines:
        fenced ^= line.startswith("```")
        if (item := re.match(r"[*-] |\d\. ", line)) and not fenced:
            if long:
                yield ""
            offset, long = len(item[0]), False
        elif offset and not line:
            long = True
        elif line.startswith(" " * max(offset, 1)):
            line = " " * (4 - offset if offset else 0) + line
        else:
            offset, long = 0, False
        yield line


def on_page_content(html: str, **_: Any) -> str:
    """Roles of docstrings, :class:`~a.b.C`, become plain names, and no word of a table is broken at its hyphens."""
    plain = re.sub(r":\w+:<code>~?(?:[\w.]+\.)?(\w+)</code>", r"<code>\1</code>", html)
    return re.sub(r"<(t[dh])\b([^>]*>.*?)</\1>", _cell, plain, flags=re.DOTALL)


def _cell(cell: re.Match[str]) -> str:
    """A cell of a table whose words are whole, and which says whether it holds a sentence, that needs room."""
    sentence = ' class="sentence"' if len(re.sub(r"<[^>]*>", "", cell[0])) > SENTENCE else ""
    return re.sub(r">[^<]+", _whole, f"<{cell[1]}{sentence}{cell[2]}</{cell[1]}>")


def _whole(text: re.Match[str]) -> str:
    """A text with its words kept in one line each where a browser might break them."""
    return re.sub(r"(?<=[>\s])[^>\s]*(?:[-/:]|&lt;)[^\s]*", r'<span class="whole">\g<0></span>', text[0])


def picture(category: str, kind: str) -> str:
    """What a kind of figure looks like, where the gallery has a picture of its name; '' where not."""
    file = f"gallery/{kind}.png"
    return f"![{kind}](../figures/{file})\n\n" if category == "figure" and (FIGURES / file).is_file() else ""


def components(category: str) -> str:
    """Every kind of a category: what it is, its parameters with types and defaults, an example, the source."""
    title, form = TITLES[category]
    parts = [f"# {title}\n\nWritten from the code, as `simrun show {category} <kind>` prints it. {SEE[category]}\n"]
    for kind in kinds(category):
        text = documentation(category, kind)
        if category == "column":
            text = re.sub(r"\]\((?!https?:)", "](../", text)  # links of columns are those of docs/results.md
        text = markdown(text)
        known = (
            ""
            if category in ("column", "figure")
            else (parameter_table(rows) if (rows := parameters(category, kind)) else "No parameters.\n")
        )
        parts.append(f"## {kind}\n\n`{form.format(kind)}`\n\n{text}\n\n{picture(category, kind)}{known}")
    return "\n".join(parts)


def markdown(docstring: str) -> str:
    """A docstring of this project as Markdown: examples become blocks, lists get room, links stay what they say, and
    papers lead to their pages.
    """
    text = docstring.replace("``", "`")
    parts = text.split("`")
    parts[::2] = [re.sub(r"\*(?! )|(?<=\S)\*|(?<=\S )\*", r"\\*", part) for part in parts[::2]]  # powers and products
    parts[::2] = [
        re.sub(PAPER, lambda found: f"[{found[0]}](../reproduction/{found[0].lower()}.md)", part) for part in parts[::2]
    ]
    text = "`".join(parts)
    text = re.sub(r":\w+:`~?([^`]+)`", lambda found: f"`{found[1].rpartition('.')[2]}`", text)
    text = re.sub(r"([^\n])\n(\* )", r"\1\n\n\2", text)
    text = re.sub(r"\n  (?=\S)", r"\n    ", text)
    text = re.sub(r"Examples?: `([^`]+)`", lambda found: f"Example:\n\n```yaml\n{unwrapped(found[1])}\n```\n", text)
    return re.sub(r"(?<![<(\w/])(https?://[^\s,;)]*[^\s,;).])", r"<\1>", text)


def unwrapped(text: str) -> str:
    """A line that a docstring broke in two."""
    return " ".join(text.split())


def command_line() -> str:
    """What ``--help`` says of every command."""
    parts = ["# Commands\n\nWhat `simrun COMMAND --help` prints.\n"]
    for name, parser in commands().items():
        about = inspect.cleandoc(parser.description or "")
        parts.append(f"## {name}\n\n{about}\n\n```text\n{parser.format_help()}```\n")
    return "\n".join(parts)


def notebook_page(notebook: dict[str, Any]) -> str:
    """A notebook with its recorded outputs as a page."""
    return "\n\n".join(part for cell in notebook["cells"] for part in cell_parts(cell)) + "\n"


def cell_parts(cell: dict[str, Any]) -> list[str]:
    """A cell in Markdown, and what it printed and showed."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    parts = [f"```python\n{source}\n```"]
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            image = base64.b64encode(base64.b64decode("".join(data["image/png"]))).decode("ascii")
            parts.append(f'<img alt="figure" src="data:image/png;base64,{image}">')
        elif text := "".join(output.get("text", data.get("text/plain", []))).rstrip():
            parts.append(f"```text\n{text}\n```")
    return parts
