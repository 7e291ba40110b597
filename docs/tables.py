# SPDX-License-Identifier: Apache-2.0
"""The tables of columns and of keys in the pages.

The site has a table of columns where a page says ``<!-- columns of TABLE -->``; it is kept in no file. ``python
docs/tables.py`` writes the tables of keys, between ``<!-- keys of SECTION -->`` and ``<!-- end -->``.
"""

import re
from pathlib import Path

from flitlab.sim.cli.components import Parameter, keys_in
from flitlab.sim.config.schema import sections
from flitlab.sim.measure.columns.registry import columns

DOCS = Path(__file__).parent
PAGE = DOCS / "configuration.md"
PLACE = re.compile(r"(<!-- keys of ([\w.]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_columns(text: str) -> str:
    """A page with its tables of columns."""
    return re.sub(r"<!-- columns of (\w+) -->", lambda place: table(place[1]), text)


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


def written() -> str:
    """The page of the keys, as it has to be."""
    return PLACE.sub(lambda place: f"{place[1]}\n{key_table(place[2])}\n{place[3]}", PAGE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
