# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of columns into the pages that have a place for them: ``python docs/columns.py``.

A place is what stands between ``<!-- columns of TABLE -->`` and ``<!-- end -->``.
"""

import re
from pathlib import Path

from flitlab.sim.measure.columns.registry import columns

DOCS = Path(__file__).parent
PAGES = ("results.md", "datagram.md", "applications.md")
HEAD = "| column | unit | what it is |\n|---|---|---|\n"
PLACE = re.compile(r"(<!-- columns of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(name: str) -> str:
    """The columns of a table, in Markdown."""
    found = columns(name).values()  # type: ignore[arg-type]
    return HEAD + "".join(f"| `{one.name}` | {one.unit} | {one.meaning} |\n" for one in found)


def written() -> dict[Path, str]:
    """Every page, as it has to be."""
    pages = {DOCS / name: (DOCS / name).read_text("utf-8") for name in PAGES}
    return {path: PLACE.sub(_filled, text) for path, text in pages.items()}


def _filled(place: re.Match[str]) -> str:
    return f"{place[1]}\n{table(place[2])}\n{place[3]}"


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, "utf-8")
