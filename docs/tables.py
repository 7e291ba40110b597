# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of columns and keys into the pages that have a place for them: ``python docs/tables.py``.

A place is what stands between ``<!-- columns of TABLE -->``, or ``<!-- keys of SECTION -->``, and ``<!-- end -->``.
"""

import re
from pathlib import Path

from flitlab.sim.cli.components import Parameter, keys_in
from flitlab.sim.config.keys import sections
from flitlab.sim.measure.columns.registry import columns

DOCS = Path(__file__).parent
PAGES = ("results.md", "datagram.md", "applications.md", "configuration.md")
PLACE = re.compile(r"(<!-- (columns|keys) of ([\w.]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(name: str) -> str:
    """The columns of a table, in Markdown."""
    rows = "".join(f"| `{one.name}` | {one.unit} | {one.meaning} |\n" for one in columns(name).values())  # type: ignore[arg-type]
    return f"| column | unit | what it is |\n|---|---|---|\n{rows}"


def key_table(section: str) -> str:
    """The keys of a section of a configuration, in Markdown; ``top`` is the top."""
    models = {path.replace("[]", ""): model for path, model in sections()}
    return parameter_table(keys_in(models["" if section == "top" else section], ""))


def parameter_table(rows: list[Parameter]) -> str:
    """Keys in Markdown, without the columns in which nothing stands."""
    cells = [[f"`{row.key}`", row.type, row.unit, _default(row), row.meaning.replace("``", "`")] for row in rows]
    head = ["key", "type", "unit", "default", "meaning"]
    shown = [i for i in range(len(head)) if any(row[i] for row in cells)]
    lines = [[head[i] for i in shown], ["---"] * len(shown), *([row[i] for i in shown] for row in cells)]
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines)


def _default(row: Parameter) -> str:
    return f"`{row.default}`" if row.default else "required"


def written() -> dict[Path, str]:
    """Every page, as it has to be."""
    pages = {DOCS / name: (DOCS / name).read_text("utf-8") for name in PAGES}
    return {path: PLACE.sub(_filled, text) for path, text in pages.items()}


def _filled(place: re.Match[str]) -> str:
    text = table(place[3]) if place[2] == "columns" else key_table(place[3])
    return f"{place[1]}\n{text}\n{place[4]}"


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, "utf-8")
