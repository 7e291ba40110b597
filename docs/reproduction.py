"""Writes docs/reproduction.md from run folders: what every published figure and table gave at full size.

``for f in configs/paper/*.yaml; do simrun $f; done; python docs/reproduction.py runs`` runs all rows into ``runs/``
and writes the page. Rows whose folder is missing keep what the page says of them.
"""

import csv
import json
import platform
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
PAGE, ROWS = DOCS / "reproduction.md", DOCS.parent / "configs" / "paper"

HEAD = """\
# Reproduction

Every published figure or table that has a row in `configs/paper/`, run at full size: what the paper says, what was
measured here, and whether the two agree within the tolerance that the row states (in brackets; with a reason, in its
file). Nothing is tuned until it agrees; where the two differ, the reason follows. This page is written by
`python docs/reproduction.py runs`.

"""

SIGNS = {"about": "", "at_most": "at most ", "at_least": "at least ", "less_than": "below ", "greater_than": "above "}


def shown(text: str) -> str:
    """A number as short as it can be without misleading; any other text as it is."""
    try:
        return f"{float(text):.5g}" if abs(float(text)) < 1e4 else f"{float(text):,.0f}"
    except ValueError:
        return text or "-"


def section(name: str, folder: Path) -> str:
    """What one run gave."""
    manifest = json.loads((folder / "manifest.json").read_text())
    with (folder / "published.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    agreeing = sum(row["verdict"] == "agrees" for row in rows)
    lines = [f"## {name}\n", f"{agreeing} of {len(rows)} agree. {manifest['finished'][:10]}, {machine()}.\n"]
    lines += ["| where | published | measured | verdict |", "|---|---|---|---|"]
    for row in rows:
        tolerance = f" ({row['tolerance']})" if row["tolerance"] else ""
        published = f"{SIGNS[row['compare']]}{shown(row['value'] if 'value' in row else row['published'])}{tolerance}"
        verdict = row["verdict"] if row["verdict"] == "agrees" else f"**{row['verdict']}**"
        lines.append(f"| {row['where']} | {published} | {shown(row['measured'])} | {verdict} |")
    reasons = [f"* {row['where']}: {row['why']}" for row in rows if row["verdict"] != "agrees" and row["why"]]
    return "\n".join([*lines, *([""] if reasons else []), *reasons]) + "\n\n"


def machine() -> str:
    """The processor that this runs on."""
    try:
        names = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return f"{len(names) or 1} cores, {names[0] if names else platform.processor() or platform.machine()}"


def kept() -> dict[str, str]:
    """The sections that the page has now."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return {name: f"## {name}\n{body}" for name, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S)}


def main(runs: Path) -> None:
    """Writes the page."""
    sections = kept()
    for row in sorted(ROWS.glob("*.yaml")):
        if (runs / row.stem / "published.csv").exists():
            sections[row.stem] = section(row.stem, runs / row.stem)
    names = [row.stem for row in sorted(ROWS.glob("*.yaml")) if row.stem in sections]
    PAGE.write_text(HEAD + "".join(sections[name].rstrip() + "\n\n" for name in names).rstrip() + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
